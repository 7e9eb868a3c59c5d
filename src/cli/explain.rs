//! `warpstride explain`: the plan of a permute, and why it is that.

use anyhow::Result;
use serde_json::{Value, json};
use warpstride::device::{Backend, Device};
use warpstride::ops::{Align, Explanation, Target};

use super::output::{self, Output};
use super::{args, open, permuted_layouts};

pub(super) fn run(args: &args::Permuted, backend: Backend, output: &Output) -> Result<()> {
    let args::Permuted { shape, axes, dtype } = args;
    let [source, result] = permuted_layouts(shape, axes)?;
    let device = open(backend, output)?;
    let align = Align::ALLOCATION;
    let explanation = Explanation::new(&source, align, &result, align, dtype.width(), Target::of(&device))?;
    let (major, minor) = device.info().compute_capability;
    let text =
        format!("permute {shape:?} {dtype}, axes {axes:?}, for compute capability {major}.{minor}\n{explanation}");
    output.result(&text, json(args, &device, &explanation))
}

fn json(args: &args::Permuted, device: &Device, explanation: &Explanation) -> Value {
    let Explanation { plan, width, axes, source, destination } = explanation;
    // No overflow: every element lies within isize::MAX bytes.
    let bytes = |stride: isize| stride * *width as isize;
    let planned = axes.iter().map(|axis| {
        json!({
            "extent": axis.extent,
            "source_stride": axis.source_stride,
            "source_stride_bytes": bytes(axis.source_stride),
            "destination_stride": axis.destination_stride,
            "destination_stride_bytes": bytes(axis.destination_stride),
        })
    });
    let shape = plan.shape();
    json!({
        "device": output::info_json(device.info()),
        "op": "permute",
        "dtype": args.dtype.name(),
        "shape": args.shape,
        "axes": args.axes,
        "planned_axes": planned.collect::<Vec<_>>(),
        "kernel": plan.entry(),
        "reason": plan.reason(),
        "grid": shape.map(|shape| shape.grid),
        "block": shape.map(|shape| shape.block),
        "dynamic_shared": shape.map(|shape| shape.dynamic_shared),
        "read": { "bytes": source.bytes, "sectors": source.sectors },
        "written": { "bytes": destination.bytes, "sectors": destination.sectors },
    })
}
