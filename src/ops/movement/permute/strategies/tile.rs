//! Tiles of one axis a side: how they are cut from matrices, and how they follow each other.
//!
//! `vector_tile` and `ragged_tile` move them, and `packed` looks at them before it takes tiles of
//! several axes.

use std::fmt;

use super::matrices::{Long, Matrices};
use crate::abi::{Divisor, Family, Fold, RAGGED_MARGIN, VECTOR_TILE_THREADS, VectorTileParams};
use crate::error::counted;
use crate::launch_shape::LaunchShape;
use crate::ops::movement::permute::strategy::{Decline, at_least, found};
use crate::ops::movement::permute::task::{Task, Widened};
use crate::ops::numbering::{axes, divisor, grid};
use crate::ops::plan::Step;
use crate::ops::tuning::{Kind, TileShape, Tiles};
use crate::ops::units::{SECTOR, VECTOR};

/// Rows of micro-tiles that a tile shares with the one above, where rows of the destination start
/// off sectors.
const HALO: usize = RAGGED_MARGIN as usize;

/// Matrices, how tiles are cut from them, and in what order the tiles follow each other.
#[derive(Debug, Clone)]
pub(in crate::ops::movement::permute) struct Tiling {
    matrices: Matrices,
    cut: Cut,
    /// Whether tiles of a column follow each other, rather than those of a row.
    down_first: bool,
    is_ragged: bool,
}

impl Tiling {
    /// The tiles, where they are worth it. They are cut as they were tuned for large matrices, or,
    /// where the plan may adapt, to be as full as they can.
    pub(in crate::ops::movement::permute) fn new(task: &Task<'_>) -> Result<Self, Decline> {
        let Widened { canonical, len, .. } = task.widened();
        let (width, axes) = (canonical.width, canonical.axes());
        let none = "the plan is to measure other tiles";
        let shape = found(task.tile_shape(width), "shapes of tiles for elements of this width", none)?;
        let apart = "the sides are not contiguous along an axis each";
        let row = axes.iter().position(|axis| axis.dst == 1 && axis.src.unsigned_abs() != 1);
        let row = found(row, "axes along which only the destination is contiguous", apart)?;
        let col = axes.iter().position(|axis| axis.src.unsigned_abs() == 1);
        let col = found(col, "axes along which only the source is contiguous", apart)?;
        let cutter =
            Cutter { task, shape: &shape, places: [row, col], small: len * width <= task.permutes().tiles.small };
        let plain = cutter.matrices(Long { rows: false, cols: false });
        if cutter.is_whole(&plain) { cutter.whole(plain) } else { cutter.ragged(plain) }
    }

    pub(super) fn is_ragged(&self) -> bool {
        self.is_ragged
    }

    /// Whether it is of ragged rows that are two axes, and of columns that are one.
    pub(super) fn has_folded_rows(&self) -> bool {
        self.is_ragged && self.matrices.rows[1].src != 0 && self.matrices.cols[1].dst == 0
    }

    /// Rows of micro-tiles that a tile shares with the one above: none where every row of the
    /// destination starts on a sector.
    pub(super) fn halo(&self) -> usize {
        self.cut.halo
    }

    /// Micro-tiles that the matrices would fill.
    pub(super) fn filled(&self, width: usize) -> usize {
        let [cols, rows] = self.matrices.extents();
        let lanes = VECTOR / width;
        rows * cols / (lanes * lanes)
    }

    /// Fewest filled micro-tiles with which the tiles are full.
    pub(super) fn full(&self, tiles: &Tiles) -> usize {
        self.cut.micro_tiles() - self.cut.micro_tiles() / tiles.empty_part
    }

