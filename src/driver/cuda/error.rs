//! Maps the driver's result codes to a kind of error and the next step.

use std::fmt;

use crate::error::{Error, ErrorKind};

/// The codes that this crate distinguishes, by their number in `cuda.h`: first those that are not
/// errors here, then the kinds of errors and the next steps, each with its codes.
macro_rules! codes {
    ($($other:ident = $value:literal),+; $($kind:ident $advice:literal:
        $($name:ident = $number:literal $(..= $last:ident = $end:literal)?),+;)+) => {
        pub(super) mod code {
            $(pub(in crate::driver::cuda) const $other: u32 = $value;)+
            $($(
                pub(in crate::driver::cuda) const $name: u32 = $number;
                $(pub(in crate::driver::cuda) const $last: u32 = $end;)?
            )+)+
        }

        fn meaning(code: u32) -> (ErrorKind, &'static str) {
            use code::*;
            match code {
                $($($name $(..= $last)?)|+ => (ErrorKind::$kind, $advice),)+
                _ => (ErrorKind::Driver, "look the code up under CUresult in CUDA's documentation, and check \
                                          `nvidia-smi`"),
            }
        }
    };
}

codes! {
    INVALID_RESOURCE_TYPE = 914, INVALID_RESOURCE_CONFIGURATION = 915,
    SUCCESS = 0, NOT_READY = 600, PEER_ACCESS_ALREADY_ENABLED = 704, NOT_SUPPORTED = 801, GRAPH_EXEC_UPDATE_FAILURE = 910;

    InvalidArgument "check the operands against the device's limits": INVALID_VALUE = 1;
    InvalidArgument "register memory once": HOST_MEMORY_ALREADY_REGISTERED = 712;
    InvalidArgument "check the spelling against the PTX": NOT_FOUND = 500;
    InvalidArgument "begin a capture once, and end it once": ILLEGAL_STATE = 401;
    InvalidArgument "a capture takes launches, copies and fills alone; do everything else before it begins or after it \
                     has ended":
        STREAM_CAPTURE_UNSUPPORTED = 900 ..= STREAM_CAPTURE_WRONG_THREAD = 908;
    InvalidArgument "use fewer threads in a block": LAUNCH_OUT_OF_RESOURCES = 701;
    InvalidArgument "its blocks wait for each other, and this device cannot run so many at once; make the plan for this \
                     device (`Target::of`)":
        COOPERATIVE_LAUNCH_TOO_LARGE = 720;
    OutOfMemory "free buffers, or use a smaller size": OUT_OF_MEMORY = 2;
    Unavailable "the toolkit's stub library was found in place of the driver's; take its folder off the loader's path":
        STUB_LIBRARY = 34;
    Unavailable "check `nvidia-smi` and CUDA_VISIBLE_DEVICES": NO_DEVICE = 100;
    Unavailable "`warpstride devices` lists those there are": INVALID_DEVICE = 101;
    Unavailable "another process has the device to itself": DEVICE_UNAVAILABLE = 46;
    Unavailable "the driver's library and kernel module differ; reboot or reinstall the driver":
        SYSTEM_DRIVER_MISMATCH = 803, COMPAT_NOT_SUPPORTED_ON_DEVICE = 804;
    Unavailable "check that the driver's kernel module is loaded: `nvidia-smi`":
        OPERATING_SYSTEM = 304, SYSTEM_NOT_READY = 802;
    Unavailable "the driver's PTX compiler, libnvidia-ptxjitcompiler, is missing; install it":
        JIT_COMPILER_NOT_FOUND = 221;
    UnsupportedPtx "correct the PTX where the message points": INVALID_PTX = 218, INVALID_IMAGE = 200;
    UnsupportedPtx "its `.target` must be no newer than the device's compute capability": NO_BINARY_FOR_GPU = 209;
    DriverTooOld "the PTX is newer than the driver; install a newer driver": UNSUPPORTED_PTX_VERSION = 222;
    InvalidHandle "use a handle only with the driver that made it, and until it is destroyed":
        INVALID_HANDLE = 400, INVALID_CONTEXT = 201, CONTEXT_IS_DESTROYED = 709;
    InvalidHandle "unregister what was registered with this driver, once": HOST_MEMORY_NOT_REGISTERED = 713;
    KernelFault "the kernel ran longer than the display driver allows": LAUNCH_TIMEOUT = 702;
    KernelFault "a kernel stopped and the device is lost to this process; run the same on the software GPU \
                 (`Backend::Soft`) to learn which access it was":
        ILLEGAL_ADDRESS = 700, ASSERT = 710, HARDWARE_STACK_ERROR = 714 ..= LAUNCH_FAILED = 719;
    Driver "the hardware failed and the device is lost to this process; look for the fault in `nvidia-smi -q` and the \
            system's log, and start again, on another device if it comes back":
        ECC_UNCORRECTABLE = 214, NVLINK_UNCORRECTABLE = 220, CONTAINED = 226;
}

/// Returns whether this code means that the context is lost: the driver answers every later call
/// with it.
pub(super) fn is_sticky(code: u32) -> bool {
    matches!(
        code,
        code::ECC_UNCORRECTABLE
            | code::NVLINK_UNCORRECTABLE
            | code::CONTAINED
            | code::ILLEGAL_ADDRESS
            | code::LAUNCH_TIMEOUT
            | code::ASSERT
            | code::HARDWARE_STACK_ERROR..=code::LAUNCH_FAILED
    )
}

/// Returns the error for a `call` that answered `code`, which the driver describes as `text`.
pub(super) fn error(code: u32, call: impl fmt::Display, text: impl fmt::Display) -> Error {
    let (kind, advice) = meaning(code);
    Error::advised(kind, format!("{call}: {text}"), advice)
}

#[cfg(test)]
mod tests;
