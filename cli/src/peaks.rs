//! `warpstride peaks`: the ceilings of a device, measured, and kept for later comparisons.

mod links;

use std::path::PathBuf;

use crate::run::table::{self, Table};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::json;
use warpstride::device::{Backend, Device};
use warpstride::driver::DeviceInfo;
use warpstride::ptx::PROVENANCE;
use warpstride::roofline::measure::has_times;

use crate::nvml::{self, Identity};
use warpstride::roofline::peak::Peaks;

use super::output::{self, Output};
use super::{input, message, open, require, runs};

/// Bytes of ceilings as they are kept, of which there are some thousand.
const MAX_KEPT_BYTES: usize = 1 << 20;

/// Ceilings as they are kept.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    /// When they were measured, as RFC 3339.
    pub(super) date: String,
    with: With,
    pub(super) peaks: Peaks,
}

/// The versions that ceilings are measured with. Others may give other ceilings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct With {
    /// The version of this crate.
    version: String,
    /// The source of the kernels, with the hash of their sources.
    ptx: String,
    /// The version of the driver; that of CUDA if it is unknown.
    driver: String,
}

/// The GPU, and the versions that its ceilings are measured with.
struct Place {
    file: String,
    with: With,
}

impl Place {
    fn of(device: &Device) -> Self {
        Self::new(device.info(), nvml::identity(device))
    }

    fn new(info: &DeviceInfo, identity: Option<Identity>) -> Self {
        let plain = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-");
        // These change least between GPUs of one model: the number of a device depends on which
        // others a process sees, and so does its place in a virtual machine. The slices of a GPU
        // differ in their names.
        let (gpu, driver) = match identity {
            Some(Identity { uuid, release }) => (uuid, release),
            None => (info.pci_bus_id.clone().unwrap_or_else(|| info.ordinal.to_string()), info.driver_version.clone()),
        };
        let file = format!("peaks-{}-{}.json", plain(&info.name), plain(&gpu));
        Self { file, with: With { version: env!("CARGO_PKG_VERSION").into(), ptx: PROVENANCE.into(), driver } }
    }

    /// Returns the file that keeps them; `None` if the system has no folder for caches.
    fn path(&self) -> Option<PathBuf> {
        Some(dirs::cache_dir()?.join("warpstride").join(&self.file))
    }

    /// The ceilings of a file's text; `None` where they were measured with something else, or it
    /// was cut short.
    fn read(&self, text: &[u8]) -> Option<Kept> {
        serde_json::from_slice::<Kept>(text).ok().filter(|kept| kept.with == self.with)
    }

    fn keep(&self, kept: &Kept) -> Result<()> {
        ensure!(!kept.peaks.low_clocks, "the device's clocks were low while they were measured");
        let file = self.path().context("the system names no folder for caches")?;
        runs::cache(&file, kept)
    }
}

pub(super) fn run(backend: Backend, output: &Output) -> Result<()> {
    let device = open(backend, output)?;
    require!(
        has_times(&device),
        Unavailable,
        "the software GPU has no ceilings: it knows nothing of the time a GPU takes; run this on an NVIDIA GPU"
    );
    let kept = measured(&device, output)?;
    let links = links::measured(&device, output)?;
    let info = device.info();
    let document = json!({
        "device": output::info_json(info),
        "driver": kept.with.driver,
        "date": kept.date,
        "peaks": kept.peaks,
        "l2_copy_gbps": kept.peaks.l2_copy(info.l2_bytes),
        "links": links.as_ref().map(links::Measured::json),
    });
    let links = links.map_or(String::new(), |links| links.text());
    output.result(&(text(info, &kept) + &links), document)
}

/// The ceilings of a GPU: those that were kept, or else measured now and kept.
pub(super) fn known(device: &Device, output: &Output) -> Result<Kept> {
    let place = Place::of(device);
    let text = place.path().and_then(|file| input::read(&file, MAX_KEPT_BYTES, "a record of ceilings").ok());
    text.and_then(|text| place.read(&text)).map_or_else(|| measured(device, output), Ok)
}

/// Measures the ceilings, which takes some seconds, and keeps them.
pub(super) fn measured(device: &Device, output: &Output) -> Result<Kept> {
    let place = Place::of(device);
    let progress = output.progress(1);
    let peaks = Peaks::measure(device, |what| progress.doing(format!("ceilings: {what}")))?;
    drop(progress);
    let kept = Kept { date: jiff::Timestamp::now().to_string(), with: place.with.clone(), peaks };
    if let Err(error) = place.keep(&kept) {
        output.note(format!("the ceilings are not kept for the next time: {}", message(&error)));
    }
    Ok(kept)
}

fn text(info: &DeviceInfo, kept: &Kept) -> String {
    let peaks = &kept.peaks;
    let mut table = Table::new(&["ceiling", "GB/s", "of nominal", "launched as"]);
    for [name, how, gbps, part] in table::ceilings(peaks) {
        table.add_row([name, gbps, part, how]);
    }
    let mut sizes = Table::new(&["touched over and over", "read GB/s", "write GB/s", "copy GB/s"]);
    for warm in &peaks.sizes {
        let size = format!("{} MiB", warm.bytes >> 20);
        let [read, write, copy] = [warm.read, warm.write, warm.copy].map(|gbps| format!("{gbps:.0}"));
        sizes.add_row([size, read, write, copy]);
    }
    let low = if peaks.low_clocks { "The device's clocks were low during the measurement.\n" } else { "" };
    format!(
        "{}, driver {}, {}\n{table}\n{sizes}\nThe arrays have {} MiB each. Sizes that fit in the L2 cache of {:.0} MB show its \
         speed; the smallest show launch overhead.\n{low}",
        info.name,
        kept.with.driver,
        kept.date,
        peaks.bytes >> 20,
        info.l2_bytes as f64 / 1e6,
    )
}

#[cfg(test)]
mod tests;
