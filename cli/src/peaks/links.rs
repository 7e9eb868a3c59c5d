//! The links between the GPUs of a host, measured by flat pushes and by copy engines.

use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use warpstride::device::{Backend, Device, can_reach, probe};
use warpstride::distributed::{Gpus, ring, time_copy, time_push};
use warpstride::roofline::measure::Timing;

use crate::output::Output;
use crate::run::table::Table;

/// Bytes of a push.
const BYTES: usize = 256 << 20;
const SAMPLES: usize = 20;

/// The bandwidths of a host's links, in GB/s of each direction.
pub(super) struct Measured {
    gpus: Vec<String>,
    pairs: Vec<Pair>,
    /// Every GPU sends to the next one at once, by kernels and by copy engines.
    all: [f64; 2],
}

/// The bandwidths between two ranks: one way, the other way, and both ways at once.
struct Pair {
    ranks: [usize; 2],
    kernels: [f64; 3],
    engines: [f64; 3],
}

/// Times copies of so many bytes between pairs of ranks, all at once.
type Time = fn(&Arc<Gpus>, &[(usize, usize)], usize, usize) -> warpstride::Result<Timing>;

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
    let gbps = |time: Time, pairs: &[(usize, usize)]| {
        Ok::<_, warpstride::Error>(time(&gpus, pairs, BYTES, SAMPLES)?.gbps(BYTES as u64))
    };
    let mut pairs = Vec::new();
    for one in 0..gpus.len() {
        for other in one + 1..gpus.len() {
            let (there, back) = ((one, other), (other, one));
            let of = |time| {
                Ok::<_, warpstride::Error>([gbps(time, &[there])?, gbps(time, &[back])?, gbps(time, &[there, back])?])
            };
            pairs.push(Pair { ranks: [one, other], kernels: of(time_push)?, engines: of(time_copy)? });
        }
    }
    let all = [gbps(time_push, &ring(gpus.len()))?, gbps(time_copy, &ring(gpus.len()))?];
    Ok(Some(Measured { gpus: names, pairs, all }))
}

impl Measured {
    pub(super) fn text(&self) -> String {
        let mut table = Table::new(&["link", "by", "there", "back", "both ways, each"]);
        for Pair { ranks: [one, other], kernels, engines } in &self.pairs {
            for (by, gbps) in [("kernels", kernels), ("engines", engines)] {
                let [there, back, both] = gbps.map(|gbps| format!("{gbps:.0}"));
                table.add_row([
                    format!("{} to {}", self.gpus[*one], self.gpus[*other]),
                    by.to_owned(),
                    there,
                    back,
                    both,
                ]);
            }
        }
        let [kernels, engines] = self.all;
        format!(
            "\n{table}\nGB/s of {} MiB: kernels push them by 16-byte stores, and copy engines fetch them. All GPUs at once, each to the \
             next one: {kernels:.0} GB/s each by kernels, and {engines:.0} by copy engines.\n",
            BYTES >> 20
        )
    }

    pub(super) fn json(&self) -> Value {
        let pair = |pair: &Pair| {
            let [one, other] = pair.ranks.map(|rank| &self.gpus[rank]);
            let [there, back, both] = pair.kernels;
            let [engine_there, engine_back, engine_both] = pair.engines;
            json!({
                "from": one, "to": other, "gbps": there, "back_gbps": back, "both_ways_gbps": both,
                "engine_gbps": engine_there, "engine_back_gbps": engine_back, "engine_both_ways_gbps": engine_both,
            })
        };
        let [kernels, engines] = self.all;
        json!({
            "pairs": self.pairs.iter().map(pair).collect::<Vec<_>>(),
            "all_at_once_gbps": kernels,
            "engine_all_at_once_gbps": engines,
        })
    }
}
