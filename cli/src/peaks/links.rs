//! The links between the GPUs of a host, measured by flat pushes.

use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use warpstride::device::{Backend, Device, can_reach, probe};
use warpstride::distributed::{Gpus, ring, time_push};

use crate::output::Output;
use crate::run::table::Table;

/// Bytes of a push.
const BYTES: usize = 256 << 20;
const SAMPLES: usize = 20;

/// The bandwidths of a host's links, in GB/s of each direction.
pub(super) struct Measured {
    gpus: Vec<String>,
    /// Each pair of ranks, one way, the other way, and both ways at once.
    pairs: Vec<(usize, usize, [f64; 3])>,
    /// Every GPU pushes to the next one at once.
    all: f64,
}

/// Measures the links between a GPU and all that it reaches; `None` if it reaches none.
pub(super) fn measured(device: &Device, output: &Output) -> Result<Option<Measured>> {
    let own = Backend::Cuda(device.info().ordinal);
    let mut devices = vec![device.clone()];
    for found in probe() {
        let is_reached =
            |peer| peer != own && [(own, peer), (peer, own)].iter().all(|&(a, b)| can_reach(a, b).unwrap_or(false));
        if matches!(found.backend, Backend::Cuda(_)) && found.info.is_ok() && is_reached(found.backend) {
            devices.push(Device::open(found.backend)?);
        }
    }
    if devices.len() < 2 {
        return Ok(None);
    }
    let names = devices.iter().map(|device| Backend::Cuda(device.info().ordinal).to_string()).collect();
    let gpus = Arc::new(Gpus::over(devices)?);
    let progress = output.progress(1);
    progress.doing("links");
    let push = |pairs: &[(usize, usize)]| {
        Ok::<_, warpstride::Error>(time_push(&gpus, pairs, BYTES, SAMPLES)?.gbps(BYTES as u64))
    };
    let mut pairs = Vec::new();
    for one in 0..gpus.len() {
        for other in one + 1..gpus.len() {
            let (there, back) = ((one, other), (other, one));
            pairs.push((one, other, [push(&[there])?, push(&[back])?, push(&[there, back])?]));
        }
    }
    let all = push(&ring(gpus.len()))?;
    Ok(Some(Measured { gpus: names, pairs, all }))
}

impl Measured {
    pub(super) fn text(&self) -> String {
        let mut table = Table::new(&["link", "there", "back", "both ways, each"]);
        for (one, other, gbps) in &self.pairs {
            let [there, back, both] = gbps.map(|gbps| format!("{gbps:.0}"));
            table.add_row([format!("{} to {}", self.gpus[*one], self.gpus[*other]), there, back, both]);
        }
        format!(
            "\n{table}\nGB/s of kernels that push {} MiB by 16-byte stores. All GPUs at once, each to the next one: {:.0} GB/s \
             each.\n",
            BYTES >> 20,
            self.all
        )
    }

    pub(super) fn json(&self) -> Value {
        let pair = |(one, other, [there, back, both]): &(usize, usize, [f64; 3])| {
            json!({
                "from": self.gpus[*one], "to": self.gpus[*other], "gbps": there, "back_gbps": back, "both_ways_gbps": both,
            })
        };
        json!({ "pairs": self.pairs.iter().map(pair).collect::<Vec<_>>(), "all_at_once_gbps": self.all })
    }
}
