//! Boxes of any axes, which move between their runs in the source and in the destination.

use crate::abi::params;

/// Most axes of a box of `boxes`.
pub const BOX_AXES: usize = 8;
/// Most axes that number the boxes.
pub const BOX_DIGITS: usize = 8;

/// The kind of an axis of a box: both sides' runs have it.
pub const WITHIN_BOTH: u32 = 0;
/// Only the destination's runs have it: it numbers the source's runs.
pub const NUMBERS_ROWS: u32 = 1;
/// Only the source's runs have it: it numbers the destination's runs.
pub const NUMBERS_LINES: u32 = 2;

/// The index of this digit decides whether the destination's runs are shorter in a box.
pub const ENDS_LINES: u32 = 1;
/// The index of this digit decides whether the source's runs are shorter in a box.
pub const ENDS_ROWS: u32 = 2;
/// The destination's runs of a box go on in the box with the next index of this digit.
pub const GOES_ON: u32 = 4;

/// Lines may start or end within a vector.
pub const HAS_EDGES: u32 = 1;
/// Lines end at whole sectors: a line's last sector has the first elements of the line that
/// follows.
pub const TAKES_HEADS: u32 = 2;
/// One axis ends the runs of both sides.
pub const ENDS_BOTH: u32 = 4;
/// The axis that ends both sides' runs goes backwards in the source.
pub const BACKWARDS: u32 = 8;
/// The rows of a box start at different distances from a granule.
pub const ROWS_DIFFER: u32 = 16;
/// All lines start on whole vectors, and are in no order.
pub const ON_VECTORS: u32 = 32;

/// Bytes of a block's state in shared memory: two places of boxes, the next line, the first line
/// and the first slice of each class, and the axes and the digits of the parameters.
pub const BOXES_STATE: u32 = 96 + 4 * (32 + 33 + 33) + 24 * BOX_AXES as u32 + 32 * BOX_DIGITS as u32;

/// Returns the registers of a thread of `boxes`, by the compute capability that the entry needs.
///
/// With 40, three blocks of 512 threads fit on a multiprocessor. That is too few for compute
/// capability 7.5, where loads go through registers.
pub const fn boxes_registers(capability: (u32, u32)) -> u32 {
    if capability.0 >= 8 { 40 } else { 48 }
}

/// Returns the bytes that a thread copies to shared memory at once, for elements of this width.
pub const fn granule(width: u32) -> u32 {
    if width == 16 { 16 } else { 8 }
}

