//! Memory that was written and never read.

use std::ops::{Add, AddAssign};

/// How much device memory was written and never read: see
/// [`Memory::unread`](super::Memory::unread).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unread {
    /// The allocations that have such bytes.
    pub allocations: u64,
    /// The bytes.
    pub bytes: u64,
}

impl Add for Unread {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let Self { allocations, bytes } = other;
        Self { allocations: self.allocations.saturating_add(allocations), bytes: self.bytes.saturating_add(bytes) }
    }
}

impl AddAssign for Unread {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
