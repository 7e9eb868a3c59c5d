//! One copy, which several threads share piece by piece.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::policy::{Direction, Policy};

/// A copy between pageable memory of the host and the device, cut into pieces of at most one slot.
pub(super) struct Job<'a> {
    pub(super) policy: &'a Policy,
    pub(super) direction: Direction,
    pub(super) device: u64,
    /// The memory of the host, which an upload only reads.
    pub(super) host: *mut u8,
    pub(super) bytes: usize,
    /// Threads that share the copy.
    pub(super) threads: usize,
    /// Bytes of a slot.
    pub(super) slot: usize,
    pub(super) progress: Progress,
}

/// How far a copy is.
#[derive(Default)]
pub(super) struct Progress {
    /// Bytes whose pieces are taken.
    taken: AtomicUsize,
    failed: AtomicBool,
}

// SAFETY: each piece is taken by one thread, which alone uses its part of the host's memory.
unsafe impl Sync for Job<'_> {}

impl Job<'_> {
    /// Takes the next piece, by its offsets; `None` if all are taken, or if the copy has failed.
    pub(super) fn take(&self) -> Option<Range<usize>> {
        if self.progress.failed.load(Ordering::Relaxed) {
            return None;
        }
        let end = |start| (start < self.bytes).then(|| start + self.piece(self.bytes - start));
        // Relaxed: a piece's bytes pass between threads only when they start and when they end.
        let start = self.progress.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, end).ok()?;
        Some(start..end(start)?)
    }

    /// Returns the bytes of the next piece while `left` bytes are not taken. Where less than a slot
    /// is left for each thread, pieces get smaller, so that no thread waits long for the last one.
    fn piece(&self, left: usize) -> usize {
        self.policy.slot_bytes(self.direction, left / self.threads).min(self.slot).min(left)
    }

    /// Leaves the pieces that are not taken yet.
    pub(super) fn fail(&self) {
        self.progress.failed.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy = Policy { fewest_slot_bytes: 64, slots: [512, 512], ..Policy::DEFAULT };

    fn job(bytes: usize, threads: usize) -> Job<'static> {
        let (host, progress) = (std::ptr::null_mut(), Progress::default());
        Job { policy: &POLICY, direction: Direction::Upload, device: 0, host, bytes, threads, slot: 256, progress }
    }

    #[test]
    fn pieces_cover_the_copy_in_order_and_fit_into_a_slot() {
        for (bytes, threads) in [(0, 1), (1, 3), (256, 1), (1000, 2), (4096, 4), (5001, 16)] {
            let job = job(bytes, threads);
            let mut covered = 0;
            while let Some(piece) = job.take() {
                assert!(piece.start == covered && (1..=256).contains(&piece.len()), "{piece:?}");
                covered = piece.end;
            }
            assert_eq!(covered, bytes);
        }
    }

    #[test]
    fn pieces_get_smaller_towards_the_end() {
        let job = job(1500, 2);
        let sizes: Vec<_> = std::iter::from_fn(|| job.take()).map(|piece| piece.len()).collect();
        assert_eq!(sizes, [256, 256, 256, 256, 128, 128, 64, 64, 64, 28]);
    }

    #[test]
    fn no_piece_is_taken_after_a_failure() {
        let job = job(1000, 2);
        job.take().unwrap();
        job.fail();
        assert_eq!(job.take(), None);
    }
}