params! {
    /// An axis of a box of `boxes`. Strides are in bytes, modulo 2^32.
    #[derive(Hash)]
    pub struct BoxAxis {
        /// Indices of the axis in a box.
        pub taken: u32,
        /// See `Divisor`, narrow.
        pub multiplier: u32,
        /// See `Divisor`.
        pub shift: u32,
        /// [`WITHIN_BOTH`], [`NUMBERS_ROWS`] or [`NUMBERS_LINES`].
        pub kind: u32,
        /// From one index to the next in the source.
        pub src: u32,
        /// From one index to the next in the destination.
        pub dst: u32,
    }

    /// An axis that numbers boxes. Strides are in bytes.
    #[derive(Hash)]
    pub struct BoxDigit {
        /// Boxes along the axis.
        pub count: u32,
        /// See `Divisor`, narrow.
        pub multiplier: u32,
        /// See `Divisor`.
        pub shift: u32,
        /// [`ENDS_LINES`], [`ENDS_ROWS`] and [`GOES_ON`], where they apply.
        pub roles: u32,
        /// From one box to the next in the source.
        pub src: i64,
        /// From one box to the next in the destination.
        pub dst: i64,
    }

    /// Parameters of `boxes`.
    ///
    /// A *row* is a run of a box in the source: the bytes from its first element to its last. A
    /// *line* is a run of a box in the destination. Shared memory holds tables and the rows as they
    /// lie in the source. Element `k` of line `j` lies at `place[k] + start[j]`.
    pub struct BoxesParams {
        /// Address of the first box's first row.
        pub src: u64,
        /// Address of the first box's first line.
        pub dst: u64,
        /// Address of the source's first element in memory.
        pub src_start: u64,
        /// Address behind its last one.
        pub src_end: u64,
        /// Address of a counter that is 0, from which blocks take their next box; 0 if each takes
        /// every `grid`th.
        pub counter: u64,
        /// Boxes.
        pub boxes: u32,
        /// Axes that number the boxes.
        pub digit_rank: u32,
        /// Axes of a box.
        pub rank: u32,
        /// [`HAS_EDGES`] and the other flags, where they apply.
        pub flags: u32,
        /// Rows, with those that only hold heads of following lines.
        pub rows: u32,
        /// Rows of a box whose lines are shorter.
        pub last_rows: u32,
        /// Bytes of a row.
        pub row: u32,
        /// Bytes from the first row's start to the end of the last one's.
        pub reach: u32,
        /// Most granules of a row.
        pub granules: u32,
        /// The quotient of 2^32 by `granules`, rounded up; 0 for one granule.
        pub granules_multiplier: u32,
        /// The quotient of the threads of a block by `granules`.
        pub rows_at_once: u32,
        /// Bytes of shared memory from one row to the next.
        pub pitch: u32,
        /// Bytes that lie between the last of as many rows as a vector has elements and the next
        /// row.
        pub gap: u32,
        /// Bytes by which the first row is not the lowest one.
        pub rows_low: u32,
        /// Lines.
        pub lines: u32,
        /// Elements of a line.
        pub len: u32,
        /// Elements of a line where the axis that ends it has fewer.
        pub last_len: u32,
        /// Elements behind a line that belong to the line that follows, of which the box has the
        /// rows.
        pub heads: u32,
        /// Vectors of a line, including one at its end that is partly of the next.
        pub vectors: u32,
        /// See `Divisor`, narrow: divides by `vectors`.
        pub vectors_multiplier: u32,
        /// See `Divisor`.
        pub vectors_shift: u32,
        /// Bytes by which a line's first element in shared memory is not the lowest one.
        pub places_low: u32,
        /// Bytes by which the first line is not the lowest one in the destination.
        pub lines_low: u32,
        /// Bytes by which lines go backwards in shared memory.
        pub starts_low: u32,
        /// Most lines of a slice: a thread moves the same vectors of all lines of a slice.
        pub slice: u32,
        /// Most slices.
        pub slices: u32,
        /// The axis of a box that ends the rows.
        pub ended: u32,
        /// The weight of an index of this axis in `limit`.
        pub step: u32,
        /// Indices along that axis in a box.
        pub limit: u32,
        /// Indices along it in the last box.
        pub last_limit: u32,
        /// Bytes by which a last box's rows are shorter.
        pub shorter: u32,
        /// Elements of a line for each index of the axis that ends both sides.
        pub unit: u32,
        /// 1 more than the base-2 logarithm of the neighbouring lanes that gather the words of
        /// their vectors in one order; 0 if all lanes do.
        pub turn: u32,
        /// The start of the table of places in dynamic shared memory, after that of rows.
        pub places: u32,
        /// The start of the table of places without the leads of a box, if rows differ.
        pub raw_places: u32,
        /// The start of the table of lines.
        pub line_table: u32,
        /// The start of the lines' indices along the axis that ends rows.
        pub indices: u32,
        /// The start of the table of slices.
        pub slice_table: u32,
        /// The start of the state of the block.
        pub state: u32,
        /// The start of the rows.
        pub tile: u32,
        /// The axes that number the boxes, the fastest first.
        pub digits: [BoxDigit; BOX_DIGITS],
        /// The axes of a box, in the destination's order.
        pub axes: [BoxAxis; BOX_AXES],
    }
}