    /// The launch by a family of kernels.
    #[inline]
    pub(super) fn step(&self, task: &Task<'_>, family: Family) -> Result<Step<VectorTileParams>, Decline> {
        let Widened { canonical, index, .. } = task.widened();
        let (width, divisor) = (canonical.width, divisor(*index));
        let Self { matrices, cut, down_first, .. } = self;
        let [cols, rows] = matrices.extents();
        let params = VectorTileParams {
            src: (matrices.src_start * width) as u64,
            dst: (matrices.dst_start * width) as u64,
            rows: rows as u64,
            cols: cols as u64,
            src_start: (matrices.span.start * width) as u64,
            src_end: (matrices.span.end * width) as u64,
            src_rows: fold(divisor, matrices.rows.map(|axis| (axis.extent, axis.src))),
            dst_rows: fold(divisor, matrices.cols.map(|axis| (axis.extent, axis.dst))),
            margin: cut.halo as u64,
            across_log2: u64::from(cut.across_log2),
            tiles_across: divisor(cut.tiles_across as u64),
            tiles_down: divisor(cut.tiles_down as u64),
            down_first: u64::from(*down_first),
            rank: matrices.batch().len() as u64,
            axes: axes(matrices.batch(), divisor),
        };
        let blocks = (cut.tiles_across * cut.tiles_down * matrices.images()) as u64;
        let shape = LaunchShape { grid: grid(blocks), block: [VECTOR_TILE_THREADS, 1, 1], dynamic_shared: 0 };
        let entry = task.kernel(family, width, *index)?;
        Ok(Step { entry, shape, params })
    }
}

/// Cuts tiles from the matrices of a task.
struct Cutter<'a> {
    task: &'a Task<'a>,
    shape: &'a TileShape,
    /// The axes of rows and of columns.
    places: [usize; 2],
    /// Whether the L2 cache holds what is written.
    small: bool,
}

impl Cutter<'_> {
    fn tiles(&self) -> &'static Tiles {
        &self.task.permutes().tiles
    }

    fn lanes(&self) -> usize {
        VECTOR / self.shape.width()
    }

    #[inline]
    fn matrices(&self, long: Long) -> Matrices {
        Matrices::new(&self.task.widened().canonical, self.places, long, self.tiles())
    }

    fn is_whole(&self, matrices: &Matrices) -> bool {
        matrices.are_whole(self.lanes(), [self.task.src_align, self.task.dst_align], self.small)
    }

    /// Base-2 logarithm of the micro-tiles along a row of a tile; a decline where most of the tile
    /// would be empty.
    fn across(&self, kind: Kind, matrices: &Matrices) -> Result<u32, Decline> {
        let empty = "most of a tile would be empty";
        let [cols, rows] = matrices.extents().map(|extent| extent.div_ceil(self.lanes()));
        let split = self.shape.split(kind, cols, rows, self.tiles());
        at_least(split.used, split.fewest(self.tiles()), "micro-tiles of a tile that the matrix fills", empty)?;
        let fewest = if kind == Kind::Ragged { HALO } else { 1 };
        at_least(cols.min(rows), fewest, "micro-tiles along the shorter side of the matrix", empty)?;
        Ok(split.across_log2)
    }

    /// Of whole vectors, as `plain` matrices are: the side whose axis is the shorter one comes
    /// first and goes on into its next axis, so that blocks that run together move what is
    /// contiguous on one side; or the other one, or both, where tiles are fuller so.
    #[inline]
    fn whole(&self, plain: Matrices) -> Result<Tiling, Decline> {
        let kind = if self.small { Kind::WholeSmall } else { Kind::Whole };
        let numbered = |mut matrices: Matrices, down_first: bool| {
            if !down_first {
                matrices.sort_batch_by_source();
            }
            let across_log2 = self.across(kind, &matrices)?;
            let cut = Cut::new(self.shape.all_log2(kind), across_log2, self.lanes(), 0, matrices.extents());
            Ok(Tiling { matrices, cut, down_first, is_ragged: false })
        };
        let long = |rows, cols, down_first| {
            let matrices = Some(self.matrices(Long { rows, cols })).filter(|matrices| self.is_whole(matrices))?;
            numbered(matrices, down_first).ok()
        };
        let down = plain.rows[0].extent < plain.cols[0].extent;
        if plain.batch().is_empty() {
            // There is no axis to go on into.
            return numbered(plain, down);
        }
        let ways = [long(down, !down, down), long(!down, down, !down), long(true, true, down)];
        let plain = numbered(plain, down);
        let cost = |way: &Tiling| way.cut.micro_tiles() * way.matrices.images();
        match ways.into_iter().flatten().min_by_key(cost) {
            Some(long) => Ok(plain.ok().filter(|plain| cost(plain) < cost(&long)).unwrap_or(long)),
            None => plain,
        }
    }

    /// Of rows that start or end off vectors, or off the sectors that are written: cut to be full,
    /// where the plan may adapt.
    #[inline]
    fn ragged(&self, matrices: Matrices) -> Result<Tiling, Decline> {
        let (lanes, tiles) = (self.lanes(), self.tiles());
        let [_, starts] = matrices.starts();
        let on_sectors = starts.is_multiple_of(lanes * SECTOR / VECTOR) && self.task.dst_align.bytes() >= SECTOR as u64;
        let halo = if on_sectors { 0 } else { HALO };
        let across_log2 = self.across(Kind::Ragged, &matrices)?;
        let [cols, rows] = matrices.extents();
        let cut_by = |across_log2| Cut::new(self.shape.all_log2(Kind::Ragged), across_log2, lanes, halo, [cols, rows]);
        let mut cut = cut_by(across_log2);
        if self.task.may_adapt() {
            let most = self.shape.most_across(true).min(cols.div_ceil(lanes).next_power_of_two().trailing_zeros());
            let fullest = (tiles.narrowest_log2..=most).rev().map(cut_by).min_by_key(|cut| cut.cost(tiles));
            let fuller = |other: &Cut| other.cost(tiles) < cut.cost(tiles) - cut.cost(tiles) / tiles.fuller_part;
            cut = fullest.filter(fuller).unwrap_or(cut);
        }
        // Tiles one below the other share the rows of a halo and the lines at their ends, which an
        // H100 serves from its L2 cache where they follow each other, if all those of a column stay
        // there until the next column needs their lines.
        let down_first = rows * (VECTOR << cut.across_log2) <= tiles.column;
        Ok(Tiling { matrices, cut, down_first, is_ragged: true })
    }
}

