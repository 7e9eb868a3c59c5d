//! Cuts a permute into tiles whose elements lie in long runs on both sides.
//!
//! A box of the array is a tile. The wider it is along the source's last axes, the longer are its
//! runs in the source; the wider along the result's last axes, the longer are its runs there. So a
//! tile grows along whichever side has the shorter runs, until it fills its slot: for a matrix this
//! gives squares. Everything here is arithmetic, and knows neither devices nor files.

#![forbid(unsafe_code)]

use std::cmp::Reverse;

use super::runs::Runs;
use crate::error::{Result, counted, require};
use crate::layout::walk::{Axis, Canonical, even_part, frontier, shorter_first};
use crate::layout::{Axes, Layout, fewer_axes};
use crate::ops::units::LINE;

/// Fewest tiles for each slot, where they are not small by then: the first tile's way in and the
/// last one's way out overlap with nothing.
const TILES_PER_SLOT: usize = 4;
/// A tile of fewer bytes costs more calls than it overlaps.
const SMALL_BYTES: usize = 4 << 20;

/// A permute by the fewest axes that move the same elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Permute {
    /// Extents of the source, whose last axis runs fastest, without axes of extent 1.
    extents: Vec<usize>,
    /// Axis `i` of the result is axis `order[i]` of the source. No axis follows the one before it
    /// on both sides.
    order: Vec<usize>,
}

impl Permute {
    /// Reduces a permute of an array in C order, or in Fortran order.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` unless `axes` names each axis once; `Layout` if the shape has more
    /// elements than a layout can count.
    pub(super) fn new(shape: &[usize], axes: &[usize], is_fortran: bool) -> Result<Self> {
        // Checked here, because fewer axes would hide an axis of one index that is named twice.
        let axes = Axes::from(axes).of(shape)?;
        let (shape, axes) = fewer_axes(shape, &axes);
        let stored = if is_fortran { Layout::column_major(&shape) } else { Layout::row_major(&shape) }?;
        let source = stored.permuted_axes(&axes)?;
        let walk = Canonical::new(&source, &Layout::row_major(source.shape())?, 1);
        // Both sides have their slowest axis first.
        let mut by_place: Vec<(usize, &Axis)> = walk.axes().iter().rev().enumerate().collect();
        by_place.sort_unstable_by_key(|(_, axis)| Reverse(axis.src));
        let mut order = vec![0; by_place.len()];
        for (place, &(of_result, _)) in by_place.iter().enumerate() {
            order[of_result] = place;
        }
        Ok(Self { extents: by_place.iter().map(|(_, axis)| axis.extent).collect(), order })
    }

    /// Returns the number of elements.
    pub(super) fn len(&self) -> usize {
        self.extents.iter().product()
    }

    /// Returns the axes of a side, the slowest first, as axes of the source.
    fn axes(&self, side: Side) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (0..self.extents.len()).map(move |at| if side == Side::Source { at } else { self.order[at] })
    }

    /// Returns the extents of a tile of at most `most` elements, at least 1, with runs on both
    /// sides as long as possible, those in the result `lean` times as long.
    fn grown(&self, most: usize, lean: usize, line: usize) -> Vec<usize> {
        let mut tile = vec![1_usize; self.extents.len()];
        let grow = |tile: &mut Vec<usize>, wanted: fn(usize, usize) -> usize| {
            let len: usize = tile.iter().product();
            let frontiers = [Side::Source, Side::Result]
                .map(|side| frontier(self.axes(side).rev(), tile, |axis| self.extents[axis]));
            let longer = shorter_first(frontiers, [1, lean]).find_map(|(_, axis)| {
                let others = len / tile[axis];
                let extent = wanted(tile[axis], most / others).min(self.extents[axis]);
                (extent > tile[axis] && others * extent <= most).then_some((axis, extent))
            });
            longer.map(|(axis, extent)| tile[axis] = extent).is_some()
        };
        if self.len() > 0 {
            while grow(&mut tile, |extent, _| 2 * extent) {}
            while grow(&mut tile, |_, most| most) {}
        }
        for (tile, &extent) in tile.iter_mut().zip(&self.extents) {
            *tile = even_part(extent, *tile).next_multiple_of(line).min(*tile);
        }
        tile
    }
}

/// One of the two arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Source,
    Result,
}

/// How large tiles are where the budget allows it, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// Most bytes of a tile.
    pub(super) most_bytes: usize,
    /// How many times as long the runs in the result are as those in the source.
    pub(super) lean: usize,
}

/// The tiles of a permute. They are numbered in the result's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tiling {
    permute: Permute,
    /// Extents of a tile along the source's axes; less at the array's ends.
    tile: Vec<usize>,
}

