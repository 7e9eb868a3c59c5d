//! Decides which copies use the staging engine, with how many threads and which sizes of slots.

use std::num::NonZero;
use std::sync::OnceLock;

/// How ordinary memory of the host is copied to a device and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Route {
    /// The staging engine where it wins, with the threads that pay, and else the driver.
    #[default]
    Auto,
    /// The driver's own copy.
    Driver,
    /// The staging engine with this number of threads of the host.
    Staged(NonZero<usize>),
}

/// The direction of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Upload,
    Download,
}

/// The thresholds of the staging engine in one direction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Policy {
    /// Fewest bytes of a copy that is staged.
    pub(super) fewest_bytes: usize,
    /// Bytes for which one more thread pays.
    pub(super) bytes_a_thread: usize,
    /// Most threads of a copy. A link is full before the cores of a large host are.
    pub(super) most_threads: usize,
    /// Most bytes of a slot.
    pub(super) slot_bytes: usize,
    /// Fewest bytes of a slot. A copy of a small part takes smaller slots than those above, so that
    /// every thread has some in flight.
    pub(super) fewest_slot_bytes: usize,
}

impl Policy {
    /// These won on an H100 with PCIe 5 x16 and 16 cores, with four slots a thread
    /// (`benches/record/2026-11-23-h100/transfers.md`). A processor writes the slots of an upload,
    /// which is faster while they stay in its caches.
    pub(super) const UPLOAD: Self = Self {
        fewest_bytes: 8 << 20,
        bytes_a_thread: 4 << 20,
        most_threads: 10,
        slot_bytes: 2 << 20,
        fewest_slot_bytes: 256 << 10,
    };

    /// These won on the same machine. A processor only reads the slots, and the link is faster with
    /// large ones.
    pub(super) const DOWNLOAD: Self = Self {
        fewest_bytes: 2 << 20,
        bytes_a_thread: 1 << 20,
        most_threads: 8,
        slot_bytes: 4 << 20,
        fewest_slot_bytes: 256 << 10,
    };

    /// Returns the threads for a copy of `bytes` bytes while other copies use `busy` threads; 0 if
    /// the driver's own copy is no slower.
    pub(super) fn threads(&self, bytes: usize, busy: usize) -> usize {
        if bytes < self.fewest_bytes {
            return 0;
        }
        let spare = cores().saturating_sub(busy).clamp(1, self.most_threads);
        (bytes / self.bytes_a_thread).clamp(1, spare)
    }

    /// Returns the bytes of a slot for a copy by `threads` threads with `slots` slots each.
    pub(super) fn slot_bytes(&self, bytes: usize, threads: usize, slots: usize) -> usize {
        let share = (bytes / threads.saturating_mul(slots)).max(1);
        // A power of two, so that copies of many sizes take few sizes of memory from the pool.
        (1 << share.ilog2()).max(self.fewest_slot_bytes).min(self.slot_bytes)
    }
}

/// Returns the threads that this process can run at once. The system reads files for the answer, so
/// it is asked once.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, NonZero::get))
}

#[cfg(test)]
mod tests;
