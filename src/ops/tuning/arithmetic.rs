//! The constants of arithmetic and conversions: what each one decides.

use crate::device::Weights;

/// Constants of arithmetic and conversions.
///
/// Those of reductions, from `rows_block` to `part_bytes`, decide which elements are joined, and in
/// which order. They are the same for every GPU, so that a result is too; a test of all GPUs checks
/// that.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Arithmetic {
    /// Threads in a block of element-wise arithmetic.
    pub(in crate::ops) elementwise_block: u32,
    /// Threads in a block of operations on two operands, whose threads have more registers.
    pub(in crate::ops) binary_block: u32,
    /// Threads in a block of a fill.
    pub(in crate::ops) fill_block: u32,
    /// Threads in a block along rows: one long row, or several short ones, share them. The best of
    /// 128 to 1024 on an H100.
    pub(in crate::ops) rows_block: u64,
    /// Fewest vectors that a thread takes of a row before the row gets more threads.
    pub(in crate::ops) row_steps: u64,
    /// The same of a search for the greatest byte, whose lanes are joined at the end, and fewest
    /// threads of its rows.
    pub(in crate::ops) rows_of_bytes: [u64; 2],
    /// Fewest rows that a thread takes down columns before several threads share a column: the
    /// number that it loads at once.
    pub(in crate::ops) column_steps: u64,
    /// Vectors along the inner axis that neighbouring threads read, if the axis has this number.
    /// The best of 8 to 256 on an H100.
    pub(in crate::ops) column_vectors: u64,
    /// The same in bytes, for columns of single elements.
    pub(in crate::ops) column_bytes: u64,
    /// Blocks for which an axis is split where columns are vectors.
    pub(in crate::ops) column_blocks: ColumnBlocks,
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
    pub(in crate::ops) maps: Maps,
}

/// Blocks that reduce columns of vectors, by the elements' width: those that an axis is split for,
/// and those that run at once on 132 multiprocessors, by the registers and the shared memory that
/// kernels take on an H100. A few more would leave the last ones alone. Where there are three
/// pairs, they are those of sums, of least or greatest elements, and of their indices.
///
/// Narrow elements take more instructions a byte, so they need about as many as run at once
/// (benches/record/2026-11-28-h200/columns.md). Two blocks a multiprocessor keep the memory busy
/// where elements are wide, and a second launch that joins parts takes longer than more gain
/// (benches/record/experiments.md).
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct ColumnBlocks {
    /// Blocks for elements of a byte.
    pub(in crate::ops) of_bytes: [[u64; 2]; 3],
    /// Blocks for floats of two bytes.
    pub(in crate::ops) of_halves: [[u64; 2]; 3],
    /// Blocks for integers of two bytes, whose kernels take more registers.
    pub(in crate::ops) of_shorts: [[u64; 2]; 3],
    /// Blocks for wider elements.
    pub(in crate::ops) of_wide: [u64; 2],
    /// From more blocks on, an axis is split as any other.
    pub(in crate::ops) many: u64,
}

/// How long each strategy of an affine map takes, relative to a copy of the same bytes whose
/// elements lie in sectors of their own.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Maps {
    /// The time from which on no other strategy is asked, relative to the least that the layouts
    /// allow.
    pub(in crate::ops) enough: f64,
    /// Images whose values are launch parameters.
    pub(in crate::ops) images: f64,
    /// Tiles of whole vectors.
    pub(in crate::ops) tiles: f64,
    /// Tiles of several axes by vectors, relative to those of permutes of the wider type.
    pub(in crate::ops) quads: f64,
    /// The weights of those estimates. `bench --tune` times no maps, and their other constants are
    /// the policy's, so it does not change these.
    pub(in crate::ops) weights: &'static Weights,
    /// Elements one by one, at least.
    pub(in crate::ops) elements: f64,
    /// Elements one by one that lie at the same places on both sides, at least.
    pub(in crate::ops) kept: f64,
    /// Bytes that a copy moves while an element is mapped alone.
    pub(in crate::ops) per_element: f64,
    /// Elements one by one that have other neighbours on either side, and far ones: at least.
    pub(in crate::ops) crossed: f64,
}
