//! Maps by tiles if the sides are contiguous along different axes.

use super::{Decline, Step, Task, Work, channels};
use crate::abi::{
    AFFINE_PADDED, AFFINE_PADDED_BLOCK, AFFINE_PADDED_F64, AFFINE_PADDED_SIDE, AFFINE_TILE, AffineTileParams, Divisor,
    EntryId, Key, VECTOR_TILE_THREADS,
};
use crate::element::DType;
use crate::launch_shape::LaunchShape;
use crate::layout::MAX_RANK;
use crate::ops::canonical::Axis;
use crate::ops::conversion::affine::axes::Axes;
use crate::ops::numbering::{axes, grid};
use crate::ops::plan::{at_least, found};
use crate::ops::tuning::{Kind, Tuning};
use crate::ops::units::VECTOR;

/// Why a tile declines a matrix that is too small for it.
const EMPTY: &str = "most of a tile would be empty";

/// Takes matrices whose rows are whole vectors, unless most of a tile would be empty. Its tiles
/// have the number of micro-tiles of `vector_tile`'s, and each is transposed in registers.
pub(super) fn vectors(task: &Task) -> Result<Work, Decline> {
    let turned = Turned::of(task)?;
    let cut = "a row of a side does not start on 16 bytes or hold whole vectors";
    at_least(turned.matrices.common_bytes(task), VECTOR, "alignment of every row's start and length in bytes", cut)?;
    let [lanes, rows] = task.widths().map(|width| VECTOR / width);
    let tuning = Tuning::of(task.target);
    let tuned = tuning.tile_shape(VECTOR / lanes);
    let extents = (turned.matrices.cols.extent / lanes, turned.matrices.rows.extent / rows);
    let tiles = &tuning.permutes.tiles;
    let split = tuned.map(|tuned| tuned.split(Kind::Whole, extents.0, extents.1, tiles));
    let split = found(split, "shapes of tiles for elements of this width", "no tile has elements of this width")?;
    at_least(split.used, split.fewest(tiles), "micro-tiles of a tile that the matrix fills", EMPTY)?;
    let (across_log2, down_log2) = (split.across_log2, split.down_log2());
    let [from, to] = task.types;
    let entry = found(AFFINE_TILE.find(Key::types(from, to)), "kernels for these types", "no tile maps these types")?;
    let [height, width] = [rows << down_log2, lanes << across_log2];
    Ok(turned.work(task, Tile { entry, threads: VECTOR_TILE_THREADS, across_log2, height, width }, false))
}

/// Takes padded tiles, unless most of one would be empty.
pub(super) fn padded(task: &Task) -> Result<Work, Decline> {
    let turned = Turned::of(task)?;
    let side = AFFINE_PADDED_SIDE as usize;
    let used = turned.matrices.rows.extent.min(side) * turned.matrices.cols.extent.min(side);
    let fewest = (side * side).div_ceil(Tuning::of(task.target).arithmetic.padded_part);
    at_least(used, fewest, "elements of a tile that the matrix fills", EMPTY)?;
    let entry = if task.types[1] == DType::F64 { AFFINE_PADDED_F64 } else { AFFINE_PADDED }.get(Key::ONLY);
    let tile = Tile { entry, threads: AFFINE_PADDED_BLOCK, across_log2: 0, height: side, width: side };
    Ok(turned.work(task, tile, true))
}

/// A batch of transposes.
struct Turned {
    walk: Axes,
    matrices: Matrices,
    /// The axes of rows and of columns.
    row: usize,
    col: usize,
}

impl Turned {
    fn of(task: &Task) -> Result<Self, Decline> {
        task.check_in_memory()?;
        let find = |is: fn(&Axis) -> bool| task.axes.as_slice().iter().position(is);
        let along_one = "the sides are not contiguous along two axes, one each";
        let row = find(|axis| axis.dst == 1 && axis.src.unsigned_abs() != 1);
        let row = found(row, "axes along which only the destination is contiguous", along_one)?;
        let col = find(|axis| axis.src.unsigned_abs() == 1);
        let col = found(col, "axes along which the source is contiguous", along_one)?;
        let walk = task.axes.forwards_in_source(col);
        Ok(Self { matrices: Matrices::new(&walk, row, col), walk, row, col })
    }

