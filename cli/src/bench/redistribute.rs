//! `bench redistribute`: an array over several GPUs, split in another way, beside a flat push.

#[cfg(unix)]
mod processes;

use std::sync::Arc;

use anyhow::Result;
use bytemuck::Pod;
use serde_json::{Value, json};
use warpstride::counters::Counters;
use warpstride::device::Backend;
use warpstride::distributed::{Distributed, Exchange, Gpus, Links, Redistribution, ring, time_exchange, time_push};
use warpstride::element::Element;
use warpstride::error::counted;
use warpstride::roofline::measure::{self, has_times};
use warpstride::roofline::record::{Group, Record, Spread, Subject};

use super::super::output::Output;
use super::super::{args, array_bytes, by_width, ensure_room, reference};
use super::measure::Bench;
use crate::export::{json, text};
use crate::peaks;

/// Runs the command.
pub(super) fn run(args: &args::Bench, spread: &args::Spread, backend: Backend, output: &Output) -> Result<()> {
    let args::Spread { shape, from, to, axes, dtype, .. } = spread;
    let plan = crate::gpus::plan(shape, axes.as_ref(), [from, to], *dtype)?;
    let subject = subject(spread, &plan)?;
    if spread.engine == args::Engine::Nccl {
        #[cfg(unix)]
        return processes::run(args, spread, (subject, &plan), backend, output);
        #[cfg(not(unix))]
        anyhow::bail!("NVIDIA has no NCCL for this system; leave --engine nccl out");
    }
    let samples = usize::from(spread.samples.samples);
    let bench = Bench::open(args, Some(&subject.name()), samples, peaks::known, (backend, output))?;
    let bytes = array_bytes(&spread.shape, spread.dtype)?;
    // The elements, the expected and the gathered ones, and both sides of the exchange.
    ensure_room(bytes, 3, &[])?;
    ensure_room(bytes.div_ceil(plan.ranks()), 0, &[(&bench.device, 2)])?;
    let gpus = Arc::new(crate::gpus::open(&bench.device, gpus(spread, &plan))?);
    let progress = output.progress(2);
    progress.doing("measuring the links");
    let (links, push_gbps) = if has_times(gpus.device(0)) && gpus.len() > 1 {
        let bytes = usize::try_from(plan.busiest_bytes()).unwrap_or(usize::MAX).max(1);
        let push = time_push(&gpus, &ring(gpus.len()), bytes, samples)?;
        (Some(Links::measure(&gpus, samples)?), Some(push.gbps(bytes as u64)))
    } else {
        (None, None)
    };
    progress.step();
    progress.doing("redistributing");
    let exchange = Exchange::new(&gpus, &plan)?;
    let measured = by_width!(spread.dtype, T => redistribute::<T>(&exchange, &gpus, spread, &plan, samples))?;
    drop(progress);
    let record = record(subject, &measured, samples, push_gbps, &gpus);
    let run = bench.run(vec![record]);
    let predicted = links.map(|links| links.predict_ms(&plan));
    let told = told(&exchange, &plan, links, predicted);
    let mut document = json::document_of_one(&run)?;
    document.insert("links".into(), links_json(&exchange, &plan, links, predicted));
    bench.kept.finish(&run, text::record(&run, &run.cases[0]) + &told, document, output)
}

fn subject(spread: &args::Spread, plan: &Redistribution) -> Result<Subject> {
    let args::Spread { shape, from, to, axes, dtype, .. } = spread;
    let axes = axes.as_ref().map(|axes| axes.of(shape)).transpose()?;
    let engine = (spread.engine == args::Engine::Nccl).then(|| "nccl".to_owned());
    let spread = Spread { gpus: gpus(spread, plan), from: from.clone(), to: to.clone(), engine };
    // Stores cross the links.
    let subject = Subject::new(Group::Distributed, "redistribute", *dtype, shape, [0, plan.busiest_bytes()]);
    Ok(Subject { axes, spread: Some(spread), ..subject })
}

/// The number of GPUs: as many as the splits have ranks, if it is not given.
fn gpus(spread: &args::Spread, plan: &Redistribution) -> usize {
    spread.gpus.unwrap_or_else(|| plan.ranks())
}