impl Tiling {
    /// Chooses tiles of elements of `width` bytes, so that `slots` inputs and outputs of one tile
    /// take at most `budget` bytes of a device.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if not even slots of one element fit.
    pub(super) fn new(permute: Permute, width: usize, slots: usize, budget: usize, cut: Cut) -> Result<Self> {
        let least = 2 * slots * width;
        require!(
            budget >= least,
            InvalidArgument,
            "{} of device memory is too little for {slots} slots of an input and an output element; give at least \
             {least} as `Options::device_memory`",
            counted(budget, "byte")
        );
        let share = permute.len() / (TILES_PER_SLOT * slots);
        let most = (cut.most_bytes / width).max(1).min(share.max(SMALL_BYTES / width));
        // Tiles begin at whole lines along their axes where that changes little.
        let tile = permute.grown(most.min(budget / (2 * slots * width)), cut.lean, (LINE / width).max(1));
        Ok(Self { permute, tile })
    }

    /// Returns the extents of a tile that no end of the array cuts.
    pub(super) fn extents(&self) -> &[usize] {
        &self.tile
    }

    /// Returns the elements of the largest tile.
    pub(super) fn largest(&self) -> usize {
        self.tile.iter().product()
    }

    /// Returns whether copy engines take each tile in one call on either side.
    pub(super) fn has_boxes(&self) -> bool {
        // Tiles at the ends of the array have no more axes than the first one.
        self.len() == 0 || [self.tile(0).source(), self.tile(0).result()].iter().all(Runs::are_one_box)
    }

    /// Returns the extents of the result, and those of a tile in it.
    pub(super) fn in_result(&self) -> [Vec<usize>; 2] {
        [&self.permute.extents, &self.tile]
            .map(|extents| self.permute.order.iter().map(|&axis| extents[axis]).collect())
    }

    /// Returns the number of tiles.
    pub(super) fn len(&self) -> usize {
        self.counts().map(|(_, count)| count).product()
    }

    /// Returns each axis of the result, with the number of tiles along it.
    fn counts(&self) -> impl DoubleEndedIterator<Item = (usize, usize)> + '_ {
        self.permute.axes(Side::Result).map(|axis| (axis, self.permute.extents[axis].div_ceil(self.tile[axis])))
    }

    /// Returns a tile by its number, which is less than [`Tiling::len`].
    pub(super) fn tile(&self, number: usize) -> Tile<'_> {
        let (mut starts, mut rest) = (vec![0; self.tile.len()], number);
        for (axis, count) in self.counts().rev() {
            starts[axis] = rest % count * self.tile[axis];
            rest /= count;
        }
        let end = |axis: usize, start: usize| (start + self.tile[axis]).min(self.permute.extents[axis]);
        let extents = starts.iter().enumerate().map(|(axis, &start)| end(axis, start) - start).collect();
        Tile { permute: &self.permute, starts, extents }
    }
}

/// A box of the array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tile<'t> {
    permute: &'t Permute,
    starts: Vec<usize>,
    extents: Vec<usize>,
}

impl Tile<'_> {
    /// Returns the number of elements.
    pub(super) fn len(&self) -> usize {
        self.extents.iter().product()
    }

    /// Returns the tile's runs in the source, in the order in which they lie in the slot.
    pub(super) fn source(&self) -> Runs {
        self.runs(Side::Source)
    }

    /// Returns the tile's runs in the result, in the order in which they lie in the slot.
    pub(super) fn result(&self) -> Runs {
        self.runs(Side::Result)
    }

    fn runs(&self, side: Side) -> Runs {
        let axes = self.permute.axes(side);
        Runs::of_box(axes.map(|axis| (self.permute.extents[axis], self.starts[axis], self.extents[axis])))
    }

    /// Returns where the tile's elements lie in the source.
    ///
    /// # Errors
    ///
    /// As [`Tile::input`].
    pub(super) fn in_source(&self) -> Result<Layout> {
        let cut = |layout: Layout, axis: usize| {
            layout.slice(axis, self.starts[axis]..self.starts[axis] + self.extents[axis], 1)
        };
        (0..self.extents.len()).try_fold(Layout::row_major(&self.permute.extents)?, cut)
    }

    /// Returns how the tile's elements lie at the start of a slot's input.
    ///
    /// # Errors
    ///
    /// As [`Tile::input`].
    pub(super) fn stored(&self) -> Result<Layout> {
        Layout::row_major(&self.extents)
    }

    /// Returns how the tile's elements lie at the start of a slot's input, with their axes in the
    /// order of the result.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the permute has more axes than a layout.
    pub(super) fn input(&self) -> Result<Layout> {
        self.stored()?.permuted_axes(&self.permute.order)
    }

    /// Returns how the tile's elements lie at the start of a slot's output.
    ///
    /// # Errors
    ///
    /// As [`Tile::input`].
    pub(super) fn output(&self) -> Result<Layout> {
        Layout::row_major(self.input()?.shape())
    }
}

#[cfg(test)]
mod tests;
