//! Prepares batches of images for a network: interleaved bytes become normalised planes, read once
//! and written once.
//!
//! This is the affine map ([`affine_into`]) of images whose channel axis moves before their pixels,
//! with factors and offsets as launch parameters.

use crate::array::DeviceArray;
use crate::element::Float;
use crate::error::{Error, Result, require};
use crate::ops::affine::{Affine, Normalization, affine_into};
use crate::ops::operand::in_new_array;
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// Normalises images of shape `[n, h, w, c]` into planes of shape `[n, c, h, w]` in a new buffer,
/// on the default stream. See [`normalize_into`].
///
/// # Errors
///
/// As [`normalize_into`]; `OutOfMemory` if the result does not fit.
#[track_caller]
pub fn normalize<'a, T: Float>(src: impl Into<View<'a, u8>>, normalization: &Normalization) -> Result<DeviceArray<T>> {
    let src = src.into();
    let [n, h, w, c] = extents(&src)?;
    in_new_array(src.device(), &[n, c, h, w], |dst, stream| normalize_into(src, normalization, dst, stream))
}

/// Queues the normalisation of images `src` of shape `[n, h, w, c]` into planes `dst` of shape `[n,
/// c, h, w]` on `stream`, in half or single precision. Reads `n h w c` bytes and writes `n c h w`
/// elements.
///
/// # Errors
///
/// `Layout` if the shapes do not fit or an operand does not lie in C order without gaps;
/// `InvalidArgument` if the normalisation has another number of channels, elements are doubles, or
/// the operands and the stream are not on one device; else the driver's error.
pub fn normalize_into<'a, T: Float>(
    src: impl Into<View<'a, u8>>,
    normalization: &Normalization,
    dst: impl Into<ViewMut<'a, T>>,
    stream: &Stream,
) -> Result<()> {
    let (src, dst) = (src.into(), dst.into());
    let [n, h, w, c] = extents(&src)?;
    require!(
        dst.shape() == [n, c, h, w],
        Layout,
        "images of shape {:?} do not become planes of shape {:?}; give planes of shape {:?}",
        src.shape(),
        dst.shape(),
        [n, c, h, w]
    );
    require!(
        src.layout().is_standard_layout(),
        Layout,
        "images of shape {:?} and strides {:?} do not lie in C order without gaps; copy them first \
         (contiguous, copy_into)",
        src.shape(),
        src.layout().strides()
    );
    let affine = Affine::Normalized { axis: 1, by: *normalization };
    affine_into(src.permuted_axes(&[0, 3, 1, 2])?, affine, dst, stream)
}

/// Images, rows, columns and channels.
fn extents(src: &View<'_, u8>) -> Result<[usize; 4]> {
    let shape = src.shape();
    shape.try_into().map_err(|_| {
        let advice =
            if shape.len() == 3 { "insert an axis for n, by `insert_axis(0)`" } else { "give an array of four axes" };
        Error::layout(format!(
            "images have the axes [n, h, w, c], and an array of shape {shape:?} has others; {advice}"
        ))
    })
}
