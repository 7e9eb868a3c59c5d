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
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::ErrorKind;

    /// Moves elements as the device does: from one layout to another.
    fn moved(tile: &Tile<'_>, input: &[usize]) -> Vec<usize> {
        let (from, to) = (tile.input().unwrap().offsets(), tile.output().unwrap().offsets());
        let mut output = vec![usize::MAX; input.len()];
        from.into_iter().zip(to).for_each(|(from, to)| output[to] = input[from]);
        output
    }

    /// The numbers of a source's elements in the order of the result, element by element.
    fn expected(shape: &[usize], axes: &[usize], is_fortran: bool) -> Vec<usize> {
        let source = if is_fortran { Layout::column_major(shape) } else { Layout::row_major(shape) };
        source.unwrap().permuted_axes(axes).unwrap().offsets()
    }

    fn cases() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
        let extent = prop_oneof![1 => Just(0_usize), 3 => Just(1), 12 => 2_usize..7];
        prop::collection::vec(extent, 0..=6).prop_flat_map(|shape| {
            let axes: Vec<usize> = (0..shape.len()).collect();
            (Just(shape), Just(axes).prop_shuffle())
        })
    }

    proptest! {
        #[test]
        fn tiles_move_each_element_once(
            (shape, axes) in cases(),
            is_fortran in any::<bool>(),
            width in prop_oneof![Just(1_usize), Just(2), Just(4), Just(8), Just(16)],
            slots in 1_usize..4,
            elements in 1_usize..600,
            lean in 1_usize..20,
        ) {
            let permute = Permute::new(&shape, &axes, is_fortran).unwrap();
            let budget = 2 * slots * width * elements;
            let tiling = Tiling::new(permute, width, slots, budget, Cut { most_bytes: usize::MAX, lean }).unwrap();
            prop_assert!(tiling.largest() <= elements);
            let len = tiling.permute.len();
            prop_assert_eq!(len, shape.iter().product::<usize>());
            let mut result = vec![usize::MAX; len];
            for number in 0..tiling.len() {
                let tile = tiling.tile(number);
                let input: Vec<usize> = tile.source().pieces(3).flat_map(|(at, len)| at..at + len).collect();
                prop_assert!(input.len() == tile.len() && tile.len() <= tiling.largest() && tile.len() > 0);
                let output = moved(&tile, &input);
                let mut done = 0;
                let mut last = None;
                for (at, len) in tile.result().pieces(1000) {
                    prop_assert!(Some(at) > last, "runs are in order");
                    last = Some(at + len - 1);
                    prop_assert!(result[at..at + len].iter().all(|&taken| taken == usize::MAX), "written once");
                    result[at..at + len].copy_from_slice(&output[done..done + len]);
                    done += len;
                }
                prop_assert_eq!((done, tile.result().count() * tile.result().run()), (tile.len(), tile.len()));
            }
            prop_assert_eq!(result, expected(&shape, &axes, is_fortran));
        }
    }

    const SQUARE: Cut = Cut { most_bytes: 64 << 20, lean: 1 };

    fn tiling(shape: &[usize], axes: &[usize], width: usize, budget: usize) -> Tiling {
        Tiling::new(Permute::new(shape, axes, false).unwrap(), width, 6, budget, SQUARE).unwrap()
    }

    #[test]
    fn matrices_have_long_runs_on_both_sides() {
        // 32 GiB of floats through 4 GiB.
        let tiling = tiling(&[92_682, 92_682], &[1, 0], 4, 4 << 30);
        let tile = tiling.tile(0);
        let runs = [tile.source().run(), tile.result().run()].map(|run| run * 4);
        assert!(runs.iter().all(|run| (15 << 10..=32 << 10).contains(run)), "{runs:?}");
        assert!(tiling.largest() <= 16 << 20 && tiling.len() < 600, "{}", tiling.len());
    }

    #[test]
    fn runs_in_the_result_may_be_longer() {
        let permute = Permute::new(&[65_536, 65_536], &[1, 0], false).unwrap();
        let tiling = Tiling::new(permute, 4, 6, 4 << 30, Cut { lean: 16, ..SQUARE }).unwrap();
        assert_eq!([tiling.tile(0).source().run(), tiling.tile(0).result().run()], [1024, 16_384]);
    }

    #[test]
    fn axes_of_one_index_may_be_in_excess() {
        let (mut shape, axes): (Vec<usize>, Vec<usize>) = (vec![1; 64], (0..64).rev().collect());
        (shape[5], shape[63]) = (2, 3);
        let permute = Permute::new(&shape, &axes, false).unwrap();
        assert_eq!(permute, Permute { extents: vec![2, 3], order: vec![1, 0] });
        assert!(Permute::new(&[2; 17], &axes[47..], false).unwrap_err().to_string().contains("17 axes"));
        let refused = |axes: &[usize]| Permute::new(&shape, axes, false).unwrap_err().kind();
        let mut twice = axes.clone();
        twice[1] = 61;
        for wrong in [&[64; 64], &axes[1..], &axes[..63], &twice] {
            assert_eq!(refused(wrong), ErrorKind::InvalidArgument);
        }
    }

    #[test]
    fn neighbours_stay_together() {
        let permute = Permute::new(&[2, 3, 1, 4, 5], &[3, 4, 0, 2, 1], false).unwrap();
        assert_eq!(permute, Permute { extents: vec![6, 20], order: vec![1, 0] });
        let same = Permute::new(&[2, 3, 4], &[2, 1, 0], true).unwrap();
        assert_eq!(same, Permute { extents: vec![24], order: vec![0] });
        // One axis: a tile is one run on both sides.
        let tiling = tiling(&[1 << 20, 4], &[0, 1], 1, 12 << 12);
        assert_eq!((tiling.extents(), tiling.tile(1).source().count()), (&[1 << 12][..], 1));
    }

    #[test]
    fn whole_inner_axes_make_whole_runs() {
        // Rows of three: all of each tile is one run of the source.
        let tiling = tiling(&[1 << 20, 3], &[1, 0], 1, 12 * 3 * 1024);
        let tile = tiling.tile(3);
        assert_eq!(tile.source().count(), 1);
        assert_eq!((tile.result().count(), tile.result().run()), (3, 1024));
    }

    #[test]
    fn the_least_budget_is_named() {
        let permute = Permute::new(&[5, 5], &[1, 0], false).unwrap();
        let error = Tiling::new(permute.clone(), 8, 6, 95, SQUARE).unwrap_err().to_string();
        assert!(error.contains("95 bytes") && error.contains("at least 96"), "{error}");
        assert_eq!(Tiling::new(permute, 8, 6, 96, SQUARE).unwrap().largest(), 1);
    }
}
