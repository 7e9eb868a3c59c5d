//! `warpstride alloc replay`: the allocations of a program, run again, and their cost: the memory
//! held beside the memory in use, and the time.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use plotters::prelude::*;
use serde_json::json;
use warpstride::alloc::Caching;
use warpstride::device::{Backend, Device};
use warpstride::driver::DriverKind;
use warpstride::error::counted;
use warpstride::stream::Stream;

use super::log::{LeftOut, Log};
use super::play::{Outcome, Sample, replay, replay_simulated};
use crate::export::svg::{self, READ, SIZE, WRITE};
use crate::output::{self, Output};
use crate::{args, destination, open, refuse};

/// Operations of a log from a seed.
const OPERATIONS: usize = 1_000_000;
/// Bytes of the memory that is simulated where there is no GPU.
const MEMORY: u64 = 80 << 30;
/// Bytes in use below which the least that the allocator takes decides how much it reserves.
const TINY: u64 = 64 << 20;
const GIB: f64 = (1_u64 << 30) as f64;

pub(crate) fn run(args: &args::AllocReplay, backend: Backend, output: &Output) -> Result<()> {
    let sources: Vec<&Path> = args.log.iter().map(PathBuf::as_path).collect();
    let target =
        |path: &Option<PathBuf>| path.as_ref().map(|path| destination::checked(path, &sources, output)).transpose();
    let (svg, csv) = (target(&args.svg)?, target(&args.write)?);
    let log = match (&args.log, args.seed) {
        (Some(path), _) => {
            let file = File::open(path).with_context(|| format!("cannot read {}; check the path", path.display()))?;
            Log::read(BufReader::new(file)).with_context(|| path.display().to_string())?
        }
        (None, seed) => Log::random(seed.unwrap_or_default(), OPERATIONS),
    };
    // The software GPU's memory is the host's, which has less than most logs need.
    let gpu = if backend == Backend::Soft { None } else { Some(open(backend, output)?) };
    let gpu = gpu.filter(|device| device.info().kind == DriverKind::Cuda);
    let outcome = match &gpu {
        Some(device) => replay_on(device, &log),
        None => replay_simulated(&log, MEMORY),
    };
    let name = args.log.as_ref().map_or("a log from a seed".into(), |path| path.display().to_string());
    let outcome = outcome.context(name)?;
    if let Some(target) = svg {
        let svg = outcome.svg()?;
        destination::replace(&target, |file| file.write_all(svg.as_bytes()))?;
    }
    if let Some(target) = csv {
        destination::replace(&target, |file| log.write(file))?;
    }
    let left_out =
        |LeftOut { why, rows, first_line }: &LeftOut| json!({ "why": why, "rows": rows, "first_line": first_line });
    let left_out: Vec<_> = log.left_out.iter().map(left_out).collect();
    let document = json!({
        "device": gpu.as_ref().map(|device| output::info_json(device.info())),
        "operations": log.calls.len(),
        "streams": log.streams,
        "left_out": left_out,
        "ratio": outcome.ratio(),
        "peak_active": outcome.peak_active,
        "peak_reserved": outcome.peak_reserved,
        "fragmentation": outcome.fragmentation,
        "ns_per_call": outcome.ns_per_call,
        "figures": outcome.figures,
    });
    output.result(&text(&log, &outcome, gpu.as_ref()), document)
}

fn text(log: &Log, outcome: &Outcome, gpu: Option<&Device>) -> String {
    let place = gpu.map_or("simulated memory", |device| &device.info().name);
    let figures = &outcome.figures;
    let is_tiny = outcome.peak_active < TINY;
    let ratio = if is_tiny { String::new() } else { format!(", {:.4} times as much", outcome.ratio()) };
    let mut lines = vec![
        format!("{} on {}, {place}", counted(log.calls.len(), "operation"), counted(log.streams, "stream")),
        format!("peak in use    {:10.3} GiB", outcome.peak_active as f64 / GIB),
        format!("peak reserved  {:10.3} GiB{ratio}", outcome.peak_reserved as f64 / GIB),
        format!("fragmentation  {:10.4} at the peak: 1 - largest free / total free", outcome.fragmentation),
        format!("time           {:10.1} ns a call", outcome.ns_per_call),
        format!("misses         {:10}", figures.misses),
        format!("taken          {:10} from the driver; given back: {}", figures.taken, figures.given_back),
    ];
    lines.extend(log.left_out.iter().map(|LeftOut { why, rows, first_line }| {
        format!("left out       {rows:10} of the log's rows: {why}, the first on line {first_line}")
    }));
    lines.join("\n") + "\n"
}

impl Outcome {
    /// Draws the bytes in use and the bytes reserved over the operations of the log.
    fn svg(&self) -> Result<String> {
        let Some(last) = self.samples.last() else {
            refuse!(InvalidArgument, "this replay cannot be drawn: its log is empty")
        };
        // Small logs are drawn in MiB.
        let (unit, name) = if self.peak_reserved as f64 >= GIB { (GIB, "GiB") } else { (GIB / 1024.0, "MiB") };
        let most = (self.peak_reserved.max(self.peak_active).max(1) as f64 / unit) * 1.08;
        let course = |bytes: fn(&Sample) -> u64| {
            self.samples.iter().map(move |sample| (sample.calls as f64, bytes(sample) as f64 / unit))
        };
        let drawn = svg::image(SIZE.1, [14, 14, 64], 0.0..last.calls as f64, most, |_, chart| {
            let mut mesh = chart.configure_mesh();
            mesh.x_desc("allocations and frees").y_desc(name).light_line_style(TRANSPARENT);
            mesh.draw().map_err(svg::failed)?;
            svg::line(chart, course(|sample| sample.reserved), WRITE.stroke_width(1), 0, "reserved")?;
            svg::line(chart, course(|sample| sample.active), READ.stroke_width(1), 0, "in use")?;
            let mut labels = chart.configure_series_labels();
            labels.position(SeriesLabelPosition::LowerRight).background_style(WHITE.mix(0.8));
            labels.draw().map_err(svg::failed)
        });
        drawn.or_else(|why| refuse!(InvalidArgument, "this replay cannot be drawn: {why}"))
    }
}

/// Runs a log on a [`Caching`] over the memory of a device.
fn replay_on(device: &Device, log: &Log) -> Result<Outcome> {
    let streams = (0..log.streams).map(|_| device.stream()).collect::<warpstride::Result<Vec<_>>>()?;
    let handles: Vec<_> = streams.iter().map(Stream::handle).collect();
    // SAFETY: the streams live longer than the allocator, which has no other lane for them.
    unsafe { replay(log, &Caching::new(Arc::clone(device.driver()))?, &handles) }
}
