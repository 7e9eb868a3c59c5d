//! `warpstride bench --tune`: finds the fastest tiles and blocks on this GPU, and the weights of
//! the estimates by which plans choose. Devices that are opened from then on use them.

mod fit;
mod samples;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use bytemuck::Pod;
use serde_json::{Value, json};
use warpstride::device::{Backend, Device, Tuned, TuningFile};
use warpstride::driver::DeviceInfo;
use warpstride::element::Element;
use warpstride::error::counted;
use warpstride::io::Destination;
use warpstride::launch_shape::LaunchShape;
use warpstride::layout::Layout;
use warpstride::ops::{self, Align, FillPlan, PermutePlan, Phase, Plan, Target, TileShape};
use warpstride::roofline::measure::{Rotation, Timing, has_times};

use super::bench::measure::{ColdRuns, Launch, Outcome, measure, one_to_one};
use super::output::{self, Output};
use super::{by_width, destination, ensure_room, open, reference, refuse, require, terminal};
use crate::run::table::{Table, number};
use fit::{Fits, GAIN as FIT_GAIN};

/// The value that fills arrays.
const VALUE: u32 = 0x0123_4567;

/// Bytes of every matrix: what a copy needs for its full speed.
const BYTES: usize = 1 << 28;

/// Timed runs of each tile on each matrix.
const SAMPLES: usize = 10;

/// Threads of a block that copies and fills are timed with.
const BLOCKS: [u32; 4] = [128, 256, 512, 1024];

/// The least gain with which another tile or block replaces the present one: the noise between two
/// runs is less.
const GAIN: f64 = 1.01;

/// Rows of the matrices against their columns, as base-2 logarithms.
const ASPECTS: [i32; 3] = [0, -6, 6];

/// The speed of one kernel with every tile, or in blocks of every number of threads.
#[derive(Clone)]
struct Sweep {
    kernel: &'static str,
    /// Bytes of its elements.
    width: usize,
    /// The base-2 logarithms of the squares along a row, or the threads of a block.
    tried: Vec<u32>,
    gbps: Vec<f64>,
    now: u32,
}

impl Sweep {
    fn best(&self) -> u32 {
        let fastest = (0..self.gbps.len()).max_by(|&a, &b| self.gbps[a].total_cmp(&self.gbps[b]));
        self.tried[fastest.unwrap_or_default()]
    }

    /// The speed with one of them, if it was timed.
    fn gbps(&self, one: u32) -> Option<f64> {
        self.tried.iter().position(|&timed| timed == one).map(|place| self.gbps[place])
    }

    /// Returns the one to use from now on: the best, where it is enough of a gain.
    fn chosen(&self) -> u32 {
        match (self.gbps(self.best()), self.gbps(self.now)) {
            (Some(best), Some(now)) if best < GAIN * now => self.now,
            _ => self.best(),
        }
    }

    /// Its row of a table.
    fn cells(&self, name: String, shown: fn(u32) -> String) -> [String; 6] {
        let gbps = |one| number(self.gbps(one), 1, "");
        let (best, now) = (self.best(), self.now);
        [name, shown(best), gbps(best), shown(now), gbps(now), shown(self.chosen())]
    }
}

/// The sweeps of each width: of whole rows, and of ragged ones.
type Found = (TileShape, [Sweep; 2]);

/// The tiles, the blocks and the weights of estimates that were found.
struct Tuning {
    tiles: Vec<Found>,
    blocks: [Sweep; 2],
    fits: Fits,
}

/// The row of the user's file.
fn row(found: &[Found], blocks: &[Sweep; 2]) -> warpstride::Result<Tuned> {
    let mut across = [[0; 2]; 5];
    for (across, (_, kernels)) in across.iter_mut().zip(found) {
        *across = kernels.each_ref().map(Sweep::chosen);
    }
    Tuned::new(across, blocks[0].chosen(), blocks[1].chosen())
}

