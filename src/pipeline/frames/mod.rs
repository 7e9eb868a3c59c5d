//! Frames as the source of a pipeline: random ones, and the images of a folder.
//!
//! A frame of bytes lies as decoders give it, rows of pixels of interleaved channels (H, W, C).
//! Any thread can make any frame, so several threads make several batches at once.

mod images;
mod synthetic;

pub use images::Images;
pub use synthetic::{Pixel, Synthetic};
