//! Why a launch stopped, as data; `Display` renders it as one sentence.
//!
//! ```
//! use warpstride_interp::stop::Reason;
//! use warpstride_interp::{Args, Config, Memory, Module, run};
//! use warpstride_interp::launch_shape::LaunchShape;
//!
//! let ptx = "
//!     .version 7.0
//!     .target sm_75
//!     .address_size 64
//!     .visible .entry last(.param .u64 out) {
//!         .reg .b32 %r<2>;
//!         .reg .b64 %rd<2>;
//!         ld.param.u64 %rd1, [out];
//!         mov.u32 %r1, %tid.x;
//!         st.global.u32 [%rd1], %r1;
//!         ret;
//!     }";
//! let module = Module::parse(ptx)?;
//! let kernel = module.kernel("last").expect("it is there");
//! let params = Args::new(kernel).value(0_u64)?.finish()?; // a null pointer
//! let shape = LaunchShape { grid: [1, 1, 1], block: [1, 1, 1], dynamic_shared: 0 };
//! let stop = run(kernel, &shape, &params, &Memory::new(1 << 20), &Config::default()).unwrap_err();
//! assert!(matches!(&stop.reason, Reason::OutOfBounds(access) if access.address == 0));
//! assert_eq!(stop.place.as_ref().expect("an instruction stopped").line, 10);
//! println!("{stop}");
//! # Ok::<(), warpstride_interp::Error>(())
//! ```

use std::fmt;

use super::check::Finding;
use crate::error::{Error, ErrorKind};

pub use super::mem::Nearest;
pub use super::reason::{BadAccess, Place, Reason, Waiting};
pub use super::vocabulary::{AccessKind, Space};

/// A launch that did not finish. Memory keeps everything written before the stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// The kernel's name.
    pub kernel: String,
    /// The instruction and the thread. `None` if nothing ran, or if the whole launch was at fault.
    pub place: Option<Place>,
    /// The fault.
    pub reason: Reason,
    /// The findings of the checkers up to the stop.
    pub findings: Vec<Finding>,
    /// The number of further findings that are not in `findings`.
    pub more_findings: u64,
    /// The `printf` output of the blocks up to the one that stopped, in the form of
    /// [`Report::printed`](super::Report).
    pub printed: String,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.place, &self.reason) {
            // The error already names the kernel.
            (_, Reason::Unsupported(error)) => error.fmt(f),
            (Some(place), reason) => {
                write!(f, "kernel {:?} stopped at {place} ", self.kernel)?;
                reason.tell(f, place.language())
            }
            (None, reason @ Reason::LaunchLimit { .. }) => write!(f, "kernel {:?} was stopped: {reason}", self.kernel),
            (None, reason) => write!(f, "kernel {:?} cannot be launched: {reason}", self.kernel),
        }
    }
}

impl std::error::Error for Stop {}

impl From<Stop> for Error {
    fn from(stop: Stop) -> Self {
        let kind = match &stop.reason {
            Reason::Unsupported(error) => error.kind(),
            Reason::Launch(_) | Reason::GridLimit { .. } => ErrorKind::InvalidArgument,
            _ => ErrorKind::KernelFault,
        };
        Error::new(kind, stop.to_string())
    }
}
