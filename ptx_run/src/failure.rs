//! The failure of a call, as the number that CUDA has for it, and a sentence.

use std::ffi::c_int;

use warpstride_interp::stop::{Reason, Stop};
use warpstride_interp::{Error, ErrorKind};

/// Numbers of CUDA's results, under their names there.
pub(crate) mod code {
    use std::ffi::c_int;

    pub(crate) const SUCCESS: c_int = 0;
    pub(crate) const INVALID_VALUE: c_int = 1;
    pub(crate) const OUT_OF_MEMORY: c_int = 2;
    pub(crate) const INVALID_PTX: c_int = 218;
    pub(crate) const NOT_FOUND: c_int = 500;
    pub(crate) const ILLEGAL_ADDRESS: c_int = 700;
    pub(crate) const LAUNCH_TIMEOUT: c_int = 702;
    pub(crate) const MISALIGNED_ADDRESS: c_int = 716;
    pub(crate) const LAUNCH_FAILED: c_int = 719;
    pub(crate) const UNKNOWN: c_int = 999;
}

/// Why a call failed.
pub(crate) struct Failure {
    pub(crate) code: c_int,
    pub(crate) why: String,
}

impl Failure {
    pub(crate) fn new(code: c_int, why: impl Into<String>) -> Self {
        Self { code, why: why.into() }
    }

    /// An argument that no launch accepts.
    pub(crate) fn value(why: impl Into<String>) -> Self {
        Self::new(code::INVALID_VALUE, why)
    }

    /// A panic of this library.
    pub(crate) fn panic() -> Self {
        Self::new(code::UNKNOWN, "the software GPU panicked; please report this as a bug")
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match error.kind() {
            ErrorKind::OutOfMemory => code::OUT_OF_MEMORY,
            ErrorKind::UnsupportedPtx => code::INVALID_PTX,
            _ => code::INVALID_VALUE,
        };
        Self::new(code, error.to_string())
    }
}

impl From<Box<Stop>> for Failure {
    fn from(stop: Box<Stop>) -> Self {
        let code = match &stop.reason {
            Reason::Unsupported(_) | Reason::Launch(_) => return Error::from(*stop).into(),
            Reason::OutOfBounds(_) | Reason::ReadOnly(_) | Reason::BadFree { .. } => code::ILLEGAL_ADDRESS,
            Reason::Misaligned(_) => code::MISALIGNED_ADDRESS,
            Reason::WorkLimit(_) | Reason::LaunchLimit { .. } | Reason::GridLimit { .. } => code::LAUNCH_TIMEOUT,
            _ => code::LAUNCH_FAILED,
        };
        let mut why = stop.to_string();
        if matches!(stop.reason, Reason::OutOfBounds(_)) {
            why +=
                "; kernels can use the ranges of memory that the program can write and that an 8-byte argument lies in";
        }
        Self::new(code, why)
    }
}
