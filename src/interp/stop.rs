//! Why a launch stopped, as data; `Display` renders it as one sentence.

use std::fmt;

use super::check::Finding;
use crate::error::{Error, ErrorKind};

pub use super::reason::{BadAccess, Place, Reason, Waiting};
pub use super::vocabulary::{AccessKind, Space};

/// A launch that did not end. Memory keeps what was written until then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// The kernel's name.
    pub kernel: String,
    /// Which instruction of which thread; `None` where nothing ran, or it was all of the launch.
    pub place: Option<Place>,
    /// What was wrong.
    pub reason: Reason,
    /// What the checkers had found until then.
    pub findings: Vec<Finding>,
    /// How many they had found besides.
    pub more_findings: u64,
    /// What `printf` had printed in the blocks up to the one that stopped, as [`Report::printed`](super::Report) has it.
    pub printed: String,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.place, &self.reason) {
            // It names the kernel itself.
            (_, Reason::Unsupported(error)) => error.fmt(f),
            (Some(place), reason) => write!(f, "kernel {:?} stopped at {place} {reason}", self.kernel),
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
