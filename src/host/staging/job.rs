//! One copy, which several threads share piece by piece.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::policy::Direction;

/// A copy between pageable memory of the host and the device, cut into pieces of one slot each.
pub(super) struct Job {
    pub(super) direction: Direction,
    pub(super) device: u64,
    /// The memory of the host, which an upload only reads.
    pub(super) host: *mut u8,
    pub(super) bytes: usize,
    /// Bytes of a piece.
    pub(super) piece: usize,
    /// The number of pieces that are taken.
    taken: AtomicUsize,
    failed: AtomicBool,
}

// SAFETY: `host` is an address, and any thread may use the memory there.
unsafe impl Send for Job {}
// SAFETY: each piece is taken by one thread, which alone uses its part of the host's memory.
unsafe impl Sync for Job {}

impl Job {
    pub(super) fn new(direction: Direction, device: u64, host: *mut u8, bytes: usize, piece: usize) -> Self {
        let (taken, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { direction, device, host, bytes, piece, taken, failed }
    }

    /// Takes the next piece, by its offsets; `None` if all are taken, or if the copy has failed.
    pub(super) fn take(&self) -> Option<Range<usize>> {
        if self.failed.load(Ordering::Relaxed) {
            return None;
        }
        // Relaxed: a piece's bytes pass between threads only when they start and when they end.
        let start = self.taken.fetch_add(1, Ordering::Relaxed).checked_mul(self.piece)?;
        (start < self.bytes).then(|| start..self.bytes.min(start + self.piece))
    }

    /// Leaves the pieces that are not taken yet.
    pub(super) fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }
}
