//! `warpstride bench --tune`: which tiles and blocks are the fastest on this GPU. Devices that are
//! opened from then on use them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use bytemuck::Pod;
use serde_json::{Value, json};
use warpstride::device::{Backend, Device, Tuned, TuningFile};
use warpstride::element::Element;
use warpstride::error::counted;
use warpstride::launch_shape::LaunchShape;
use warpstride::layout::Layout;
use warpstride::ops::{self, Align, FillPlan, PermutePlan, Phase, Plan, Target, TileShape};
use warpstride::roofline::measure::{Rotation, Timing, has_times};

use super::bench::measure::{measure, one_to_one};
use super::cold_runs::{ColdRuns, Launch};
use super::output::{self, Output};
use super::{by_width, destination, ensure_room, open, reference, refuse, require};
use crate::run::table::{Table, number};

/// What arrays are filled with.
const VALUE: u32 = 0x0123_4567;

/// Bytes of every matrix: what a copy needs for its full speed.
const BYTES: usize = 1 << 28;

/// Timed runs of each tile on each matrix.
const SAMPLES: usize = 10;

/// Threads of a block that copies and fills are timed with.
const BLOCKS: [u32; 4] = [128, 256, 512, 1024];

/// What another tile or block must gain to replace the present one: the noise between two runs is
/// less.
const GAIN: f64 = 1.01;

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
        fastest(&self.gbps) as u32
    }
}

/// The speed of copies or fills in blocks of each of [`BLOCKS`].
struct Blocks {
    name: &'static str,
    now: u32,
    gbps: [f64; BLOCKS.len()],
}

impl Blocks {
    fn best(&self) -> u32 {
        BLOCKS[fastest(&self.gbps)]
    }

    /// The speed in blocks of this number, if it was timed.
    fn gbps(&self, block: u32) -> Option<f64> {
        BLOCKS.iter().position(|&timed| timed == block).map(|place| self.gbps[place])
    }
}

fn fastest(gbps: &[f64]) -> usize {
    (0..gbps.len()).max_by(|&a, &b| gbps[a].total_cmp(&gbps[b])).unwrap_or_default()
}

/// Which of two to use from now on.
fn chosen<T>([best, now]: [T; 2], [best_gbps, now_gbps]: [Option<f64>; 2]) -> T {
    match (best_gbps, now_gbps) {
        (Some(best_gbps), Some(now_gbps)) if best_gbps < GAIN * now_gbps => now,
        _ => best,
    }
}

/// The row of the user's file: what was found, where it is enough of a gain.
fn row(found: &[Found], blocks: &[Blocks; 2]) -> warpstride::Result<Tuned> {
    let mut across = [[0; 2]; 5];
    for (across, Found { tile, kernels }) in across.iter_mut().zip(found) {
        let now = [tile.across(), tile.ragged_across()];
        for (place, kernel) in kernels.iter().enumerate() {
            let gbps = |across: u32| kernel.gbps.get(across as usize).copied();
            across[place] = chosen([kernel.best(), now[place]], [gbps(kernel.best()), gbps(now[place])]);
        }
    }
    let [copy, fill] = [0, 1]
        .map(|place| &blocks[place])
        .map(|blocks| chosen([blocks.best(), blocks.now], [blocks.gbps(blocks.best()), blocks.gbps(blocks.now)]));
    Tuned::new(across, copy, fill)
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
    // Before minutes are spent.
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
    // Another program may have added a section by now.
    let written = TuningFile::with_row(&before(&file)?, device.info(), row).map_err(anyhow::Error::msg)?;
    destination::replace(&destination, |file| file.write_all(written.as_bytes()))?;
    output.result(&text(&device, &found, &blocks, row, &file), json(&device, &found, &blocks, row, &file))
}

/// Returns the text that a section is added to; fails where other sections could be lost.
fn before(file: &Path) -> Result<Vec<u8>> {
    match TuningFile::before(file) {
        Ok(text) => Ok(text),
        Err(why) => refuse!(
            Io,
            "cannot add a section to {}: {why}; move it away, or name another file by WARPSTRIDE_TUNING",
            file.display()
        ),
    }
}

/// Times a launch whose first elements are the expected ones; `None` where they are not.
fn timed<T: Element + Pod>(runs: &mut ColdRuns<T>, expected: &[T], launch: impl Launch<T>) -> Result<Option<Timing>> {
    runs.begin(expected)?;
    let is_right = |found: &[T]| reference::are_equal(&found[..expected.len()], expected);
    Ok(measure(&mut *one_to_one(runs, None, launch, is_right), SAMPLES, false)?.timing)
}

