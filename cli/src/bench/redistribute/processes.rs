//! `bench redistribute --engine nccl`: a process for each GPU, beside an all-to-all.

use std::sync::Arc;

use anyhow::{Context, Result};
use bytemuck::Pod;
use serde_json::json;
use warpstride::device::{Backend, Device};
use warpstride::distributed::{Combine, Communicator, Redistribution, Rendezvous, Shard, ShardExchange, time_together};
use warpstride::element::Element;
use warpstride::ops;
use warpstride::roofline::measure::Timing;
use warpstride::roofline::record::{Record, Subject};

use crate::bench::measure::Bench;
use crate::export::{json, text};
use crate::output::Output;
use crate::{args, array_bytes, by_width, ensure_room, peaks, reference, require};

/// Runs the rank of this process. The first one reports.
pub(super) fn run(
    args: &args::Bench,
    spread: &args::Spread,
    (subject, plan): (Subject, &Redistribution),
    backend: Backend,
    output: &Output,
) -> Result<()> {
    let place = Rendezvous::from_env().context(
        "--engine nccl has a process for each GPU: run it under `warpstride launch -n N -- warpstride bench ...`",
    )?;
    let ranks = place.ranks();
    require!(
        spread.gpus.is_none_or(|gpus| gpus == ranks),
        InvalidArgument,
        "--gpus is {}, and the job has {ranks} processes; give both one number",
        spread.gpus.unwrap_or_default()
    );
    let backend = match backend {
        Backend::Auto => Backend::Cuda(place.local_rank() as u32),
        named => named,
    };
    let samples = usize::from(spread.samples.samples);
    let bench = Bench::open(args, Some(&subject.name()), samples, peaks::known, (backend, output))?;
    let bytes = array_bytes(&spread.shape, spread.dtype)?;
    // The elements, the expected ones and a part; on the GPU both sides, the buffers between, and
    // those of the all-to-all.
    ensure_room(bytes, 3, &[])?;
    ensure_room(bytes.div_ceil(plan.ranks()), 0, &[(&bench.device, 6)])?;
    let communicator = Arc::new(Communicator::nccl(&bench.device, place.meet()?)?);
    let exchange = ShardExchange::new(&communicator, plan)?;
    let measured = by_width!(spread.dtype, T => redistribute::<T>(&exchange, spread, plan, samples))?;
    if communicator.rank() > 0 {
        return Ok(());
    }
    let (verified, times) = measured;
    let record = Record { samples, ..Record::new(subject, None, verified) };
    let busiest = plan.busiest_bytes();
    let all_to_all = times.as_ref().map(|times| times.all_to_all.gbps(busiest));
    let record = match &times {
        Some(times) => record.timed(&times.exchange, all_to_all, None),
        None => record,
    };
    let run = bench.run(vec![record]);
    let mut document = json::document_of_one(&run)?;
    document.insert("all_to_all_ms".into(), json!(times.as_ref().map(|times| times.all_to_all.median_ms())));
    let engine = format!("{:?}\n{exchange}\n", communicator.engine());
    bench.kept.finish(&run, text::record(&run, &run.cases[0]) + &engine, document, output)
}

struct Times {
    exchange: Timing,
    /// An all-to-all in which each rank sends as many bytes.
    all_to_all: Timing,
}

/// Exchanges random elements, compares those of all ranks, and times exchanges.
fn redistribute<T: Element + Pod>(
    exchange: &ShardExchange,
    spread: &args::Spread,
    plan: &Redistribution,
    samples: usize,
) -> Result<(bool, Option<Times>)> {
    let communicator = exchange.communicator();
    let device = communicator.device();
    let elements = reference::random::<T>(spread.shape.iter().product())?;
    let source = Shard::of_whole(communicator, plan.source(), &elements)?;
    let mut result = Shard::alloc(device, plan.result(), communicator.rank())?;
    let expected = reference::permuted(&elements, &spread.shape, plan.axes())?;
    drop(elements);
    let expected = ops::contiguous(Shard::of_whole(communicator, plan.result(), &expected)?.view())?.to_vec()?;
    exchange.launch(&source, &mut result)?;
    communicator.wait(device.default_stream())?;
    let right = reference::are_equal(&ops::contiguous(result.view())?.to_vec()?, &expected);
    drop(expected);
    if !all_are(communicator, right)? {
        return Ok((false, None));
    }
    let times = Times {
        exchange: time_together(communicator, samples, || exchange.launch(&source, &mut result))?,
        all_to_all: time_all_to_all(communicator, device, plan, samples)?,
    };
    Ok((true, Some(times)))
}

/// Says whether something holds on all ranks.
fn all_are(communicator: &Communicator, right: bool) -> Result<bool> {
    let device = communicator.device();
    let (mine, mut all) = (device.array(&[1], &[u32::from(right)])?, device.alloc_array(&[1])?);
    communicator.all_reduce(&mine, &mut all, Combine::Min, device.default_stream())?;
    communicator.wait(device.default_stream())?;
    Ok(all.to_vec()? == [1])
}

fn time_all_to_all(
    communicator: &Communicator,
    device: &Device,
    plan: &Redistribution,
    samples: usize,
) -> Result<Timing> {
    let ranks = communicator.ranks();
    let each = (plan.busiest_bytes() as usize).div_ceil(ranks.saturating_sub(1).max(1)).max(1);
    let (from, mut to) = (device.alloc_array::<u8>(&[ranks, each])?, device.alloc_array::<u8>(&[ranks, each])?);
    Ok(time_together(communicator, samples, || communicator.all_to_all(&from, &mut to, device.default_stream()))?)
}
