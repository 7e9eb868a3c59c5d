//! Moves tiles of one axis per side, which are transposed in registers.
//!
//! A thread loads a micro-tile by vectors and transposes it in registers. Shared memory only
//! exchanges vectors, so one design serves all widths. Rows and columns that are short take the
//! axes that continue their runs.
//!
//! Accesses are shifted to the aligned middle of each row where rows start or end between vectors,
//! or between the sectors that are written. Such a tile writes whole sectors only. For that it
//! reads a halo again, some rows of the tile above, which costs less than sectors that two tiles
//! write. Such tiles take the shape that fills them best, because an H100 takes about as long for
//! an empty micro-tile.
//!
//! Worth, on an H100 (benches/record/experiments.md): 16384 x 16384 of 4 bytes reaches 2945 GB/s,
//! bytes 2847, f64 8192 x 8192 2936; ragged bytes 16383 x 16385 0.888 of the copy, 2 bytes 12287 x
//! 12289 0.912, 4 and 8 bytes 0.940 and 0.935.

mod matrices;

use std::fmt;

use self::matrices::{Long, Matrices, end_rows, rank};
use super::{
    Considered, Decline, Estimated, Launch, Layouts, Offer, Step, Task, Widened, at_least, axes, divisor, found, grid,
    index, launch, weighed,
};
use crate::abi::{
    Divisor, Family, Fold, Index, RAGGED_MARGIN, RAGGED_TILE, TILE_AXES, VECTOR_TILE, VECTOR_TILE_THREADS,
    VectorTileParams, ragged_tile_folds,
};
use crate::error::counted;
use crate::launch_shape::LaunchShape;
use crate::layout::MAX_RANK;
use crate::layout::walk::Axis;
use crate::ops::tuning::{RowEnds, TileShape, Tiles};
use crate::ops::units::{BANK_ROW, LINE, SECTOR, VECTOR, WORD};

/// Takes matrices: work whose sides are contiguous along different axes.
pub(in crate::ops::movement::permute) fn consider(task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
    let tiling = Tiling::new(task)?;
    let (family, reason) = if tiling.is_ragged {
        let reason = "the sides are contiguous along different axes, and rows start or end between 16-byte vectors or \
                      the sectors that are written: tiles whose accesses are shifted to the aligned middle of each row";
        (RAGGED_TILE, reason)
    } else {
        let reason = "the sides are contiguous along different axes, and every row is whole 16-byte accesses: tiles \
                      transposed in registers";
        (VECTOR_TILE, reason)
    };
    *launch = Some(Launch::Tile(tiling.step(task, family)?));
    Ok(tiling.offer(task, reason))
}

/// Rows of micro-tiles that a tile shares with the one above if rows of the destination start
/// between sectors.
const HALO: usize = RAGGED_MARGIN as usize;

/// Matrices, how tiles are cut from them, and in which order the tiles run.
#[derive(Debug, Clone)]
struct Tiling {
    matrices: Matrices,
    cut: Cut,
    /// True if tiles are numbered down the columns rather than along the rows.
    down_first: bool,
    /// True if rows start or end between vectors, or between the sectors that are written.
    is_ragged: bool,
}

impl Tiling {
    /// Cuts tiles, or declines if they are not worth it. Tiles have the shape that is tuned for
    /// large matrices or, if the plan may adapt, the shape that fills them best.
    fn new(task: &Task<'_>) -> Result<Self, Decline> {
        let Widened { canonical, .. } = task.widened();
        let none = "the plan measures other tiles";
        let shape = found(task.tile_shape(canonical.width), "shapes of tiles for elements of this width", none)?;
        let apart = "the sides are not contiguous along an axis each";
        let [row, col] = canonical.rows_and_columns();
        let row = found(row, "axes along which only the destination is contiguous", apart)?;
        let col = found(col, "axes along which only the source is contiguous", apart)?;
        let cutter =
            Cutter { task, shape: &shape, places: [row, col], small: task.bytes() <= task.permutes().tiles.small };
        let plain = cutter.matrices(Long { rows: false, cols: false });
        if cutter.is_whole(&plain) { cutter.whole(plain) } else { cutter.ragged(plain) }
    }