    /// Returns the launch with such tiles. If they are `ragged`, rows may end within a sector.
    fn work(&self, task: &Task, tile: Tile, ragged: bool) -> Work {
        let Self { walk, matrices, row, col } = self;
        let ([src_width, dst_width], [src_type, dst_type]) = (task.widths(), task.codes());
        let (rows, cols) = (matrices.rows.extent, matrices.cols.extent);
        let [across, down] = [cols.div_ceil(tile.width), rows.div_ceil(tile.height)];
        // If rows of the destination continue in the tile below, that tile writes the rest of a
        // sector. It should run soon, while the L2 cache has the sector.
        let down_first = ragged
            && rows.saturating_mul(tile.width * src_width.max(dst_width))
                <= Tuning::of(task.target).permutes.tiles.column;
        let along = |at: usize| u64::from(walk.channel == Some(at));
        let images: usize = matrices.batch().iter().map(|axis| axis.extent).product();
        let params = AffineTileParams {
            src: (walk.src_start * src_width) as u64,
            dst: (walk.dst_start * dst_width) as u64,
            rows: rows as u64,
            cols: cols as u64,
            src_pitch: matrices.rows.src as i64,
            dst_pitch: matrices.cols.dst as i64,
            across_log2: u64::from(tile.across_log2),
            tiles_across: Divisor::wide(across as u64),
            tiles_down: Divisor::wide(down as u64),
            down_first: u64::from(down_first),
            src_type,
            dst_type,
            values: channels(matrices.batch(), matrices.channel, walk.reversed, Divisor::wide),
            along_rows: along(*row),
            along_cols: along(*col),
            rank: matrices.batch().len() as u64,
            axes: axes(matrices.batch(), Divisor::wide),
        };
        let blocks = across as u64 * down as u64 * images as u64;
        let shape = LaunchShape { grid: grid(blocks), block: [tile.threads, 1, 1], dynamic_shared: 0 };
        Work::Tile(Step { entry: tile.entry, shape, params })
    }
}

/// How tiles are cut.
#[derive(Debug, Clone, Copy)]
struct Tile {
    entry: EntryId,
    threads: u32,
    across_log2: u32,
    /// In elements.
    height: usize,
    width: usize,
}

/// The matrices that tiles are cut from, and their batch.
struct Matrices {
    rows: Axis,
    cols: Axis,
    batch: [Axis; MAX_RANK],
    rank: usize,
    /// The position of the channels' axis in the batch.
    channel: Option<usize>,
    /// The bitwise or of all elements' offsets at which rows start, for both sides.
    starts: [usize; 2],
}

impl Matrices {
    fn new(walk: &Axes, row: usize, col: usize) -> Self {
        let none = Axis { extent: 1, src: 0, dst: 0 };
        let (rows, cols) = (walk.as_slice()[row], walk.as_slice()[col]);
        let starts = [walk.src_start | rows.src as usize, walk.dst_start | cols.dst as usize];
        let batch = [none; MAX_RANK];
        let mut matrices = Self { rows, cols, batch, rank: 0, channel: None, starts };
        for (place, axis) in walk.as_slice().iter().enumerate().filter(|&(place, _)| place != row && place != col) {
            if walk.channel == Some(place) {
                matrices.channel = Some(matrices.rank);
            }
            matrices.batch[matrices.rank] = *axis;
            matrices.rank += 1;
            matrices.starts[0] |= axis.src as usize;
            matrices.starts[1] |= axis.dst as usize;
        }
        matrices
    }

    fn batch(&self) -> &[Axis] {
        &self.batch[..self.rank]
    }

    /// Returns the largest power of two of bytes, up to a vector's, that divides the start and the
    /// length of every row of both sides.
    fn common_bytes(&self, task: &Task) -> usize {
        let [from, to] = task.widths();
        let sides = [(self.starts[0] | self.cols.extent, from), (self.starts[1] | self.rows.extent, to)];
        sides
            .map(|(elements, width)| width << elements.trailing_zeros().min(VECTOR.ilog2()))
            .into_iter()
            .fold(task.align, usize::min)
    }
}
