//! `warpstride peaks`: the ceilings of a device, measured, and kept for what is held against them.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use warpstride::device::{Backend, Device};
use warpstride::driver::DeviceInfo;
use warpstride::roofline::peak::{Best, Peaks};

use super::open;
use super::output::{self, Output, number};

/// Ceilings as they are kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// When they were measured, as RFC 3339.
    date: String,
    /// What they were measured with.
    version: String,
    peaks: Peaks,
}

pub(super) fn run(backend: Backend, output: &Output) -> Result<()> {
    let device = open(backend, output)?;
    ensure!(
        output::has_times(&device),
        "the software GPU has no ceilings: it knows nothing of the time a GPU takes; run this on an NVIDIA GPU"
    );
    let kept = measured(&device, output)?;
    output.result(&text(device.info(), &kept), document(device.info(), &kept))
}

/// The ceilings of a GPU: those that were kept, or else measured now and kept.
pub(super) fn known(device: &Device, output: &Output) -> Result<Peaks> {
    let kept = file(device.info()).and_then(|file| fs::read(file).ok());
    // Of another version, or cut short: they are measured anew.
    let kept = kept.and_then(|text| serde_json::from_slice::<Kept>(&text).ok());
    match kept.filter(|kept| kept.version == env!("CARGO_PKG_VERSION")) {
        Some(kept) => Ok(kept.peaks),
        None => Ok(measured(device, output)?.peaks),
    }
}

/// Measures the ceilings and keeps them.
fn measured(device: &Device, output: &Output) -> Result<Kept> {
    let progress = output.progress(1);
    let peaks = Peaks::measure(device, |what| progress.doing(format!("ceilings: {what}")))?;
    drop(progress);
    let date = jiff::Timestamp::now().to_string();
    let kept = Kept { date, version: env!("CARGO_PKG_VERSION").into(), peaks };
    if let Err(error) = keep(device.info(), &kept) {
        output.note(format!("the ceilings are not kept for the next time: {error:#}"));
    }
    Ok(kept)
}

/// Where the ceilings of a device with its driver are kept; `None` where the system has no folder for such.
fn file(info: &DeviceInfo) -> Option<PathBuf> {
    let plain = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-");
    let name = format!("peaks-{}-{}-{}.json", plain(&info.name), info.ordinal, plain(&info.driver_version));
    Some(dirs::cache_dir()?.join("warpstride").join(name))
}

fn keep(info: &DeviceInfo, kept: &Kept) -> Result<()> {
    let file = file(info).context("the system names no folder for caches")?;
    let folder = file.parent().context("the cache has no folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    // Whole or not at all, also where two programs measure at once.
    let mut whole =
        tempfile::NamedTempFile::new_in(folder).with_context(|| format!("cannot write to {}", folder.display()))?;
    serde_json::to_writer_pretty(&mut whole, kept)?;
    whole.persist(&file).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(())
}

fn text(info: &DeviceInfo, kept: &Kept) -> String {
    let peaks = &kept.peaks;
    let part = |gbps: f64| number(peaks.fraction_of_nominal(gbps).map(|part| 100.0 * part), 1, " %");
    let mut table = output::table(&["ceiling", "GB/s", "of nominal", "launched as"]);
    let nominal = number(peaks.nominal, 1, "");
    table.add_row(["nominal", &nominal, "", "by the device's attributes"]);
    for (name, best) in [("read", &peaks.read), ("write", &peaks.write), ("copy", &peaks.copy)] {
        let Best { gbps, shape } = best;
        table.add_row([name, &format!("{gbps:.1}"), &part(*gbps), &shape.to_string()]);
    }
    table.add_row(["memcpy", &format!("{:.1}", peaks.memcpy), &part(peaks.memcpy), "by the driver"]);
    let mut sizes = output::table(&["touched over and over", "read GB/s", "write GB/s", "copy GB/s"]);
    for warm in &peaks.sizes {
        let size = format!("{} MiB", warm.bytes >> 20);
        let [read, write, copy] = [warm.read, warm.write, warm.copy].map(|gbps| format!("{gbps:.0}"));
        sizes.add_row([size, read, write, copy]);
    }
    format!(
        "{}, driver {}, {}\n{table}\n{sizes}\nOf {} MiB an array; what fits into the L2 cache of {:.0} MB is of its speed, and \
         small sizes are of launches.\n",
        info.name,
        info.driver_version,
        kept.date,
        peaks.bytes >> 20,
        info.l2_bytes as f64 / 1e6,
    )
}

fn document(info: &DeviceInfo, kept: &Kept) -> Value {
    let l2_copy = kept.peaks.l2_copy(info.l2_bytes);
    json!({ "device": output::info_json(info), "date": kept.date, "peaks": kept.peaks, "l2_copy_gbps": l2_copy })
}
