//! What a bench found, as text and as JSON.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use warpstride::counters::Counters;
use warpstride::device::Device;
use warpstride::element::DType;
use warpstride::roofline::measure::{Timing, has_times};

use crate::cli::output::{self, Output, number};
use crate::cli::peaks;
use warpstride::error::counted;

/// What is done with which array.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) op: &'static str,
    pub(super) dtype: DType,
    pub(super) shape: &'a [usize],
    /// Of a permute, in the result's order; of a reduction, the one that goes.
    pub(super) axes: Option<&'a [usize]>,
    /// The type that elements had before, where `dtype` is the result's.
    pub(super) from: Option<DType>,
    /// Bytes that the operation reads, and that it writes.
    pub(super) read: u64,
    pub(super) written: u64,
}

/// What was found.
pub(super) struct Outcome {
    pub(super) kernel: Option<&'static str>,
    pub(super) verified: bool,
    pub(super) counters: Option<Counters>,
    /// Of the operation, and GB/s of a copy of the array in the same run.
    pub(super) timing: Option<(Timing, f64)>,
    /// Of small arrays: microseconds from launch to launch.
    pub(super) launch_us: Option<f64>,
}

/// A speed beside others of its device.
struct Speed {
    gbps: f64,
    of_copy: f64,
    /// Of the best that simple kernels reached for as many bytes read and written.
    of_ceiling: f64,
    /// Of what the device's attributes promise; `None` beyond it, where what is written stays in the L2 cache.
    of_nominal: Option<f64>,
    /// When that best was measured.
    ceilings_date: String,
}

impl Subject<'_> {
    /// Prints what was found; an operation that is wrong fails.
    pub(super) fn report(&self, device: &Device, outcome: &Outcome, samples: usize, output: &Output) -> Result<()> {
        let speed = match &outcome.timing {
            Some((timing, copy)) => Some(self.speed(device, timing, *copy, output)?),
            None => None,
        };
        let text = self.text(device, outcome, speed.as_ref());
        output.result(&text, self.json(device, outcome, samples, speed.as_ref()))?;
        ensure!(outcome.verified, "{} gave wrong elements; please report this as a bug", self.op);
        Ok(())
    }

    fn speed(&self, device: &Device, timing: &Timing, copy: f64, output: &Output) -> Result<Speed> {
        let gbps = timing.gbps(self.read + self.written);
        let peaks::Kept { date: ceilings_date, peaks, .. } = peaks::known(device, output)?;
        let of_nominal = peaks.fraction_of_nominal(gbps);
        let of_ceiling = gbps / peaks.ceilings().of(self.read, self.written);
        Ok(Speed { gbps, of_copy: gbps / copy, of_ceiling, of_nominal, ceilings_date })
    }

    fn text(&self, device: &Device, outcome: &Outcome, speed: Option<&Speed>) -> String {
        let Self { op, dtype, shape, axes, .. } = self;
        let from = self.from.map_or(String::new(), |from| format!("{from} to "));
        let name = &device.info().name;
        let order = axes.map_or(String::new(), |axes| format!(", axes {axes:?}"));
        let kernel = outcome.kernel.unwrap_or("nothing to launch");
        let verified = if outcome.verified { "verified" } else { "WRONG" };
        let mut text = format!("{op} {shape:?} {from}{dtype}{order} on {name}\n{kernel}, {verified}\n");
        if let (Some((timing, _)), Some(speed)) = (&outcome.timing, speed) {
            text += &format!(
                "{:.4} ms ({:.4} to {:.4} from p10 to p90), {:.1} GB/s, {:.1} % of copy; each with a cold L2 cache\n",
                timing.median_ms(),
                timing.quantile_ms(0.1),
                timing.quantile_ms(0.9),
                speed.gbps,
                100.0 * speed.of_copy,
            );
            text += &format!(
                "{:.1} % of the ceiling of these reads and writes (of {}), ",
                100.0 * speed.of_ceiling,
                speed.ceilings_date
            );
            text += &match speed.of_nominal {
                Some(part) => format!("{:.1} % of nominal\n", 100.0 * part),
                None => "faster than the memory alone: the L2 cache holds what is written\n".into(),
            };
            if timing.discarded() > 0 {
                text += &format!(
                    "These times leave out {} that a throttled device gave.\n",
                    counted(timing.discarded(), "sample")
                );
            }
            if timing.clocks().is_some_and(|clocks| clocks.are_throttled()) {
                text += "The device is throttled: these times say little.\n";
            }
        }
        if let Some(us) = outcome.launch_us {
            text += &format!("{us:.2} us from launch to launch, one behind the other\n");
        }
        if let Some(counters) = &outcome.counters {
            text += &format!(
                "sectors/request: {} loaded, {} stored; bank conflicts: {}\n",
                number(counters.global_load.sectors_per_request(), 2, ""),
                number(counters.global_store.sectors_per_request(), 2, ""),
                counters.bank_conflicts(),
            );
        }
        if !has_times(device) {
            text +=
                "No GB/s: the software GPU is exact about what is moved and says nothing of the time a GPU takes.\n";
        }
        text
    }

    fn json(&self, device: &Device, outcome: &Outcome, samples: usize, speed: Option<&Speed>) -> Value {
        let timing = outcome.timing.as_ref().map(|(timing, _)| timing);
        json!({
            "device": output::info_json(device.info()),
            "op": self.op,
            "dtype": self.dtype.name(),
            "from": self.from.map(DType::name),
            "shape": self.shape,
            "axes": self.axes,
            "bytes": self.read + self.written,
            "kernel": outcome.kernel,
            "samples": samples,
            "ms": timing.map(|timing| json!({
                "median": timing.median_ms(),
                "p10": timing.quantile_ms(0.1),
                "p90": timing.quantile_ms(0.9),
            })),
            "gbps": speed.map(|speed| speed.gbps),
            "copy_gbps": outcome.timing.as_ref().map(|(_, copy)| copy),
            "fraction_of_copy": speed.map(|speed| speed.of_copy),
            "fraction_of_ceiling": speed.map(|speed| speed.of_ceiling),
            "ceilings_date": speed.map(|speed| &speed.ceilings_date),
            "fraction_of_nominal": speed.and_then(|speed| speed.of_nominal),
            "gapless": timing.map(Timing::gapless),
            "discarded": timing.map(Timing::discarded),
            "clocks": timing.and_then(Timing::clocks),
            "launch_us": outcome.launch_us,
            "verified": outcome.verified,
            "counters": outcome.counters,
        })
    }
}
