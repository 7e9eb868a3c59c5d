//! `warpstride bench --tune`: which tiles are the fastest on this GPU.

use anyhow::{Result, ensure};
use bytemuck::Pod;
use serde_json::{Value, json};
use warpstride::device::{Backend, Device};
use warpstride::element::Element;
use warpstride::ops::{self, Target, TileShape};
use warpstride::roofline::measure::{Rotation, has_times};
use warpstride::view::{View, ViewMut};

use super::cold_runs::ColdRuns;
use super::output::{self, Output};
use super::verify::verify;
use super::{by_width, ensure_room, open, reference, require};
use warpstride::error::counted;
use warpstride::roofline::table::{Table, number};

/// Bytes of every matrix: what a copy needs for its full speed.
const BYTES: usize = 1 << 28;

/// Timed runs of each tile on each matrix.
const SAMPLES: usize = 10;

/// Rows of the matrices against their columns, as base-2 logarithms.
const ASPECTS: [i32; 3] = [0, -6, 6];

/// What was found for one width, of whole rows and of ragged ones.
struct Found {
    tile: TileShape,
    kernels: Vec<Kernel>,
}

/// The speed of one kernel with every tile.
struct Kernel {
    ragged: bool,
    /// By the base-2 logarithm of the squares along a row.
    gbps: Vec<f64>,
}

impl Kernel {
    fn best(&self) -> u32 {
        let best = (0..self.gbps.len()).max_by(|&a, &b| self.gbps[a].total_cmp(&self.gbps[b]));
        best.unwrap_or_default() as u32
    }
}

pub(super) fn run(backend: Backend, output: &Output) -> Result<()> {
    let device = open(backend, output)?;
    require!(
        has_times(&device),
        Unavailable,
        "tiles are tuned by the time that they take, which the software GPU does not know; run this on an NVIDIA GPU"
    );
    let tiles = TileShape::of(Target::of(&device));
    // On the host the elements, the expected ones and those that came back; on the device one more
    // of each side.
    let sets = Rotation::new(&device, &[BYTES; 2]).sets();
    ensure_room(BYTES, 3, &[(&device, 2 * sets + 2)])?;
    let progress = output.progress(tiles.len());
    let mut found = Vec::new();
    for &tile in tiles {
        progress.doing(format!("elements of {}", counted(tile.width(), "byte")));
        found.push(by_width!(tile, T => tuned::<T>(&device, tile))?);
        progress.step();
    }
    drop(progress);
    output.result(&text(&device, &found), json(&device, &found))
}

fn tuned<T: Element + Pod>(device: &Device, tile: TileShape) -> Result<Found> {
    let len = BYTES / size_of::<T>();
    let elements = reference::random::<T>(len)?;
    let mut runs = ColdRuns::new(Rotation::new(device, &[BYTES; 2]), &elements, len)?;
    let source = device.upload(&elements)?;
    let mut kernels = Vec::new();
    for ragged in [false, true] {
        let mut ms = vec![0.0; tile.most_across(ragged) as usize + 1];
        let mut bytes = 0;
        for aspect in ASPECTS {
            let [rows, cols] = matrix(len, aspect, ragged);
            let expected = reference::permuted(&elements[..rows * cols], &[rows, cols], &[1, 0])?;
            bytes += 2 * size_of_val(&*expected);
            for (across, ms) in (0..).zip(&mut ms) {
                let tiles = [tile.with_across(across, across)];
                let launch =
                    |source: View<'_, T>, result: ViewMut<'_, T>| transpose(source, result, [rows, cols], &tiles);
                let (verified, _) = verify(device, &source, &expected, launch)?;
                ensure!(
                    verified,
                    "tiles of {} a row move {rows} x {cols} elements of {} to the wrong place; please report \
                     this as a bug",
                    counted(1 << across, "square"),
                    counted(tile.width(), "byte")
                );
                *ms += runs.time(SAMPLES, launch)?.median_ms();
            }
        }
        kernels.push(Kernel { ragged, gbps: ms.iter().map(|ms| bytes as f64 / (ms * 1e6)).collect() });
    }
    Ok(Found { tile, kernels })
}

/// Rows and columns of a matrix of at most `len` elements, a power of two.
fn matrix(len: usize, aspect: i32, ragged: bool) -> [usize; 2] {
    let log2 = len.ilog2() as i32;
    let rows_log2 = (log2 + aspect) / 2;
    [rows_log2, log2 - rows_log2].map(|log2| (1 << log2) - usize::from(ragged))
}

fn transpose<T: Element>(
    source: View<'_, T>,
    result: ViewMut<'_, T>,
    [rows, cols]: [usize; 2],
    tiles: &[TileShape],
) -> warpstride::Result<()> {
    let stream = source.device().default_stream();
    let source = source.slice(0, ..rows * cols, 1)?.split_axis(0, &[rows, cols])?;
    let result = result.slice(0, ..rows * cols, 1)?.split_axis(0, &[cols, rows])?;
    ops::copy_into_tuned(source.t(), result, tiles, stream)
}

fn text(device: &Device, found: &[Found]) -> String {
    let mut table = Table::new(&["kernel", "micro-tiles a row", "GB/s", "now", "GB/s now"]);
    let mut rows = String::new();
    for Found { tile, kernels } in found {
        let mut best = [tile.across(), tile.ragged_across()];
        for kernel in kernels {
            let (now, name) = if kernel.ragged { (best[1], "ragged_tile") } else { (best[0], "vector_tile") };
            best[usize::from(kernel.ragged)] = kernel.best();
            let gbps = |across: u32| number(kernel.gbps.get(across as usize).copied(), 1, "");
            let squares = |across: u32| (1_u64 << across).to_string();
            let name = format!("{name}, {}", counted(tile.width(), "byte"));
            table.add_row([name, squares(kernel.best()), gbps(kernel.best()), squares(now), gbps(now)]);
        }
        rows += &format!("    {:?},\n", tile.with_across(best[0], best[1]));
    }
    let (name, (major, minor)) = (&device.info().name, device.info().compute_capability);
    format!("{name}\n{table}\nFor `TILE_SHAPES` of src/ops/tuning/sm_{major}{minor}.rs:\n[\n{rows}]\n")
}

fn json(device: &Device, found: &[Found]) -> Value {
    let kernels = found.iter().flat_map(|Found { tile, kernels }| {
        kernels.iter().map(|kernel| {
            json!({
                "kernel": if kernel.ragged { "ragged_tile" } else { "vector_tile" },
                "width": tile.width(),
                "across_log2": kernel.best(),
                "across_log2_now": if kernel.ragged { tile.ragged_across() } else { tile.across() },
                "gbps": kernel.gbps,
            })
        })
    });
    json!({ "device": output::info_json(device.info()), "kernels": kernels.collect::<Vec<_>>() })
}