pub(super) fn run(backend: Backend, output: &Output) -> Result<()> {
    let device = open(backend, output)?;
    require!(
        has_times(&device),
        Unavailable,
        "tiles are tuned by the time that they take, which the software GPU does not know; run this on an NVIDIA GPU"
    );
    let target = Target::of(&device);
    let tiles = TileShape::of(target);
    let file = TuningFile::place()
        .context("the system names no folder for a user's configuration; set WARPSTRIDE_TUNING to a file")?;
    // Before anything is timed.
    before(&file)?;
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let destination = destination::checked(&file, &[], output)?;
    // On the host the elements, the expected ones and those that came back; on the device one more
    // of each side.
    let sets = Rotation::new(&device, &[BYTES; 2]).sets();
    ensure_room(BYTES, 3, &[(&device, 2 * sets + 2)])?;
    let progress = output.progress(tiles.len() + 1);
    let mut found = Vec::new();
    for tile in tiles {
        progress.doing(format!("elements of {}", counted(tile.width(), "byte")));
        found.push(by_width!(tile, T => tuned::<T>(&device, tile))?);
        progress.step();
    }
    progress.doing("copies and fills");
    let blocks = tuned_blocks(&device, target)?;
    progress.step();
    drop(progress);
    let row = row(&found, &blocks)?;
    let fits = written((&file, &destination), device.info(), row, || {
        // The costs of layouts depend on the tiles.
        let target = Target::of_info(device.info(), Some(row), device.tuning_file().weights());
        Ok(Fits::new(&samples::measured(&device, target, output)?, target))
    })?;
    let tuning = Tuning { tiles: found, blocks, fits };
    output.result(&text(&device, &tuning, &file), json(&device, &tuning, &file))
}

/// Writes the row, then fits the estimates and writes those that are better: an error of the fits
/// does not lose the row.
fn written(
    (file, destination): (&Path, &Destination),
    info: &DeviceInfo,
    row: Tuned,
    fit: impl FnOnce() -> Result<Fits>,
) -> Result<Fits> {
    let write = |text: &dyn Fn(&[u8]) -> Result<String, String>| {
        // Another program may have added a section by now.
        let text = text(&before(file)?).map_err(anyhow::Error::msg)?;
        destination::replace(destination, |file| file.write_all(text.as_bytes()))
    };
    write(&|before| TuningFile::with_row(before, info, row))?;
    let only = || format!("{} has the tiles and blocks, and no new estimates", file.display());
    let fits = fit().with_context(only)?;
    if fits.are_written() {
        write(&|before| TuningFile::with_weights(before, info, &fits.weights())).with_context(only)?;
    } else if TuningFile::parse_weights(&before(file)?, info).is_err() {
        // Devices would go on saying that the section is stale.
        write(&|before| TuningFile::without_weights(before, info)).with_context(only)?;
    }
    Ok(fits)
}

/// Returns the text that a section is added to; fails where other sections could be lost.
fn before(file: &Path) -> Result<Vec<u8>> {
    TuningFile::before(file).or_else(|why| {
        let file = file.display();
        refuse!(Io, "cannot add a section to {file}: {why}; move it away, or name another file by WARPSTRIDE_TUNING")
    })
}

/// Times a launch whose first elements are the expected ones; `None` where they are not.
fn timed<T: Element + Pod>(runs: &mut ColdRuns<T>, expected: &[T], launch: impl Launch<T>) -> Result<Option<Timing>> {
    Ok(moved(runs, expected, launch)?.timing)
}

/// Runs a launch, compares its first elements with the expected ones, and times it where they are
/// right and the device has times.
fn moved<T: Element + Pod>(runs: &mut ColdRuns<T>, expected: &[T], launch: impl Launch<T>) -> Result<Outcome> {
    runs.begin(expected)?;
    let is_right = |found: &[T]| reference::are_equal(&found[..expected.len()], expected);
    measure(&mut *one_to_one(runs, None, launch, is_right), SAMPLES, false)
}