    /// Offers the tiles. They cost micro-tiles that are empty or that two tiles read, short runs,
    /// and rows of the source that start between the lines of the L2 cache.
    fn offer(&self, task: &Task<'_>, reason: &'static str) -> Offer {
        let (width, cut) = (task.widened().canonical.width, &self.cut);
        let [cols, rows] = self.matrices.extents();
        let lanes = VECTOR / width;
        let filled = (rows * cols) as f64 / (lanes * lanes) as f64;
        let [cols, rows] = [cols, rows].map(|extent| (extent * width) as f64);
        let tile = cut.micro_tiles() as f64;
        let halo = ((cut.tiles_across * cut.tiles_down * cut.halo) << cut.across_log2) as f64;
        let read = cols.min((VECTOR << cut.across_log2) as f64);
        let short = (2.0 * SECTOR as f64 / read - 1.0).max(0.0);
        let waste = tile / filled - 1.0;
        if self.is_ragged {
            let costs = [1.0, waste, halo / filled, SECTOR as f64 / rows, short];
            weighed(task, reason, (Estimated::RaggedTiles, width), task.traffic(), costs)
        } else {
            let of_lines = (LINE / width).trailing_zeros() <= self.matrices.starts()[0].trailing_zeros();
            let costs = [1.0, waste, short, f64::from(u8::from(!of_lines))];
            weighed(task, reason, (Estimated::WholeTiles, width), task.traffic(), costs)
        }
    }

    /// Returns whether tables locate the rows and columns of a tile.
    fn has_tables(&self, width: usize) -> bool {
        self.is_ragged && !ragged_tile_folds(width as u32)
    }

    /// Returns the launch with a family of kernels.
    #[inline]
    fn step(&self, task: &Task<'_>, family: Family) -> Result<Step<Recipe>, Decline> {
        let Widened { canonical, index, .. } = task.widened();
        let width = canonical.width;
        let Self { matrices, cut, down_first, .. } = self;
        let recipe = Recipe {
            cols: matrices.cols,
            rows: matrices.rows,
            starts: [matrices.src_start, matrices.dst_start],
            batch: matrices.batch_places(canonical),
            rank: matrices.batch().len() as u8,
            cut: *cut,
            down_first: *down_first,
        };
        let blocks = (cut.tiles_across * cut.tiles_down * matrices.images()) as u64;
        let lines = if self.has_tables(width) { cut.lines(VECTOR / width) } else { 0 };
        let entry_bytes = if *index == Index::Narrow { 4 } else { 8 };
        let dynamic_shared = (lines * entry_bytes) as u32;
        let shape = LaunchShape { grid: grid(blocks), block: [VECTOR_TILE_THREADS, 1, 1], dynamic_shared };
        let entry = task.kernel(family, width, *index)?;
        Ok(Step { entry, shape, params: recipe })
    }
}

/// Cuts tiles from the matrices of a task.
struct Cutter<'a> {
    task: &'a Task<'a>,
    shape: &'a TileShape,
    /// The axes of rows and of columns.
    places: [usize; 2],
    /// True if the L2 cache holds what is written.
    small: bool,
}

