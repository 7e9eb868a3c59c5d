//! `warpstride bench OP`: one operation on random bits, verified, and on a GPU timed and held against a copy.

use anyhow::{Result, ensure};
use bytemuck::Pod;
use serde_json::{Value, json};
use warpstride::counters::Counters;
use warpstride::device::{Backend, Device};
use warpstride::element::{DType, Element};
use warpstride::error::Error;
use warpstride::layout::Layout;
use warpstride::ops::{self, Align, PermutePlan, Target};
use warpstride::roofline::measure::Timing;
use warpstride::view::{View, ViewMut};

use super::output::{self, Output, number};
use super::trial::{self, Launch, Rotation};
use super::{args, array_bytes, by_width, ensure_room, open, permuted_layouts, reference, tune};

/// Arrays of at most so many bytes take so little time that their launches matter, which are then timed as well.
const SMALL: usize = 1 << 20;

/// The operations, and what they take.
const OPERATIONS: [[&str; 3]; 2] = [
    ["permute", "--shape S --axes A --dtype T", "an array with its axes in another order, into C order"],
    ["copy", "--elements N --dtype T", "as many bytes and nothing else: the yardstick"],
];

pub(super) fn run(args: &args::Bench, backend: Backend, output: &Output) -> Result<()> {
    match &args.operation {
        None if args.tune => tune::run(backend, output),
        None => list(output),
        Some(args::Operation::Permute { permuted: args::Permuted { shape, axes, dtype }, samples }) => {
            // What is wrong with the shape is said before any device is opened.
            permuted_layouts(shape, axes)?;
            Subject { op: "permute", dtype: *dtype, shape, axes: Some(axes) }.bench(backend, samples, output)
        }
        Some(args::Operation::Copy { elements, dtype, samples }) => {
            Subject { op: "copy", dtype: *dtype, shape: &[*elements], axes: None }.bench(backend, samples, output)
        }
    }
}

fn list(output: &Output) -> Result<()> {
    let mut text = String::new();
    for [op, takes, does] in OPERATIONS {
        text += &format!("{op:8} {takes:30} {does}\n");
    }
    let entries = OPERATIONS.map(|[op, takes, does]| json!({ "op": op, "arguments": takes, "about": does }));
    output.result(&text, json!({ "operations": entries }))
}

/// What is done with which array.
#[derive(Clone, Copy)]
struct Subject<'a> {
    op: &'static str,
    dtype: DType,
    shape: &'a [usize],
    /// Of a permute.
    axes: Option<&'a [usize]>,
}

/// What was found.
struct Outcome {
    kernel: Option<&'static str>,
    verified: bool,
    counters: Option<Counters>,
    /// Of the operation, and of a copy of as many bytes in the same run.
    timing: Option<(Timing, Timing)>,
    /// Of small arrays: microseconds from launch to launch.
    launch_us: Option<f64>,
}

