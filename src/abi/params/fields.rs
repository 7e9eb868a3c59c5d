//! Structs of few fields to planes and back.

use crate::abi::{Axis, Divisor, MAX_AXES, params};

/// Threads in a block of `deinterleave` and `interleave`.
pub const FIELDS_THREADS: u32 = 256;
/// Words that one thread of `deinterleave` or `interleave` moves, by the elements' width in bytes.
///
/// 16 loads of 4 bytes or 8 of 8 are in flight in each thread; but splitting 16 words into narrow
/// elements takes registers for only two blocks a multiprocessor.
pub const fn fields_steps(width: usize, is_packed_src: bool) -> usize {
    if width == 8 || (width < 4 && !is_packed_src) { 8 } else { 16 }
}
/// Vectors that one thread of `deinterleave_quads` or `interleave_quads` moves.
pub const FIELDS_QUADS: usize = 3;

params! {
    /// Parameters of `deinterleave` and `interleave`: images of packed structs on one side, with
    /// one plane per field on the other.
    ///
    /// Field `f` of struct `s` is element `s * fields + f` of the packed image, and `f * pitch + s`
    /// of the planes. A word has 4 bytes, or one element if that is more. A lane moves one pack at
    /// a time: a word or, in `deinterleave_quads` and `interleave_quads`, 16 bytes. Packed images
    /// and planes start at whole packs. Block `b` has chunk `b % chunks` of image `b / chunks`.
    ///
    /// [`FIELDS_THREADS`] threads move a chunk by words. Each thread holds the number of words that
    /// its entry was compiled for, and one of the elements that fill no word. So `run * fields` is
    /// at most the words that they hold, and `fields` times the elements of a word but one at most
    /// the threads; the rest would be left out. By vectors, `run * fields` is at most
    /// [`FIELDS_QUADS`] for each thread of the block, which has dynamic shared memory for them.
    pub struct FieldsParams {
        /// Device address of the first source element.
        pub src: u64,
        /// Device address of the first destination element.
        pub dst: u64,
        /// Structs of an image.
        pub structs: u64,
        /// Fields of a struct. Narrow in every entry.
        pub fields: Divisor,
        /// Elements from one plane to the next; signed.
        pub pitch: i64,
        /// Packs of a field in a chunk: a multiple of 32, so that a warp stays in one plane. Narrow
        /// in every entry.
        pub run: Divisor,
        /// Chunks of an image.
        pub chunks: Divisor,
        /// Packs of a group, `fields << group_log2`. In words it is at least 16: one word of shared
        /// memory stays free after each group, and there is room for no more. In vectors it is a
        /// multiple of 8. Narrow in every entry.
        pub group: Divisor,
        /// Base-2 logarithm of the packs of a field in a group: for vectors at least that of the
        /// words of one.
        pub group_log2: u64,
        /// Axes of the batch of images.
        pub rank: u64,
        /// The batch, the first axis numbered fastest.
        pub axes: [Axis; MAX_AXES],
    }
}
