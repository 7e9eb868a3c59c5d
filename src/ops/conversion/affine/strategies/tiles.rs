//! Maps by tiles if the sides are contiguous along different axes.

use super::{Considered, Decline, Launch, Step, Task, channels, offer};
use crate::abi::{AFFINE_TILE, AffineTileParams, Divisor, EntryId, Key, VECTOR_TILE_THREADS};
use crate::launch_shape::LaunchShape;
use crate::layout::walk::Axis;
use crate::ops::conversion::affine::axes::Axes;
use crate::ops::numbering::{axes, grid};
use crate::ops::plan::{at_least, found};
use crate::ops::tuning::{RowEnds, Tuning};
use crate::ops::units::VECTOR;

/// Why a tile declines a matrix that is too small for it.
const EMPTY: &str = "most of a tile would be empty";

/// Takes matrices whose rows are whole vectors, unless most of a tile would be empty. Its tiles
/// have the number of micro-tiles of `vector_tile`'s, and each is transposed in registers.
pub(in crate::ops::conversion::affine) fn consider(task: &Task, launch: &mut Option<Launch>) -> Considered {
    let turned = Turned::of(task)?;
    let cut = "a row of a side does not start on 16 bytes or hold whole vectors";
    at_least(turned.common_bytes(task), VECTOR, "alignment of every row's start and length in bytes", cut)?;
    let [lanes, rows] = task.widths().map(|width| VECTOR / width);
    let tuning = Tuning::of(task.target);
    let tuned = tuning.tile_shape(VECTOR / lanes);
    let extents = (turned.cols.extent / lanes, turned.rows.extent / rows);
    let tiles = &tuning.permutes.tiles;
    let split = tuned.map(|tuned| tuned.split(RowEnds::Whole, extents.0, extents.1, tiles));
    let split = found(split, "shapes of tiles for elements of this width", "no tile has elements of this width")?;
    at_least(split.used, split.fewest(tiles), "micro-tiles of a tile that the matrix fills", EMPTY)?;
    let (across_log2, down_log2) = (split.across_log2, split.down_log2());
    let [from, to] = task.types;
    let entry = found(AFFINE_TILE.find(Key::types(from, to)), "kernels for these types", "no tile maps these types")?;
    let [height, width] = [rows << down_log2, lanes << across_log2];
    *launch = Some(turned.launch(task, Cut { entry, across_log2, height, width }));
    let reason = "the sides are contiguous along different axes, in whole vectors";
    Ok(offer(task, reason, |maps| maps.tiles))
}

/// The kernel of tiles, and the extents that tiles are cut to.
#[derive(Debug, Clone, Copy)]
struct Cut {
    entry: EntryId,
    across_log2: u32,
    /// In elements.
    height: usize,
    width: usize,
}

/// A batch of transposes.
struct Turned {
    axes: Axes,
    /// The places of the axes of rows and of columns.
    places: [usize; 2],
    rows: Axis,
    cols: Axis,
}

impl Turned {
    fn of(task: &Task) -> Result<Self, Decline> {
        task.check_in_memory()?;
        let along_one = "the sides are not contiguous along two axes, one each";
        let [row, col] = task.axes.walk.rows_and_columns();
        let row = found(row, "axes along which only the destination is contiguous", along_one)?;
        let col = found(col, "axes along which the source is contiguous", along_one)?;
        let axes = task.axes.forwards_in_source(col);
        let [rows, cols] = [row, col].map(|place| axes.walk.axes()[place]);
        Ok(Self { axes, places: [row, col], rows, cols })
    }

    /// Returns the largest power of two of bytes, up to a vector's, that divides the start and the
    /// length of every row of both sides.
    fn common_bytes(&self, task: &Task) -> usize {
        let Self { axes: Axes { walk, .. }, places: [row, col], rows, cols } = self;
        let starts = |start: usize, along: usize, stride: fn(&Axis) -> isize| {
            let others = walk.axes().iter().enumerate().filter(|&(place, _)| place != along);
            others.fold(start, |bits, (_, axis)| bits | stride(axis) as usize)
        };
        let [from, to] = task.widths();
        let src = starts(walk.src_start, *col, |axis| axis.src) | cols.extent;
        let dst = starts(walk.dst_start, *row, |axis| axis.dst) | rows.extent;
        [(src, from), (dst, to)]
            .map(|(elements, width)| width << elements.trailing_zeros().min(VECTOR.ilog2()))
            .into_iter()
            .fold(task.aligns[0].min(task.aligns[1]).bytes() as usize, usize::min)
    }

    /// Returns the launch with such tiles.
    fn launch(&self, task: &Task, cut: Cut) -> Launch {
        let Self { axes: Axes { walk, channel, reversed }, places, rows, cols } = self;
        let [src_width, dst_width] = task.widths();
        let [across, down] = [cols.extent.div_ceil(cut.width), rows.extent.div_ceil(cut.height)];
        let [along_rows, along_cols] = places.map(|place| u64::from(*channel == Some(place)));
        let batch = walk.without(*places);
        let before = |at: usize| at - places.iter().filter(|&&place| place < at).count();
        let channel = channel.filter(|at| !places.contains(at)).map(before);
        let params = AffineTileParams {
            src: (walk.src_start * src_width) as u64,
            dst: (walk.dst_start * dst_width) as u64,
            rows: rows.extent as u64,
            cols: cols.extent as u64,
            src_pitch: rows.src as i64,
            dst_pitch: cols.dst as i64,
            across_log2: u64::from(cut.across_log2),
            tiles_across: Divisor::wide(across as u64),
            tiles_down: Divisor::wide(down as u64),
            values: channels(batch.axes(), channel, *reversed, Divisor::wide),
            along_rows,
            along_cols,
            rank: batch.axes().len() as u64,
            axes: axes(batch.axes(), Divisor::wide),
        };
        let blocks = across as u64 * down as u64 * batch.len() as u64;
        let shape = LaunchShape { grid: grid(blocks), block: [VECTOR_TILE_THREADS, 1, 1], dynamic_shared: 0 };
        Launch::Tile(Step { entry: cut.entry, shape, params })
    }
}
