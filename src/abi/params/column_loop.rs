//! Copies with one launch per column.

use crate::abi::params;

/// Threads in a block of `column_loop`.
pub const COLUMN_BLOCK: u32 = 256;

params! {
    /// Parameters of `column_loop`: `dst[i * dst_stride] = src[i * src_stride]` for `i < len`, one
    /// launch a column.
    pub struct ColumnParams {
        /// Device address of the column's first element.
        pub src: u64,
        /// Device address of the row's first element.
        pub dst: u64,
        /// Elements to move.
        pub len: u64,
        /// Elements from one source element to the next; signed.
        pub src_stride: i64,
        /// Elements from one destination element to the next; signed.
        pub dst_stride: i64,
    }
}
