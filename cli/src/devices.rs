//! `warpstride devices`: all there are, or the one that `--device` names.

use crate::run::table::Table;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use warpstride::device::{self, Availability, Backend, Device, TuningFile};
use warpstride::ptx;

use super::output::{self, Output};
use super::typed;

pub(super) fn run(backend: Backend, output: &Output) -> Result<()> {
    let found = match backend {
        Backend::Auto => device::probe(),
        // A device that is named is asked for.
        _ => {
            let device = Device::open(backend).with_context(|| format!("cannot open {backend}"))?;
            output.watch(&device);
            vec![Availability { backend, info: Ok(device.info().clone()) }]
        }
    };
    let mut table = Table::new(&["device", "name", "compute", "memory", "driver"]);
    let (mut tuned, mut missing, mut devices) = (String::new(), String::new(), Vec::new());
    for Availability { backend, info } in &found {
        devices.push(match info {
            Ok(info) => {
                let (policy, of_policy) = output::policy(info, &TuningFile::of(info), output);
                tuned += &format!("{backend} chooses its kernels by thresholds: {policy}\n");
                let (major, minor) = info.compute_capability;
                let gigabytes = format!("{:.1} GB", info.memory_bytes as f64 / 1e9);
                let compute = format!("{major}.{minor}");
                table.add_row([&backend.to_string(), &info.name, &compute, &gigabytes, &info.driver_version]);
                let mut entry = output::info_json(info);
                entry["device"] = backend.to_string().into();
                entry["memory_bytes"] = info.memory_bytes.into();
                entry["multiprocessors"] = info.multiprocessors.into();
                entry["policy"] = of_policy;
                entry
            }
            Err(reason) => {
                missing += &format!("{backend} is not there: {}\n", typed(reason));
                json!({ "device": backend.to_string(), "unavailable": typed(reason) })
            }
        });
    }
    let links = links(&found, &mut devices);
    let (nccl, of_nccl) = nccl();
    let (target, provenance) = (ptx::TARGET, ptx::PROVENANCE);
    let text = format!("{table}\n{tuned}{links}{missing}{nccl}PTX for {target} and later: {provenance}\n");
    output.result(&text, json!({ "ptx_target": target, "nccl": of_nccl, "devices": devices }))
}

/// Says which NCCL processes would use.
fn nccl() -> (String, Value) {
    #[cfg(unix)]
    match warpstride::distributed::NcclLibrary::find() {
        Ok(library) => {
            let (version, path) = (library.version(), library.path().display().to_string());
            (format!("NCCL {version} is {path}\n"), json!({ "version": version, "path": path }))
        }
        Err(error) => (format!("{error}\n"), json!({ "unavailable": error.to_string() })),
    }
    #[cfg(not(unix))]
    (String::new(), Value::Null)
}

/// Says which GPUs use each other's memory, and adds to the entry of each device those that it
/// reaches.
fn links(found: &[Availability], devices: &mut [Value]) -> String {
    let gpus: Vec<Backend> = found
        .iter()
        .filter(|gpu| gpu.info.is_ok())
        .map(|gpu| gpu.backend)
        .filter(|gpu| *gpu != Backend::Soft)
        .collect();
    let reached = |gpu: Backend| {
        let others = gpus.iter().filter(move |peer| **peer != gpu);
        others.filter(move |peer| device::can_reach(gpu, **peer).unwrap_or(false)).map(ToString::to_string)
    };
    let mut text = String::new();
    for (entry, Availability { backend, .. }) in
        devices.iter_mut().zip(found).filter(|(_, gpu)| gpus.contains(&gpu.backend))
    {
        let peers: Vec<String> = reached(*backend).collect();
        if gpus.len() > 1 {
            let told = if peers.is_empty() { "no other GPU".into() } else { peers.join(", ") };
            text += &format!("{backend} reaches the memory of {told}\n");
        }
        entry["reaches"] = json!(peers);
    }
    text
}
