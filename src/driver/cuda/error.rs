//! Maps the driver's result codes to a kind of error and the next step.

use std::fmt;

use crate::error::{Error, ErrorKind};

/// The codes that this crate distinguishes, by their number in `cuda.h`.
pub(super) mod code {
    pub(in crate::driver::cuda) const SUCCESS: u32 = 0;
    pub(in crate::driver::cuda) const INVALID_VALUE: u32 = 1;
    pub(in crate::driver::cuda) const OUT_OF_MEMORY: u32 = 2;
    pub(in crate::driver::cuda) const STUB_LIBRARY: u32 = 34;
    pub(in crate::driver::cuda) const DEVICE_UNAVAILABLE: u32 = 46;
    pub(in crate::driver::cuda) const NO_DEVICE: u32 = 100;
    pub(in crate::driver::cuda) const INVALID_DEVICE: u32 = 101;
    pub(in crate::driver::cuda) const INVALID_IMAGE: u32 = 200;
    pub(in crate::driver::cuda) const INVALID_CONTEXT: u32 = 201;
    pub(in crate::driver::cuda) const NO_BINARY_FOR_GPU: u32 = 209;
    pub(in crate::driver::cuda) const ECC_UNCORRECTABLE: u32 = 214;
    pub(in crate::driver::cuda) const INVALID_PTX: u32 = 218;
    pub(in crate::driver::cuda) const NVLINK_UNCORRECTABLE: u32 = 220;
    pub(in crate::driver::cuda) const JIT_COMPILER_NOT_FOUND: u32 = 221;
    pub(in crate::driver::cuda) const UNSUPPORTED_PTX_VERSION: u32 = 222;
    pub(in crate::driver::cuda) const CONTAINED: u32 = 226;
    pub(in crate::driver::cuda) const OPERATING_SYSTEM: u32 = 304;
    pub(in crate::driver::cuda) const INVALID_HANDLE: u32 = 400;
    pub(in crate::driver::cuda) const ILLEGAL_STATE: u32 = 401;
    pub(in crate::driver::cuda) const NOT_FOUND: u32 = 500;
    pub(in crate::driver::cuda) const NOT_READY: u32 = 600;
    pub(in crate::driver::cuda) const ILLEGAL_ADDRESS: u32 = 700;
    pub(in crate::driver::cuda) const LAUNCH_OUT_OF_RESOURCES: u32 = 701;
    pub(in crate::driver::cuda) const LAUNCH_TIMEOUT: u32 = 702;
    pub(in crate::driver::cuda) const CONTEXT_IS_DESTROYED: u32 = 709;
    pub(in crate::driver::cuda) const ASSERT: u32 = 710;
    pub(in crate::driver::cuda) const HARDWARE_STACK_ERROR: u32 = 714;
    pub(in crate::driver::cuda) const HOST_MEMORY_ALREADY_REGISTERED: u32 = 712;
    pub(in crate::driver::cuda) const HOST_MEMORY_NOT_REGISTERED: u32 = 713;
    pub(in crate::driver::cuda) const LAUNCH_FAILED: u32 = 719;
    pub(in crate::driver::cuda) const SYSTEM_NOT_READY: u32 = 802;
    pub(in crate::driver::cuda) const SYSTEM_DRIVER_MISMATCH: u32 = 803;
    pub(in crate::driver::cuda) const NOT_SUPPORTED: u32 = 801;
    pub(in crate::driver::cuda) const COMPAT_NOT_SUPPORTED_ON_DEVICE: u32 = 804;
    pub(in crate::driver::cuda) const STREAM_CAPTURE_UNSUPPORTED: u32 = 900;
    pub(in crate::driver::cuda) const STREAM_CAPTURE_WRONG_THREAD: u32 = 908;
    pub(in crate::driver::cuda) const GRAPH_EXEC_UPDATE_FAILURE: u32 = 910;
}

/// Whether this code means that the context is lost: the driver answers every later call with it.
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
    Error::new(kind, format!("{call}: {text}; {advice}"))
}

