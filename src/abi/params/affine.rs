//! Scaled, shifted and converted element by element.

use crate::abi::{Divisor, ElementsParams, params};

params! {
    /// The factor and the offset of an element `x`, which becomes `fma(x, factor, offset)`.
    ///
    /// Numbers, of elements or of images, belong to channel `number / inner % channels`.
    pub struct AffineValues {
        /// The bits of the factor as a double, where all elements have one.
        pub factor: u64,
        /// The bits of the offset as a double, where all elements have one.
        pub offset: u64,
        /// Device address of the factor of channel 0, an `f32`; 0 where all elements have one.
        pub factors: u64,
        /// Device address of the offset of channel 0, an `f32`.
        pub offsets: u64,
        /// Values from those of a channel to those of the next: 1, or -1 where the last channel
        /// comes first.
        pub step: i64,
        /// Numbers that follow each other and are of one channel; for the entry's arithmetic.
        pub inner: Divisor,
        /// Channels; for the entry's arithmetic.
        pub channels: Divisor,
    }

    /// Parameters of `affine_elements`: as `elements`, with another type on each side.
    pub struct AffineElementsParams {
        /// What is moved where; a thread has as many elements as those of four bytes.
        pub elements: ElementsParams,
        /// The `affine_type` of the source.
        pub src_type: u64,
        /// That of the destination.
        pub dst_type: u64,
        /// Of the elements by their numbers.
        pub values: AffineValues,
    }
}
