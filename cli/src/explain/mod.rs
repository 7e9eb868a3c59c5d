//! `warpstride explain`: the plan of a permute, or of a redistribution, and why it is that.

mod cluster;
mod spread;

use anyhow::Result;
use serde_json::{Value, json};
use warpstride::counters::GlobalCounters;
use warpstride::device::Backend;
use warpstride::element::DType;
use warpstride::error::counted;
use warpstride::ops::{Align, Explanation, PermutePlan, Plan, Requested, Target, Walk};

use super::output::{self, Output};
use super::{args, open, permuted_layouts};

pub(super) fn run(args: &args::Explain, backend: Backend, output: &Output) -> Result<()> {
    let args::Explain { shape, axes, dtype, .. } = args;
    let shape = &**shape;
    match axes {
        Some(axes) if !args.is_spread() => permute(shape, &axes.of(shape)?, *dtype, backend, output),
        _ => spread::run(args, output),
    }
}

/// Explains the permute of an array on one device.
fn permute(shape: &[usize], axes: &[usize], dtype: DType, backend: Backend, output: &Output) -> Result<()> {
    let [source, result] = permuted_layouts(shape, axes)?;
    let device = open(backend, output)?;
    let align = Align::ALLOCATION;
    let plan = PermutePlan::new(&source, align, &result, align, dtype.width(), Target::of(&device))?;
    let explanation = plan.explain();
    let (major, minor) = device.info().compute_capability;
    let (counted, requested) = requested(&plan);
    let (policy, of_policy) = output::policy(device.info(), device.tuning_file(), output);
    let text = format!(
        "permute {shape:?} {dtype}, axes {axes:?}, for compute capability {major}.{minor}\n{explanation}{counted}policy    {policy}\n"
    );
    let (entry, launched) = (plan.entry(), plan.shape());
    let Explanation { reason, read, written, walk, verdicts, .. } = &explanation;
    let (width, planned) = walk.as_ref().map_or((0, &[][..]), |walk| (walk.width, &walk.axes));
    let sectors = |of: fn(&Walk) -> u64| walk.as_ref().map(of);
    // No overflow: every element lies within isize::MAX bytes.
    let bytes = |stride: isize| stride * width as isize;
    let planned = planned.iter().map(|axis| {
        json!({
            "extent": axis.extent,
            "source_stride": axis.source_stride,
            "source_stride_bytes": bytes(axis.source_stride),
            "destination_stride": axis.destination_stride,
            "destination_stride_bytes": bytes(axis.destination_stride),
        })
    });
    let strategies = verdicts
        .iter()
        .map(|verdict| json!({ "name": verdict.strategy, "takes": verdict.takes, "reason": verdict.why() }));
    let document = json!({
        "device": output::info_json(device.info()),
        "op": "permute",
        "dtype": dtype.name(),
        "shape": shape,
        "axes": axes,
        "planned_axes": planned.collect::<Vec<_>>(),
        "kernel": entry,
        "reason": reason,
        "grid": launched.map(|shape| shape.grid),
        "block": launched.map(|shape| shape.block),
        "dynamic_shared": launched.map(|shape| shape.dynamic_shared),
        "read": { "bytes": read, "sectors": sectors(|walk| walk.read_sectors) },
        "written": { "bytes": written, "sectors": sectors(|walk| walk.written_sectors) },
        "strategies": strategies.collect::<Vec<_>>(),
        "requested": requested,
        "policy": of_policy,
    });
    output.result(&text, document)
}

/// Returns what the kernel asks for, where there is a software GPU to count it: as text, and in
/// JSON.
fn requested(plan: &PermutePlan) -> (String, Value) {
    match plan.requested() {
        Ok(Requested { load, store, exact }) => {
            let side = |GlobalCounters { sectors, requests, .. }: GlobalCounters| {
                format!("{} in {}", counted(sectors, "sector"), counted(requests, "request"))
            };
            let about = if exact { "" } else { "about " };
            let text = format!("asks for  {about}{} to read, {about}{} to write\n", side(load), side(store));
            (text, json!({ "load": load, "store": store, "exact": exact }))
        }
        Err(error) => (format!("asks for  what was not counted: {}\n", super::typed(error)), Value::Null),
    }
}