fn meaning(code: u32) -> (ErrorKind, &'static str) {
    use code::*;
    match code {
        INVALID_VALUE => (ErrorKind::InvalidArgument, "check the operands against the device's limits"),
        OUT_OF_MEMORY => (ErrorKind::OutOfMemory, "free buffers, or use a smaller size"),
        STUB_LIBRARY => (
            ErrorKind::Unavailable,
            "the toolkit's stub library was found in place of the driver's; take its folder off the loader's path",
        ),
        NO_DEVICE => (ErrorKind::Unavailable, "check `nvidia-smi` and CUDA_VISIBLE_DEVICES"),
        INVALID_DEVICE => (ErrorKind::Unavailable, "`warpstride devices` lists those there are"),
        DEVICE_UNAVAILABLE => (ErrorKind::Unavailable, "another process has the device to itself"),
        SYSTEM_DRIVER_MISMATCH | COMPAT_NOT_SUPPORTED_ON_DEVICE => {
            (ErrorKind::Unavailable, "the driver's library and kernel module differ; reboot or reinstall the driver")
        }
        OPERATING_SYSTEM | SYSTEM_NOT_READY => {
            (ErrorKind::Unavailable, "check that the driver's kernel module is loaded: `nvidia-smi`")
        }
        INVALID_PTX | INVALID_IMAGE => (ErrorKind::UnsupportedPtx, "correct the PTX where the message points"),
        NO_BINARY_FOR_GPU => {
            (ErrorKind::UnsupportedPtx, "its `.target` must be no newer than the device's compute capability")
        }
        UNSUPPORTED_PTX_VERSION => {
            (ErrorKind::DriverTooOld, "the PTX is newer than the driver; install a newer driver")
        }
        JIT_COMPILER_NOT_FOUND => {
            (ErrorKind::Unavailable, "the driver's PTX compiler, libnvidia-ptxjitcompiler, is missing; install it")
        }
        INVALID_HANDLE | INVALID_CONTEXT | CONTEXT_IS_DESTROYED => {
            (ErrorKind::InvalidHandle, "use a handle only with the driver that made it, and until it is destroyed")
        }
        HOST_MEMORY_ALREADY_REGISTERED => (ErrorKind::InvalidArgument, "register memory once"),
        HOST_MEMORY_NOT_REGISTERED => {
            (ErrorKind::InvalidHandle, "unregister what was registered with this driver, once")
        }
        NOT_FOUND => (ErrorKind::InvalidArgument, "check the spelling against the PTX"),
        ILLEGAL_STATE => (ErrorKind::InvalidArgument, "begin a capture once, and end it once"),
        STREAM_CAPTURE_UNSUPPORTED..=STREAM_CAPTURE_WRONG_THREAD => (
            ErrorKind::InvalidArgument,
            "a capture takes launches, copies and fills alone; do everything else before it begins or after it has ended",
        ),
        LAUNCH_OUT_OF_RESOURCES => (ErrorKind::InvalidArgument, "use fewer threads in a block"),
        LAUNCH_TIMEOUT => (ErrorKind::KernelFault, "the kernel ran longer than the display driver allows"),
        ILLEGAL_ADDRESS | ASSERT | HARDWARE_STACK_ERROR..=LAUNCH_FAILED => (
            ErrorKind::KernelFault,
            "a kernel stopped and the device is lost to this process; run the same on the software GPU \
             (`Backend::Soft`) to learn which access it was",
        ),
        ECC_UNCORRECTABLE | NVLINK_UNCORRECTABLE | CONTAINED => (
            ErrorKind::Driver,
            "the hardware failed and the device is lost to this process; look for the fault in `nvidia-smi -q` and the system's \
             log, and start again, on another device if it comes back",
        ),
        _ => (ErrorKind::Driver, "look the code up under CUresult in CUDA's documentation, and check `nvidia-smi`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_fault_is_sticky_and_an_argument_is_not() {
        for code in [code::ILLEGAL_ADDRESS, 715, 716, 717, 718, code::LAUNCH_FAILED] {
            assert!(is_sticky(code), "{code}");
            assert_eq!(error(code, "cuStreamSynchronize", "?").kind(), ErrorKind::KernelFault, "{code}");
        }
        for code in [code::INVALID_VALUE, code::OUT_OF_MEMORY, code::NOT_READY, code::INVALID_PTX] {
            assert!(!is_sticky(code), "{code}");
        }
    }

    #[test]
    fn a_code_that_no_header_knows_is_an_error_like_any_other() {
        let error = error(4242, "cuMemAlloc(1 byte)", "CUDA error 4242");
        assert_eq!(error.kind(), ErrorKind::Driver);
        assert!(error.to_string().starts_with("cuMemAlloc(1 byte): CUDA error 4242; look the code up"), "{error}");
    }

    #[test]
    fn failed_hardware_is_no_fault_of_a_kernel() {
        for code in [code::ECC_UNCORRECTABLE, code::NVLINK_UNCORRECTABLE, code::CONTAINED] {
            assert!(is_sticky(code), "{code}");
            let error = error(code, "cuStreamSynchronize", "?");
            assert_eq!(error.kind(), ErrorKind::Driver, "{code}");
            assert!(error.to_string().contains("hardware"), "{error}");
        }
    }

    #[test]
    fn ptx_that_is_too_new_blames_the_driver_and_other_ptx_itself() {
        assert_eq!(error(code::UNSUPPORTED_PTX_VERSION, "", "").kind(), ErrorKind::DriverTooOld);
        assert_eq!(error(code::INVALID_PTX, "", "").kind(), ErrorKind::UnsupportedPtx);
        assert_eq!(error(code::NO_BINARY_FOR_GPU, "", "").kind(), ErrorKind::UnsupportedPtx);
    }
}
