//! What decides how arithmetic and conversions are launched, by architecture.

use crate::ops::Target;

/// The thresholds of arithmetic and conversions on one architecture.
#[derive(Debug)]
pub(in crate::ops) struct Arithmetic {
    /// Threads in a block along rows, which one long row has, or several short ones share: the best
    /// of 128 to 1024 on an H100.
    pub(in crate::ops) rows_block: u64,
    /// Vectors that a thread of a row takes at least, before a row has more threads.
    pub(in crate::ops) row_steps: u64,
    /// Rows that a thread takes down columns at least, before a column has threads to share with:
    /// the number that it loads at once.
    pub(in crate::ops) column_steps: u64,
    /// Vectors along the inner axis that neighbouring threads read, where there are so many: the
    /// best of 8 to 256 on an H100.
    pub(in crate::ops) column_vectors: u64,
    /// The same in bytes, where columns are elements.
    pub(in crate::ops) column_bytes: u64,
    /// Blocks that an axis is split for where columns are vectors: two blocks a multiprocessor of
    /// an H100 keep its memory busy, and a second launch, or more for it to join, takes longer than
    /// they gain (3011 GB/s in one launch, 2965 in 16 parts).
    pub(in crate::ops) vector_blocks: u64,
    /// Blocks that are at work at once there. The last of a few more would be alone, so from there
    /// on an axis is split as any other.
    pub(in crate::ops) vector_blocks_at_once: u64,
    /// Most elements of a column that a thread adds one after the other, as it rounds every time.
    pub(in crate::ops) longest_column: u64,
    /// Bytes of a column or a row that are worth a block of their own.
    pub(in crate::ops) part_bytes: u64,
    /// Fewest threads in a block of softmax, and of mean and variance.
    pub(in crate::ops) rowwise_block: u64,
    /// Bytes of an element from which on blocks of `normalize` write one plane each. On an H100
    /// they then make 95 % of the ceiling in single precision, and blocks for all planes 91 %; in
    /// half precision 92 and 94 %.
    pub(in crate::ops) split_planes_from: u64,
    /// The part of a padded tile of the affine map that elements fill at least, as its inverse.
    pub(in crate::ops) padded_part: usize,
}

impl Arithmetic {
    /// The thresholds for an architecture. Only an H100 was measured, so all others take its own.
    pub(in crate::ops) fn of(_: Target) -> &'static Self {
        &SM_90
    }
}

static SM_90: Arithmetic = Arithmetic {
    rows_block: 256,
    row_steps: 4,
    column_steps: 4,
    column_vectors: 16,
    column_bytes: 512,
    vector_blocks: 256,
    vector_blocks_at_once: 768,
    longest_column: 1024,
    part_bytes: 64 << 10,
    rowwise_block: 128,
    split_planes_from: 4,
    padded_part: 4,
};
