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
        // Whoever names a device asks for it.
        _ => {
            let device = Device::open(backend).with_context(|| format!("cannot open {backend}"))?;
            output.watch(&device);
            vec![Availability { backend, info: Ok(device.info().clone()) }]
        }
    };
    let policies: Vec<Option<(String, Value)>> = found
        .iter()
        .map(|found| found.info.as_ref().ok())
        .map(|info| info.map(|info| output::policy(info, &TuningFile::of(info), output)))
        .collect();
    let devices = found.iter().zip(&policies).map(entry).collect::<Vec<_>>();
    output.result(&text(&found, &policies), json!({ "ptx_target": ptx::TARGET, "devices": devices }))
}

fn text(found: &[Availability], policies: &[Option<(String, Value)>]) -> String {
    let mut table = Table::new(&["device", "name", "compute", "memory", "driver"]);
    let (mut tuned, mut missing) = (String::new(), String::new());
    for (Availability { backend, info }, policy) in found.iter().zip(policies) {
        if let Some((policy, _)) = policy {
            tuned += &format!("policy of {backend}: {policy}\n");
        }
        match info {
            Ok(info) => {
                let (major, minor) = info.compute_capability;
                let gigabytes = format!("{:.1} GB", info.memory_bytes as f64 / 1e9);
                let compute = format!("{major}.{minor}");
                table.add_row([&backend.to_string(), &info.name, &compute, &gigabytes, &info.driver_version]);
            }
            Err(reason) => missing.push_str(&format!("{backend} is not there: {}\n", typed(reason))),
        }
    }
    format!("{table}\n{tuned}{missing}PTX for {} and later: {}\n", ptx::TARGET, ptx::PROVENANCE)
}

fn entry((found, policy): (&Availability, &Option<(String, Value)>)) -> Value {
    match &found.info {
        Ok(info) => {
            let mut entry = output::info_json(info);
            entry["device"] = found.backend.to_string().into();
            entry["memory_bytes"] = info.memory_bytes.into();
            entry["multiprocessors"] = info.multiprocessors.into();
            entry["policy"] = json!(policy.as_ref().map(|(_, json)| json));
            entry
        }
        Err(reason) => json!({ "device": found.backend.to_string(), "unavailable": typed(reason) }),
    }
}