/// Times copies and fills in blocks of each number of threads.
fn tuned_blocks(device: &Device, target: Target) -> Result<[Blocks; 2]> {
    let elements = reference::random::<u32>(BYTES / size_of::<u32>())?;
    let mut runs = ColdRuns::new(Rotation::new(device, &[BYTES; 2]), &elements, elements.len())?;
    let filled = vec![VALUE; elements.len()];
    let across = TileShape::of(target).map(|tile| [tile.across(), tile.ragged_across()]);
    let mut copied = [0.0; BLOCKS.len()];
    let mut fills = copied;
    for (place, block) in BLOCKS.into_iter().enumerate() {
        let target = Target::of_info(device.info(), Some(Tuned::new(across, block, block)?));
        let copy = copy_plan(elements.len(), target)?;
        let timing =
            timed(&mut runs, &elements, |source, result| copy.launch(source, result, device.default_stream()))?;
        let timing = timing.with_context(|| format!("{copy} copies wrongly; please report this as a bug"))?;
        copied[place] = timing.gbps(2 * BYTES as u64);
        let fill = fill_plan(elements.len(), target)?;
        let timing = timed(&mut runs, &filled, |_, result| fill.launch(VALUE, result, device.default_stream()))?;
        let timing = timing.with_context(|| format!("{fill} fills wrongly; please report this as a bug"))?;
        fills[place] = timing.gbps(BYTES as u64);
    }
    let now = |shape: Option<LaunchShape>| shape.map_or(0, |shape| shape.block[0]);
    Ok([
        Blocks { name: "copy", now: now(copy_plan(elements.len(), target)?.shape()), gbps: copied },
        Blocks { name: "fill", now: now(fill_plan(elements.len(), target)?.shape()), gbps: fills },
    ])
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
                let timing = timed(&mut runs, &expected, |source, result| {
                    let stream = source.device().default_stream();
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

fn text(device: &Device, found: &[Found], blocks: &[Blocks; 2], row: Tuned, file: &Path) -> String {
    let mut table = Table::new(&["kernel", "micro-tiles a row", "GB/s", "now", "GB/s now", "written"]);
    let mut rows = String::new();
    for (Found { tile, kernels }, written) in found.iter().zip(row.across_log2()) {
        for kernel in kernels {
            let (now, name) = match kernel.ragged {
                true => (tile.ragged_across(), "ragged_tile"),
                false => (tile.across(), "vector_tile"),
            };
            let gbps = |across: u32| number(kernel.gbps.get(across as usize).copied(), 1, "");
            let squares = |across: u32| (1_u64 << across).to_string();
            let name = format!("{name}, {}", counted(tile.width(), "byte"));
            let (best, kept) = (kernel.best(), written[usize::from(kernel.ragged)]);
            table.add_row([name, squares(best), gbps(best), squares(now), gbps(now), squares(kept)]);
        }
        rows += &format!("    {:?},\n", tile.with_across(written[0], written[1]));
    }
    let mut of_blocks = Table::new(&["kernel", "threads a block", "GB/s", "now", "GB/s now", "written"]);
    for (blocks, written) in blocks.iter().zip([row.copy_block(), row.fill_block()]) {
        let (gbps, best, now) = (|block: u32| number(blocks.gbps(block), 1, ""), blocks.best(), blocks.now);
        let cells = [best.to_string(), gbps(best), now.to_string(), gbps(now), written.to_string()];
        of_blocks.add_row([blocks.name.to_owned()].into_iter().chain(cells));
    }
    format!(
        "{}\n{table}\n{of_blocks}\nEvery device that is opened from now on reads the written numbers from {}; where the best \
         gains less than {:.0} %, that is the present one.\nFor `TILE_SHAPES` of the GPU's file in src/ops/tuning:\n[\n{rows}]\n",
        device.info().name,
        file.display(),
        100.0 * (GAIN - 1.0)
    )
}

fn json(device: &Device, found: &[Found], blocks: &[Blocks; 2], row: Tuned, file: &Path) -> Value {
    let kernels = found.iter().zip(row.across_log2()).flat_map(|(Found { tile, kernels }, written)| {
        kernels.iter().map(move |kernel| {
            json!({
                "kernel": if kernel.ragged { "ragged_tile" } else { "vector_tile" },
                "width": tile.width(),
                "across_log2": kernel.best(),
                "across_log2_now": if kernel.ragged { tile.ragged_across() } else { tile.across() },
                "across_log2_written": written[usize::from(kernel.ragged)],
                "gbps": kernel.gbps,
            })
        })
    });
    let blocks = blocks.iter().zip([row.copy_block(), row.fill_block()]).map(|(blocks, written)| {
        json!({
            "kernel": blocks.name,
            "threads": BLOCKS,
            "best": blocks.best(),
            "now": blocks.now,
            "written": written,
            "gbps": blocks.gbps,
        })
    });
    json!({
        "device": output::info_json(device.info()),
        "kernels": kernels.collect::<Vec<_>>(),
        "blocks": blocks.collect::<Vec<_>>(),
        "file": file.display().to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_other_contents_is_not_added_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("notes.txt");
        assert_eq!(before(&file).expect("nothing is there"), b"");
        fs::write(&file, "[NVIDIA H200]\nversion: 1\n").expect("a file");
        let refused = before(&file).expect_err("it has a typo").to_string();
        assert!(refused.contains("notes.txt: line 2 is neither") && refused.contains("move it away"), "{refused}");
    }

    /// Kernels whose present tiles have the speed 1, those of one micro-tile a row `gain`, and the
    /// others none.
    fn found(gain: f64) -> [Found; 5] {
        let kernel = |ragged: bool, most: u32, now: u32| {
            let speed = |across: u32| if across == 0 { gain } else { f64::from(u8::from(across == now)) };
            Kernel { ragged, gbps: (0..=most).map(speed).collect() }
        };
        TileShape::of(Target::new((9, 0))).map(|tile| {
            let whole = kernel(false, tile.most_across(false), tile.across());
            Found { tile, kernels: vec![whole, kernel(true, tile.most_across(true), tile.ragged_across())] }
        })
    }

    #[test]
    fn what_is_written_is_shown_beside_the_best() {
        let device = Device::open(Backend::Soft).expect("the software GPU is always there");
        let (found, file) = (found(1.005), Path::new("tuning.txt"));
        let blocks = ["copy", "fill"].map(|name| Blocks { name, now: 1024, gbps: [0.5, 1.02, 0.5, 1.0] });
        let row = row(&found, &blocks).expect("kernels take it");
        let document = json(&device, &found, &blocks, row, file);
        for (kernel, now) in document["kernels"]
            .as_array()
            .expect("a list")
            .iter()
            .zip(found.iter().flat_map(|Found { tile, .. }| [tile.across(), tile.ragged_across()]))
        {
            let numbers =
                ["across_log2", "across_log2_now", "across_log2_written"].map(|member| kernel[member].as_u64());
            assert_eq!(numbers, [0, now, now].map(|number| Some(number.into())), "{kernel}");
        }
        let numbers = ["best", "now", "written"].map(|member| document["blocks"][1][member].as_u64());
        assert_eq!(numbers, [256, 1024, 256].map(Some));
        let text = text(&device, &found, &blocks, row, file);
        let tiles = found.iter().map(|Found { tile, .. }| format!("    {tile:?},\n")).collect::<String>();
        assert!(text.contains(&tiles), "the present tiles are written: {text}");
        let line = text.lines().find(|line| line.contains("fill")).expect("a line of fills");
        assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["fill", "256", "1.0", "1024", "1.0", "256"]);
    }

    #[test]
    fn what_gains_less_than_the_noise_stays() {
        let tiles = TileShape::of(Target::new((9, 0)));
        let blocks = |gbps: [f64; 4]| ["copy", "fill"].map(|name| Blocks { name, now: 1024, gbps });
        let row = |gain: f64| row(&found(gain), &blocks([0.5, gain, 0.5, 1.0])).expect("kernels take it");
        let now = tiles.map(|tile| [tile.across(), tile.ragged_across()]);
        assert_eq!(row(1.005), Tuned::new(now, 1024, 1024).expect("the present ones"));
        assert_eq!(row(1.02), Tuned::new([[0; 2]; 5], 256, 256).expect("the best ones"));
        // A block that was not timed is replaced.
        let [mut copy, fill] = blocks([0.5, 1.0, 0.5, 1.0]);
        copy.now = 96;
        assert_ne!(super::row(&found(1.02), &[copy, fill]).expect("kernels take it").copy_block(), 96);
    }
}