/// How tiles cut a matrix.
#[derive(Debug, Clone, Copy)]
struct Cut {
    across_log2: u32,
    tiles_across: usize,
    tiles_down: usize,
    /// Rows of micro-tiles of a tile that are not its own.
    halo: usize,
    /// Micro-tiles of a tile that are its own.
    own: usize,
}

impl Cut {
    /// Tiles of `1 << all_log2` micro-tiles of `lanes` elements, of whose rows `halo` are shared
    /// with the tile above.
    fn new(all_log2: u32, across_log2: u32, lanes: usize, halo: usize, [cols, rows]: [usize; 2]) -> Self {
        let down = (1 << (all_log2 - across_log2)) - halo;
        // Ragged runs start up to a sector early.
        let early = (halo * lanes).saturating_sub(1);
        let (tiles_across, tiles_down) = (cols.div_ceil(lanes << across_log2), (rows + early).div_ceil(lanes * down));
        Self { across_log2, tiles_across, tiles_down, halo, own: down << across_log2 }
    }

    /// The micro-tiles of all tiles, filled or not.
    fn micro_tiles(&self) -> usize {
        self.tiles_across * self.tiles_down * self.own
    }

    /// What they take: about as long whether they are filled, but longer where runs of the source
    /// are narrow.
    fn cost(&self, tiles: &Tiles) -> usize {
        let all = self.micro_tiles();
        if self.across_log2 > tiles.narrowest_log2 { all } else { all + all / tiles.narrow_part }
    }
}

/// A run of two axes; of one where the second has one index.
pub(super) fn fold(divisor: fn(u64) -> Divisor, [inner, outer]: [(usize, isize); 2]) -> Fold {
    // Of one axis no index reaches the outer: no quotient by its extent is more than 0.
    Fold { inner: divisor(inner.0 as u64), inner_stride: inner.1 as i64, outer_stride: outer.1 as i64 }
}

impl fmt::Display for Step<VectorTileParams> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, shape, params } = self;
        let VectorTileParams { rows, cols, across_log2, down_first, rank, axes, .. } = params;
        let order = if *down_first != 0 { "down the columns" } else { "along the rows" };
        let images: u64 = axes[..*rank as usize].iter().map(|axis| axis.extent.value).product();
        let across = counted(1u64 << across_log2, "square");
        write!(f, "{entry}: {images} of {rows} x {cols} elements, tiles of {across} a row, numbered {order}, {shape}")
    }
}
