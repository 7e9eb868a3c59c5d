//! Maps of images to normalised planes.

use crate::abi::params;

/// Threads in a block of `normalize`.
pub const NORMALIZE_BLOCK: u32 = 512;
/// Vectors of each plane that one thread of `normalize` writes.
pub const NORMALIZE_STEPS: u32 = 1;
/// Most channels of an image of `normalize`.
pub const MAX_CHANNELS: usize = 4;

params! {
    /// Parameters of `normalize`: images of interleaved bytes to planes, `dst[n, c, p] = fma(src[n,
    /// p, c], factors[c], offsets[c])` in single precision, rounded once more if the planes are
    /// halves.
    ///
    /// Block `(x, y, z)` has chunk `x` of image `r = z * gridDim.y + y` or, if planes are split, of
    /// plane `r` of all images. A chunk is the pixels that its threads hold in [`NORMALIZE_STEPS`]
    /// vectors of a plane each.
    pub struct NormalizeParams {
        /// Device address of the first byte of the first image.
        pub src: u64,
        /// Device address of the first element of the first plane.
        pub dst: u64,
        /// Images.
        pub images: u64,
        /// Pixels of an image.
        pub pixels: u64,
        /// 1 if all planes start on 16 bytes and hold whole vectors, and the pixels of each vector
        /// start on the bytes that divide both theirs and 16.
        pub aligned: u64,
        /// 1 if a block writes one plane, which is aligned, and 0 if it writes all planes of an
        /// image. Memory favours writes to one region, and the L2 cache serves bytes that are read
        /// again.
        pub split: u64,
        /// The bits of the factors, as `f32`.
        pub factors: [u32; MAX_CHANNELS],
        /// The bits of the offsets, as `f32`.
        pub offsets: [u32; MAX_CHANNELS],
    }
}