impl Cutter<'_> {
    fn tiles(&self) -> &Tiles {
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

    /// Returns the base-2 logarithm of the micro-tiles along a row of a tile; declines if most of
    /// the tile would be empty.
    fn across(&self, ends: RowEnds, matrices: &Matrices) -> Result<u32, Decline> {
        let empty = "most of a tile would be empty";
        let [cols, rows] = matrices.extents().map(|extent| extent.div_ceil(self.lanes()));
        let split = self.shape.split(ends, cols, rows, self.tiles());
        at_least(split.used, split.fewest(self.tiles()), "micro-tiles of a tile that the matrix fills", empty)?;
        let fewest = if ends == RowEnds::Ragged { HALO } else { 1 };
        at_least(cols.min(rows), fewest, "micro-tiles along the shorter side of the matrix", empty)?;
        Ok(split.across_log2)
    }

    /// Cuts tiles of whole vectors, as `plain` matrices have. The side with the shorter axis comes
    /// first and continues into its next axis, so that blocks that run together move memory that is
    /// contiguous on one side. If tiles are fuller so, the other side continues, or both.
    #[inline]
    fn whole(&self, plain: Matrices) -> Result<Tiling, Decline> {
        let ends = if self.small { RowEnds::WholeSmall } else { RowEnds::Whole };
        let numbered = |mut matrices: Matrices, down_first: bool| {
            if !down_first {
                matrices.sort_batch_by_source();
            }
            let across_log2 = self.across(ends, &matrices)?;
            let cut = Cut::new(self.shape.all_log2(ends), across_log2, self.lanes(), 0, matrices.extents());
            Ok(Tiling { matrices, cut, down_first, is_ragged: false })
        };
        let long = |rows, cols, down_first| {
            let matrices = Some(self.matrices(Long { rows, cols })).filter(|matrices| self.is_whole(matrices))?;
            numbered(matrices, down_first).ok()
        };
        let down = plain.rows[0].extent < plain.cols[0].extent;
        if plain.batch().is_empty() {
            // No side has an axis to continue into.
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

    /// Cuts tiles of rows that start or end between vectors or between the sectors that are
    /// written. If the plan may adapt, they take the shape that fills them best.
    #[inline]
    fn ragged(&self, mut matrices: Matrices) -> Result<Tiling, Decline> {
        if !ragged_tile_folds(self.shape.width() as u32) {
            matrices.join();
        }
        let (lanes, tiles) = (self.lanes(), self.tiles());
        let [_, starts] = matrices.starts();
        let on_sectors = starts.is_multiple_of(lanes * SECTOR / VECTOR) && self.task.dst_align.bytes() >= SECTOR as u64;
        let halo = if on_sectors { 0 } else { HALO };
        let across_log2 = self.across(RowEnds::Ragged, &matrices)?;
        let [cols, rows] = matrices.extents();
        let cut_by =
            |across_log2| Cut::new(self.shape.all_log2(RowEnds::Ragged), across_log2, lanes, halo, [cols, rows]);
        let mut cut = cut_by(across_log2);
        if self.task.may_adapt() {
            let most = self.shape.most_across(true).min(cols.div_ceil(lanes).next_power_of_two().trailing_zeros());
            let fullest = (tiles.narrowest_log2..=most).rev().map(cut_by).min_by_key(|cut| cut.cost(tiles));
            let fuller = |other: &Cut| other.cost(tiles) < cut.cost(tiles) - cut.cost(tiles) / tiles.fuller_part;
            cut = fullest.filter(fuller).unwrap_or(cut);
        }
        // Tiles one below the other share the rows of a halo and the cache lines at their ends. An
        // H100 serves these from its L2 cache if the tiles follow each other and all lines of a
        // column stay there until the next column needs them.
        let down_first = rows * (VECTOR << cut.across_log2) <= tiles.column;
        Ok(Tiling { matrices, cut, down_first, is_ragged: true })
    }
}

/// The axes of the matrices by their role, and how tiles cut them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops::movement::permute) struct Recipe {
    cols: [Axis; TILE_AXES],
    rows: [Axis; TILE_AXES],
    /// The first elements of the source and of the destination.
    starts: [usize; 2],
    /// The places of the batch's axes among those of the work.
    batch: [u8; MAX_RANK],
    rank: u8,
    cut: Cut,
    down_first: bool,
}

impl launch::Recipe for Recipe {
    type Params = VectorTileParams;

    fn params(&self, layouts: &Layouts<'_>) -> VectorTileParams {
        let canonical = layouts.widened();
        let (width, divisor, span) = (canonical.width, divisor(index(&canonical)), canonical.src_span());
        let Self { cols, rows, starts, batch, rank: batch_rank, cut, down_first } = self;
        let batch = batch[..usize::from(*batch_rank)].iter().map(|&place| &canonical.axes()[usize::from(place)]);
        let [col_count, row_count] = [cols, rows].map(|run| run.iter().map(|axis| axis.extent as u64).product());
        let two = |run: &[Axis; TILE_AXES], stride: fn(&Axis) -> isize| {
            fold(divisor, [0, 1].map(|place| (run[place].extent, stride(&run[place]))))
        };
        VectorTileParams {
            src: (starts[0] * width) as u64,
            dst: (starts[1] * width) as u64,
            rows: row_count,
            cols: col_count,
            src_start: (span.start * width) as u64,
            src_end: (span.end * width) as u64,
            src_rows: two(rows, |axis| axis.src),
            dst_rows: two(cols, |axis| axis.dst),
            line_ranks: [rows, cols].map(|run| rank(run) as u64),
            row_axes: axes(&rows[..rank(rows)], divisor),
            col_axes: axes(&cols[..rank(cols)], divisor),
            end_rows: end_rows(rows).map(|row| row as u64),
            margin: cut.halo as u64,
            across_log2: u64::from(cut.across_log2),
            tiles_across: divisor(cut.tiles_across as u64),
            tiles_down: divisor(cut.tiles_down as u64),
            down_first: u64::from(*down_first),
            rank: u64::from(*batch_rank),
            axes: axes(batch, divisor),
        }
    }
}

/// How tiles cut a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    across_log2: u32,
    tiles_across: usize,
    tiles_down: usize,
    /// Rows of micro-tiles that a tile shares with the one above.
    halo: usize,
    /// Micro-tiles that the tile writes itself.
    own: usize,
}