/// The outcome of an exchange.
struct Measured {
    verified: bool,
    /// Those of all GPUs together.
    counters: Option<Counters>,
    timing: Option<measure::Timing>,
    /// Microseconds that the host takes to queue an exchange.
    host_us: Option<f64>,
}

/// Exchanges random elements, compares every one, and times exchanges where time means something.
fn redistribute<T: Element + Pod>(
    exchange: &Exchange,
    gpus: &Arc<Gpus>,
    spread: &args::Spread,
    plan: &Redistribution,
    samples: usize,
) -> Result<Measured> {
    let elements = reference::random::<T>(spread.shape.iter().product())?;
    let source = Distributed::scatter(gpus, plan.source(), &elements)?;
    let mut result = Distributed::alloc(gpus, plan.result())?;
    let before = counters(gpus)?;
    exchange.launch(&source, &mut result)?;
    let counters = counters(gpus)?.zip(before).map(|(after, before)| after - before);
    let expected = reference::permuted(&elements, &spread.shape, plan.axes())?;
    let verified = reference::are_equal(&result.gather()?, &expected);
    let device = gpus.device(0);
    if !verified || !has_times(device) {
        return Ok(Measured { verified, counters, timing: None, host_us: None });
    }
    let stream = device.default_stream();
    let timing = time_exchange(exchange, &source, &mut result, samples)?;
    let host_us = measure::launch_us(stream, || exchange.launch(&source, &mut result))?;
    Ok(Measured { verified, counters, timing: Some(timing), host_us: Some(host_us) })
}

/// The sum of the counters of all GPUs; `None` if they do not count.
fn counters(gpus: &Gpus) -> Result<Option<Counters>> {
    let mut sum = None;
    for rank in 0..gpus.len() {
        let device = gpus.device(rank);
        // Ranks that share a GPU share its counters.
        if (0..rank).all(|earlier| gpus.device(earlier) != device)
            && let Some(counters) = device.counters()?
        {
            *sum.get_or_insert_with(Counters::default) += counters;
        }
    }
    Ok(sum)
}

fn record(subject: Subject, measured: &Measured, samples: usize, push_gbps: Option<f64>, gpus: &Gpus) -> Record {
    let l2_bytes = gpus.device(0).info().l2_bytes;
    let is_cold = subject.bytes > 4 * l2_bytes;
    let record = Record { samples, counters: measured.counters, ..Record::new(subject, None, measured.verified) };
    match &measured.timing {
        Some(timing) => {
            let timed = record.timed(timing, push_gbps, None);
            Record { cold: Some(is_cold), launch_us: measured.host_us, ..timed }
        }
        None => record,
    }
}

/// The lines about the plan and the links.
fn told(exchange: &Exchange, plan: &Redistribution, links: Option<Links>, predicted: Option<f64>) -> String {
    let mut text = format!("{plan}\n");
    let ways = [
        (exchange.by_engines(), "by copy engines"),
        (exchange.through_host(), "through pinned host memory, because these GPUs do not use each other's memory"),
    ];
    for (pairs, way) in ways.into_iter().filter(|(pairs, _)| !pairs.is_empty()) {
        let pairs: Vec<String> = pairs.into_iter().map(|(from, to)| format!("{from} to {to}")).collect();
        text += &format!("{} {way}\n", pairs.join(", "));
    }
    if let (Some(Links { start_ms, gbps }), Some(ms)) = (links, predicted) {
        text += &format!(
            "predicted {ms:.4} ms: {} of the busiest GPU at {gbps:.1} GB/s a direction, and {:.1} us to start\n",
            counted(plan.busiest_bytes(), "byte"),
            1e3 * start_ms
        );
    }
    text
}

fn links_json(exchange: &Exchange, plan: &Redistribution, links: Option<Links>, predicted: Option<f64>) -> Value {
    json!({
        "crossing_bytes": plan.crossing_bytes(),
        "busiest_bytes": plan.busiest_bytes(),
        "gbps": links.map(|links| links.gbps),
        "start_ms": links.map(|links| links.start_ms),
        "predicted_ms": predicted,
        "by_engines": exchange.by_engines(),
        "through_host": exchange.through_host(),
    })
}
