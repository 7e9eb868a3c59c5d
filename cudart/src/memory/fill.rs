//! Fills of memory with a byte.

use std::ffi::c_int;

use crate::arguments::Opaque;
use crate::code::{Failure, Outcome};
use crate::context;
use crate::driver::driver;
use crate::export::export;
use crate::types::{Extent, PitchedPtr, Stream};

driver! {
    fn cuMemsetD8_v2(at: Opaque, value: u8, count: usize);
    fn cuMemsetD8Async(at: Opaque, value: u8, count: usize, stream: Stream);
    fn cuMemsetD2D8_v2(at: Opaque, pitch: usize, value: u8, width: usize, height: usize);
    fn cuMemsetD2D8Async(at: Opaque, pitch: usize, value: u8, width: usize, height: usize, stream: Stream);
}

/// Calls `fill` with the address of rows and their number: all rows at once, where no rows between
/// slices are left out.
fn slices(at: PitchedPtr, extent: Extent, fill: impl Fn(Opaque, usize) -> Outcome) -> Outcome {
    let too_many = || Failure::value(format!("{extent:?} is more than memory can have"));
    context::ready()?;
    if extent.width == 0 || extent.height == 0 || extent.depth == 0 {
        return Ok(());
    }
    if extent.height == at.height || extent.depth == 1 {
        return fill(at.pointer, extent.height.checked_mul(extent.depth).ok_or_else(too_many)?);
    }
    let slice = at.pitch.checked_mul(at.height).ok_or_else(too_many)?;
    for number in 0..extent.depth {
        let offset = slice.checked_mul(number).and_then(|offset| at.pointer.address().checked_add(offset as u64));
        fill(Opaque::at(offset.ok_or_else(too_many)?), extent.height)?;
    }
    Ok(())
}

export! {
    /// Fills bytes.
    fn cudaMemset, per_thread cudaMemset_ptds (at: Opaque, value: c_int, count: usize) {
        context::ready()?;
        cuMemsetD8_v2(at, value as u8, count)
    }

    /// Fills bytes in a stream.
    fn cudaMemsetAsync, per_thread cudaMemsetAsync_ptsz (at: Opaque, value: c_int, count: usize, stream: Stream) {
        context::ready()?;
        cuMemsetD8Async(at, value as u8, count, stream)
    }

    /// Fills rows.
    fn cudaMemset2D, per_thread cudaMemset2D_ptds (
        at: Opaque, pitch: usize, value: c_int, width: usize, height: usize,
    ) {
        context::ready()?;
        cuMemsetD2D8_v2(at, pitch, value as u8, width, height)
    }

    /// Fills rows in a stream.
    fn cudaMemset2DAsync, per_thread cudaMemset2DAsync_ptsz (
        at: Opaque, pitch: usize, value: c_int, width: usize, height: usize, stream: Stream,
    ) {
        context::ready()?;
        cuMemsetD2D8Async(at, pitch, value as u8, width, height, stream)
    }

    /// Fills slices.
    fn cudaMemset3D, per_thread cudaMemset3D_ptds (at: PitchedPtr, value: c_int, extent: Extent) {
        slices(at, extent, |rows, height| cuMemsetD2D8_v2(rows, at.pitch, value as u8, extent.width, height))
    }

    /// Fills slices in a stream.
    fn cudaMemset3DAsync, per_thread cudaMemset3DAsync_ptsz (
        at: PitchedPtr, value: c_int, extent: Extent, stream: Stream,
    ) {
        slices(at, extent, |rows, height| {
            cuMemsetD2D8Async(rows, at.pitch, value as u8, extent.width, height, stream)
        })
    }
}
