//! Chooses the way of a copy between two ranks.

use super::{Gpus, Move};

/// The way of a copy between two ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// A kernel of the source's rank stores into the memory of the other one.
    Kernel,
    /// Through pinned memory of the host.
    Host,
}

impl Way {
    /// Returns the way of a copy: the one rule that all exchanges go by.
    pub(super) fn of(gpus: &Gpus, part: &Move) -> Self {
        if gpus.reaches(part.from, part.to) { Self::Kernel } else { Self::Host }
    }
}
