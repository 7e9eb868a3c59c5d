//! Small arrays of any layout, in patches.

use crate::abi::{Fold, params};

/// Threads in a block of `patch`.
pub const PATCH_BLOCK: u32 = 256;

params! {
    /// Parameters of `patch`: images of `rows` x `cols` elements, in any layouts. Strides are in
    /// elements and signed.
    ///
    /// Block `(x, y, z)` has patch `(y, x)` of image `z`: [`PATCH_BLOCK`] elements, one a thread,
    /// `1 << across_log2` of them along a row.
    pub struct PatchParams {
        /// Device address of the first source element.
        pub src: u64,
        /// Device address of the first destination element.
        pub dst: u64,
        /// Base-2 logarithm of the columns of a patch; at most that of [`PATCH_BLOCK`].
        pub across_log2: u64,
        /// Rows of an image.
        pub rows: u64,
        /// Columns of an image.
        pub cols: u64,
        /// From one row to the next in the source.
        pub src_row_stride: i64,
        /// From one column to the next in the source.
        pub src_col_stride: i64,
        /// From one row to the next in the destination.
        pub dst_row_stride: i64,
        /// From one column to the next in the destination.
        pub dst_col_stride: i64,
        /// The images of the source.
        pub src_images: Fold,
        /// The images of the destination, with the same inner extent.
        pub dst_images: Fold,
    }
}
