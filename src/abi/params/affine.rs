//! Maps that scale, shift and convert element by element.

use crate::abi::{Divisor, ElementsParams, params};

params! {
    /// The factor and the offset of an element `x`, which becomes `fma(x, factor, offset)`.
    ///
    /// Numbers, of elements or of images, belong to channel `number / inner % channels`.
    pub struct AffineValues {
        /// The bits of the factor as a double, if all elements share one.
        pub factor: u64,
        /// The bits of the offset as a double, if all elements share one.
        pub offset: u64,
        /// Device address of the factor of channel 0, an `f32`; 0 if all elements share one.
        pub factors: u64,
        /// Device address of the offset of channel 0, an `f32`.
        pub offsets: u64,
        /// Values from one channel's to the next: 1, or -1 if the last channel comes first.
        pub step: i64,
        /// Consecutive numbers that have one channel; for the entry's arithmetic.
        pub inner: Divisor,
        /// Channels; for the entry's arithmetic.
        pub channels: Divisor,
    }

    /// Parameters of `affine_elements`: as `elements`, with another type on each side.
    pub struct AffineElementsParams {
        /// The elements and their layouts. A thread moves the number of elements that it moves of
        /// four bytes.
        pub elements: ElementsParams,
        /// The `affine_type` of the source.
        pub src_type: u64,
        /// The `affine_type` of the destination.
        pub dst_type: u64,
        /// The values, by the elements' numbers.
        pub values: AffineValues,
    }
}
