//! The room that a multiprocessor of each architecture has.

/// The limits of one multiprocessor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Multiprocessor {
    /// The architecture.
    compute_capability: (u32, u32),
    /// Threads that run at once.
    pub(super) threads: u32,
    /// Bytes of shared memory.
    pub(super) shared: u32,
    /// Bytes of it that each block reserves.
    pub(super) shared_of_block: u32,
}

/// The architectures from the oldest that the kernels run on, by NVIDIA's table of technical
/// specifications.
const ALL: [Multiprocessor; 9] = [
    row((7, 5), 1024, 64, 0),
    row((8, 0), 2048, 164, 1),
    row((8, 6), 1536, 100, 1),
    row((8, 7), 1536, 164, 1),
    row((8, 9), 1536, 100, 1),
    row((9, 0), 2048, 228, 1),
    row((10, 0), 2048, 228, 1),
    row((11, 0), 1536, 228, 1),
    row((12, 0), 1536, 100, 1),
];

const fn row(compute_capability: (u32, u32), threads: u32, shared_kib: u32, of_block_kib: u32) -> Multiprocessor {
    Multiprocessor { compute_capability, threads, shared: shared_kib << 10, shared_of_block: of_block_kib << 10 }
}

/// Returns the limits of an architecture; of an unknown one, those of the last before it.
pub(super) const fn of((major, minor): (u32, u32)) -> Multiprocessor {
    let (mut place, mut found) = (1, ALL[0]);
    while place < ALL.len() {
        let (known, minor_known) = ALL[place].compute_capability;
        if known < major || known == major && minor_known <= minor {
            found = ALL[place];
        }
        place += 1;
    }
    found
}
