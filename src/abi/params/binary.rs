//! Sums, differences, products and quotients of two operands of any layouts.

use crate::abi::{Divisor, params};

/// Axes that number rows. Each costs an entry 800 bytes of PTX, so a plan with more of them has
/// several launches.
pub const BINARY_AXES: usize = 4;

/// Numbers of the operations.
pub const BINARY_ADD: u64 = 0;
/// See [`BINARY_ADD`].
pub const BINARY_SUB: u64 = 1;
/// See [`BINARY_ADD`].
pub const BINARY_MUL: u64 = 2;
/// See [`BINARY_ADD`].
pub const BINARY_DIV: u64 = 3;

params! {
    /// An operand of `binary`: elements in memory, or one number for all of them.
    pub struct BinarySide {
        /// Device address of the first row's first element; 0 for a number.
        pub start: u64,
        /// Elements from one to the next along a row.
        pub stride: i64,
        /// The bits of the number as a double.
        pub number: u64,
    }

    /// One axis that numbers rows, with strides in elements.
    pub struct BinaryAxis {
        /// Positions along the axis, for 64-bit arithmetic.
        pub extent: Divisor,
        /// From one position to the next in the destination.
        pub dst: i64,
        /// From one position to the next in the first operand.
        pub a: i64,
        /// From one position to the next in the second operand.
        pub b: i64,
    }

    /// Parameters of `binary`: `dst = a op b`, element by element.
    ///
    /// The digits of a row's number in the mixed radix of the extents, `axes[0]` the least, are its
    /// position along the axes. Each row has `slots` lanes of the grid. With `vectors`, elements of
    /// the destination's row lie side by side, and lane `s` computes those in vector `s` of memory
    /// from the one that holds the row's first element; else it computes element `s`.
    pub struct BinaryParams {
        /// Device address of the first element to write.
        pub dst: u64,
        /// Elements from one to the next along the destination's row.
        pub dst_stride: i64,
        /// The first operand; may be `dst`.
        pub a: BinarySide,
        /// The second operand; may be `dst`.
        pub b: BinarySide,
        /// [`BINARY_ADD`] or another of its kind.
        pub operation: u64,
        /// Elements of a row.
        pub len: u64,
        /// 1 if lanes compute vectors, else 0.
        pub vectors: u64,
        /// Lanes of all rows.
        pub lanes: u64,
        /// Lanes of a row, for 64-bit arithmetic.
        pub slots: Divisor,
        /// Axes in use, from the first.
        pub rank: u64,
        /// The axes, innermost first.
        pub axes: [BinaryAxis; BINARY_AXES],
    }
}
