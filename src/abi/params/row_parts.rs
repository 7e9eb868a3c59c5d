//! Kernels that need a whole row at once, with several blocks a row: softmax, mean and variance.

use crate::abi::params;

/// Bytes of a part's record.
pub const RECORD_BYTES: u64 = 32;
/// Rows of a team whose records `softmax_parts` keeps at a time.
pub const SLOTS: u32 = 2;

params! {
    /// Parameters of kernels for `rows` contiguous rows of `n` elements, which consist of parts. A
    /// block holds a part, as a group of [`RowwiseParams`](super::RowwiseParams) holds a row.
    ///
    /// `softmax_parts` has `teams` of `team` blocks. A team takes every row that has its number,
    /// modulo the number of teams, and its blocks take the row's parts in turn. They wait for each
    /// other, so all blocks run at once. `moments_of_parts` has a team for each row with a block a
    /// part, and `join_moments` a block a row.
    pub struct RowPartsParams {
        /// Device address of the first element.
        pub src: u64,
        /// Device address of the first result: one per element, or the mean of each row.
        pub dst: u64,
        /// Device address of the variance of each row.
        pub variances: u64,
        /// Device address of the records of [`RECORD_BYTES`]. `softmax_parts` has for each team a
        /// count, which is 0 at first, and then a record for each part of [`SLOTS`] rows. The
        /// moments have a record for each part of each row.
        pub scratch: u64,
        /// Rows.
        pub rows: u64,
        /// Elements of a row.
        pub n: u64,
        /// Elements of each part but the last, a multiple of a vector's.
        pub part: u64,
        /// Parts of a row.
        pub parts: u64,
        /// Blocks of a team: at most one a part.
        pub team: u64,
        /// Teams.
        pub teams: u64,
        /// 1 if source and destination start equally far from a vector, else 0.
        pub aligned: u64,
    }
}