impl Subject<'_> {
    fn bench(&self, backend: Backend, samples: &args::Samples, output: &Output) -> Result<()> {
        let bytes = array_bytes(self.shape, self.dtype)?;
        let device = open(backend, output)?;
        let turns = trial::turns(&device, bytes);
        // The array, what it becomes and what came back, or the turns' sources; on the device first one source and result,
        // then those of the turns.
        ensure_room(bytes, (1 + turns).max(3), &[(&device, 2 * turns.max(1))])?;
        let samples = usize::from(samples.samples);
        let outcome = by_width!(self.dtype, T => self.outcome::<T>(&device, bytes, turns, samples, output))?;
        output.result(&self.text(&device, bytes, &outcome), self.json(&device, samples, bytes, &outcome))?;
        ensure!(outcome.verified, "{} moved elements to the wrong place; please report this as a bug", self.op);
        Ok(())
    }

    fn outcome<T: Element + Pod>(
        &self,
        device: &Device,
        bytes: usize,
        turns: usize,
        samples: usize,
        output: &Output,
    ) -> Result<Outcome> {
        let progress = output.progress(3);
        progress.doing("preparing");
        let elements = reference::random::<T>(bytes / size_of::<T>())?;
        let expected = match self.axes {
            Some(axes) => reference::permuted(&elements, self.shape, axes)?,
            None => elements.clone(),
        };
        progress.step();
        progress.doing("verifying");
        let source = device.upload(&elements)?;
        let (verified, counters) = trial::verify(device, &source, &expected, self.launch())?;
        drop((source, expected));
        progress.step();
        progress.doing("timing");
        let (mut timing, mut launch_us) = (None, None);
        if verified && turns > 0 {
            let mut rotation = Rotation::new(device, &elements, turns)?;
            let copy = rotation.time(samples, copy)?;
            timing = Some((rotation.time(samples, self.launch())?, copy));
            if bytes <= SMALL {
                launch_us = Some(rotation.launch_us(self.launch())?);
            }
        }
        Ok(Outcome { kernel: self.kernel(device)?, verified, counters, timing, launch_us })
    }

    /// The kernel that it comes to.
    fn kernel(&self, device: &Device) -> Result<Option<&'static str>> {
        let [source, result] = match self.axes {
            Some(axes) => permuted_layouts(self.shape, axes)?,
            None => [Layout::row_major(self.shape)?; 2],
        };
        let align = Align::ALLOCATION;
        Ok(PermutePlan::new(&source, align, &result, align, self.dtype.width(), Target::of(device))?.entry())
    }

    fn launch<T: Element>(&self) -> impl Launch<T> {
        |source: View<'_, T>, result: ViewMut<'_, T>| {
            let Some(axes) = self.axes else { return copy(source, result) };
            let stream = source.device().default_stream();
            let source = source.split_axis(0, self.shape)?.permuted_axes(axes)?;
            let result = result.split_axis(0, source.shape())?;
            ops::copy_into(source, result, stream)
        }
    }

    /// Bytes read and written.
    fn bytes_moved(bytes: usize) -> u64 {
        2 * bytes as u64
    }

    fn text(&self, device: &Device, bytes: usize, outcome: &Outcome) -> String {
        let Self { op, dtype, shape, axes } = self;
        let name = &device.info().name;
        let order = axes.map_or(String::new(), |axes| format!(", axes {axes:?}"));
        let kernel = outcome.kernel.unwrap_or("nothing to launch");
        let verified = if outcome.verified { "verified" } else { "WRONG" };
        let mut text = format!("{op} {shape:?} {dtype}{order} on {name}\n{kernel}, {verified}\n");
        if let Some((timing, copy)) = &outcome.timing {
            let moved = Self::bytes_moved(bytes);
            text += &format!(
                "{:.4} ms ({:.4} to {:.4} from p10 to p90), {:.1} GB/s, {:.1} % of copy; each with a cold L2 cache\n",
                timing.median_ms(),
                timing.quantile_ms(0.1),
                timing.quantile_ms(0.9),
                timing.gbps(moved),
                100.0 * copy.median_ms() / timing.median_ms(),
            );
        }
        if let Some(us) = outcome.launch_us {
            text += &format!("{us:.2} us from launch to launch, one behind the other\n");
        }
        if let Some(counters) = &outcome.counters {
            text += &format!(
                "sectors/request: {} loaded, {} stored; bank conflicts: {}\n",
                number(counters.global_load.sectors_per_request(), 2, ""),
                number(counters.global_store.sectors_per_request(), 2, ""),
                counters.bank_conflicts(),
            );
        }
        if !output::has_times(device) {
            text +=
                "No GB/s: the software GPU is exact about what is moved and says nothing of the time a GPU takes.\n";
        }
        text
    }

    fn json(&self, device: &Device, samples: usize, bytes: usize, outcome: &Outcome) -> Value {
        let timing = outcome.timing.as_ref().map(|(timing, _)| timing);
        let moved = Self::bytes_moved(bytes);
        json!({
            "device": output::info_json(device.info()),
            "op": self.op,
            "dtype": self.dtype.name(),
            "shape": self.shape,
            "axes": self.axes,
            "bytes": moved,
            "kernel": outcome.kernel,
            "samples": samples,
            "ms": timing.map(|timing| json!({
                "median": timing.median_ms(),
                "p10": timing.quantile_ms(0.1),
                "p90": timing.quantile_ms(0.9),
            })),
            "gbps": timing.map(|timing| timing.gbps(moved)),
            "copy_gbps": outcome.timing.as_ref().map(|(_, copy)| copy.gbps(moved)),
            "fraction_of_copy": outcome.timing.as_ref().map(|(timing, copy)| copy.median_ms() / timing.median_ms()),
            "gapless": timing.map(Timing::gapless),
            "launch_us": outcome.launch_us,
            "verified": outcome.verified,
            "counters": outcome.counters,
        })
    }
}

fn copy<T: Element>(source: View<'_, T>, result: ViewMut<'_, T>) -> Result<(), Error> {
    ops::copy_into(source, result, source.device().default_stream())
}