impl Cut {
    /// Cuts tiles of `1 << all_log2` micro-tiles of `lanes` elements. A tile shares `halo` of its
    /// rows with the tile above.
    fn new(all_log2: u32, across_log2: u32, lanes: usize, halo: usize, [cols, rows]: [usize; 2]) -> Self {
        let down = (1 << (all_log2 - across_log2)) - halo;
        // Ragged runs start up to a sector early.
        let early = (halo * lanes).saturating_sub(1);
        let (tiles_across, tiles_down) = (cols.div_ceil(lanes << across_log2), (rows + early).div_ceil(lanes * down));
        Self { across_log2, tiles_across, tiles_down, halo, own: down << across_log2 }
    }

    /// Returns the entries of the tables of rows and columns of a tile, with its halo, of `lanes`
    /// elements a micro-tile: each 32 rows have one more.
    fn lines(&self, lanes: usize) -> usize {
        let rows = ((self.own >> self.across_log2) + self.halo) * lanes;
        (lanes << self.across_log2) + rows + rows * WORD / BANK_ROW
    }

    /// Returns the number of micro-tiles of all tiles, filled or not.
    fn micro_tiles(&self) -> usize {
        self.tiles_across * self.tiles_down * self.own
    }

    /// Returns the cost of the tiles: an empty micro-tile takes about as long as a full one, and
    /// narrow runs of the source take longer.
    fn cost(&self, tiles: &Tiles) -> usize {
        let all = self.micro_tiles();
        if self.across_log2 > tiles.narrowest_log2 { all } else { all + all / tiles.narrow_part }
    }
}

/// Folds a run of two axes; the second may have one index.
pub(super) fn fold(divisor: fn(u64) -> Divisor, [inner, outer]: [(usize, isize); 2]) -> Fold {
    // If the second axis has one index, no quotient by the first extent is more than 0.
    Fold { inner: divisor(inner.0 as u64), inner_stride: inner.1 as i64, outer_stride: outer.1 as i64 }
}

impl fmt::Display for Step<VectorTileParams> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, shape, params } = self;
        let VectorTileParams { rows, cols, across_log2, down_first, rank, axes, .. } = params;
        let order = if *down_first != 0 { "down the columns" } else { "along the rows" };
        let images: u64 = axes[..*rank as usize].iter().map(|axis| axis.extent.value).product();
        let across = counted(1u64 << across_log2, "micro-tile");
        write!(f, "{entry}: {images} of {rows} x {cols} elements, tiles of {across} a row, numbered {order}, {shape}")
    }
}