/// Times copies and fills in blocks of each number of threads.
fn tuned_blocks(device: &Device, target: Target) -> Result<[Sweep; 2]> {
    let elements = reference::random::<u32>(BYTES / size_of::<u32>())?;
    let mut runs = ColdRuns::new(Rotation::new(device, &[BYTES; 2]), &elements, elements.len())?;
    let filled = vec![VALUE; elements.len()];
    let across = TileShape::of(target).map(|tile| [tile.across(), tile.ragged_across()]);
    let (mut copies, mut fills) = (Vec::new(), Vec::new());
    for block in BLOCKS {
        let target = Target::of_info(device.info(), Some(Tuned::new(across, block, block)?), None);
        let copy = copy_plan(elements.len(), target)?;
        let timing = timed(&mut runs, &elements, |source, result, stream| copy.launch(source, result, stream))?;
        let timing = timing.with_context(|| format!("{copy} copies wrongly; please report this as a bug"))?;
        copies.push(timing.gbps(2 * BYTES as u64));
        let fill = fill_plan(elements.len(), target)?;
        let timing = timed(&mut runs, &filled, |_, result, stream| fill.launch(VALUE, result, stream))?;
        let timing = timing.with_context(|| format!("{fill} fills wrongly; please report this as a bug"))?;
        fills.push(timing.gbps(BYTES as u64));
    }
    let sweep = |kernel, shape: Option<LaunchShape>, gbps| {
        let now = shape.map_or(0, |shape| shape.block[0]);
        Sweep { kernel, width: size_of::<u32>(), tried: BLOCKS.into(), gbps, now }
    };
    let shapes = (copy_plan(elements.len(), target)?.shape(), fill_plan(elements.len(), target)?.shape());
    Ok([sweep("copy", shapes.0, copies), sweep("fill", shapes.1, fills)])
}

fn copy_plan(len: usize, target: Target) -> warpstride::Result<PermutePlan> {
    let (layout, align) = (Layout::row_major(&[len])?, Align::ALLOCATION);
    PermutePlan::new(&layout, align, &layout, align, size_of::<u32>(), target)
}

fn fill_plan(len: usize, target: Target) -> warpstride::Result<FillPlan> {
    FillPlan::new(u32::DTYPE, len as u64, Phase::ALIGNED, target)
}

fn tuned<T: Element + Pod>(device: &Device, tile: TileShape) -> Result<Found> {
    let len = BYTES / size_of::<T>();
    let elements = reference::random::<T>(len)?;
    let mut runs = ColdRuns::new(Rotation::new(device, &[BYTES; 2]), &elements, len)?;
    let mut sweep = |ragged: bool, kernel, now| -> Result<Sweep> {
        let mut ms = vec![0.0; tile.most_across(ragged) as usize + 1];
        let mut bytes = 0;
        for aspect in ASPECTS {
            let [rows, cols] = matrix(len, aspect, ragged);
            let expected = reference::permuted(&elements[..rows * cols], &[rows, cols], &[1, 0])?;
            bytes += 2 * size_of_val(&*expected);
            for (across, ms) in (0..).zip(&mut ms) {
                let tiles = [tile.with_across(across, across)];
                let timing = timed(&mut runs, &expected, |source, result, stream| {
                    let source = source.slice(0, ..rows * cols, 1)?.split_axis(0, &[rows, cols])?;
                    let result = result.slice(0, ..rows * cols, 1)?.split_axis(0, &[cols, rows])?;
                    ops::copy_into_tuned(source.t(), result, &tiles, stream)
                })?;
                let Some(timing) = timing else {
                    bail!(
                        "tiles of {} a row move {rows} x {cols} elements of {} to the wrong place; please report \
                         this as a bug",
                        counted(1 << across, "square"),
                        counted(tile.width(), "byte")
                    );
                };
                *ms += timing.median_ms();
            }
        }
        let gbps = ms.iter().map(|ms| bytes as f64 / (ms * 1e6)).collect();
        Ok(Sweep { kernel, width: tile.width(), tried: (0..).take(ms.len()).collect(), gbps, now })
    };
    let whole = sweep(false, "vector_tile", tile.across())?;
    Ok((tile, [whole, sweep(true, "ragged_tile", tile.ragged_across())?]))
}

/// Rows and columns of a matrix of at most `len` elements, a power of two.
fn matrix(len: usize, aspect: i32, ragged: bool) -> [usize; 2] {
    let log2 = len.ilog2() as i32;
    let rows_log2 = (log2 + aspect) / 2;
    [rows_log2, log2 - rows_log2].map(|log2| (1 << log2) - usize::from(ragged))
}

