//! The plan of a copy by the copy engine: boxes of rows.
//!
//! A copy engine moves rows of contiguous bytes; one call takes rows a pitch apart, in slices a
//! pitch apart. [`Boxes::plan`] finds the fewest such boxes that hold the elements of two layouts,
//! or says why such an engine cannot make the copy. It is pure and calls no driver.

#![forbid(unsafe_code)]

use crate::driver::{Copy3d, Pitched, Place};
use crate::error::{Result, counted, require};
use crate::layout::Layout;
use crate::layout::walk::{Axis, Canonical};

/// Most boxes of one copy. Each costs a call of the driver, some microseconds, so for more of them
/// a kernel is faster by far.
const MAX_BOXES: usize = 4096;

/// The boxes of a copy, all of one shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Boxes {
    /// Elements of a row.
    row: usize,
    height: Axis,
    depth: Axis,
    /// The walk from one box to the next.
    along: Canonical,
}

impl Boxes {
    /// Plans the copy of elements of `width` bytes between two layouts. The destination must not
    /// overlap itself.
    ///
    /// # Errors
    ///
    /// `Layout` if the shapes differ, if a storage has more bytes than can be addressed, or if the
    /// elements lie in too many rows.
    pub(super) fn plan(src: &Layout, dst: &Layout, width: usize) -> Result<Self> {
        check(src, dst, width)?;
        let walk = Canonical::new(src, dst, width);
        let row = walk.together();
        let rows = if row > 1 { walk.without([0; 2]) } else { walk };
        let places = places_of_rows(rows.axes(), row);
        let [height, depth] = places.map(|place| rows.axes().get(place).copied().unwrap_or(Axis::ONE));
        let along = rows.without(places);
        require!(
            along.len() <= if row == 1 { 1 } else { MAX_BOXES },
            Layout,
            "{} and {:?} would take {} copies, in rows of {}; copy a contiguous array between host and device, and \
             reorder its elements on the device (ops::copy_into)",
            src.described(),
            dst.strides(),
            along.len(),
            counted(row, "element")
        );
        Ok(Self { row, height, depth, along })
    }

    /// Returns the number of bytes.
    pub(super) fn bytes(&self) -> usize {
        self.row * self.along.width * self.height.extent * self.depth.extent * self.along.len()
    }

    /// Returns the boxes between storages that start at these places, the source's first.
    pub(super) fn iter(&self, [from, to]: [Place; 2]) -> impl Iterator<Item = Copy3d> + '_ {
        let Canonical { width, src_start, dst_start, .. } = self.along;
        (0..self.along.len()).map(move |number| {
            let (mut src, mut dst, mut rest) = (src_start, dst_start, number);
            for axis in self.along.axes().iter().rev() {
                let index = (rest % axis.extent) as isize;
                rest /= axis.extent;
                // The layouts' invariants keep every index within the storage.
                src = src.wrapping_add_signed(index * axis.src);
                dst = dst.wrapping_add_signed(index * axis.dst);
            }
            let side = |storage: Place, first: usize, stride: fn(&Axis) -> isize| {
                let [row_pitch, slice_pitch] = [&self.height, &self.depth].map(|axis| stride(axis) as usize * width);
                Pitched { place: storage.offset(first * width), row_pitch, slice_pitch }
            };
            Copy3d {
                dst: side(to, dst, |axis| axis.dst),
                src: side(from, src, |axis| axis.src),
                width: self.row * width,
                height: self.height.extent,
                depth: self.depth.extent,
            }
        })
    }
}

/// Returns the places of the axes of a box of rows of `row` elements: its height, and its depth if
/// one call of the driver copies all slices. A place past all axes stands for none. It takes the
/// pair with the most rows.
fn places_of_rows(axes: &[Axis], row: usize) -> [usize; 2] {
    let is_pitch = |axis: &Axis| axis.src >= row as isize && axis.dst >= row as isize;
    // The driver counts the pitch of slices in rows, which a slice holds all.
    let whole = |slice: isize, pitch: isize, rows: usize| slice % pitch == 0 && slice / pitch >= rows as isize;
    let (mut most, mut places) = (0, [axes.len(); 2]);
    for (at, height) in axes.iter().enumerate().rev().filter(|(_, axis)| is_pitch(axis)) {
        let holds =
            |slice: &Axis| whole(slice.src, height.src, height.extent) && whole(slice.dst, height.dst, height.extent);
        let slices = axes.iter().enumerate().rev().filter(|&(other, slice)| other != at && holds(slice));
        let depth = slices.max_by_key(|(_, slice)| slice.extent);
        let rows = height.extent * depth.map_or(1, |(_, depth)| depth.extent);
        if rows > most {
            (most, places) = (rows, [at, depth.map_or(axes.len(), |(at, _)| at)]);
        }
    }
    places
}

fn check(src: &Layout, dst: &Layout, width: usize) -> Result<()> {
    require!(
        src.shape() == dst.shape(),
        Layout,
        "the source has shape {:?} and the destination {:?}; copy between equal shapes",
        src.shape(),
        dst.shape()
    );
    for layout in [src, dst] {
        require!(
            layout.storage_len().checked_mul(width).is_some_and(|bytes| bytes <= isize::MAX as usize),
            Layout,
            "a storage of {} of {} has more bytes than can be addressed; use a smaller one",
            counted(layout.storage_len(), "element"),
            counted(width, "byte")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;
