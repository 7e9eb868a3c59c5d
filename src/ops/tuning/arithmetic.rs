//! The thresholds that launch arithmetic and conversions, by architecture.

use crate::ops::Target;

/// The thresholds of arithmetic and conversions on one architecture.
#[derive(Debug)]
pub(in crate::ops) struct Arithmetic {
    /// Threads in a block along rows: one long row, or several short ones, share them. The best of
    /// 128 to 1024 on an H100.
    pub(in crate::ops) rows_block: u64,
    /// Fewest vectors that a thread takes of a row before the row gets more threads.
    pub(in crate::ops) row_steps: u64,
    /// Fewest rows that a thread takes down columns before several threads share a column: the
    /// number that it loads at once.
    pub(in crate::ops) column_steps: u64,
    /// Vectors along the inner axis that neighbouring threads read, if the axis has this number.
    /// The best of 8 to 256 on an H100.
    pub(in crate::ops) column_vectors: u64,
    /// The same in bytes, for columns of single elements.
    pub(in crate::ops) column_bytes: u64,
    /// Blocks that an axis is split for where columns are vectors. Two blocks a multiprocessor keep
    /// an H100's memory busy, and a second launch that joins parts takes longer than more blocks
    /// gain (3011 GB/s in one launch, 2965 in 16 parts).
    pub(in crate::ops) vector_blocks: u64,
    /// Blocks that run at once there. A few more would leave the last ones alone, so from this
    /// number on an axis is split as any other.
    pub(in crate::ops) vector_blocks_at_once: u64,
    /// Most elements of a column that a thread adds in sequence, because it rounds each time.
    pub(in crate::ops) longest_column: u64,
    /// Bytes of a column or a row that are worth a separate block.
    pub(in crate::ops) part_bytes: u64,
    /// Fewest threads in a block of softmax, and of mean and variance.
    pub(in crate::ops) rowwise_block: u64,
    /// Fewest bytes of an element for which blocks of `normalize` write one plane each. On an H100
    /// such blocks reach 95 % of the ceiling in single precision, and blocks for all planes 91 %;
    /// in half precision 92 and 94 %.
    pub(in crate::ops) split_planes_from: u64,
    /// The least part of a padded tile of the affine map that elements fill, as its inverse.
    pub(in crate::ops) padded_part: usize,
}

impl Arithmetic {
    /// Returns the thresholds of an architecture. Only an H100 was measured, so all use its values.
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