fn text(device: &Device, Tuning { tiles, blocks, fits }: &Tuning, file: &Path) -> String {
    let mut table = Table::new(&["kernel", "micro-tiles a row", "GB/s", "now", "GB/s now", "written"]);
    let mut rows = String::new();
    for (tile, kernels) in tiles {
        for sweep in kernels {
            let name = format!("{}, {}", sweep.kernel, counted(sweep.width, "byte"));
            table.add_row(sweep.cells(name, |across| (1_u64 << across).to_string()));
        }
        let [whole, ragged] = kernels.each_ref().map(Sweep::chosen);
        // A row that is copied into the sources stays one line.
        rows += &(terminal::whole(&format!("    {:?},", tile.with_across(whole, ragged))) + "\n");
    }
    let mut of_blocks = Table::new(&["kernel", "threads a block", "GB/s", "now", "GB/s now", "written"]);
    for sweep in blocks {
        of_blocks.add_row(sweep.cells(sweep.kernel.into(), |threads| threads.to_string()));
    }
    let mut of_fits = Table::new(&["estimate", "layouts", "error now", "error fitted", "written"]);
    for fit in &fits.of_kernels {
        let percent = |at: usize| number(fit.errors.map(|errors| 100.0 * errors[at]), 1, " %");
        let name = format!("{}, {}", fit.kernel.name(), counted(fit.width(), "byte"));
        let written = if fits.is_written(fit) { "fitted" } else { "now" };
        of_fits.add_row([name, fit.layouts.to_string(), percent(0), percent(1), written.into()]);
    }
    format!(
        "{}\n{table}\n{of_blocks}\n{of_fits}\nEvery device that is opened from now on reads the written numbers from {}; where the best \
         gains less than {:.0} %, that is the present one.\n{}For `TILE_SHAPES` of the GPU's file in src/ops/tuning:\n[\n{rows}]\n",
        device.info().name,
        terminal::path(file),
        100.0 * (GAIN - 1.0),
        of_choice(fits)
    )
}

/// Says what the fits change.
fn of_choice(fits: &Fits) -> String {
    let Some([now, fitted]) = fits.losses else { return String::new() };
    format!(
        "Errors are means over the layouts, each of which was left out of the fit that estimates it. Fitted weights are \
         better where they leave at most {FIT_GAIN} of the present error, and they are written unless the choice \
         becomes worse.\nloss of the choice: the chosen kernels take {now:.4} times as long as the fastest, and \
         {fitted:.4} times with better weights, the geometric means\n"
    )
}

fn json(device: &Device, Tuning { tiles, blocks, fits }: &Tuning, file: &Path) -> Value {
    let kernel = |sweep: &Sweep| {
        json!({
            "kernel": sweep.kernel,
            "width": sweep.width,
            "across_log2": sweep.best(),
            "across_log2_now": sweep.now,
            "across_log2_written": sweep.chosen(),
            "gbps": sweep.gbps,
        })
    };
    let block = |sweep: &Sweep| {
        json!({
            "kernel": sweep.kernel,
            "threads": sweep.tried,
            "best": sweep.best(),
            "now": sweep.now,
            "written": sweep.chosen(),
            "gbps": sweep.gbps,
        })
    };
    let weights = fits.weights();
    let estimate = |fit: &fit::Fit| {
        json!({
            "kernel": fit.kernel.name(),
            "width": fit.width(),
            "layouts": fit.layouts,
            "error_now": fit.errors.map(|errors| errors[0]),
            "error_fitted": fit.errors.map(|errors| errors[1]),
            "fitted_is_written": fits.is_written(fit),
            "weights": weights.of_kernel(fit.kernel, fit.width_log2),
        })
    };
    json!({
        "device": output::info_json(device.info()),
        "kernels": tiles.iter().flat_map(|(_, kernels)| kernels).map(kernel).collect::<Vec<_>>(),
        "blocks": blocks.iter().map(block).collect::<Vec<_>>(),
        "estimates": fits.of_kernels.iter().map(estimate).collect::<Vec<_>>(),
        "loss_of_choice_now": fits.losses.map(|losses| losses[0]),
        "loss_of_choice_fitted": fits.losses.map(|losses| losses[1]),
        "file": file.display().to_string(),
    })
}

#[cfg(test)]
mod tests;
