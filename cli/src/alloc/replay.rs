//! `warpstride alloc replay`: the allocations of a program, run again.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use crate::replay::{Log, Outcome, replay_on, replay_simulated};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use warpstride::device::{Backend, Device};
use warpstride::driver::DriverKind;

use crate::output::{self, Output};
use crate::{args, destination, open};

/// Operations of a log from a seed.
const OPERATIONS: usize = 1_000_000;
/// Bytes of the memory that is simulated where there is no GPU.
const MEMORY: u64 = 80 << 30;
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
        Some(device) => replay_on(device.driver(), &log)?,
        None => replay_simulated(&log, MEMORY)?,
    };
    if let Some(target) = svg {
        let svg = outcome.svg()?;
        destination::replace(&target, |file| file.write_all(svg.as_bytes()))?;
    }
    if let Some(target) = csv {
        let mut text = Vec::new();
        log.write(&mut text)?;
        destination::replace(&target, |file| file.write_all(&text))?;
    }
    output.result(&text(&log, &outcome, gpu.as_ref()), document(&log, &outcome, gpu.as_ref())?)
}

fn text(log: &Log, outcome: &Outcome, gpu: Option<&Device>) -> String {
    let place = gpu.map_or("simulated memory", |device| &device.info().name);
    let figures = &outcome.figures;
    let lines = [
        format!("{} allocations and frees on {} streams, {place}", log.operations().len(), log.streams()),
        format!("peak in use    {:10.3} GiB", outcome.peak_active as f64 / GIB),
        format!("peak reserved  {:10.3} GiB, {:.4} times as much", outcome.peak_reserved as f64 / GIB, outcome.ratio()),
        format!("fragmentation  {:10.4} at the peak: 1 - largest free / total free", outcome.fragmentation),
        format!("time           {:10.1} ns a call", outcome.ns_per_call),
        format!("misses         {:10}", figures.misses),
        format!("taken          {:10} from the driver; given back: {}", figures.taken, figures.given_back),
    ];
    lines.join("\n") + "\n"
}

fn document(log: &Log, outcome: &Outcome, gpu: Option<&Device>) -> Result<Value> {
    let mut document = json!({
        "device": gpu.map(|device| output::info_json(device.info())),
        "operations": log.operations().len(),
        "streams": log.streams(),
        "ratio": outcome.ratio(),
    });
    if let (Value::Object(document), Value::Object(members)) = (&mut document, serde_json::to_value(outcome)?) {
        document.extend(members);
    }
    Ok(document)
}
