//! Device time, measured one way everywhere.
//!
//! The protocol: warm up; hold the stream with a spin kernel until every sample is queued, so that the gaps between
//! launches stay out (nvbandwidth's and nvbench's idea); a pair of events around each sample; median and quantiles. The
//! caller rotates its buffers over [`cold_sets`] of them, so that no sample finds its data in the L2 cache: rotating rather
//! than flushing, because a flush by writes leaves dirty lines that the next sample would pay for. Where the device tells its
//! clocks, samples of a device that was throttled are taken again, and counted (nvbench's rule); no measurement starts
//! them anew after 15 seconds, and none of a process after one that did so in vain.

use std::thread;
use std::time::{Duration, Instant};

use super::clocks::Clocks;
use super::patience::Patience;
use crate::device::Device;
use crate::driver::DriverKind;
use crate::error::{Error, ErrorKind, Result};
use crate::ops;
use crate::stream::{Event, Stream};

const WARM_UPS: usize = 3;
/// The first gate, and the longest that is tried before an operation is taken to be bound by its own launches.
const GATES: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(64));
/// How long is tried to get samples that are not throttled.
const DEADLINE: Duration = Duration::from_secs(15);
/// Fewest samples, however long each takes.
const FEWEST: usize = 3;
/// Launches in a row that [`launch_us`] takes the mean of, and how often, for the median of the means: the mean of all would have
/// what else the host did meanwhile.
const LAUNCHES: (u32, usize) = (200, 9);

/// Times of one operation on a GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    /// Milliseconds of each sample, shortest first; at least one.
    samples: Vec<f64>,
    /// Whether all samples were queued before the first one ran, so that no gap between launches is in them.
    gapless: bool,
    /// Samples that were thrown away, because the device was throttled.
    discarded: usize,
    /// When the samples were taken.
    clocks: Option<Clocks>,
}

impl Timing {
    /// Milliseconds that the samples' fraction `q` (from 0 to 1) took or less; between two samples, interpolated.
    pub fn quantile_ms(&self, q: f64) -> f64 {
        let place = q.clamp(0.0, 1.0) * (self.samples.len() - 1) as f64;
        let (below, above) = (place.floor() as usize, place.ceil() as usize);
        self.samples[below] + (self.samples[above] - self.samples[below]) * place.fract()
    }

    /// Milliseconds of the middle sample.
    pub fn median_ms(&self) -> f64 {
        self.quantile_ms(0.5)
    }

    /// Whether all samples were queued before the first one ran. An operation of very many launches cannot be, and its time
    /// then has the gaps between them.
    pub fn gapless(&self) -> bool {
        self.gapless
    }

    /// Milliseconds of each sample, shortest first; at least one. Fewer than were asked for where each takes seconds.
    pub fn samples_ms(&self) -> &[f64] {
        &self.samples
    }

    /// Samples that were taken while the device was throttled, and thrown away.
    pub fn discarded(&self) -> usize {
        self.discarded
    }

    /// The clocks when the samples had been taken; `None` where the device tells none. Throttled still, where it did not get
    /// better in time, in this measurement or one before.
    pub fn clocks(&self) -> Option<Clocks> {
        self.clocks
    }

    /// GB/s (10^9 bytes a second) at the median, for an operation that reads and writes `bytes` bytes in all.
    pub fn gbps(&self, bytes: u64) -> f64 {
        bytes as f64 / self.median_ms() / 1e6
    }
}

/// How many sets of buffers of `bytes` bytes a sample each to rotate over, so that a sample finds none of its data in the
/// cache: as many as fill four times the L2, at least one.
pub fn cold_sets(bytes: u64, l2_bytes: u64) -> usize {
    usize::try_from((4 * l2_bytes).div_ceil(bytes.max(1))).unwrap_or(usize::MAX).max(1)
}

/// Times `samples` runs (at least one) of the operation that `launch` queues. It must do nothing but queue work on `stream`,
/// and takes its buffers in turn from call to call: warm-ups and retries are calls too.
///
/// # Errors
///
/// `Unavailable` on the software GPU, whose times would say nothing; what `launch` and the driver failed with.
pub fn time(
    device: &Device,
    stream: &Stream,
    samples: usize,
    mut launch: impl FnMut() -> Result<()>,
) -> Result<Timing> {
    check_has_times(device)?;
    let mut patience = Patience::new(device.info().pci_bus_id.as_deref().unwrap_or_default(), DEADLINE);
    for _ in 0..WARM_UPS {
        launch()?;
    }
    stream.synchronize()?;
    let begin = Instant::now();
    launch()?;
    stream.synchronize()?;
    let fit = DEADLINE.as_secs_f64() / begin.elapsed().as_secs_f64().max(1e-9);
    let samples = samples.max(1).min((fit as usize).max(FEWEST));
    let pairs: Vec<(Event, Event)> =
        (0..samples).map(|_| Ok((device.event()?, device.event()?))).collect::<Result<_>>()?;
    let (mut gate, mut discarded) = (GATES.0, 0);
    loop {
        let gapless = queue_behind(gate, device, stream, &pairs, &mut launch)?;
        stream.synchronize()?;
        if !gapless && gate < GATES.1 && !patience.is_over() {
            gate *= 2;
            continue;
        }
        let mut clocks = Clocks::of(device);
        if let Some(pause) = clocks.as_mut().and_then(|clocks| patience.pause(clocks)) {
            discarded += samples;
            thread::sleep(pause);
            continue;
        }
        let mut samples: Vec<f64> =
            pairs.iter().map(|(start, end)| Ok(f64::from(end.elapsed_ms_since(start)?))).collect::<Result<_>>()?;
        samples.sort_by(f64::total_cmp);
        return Ok(Timing { samples, gapless, discarded, clocks });
    }
}

/// Whether times on the device say anything about a GPU.
pub(super) fn check_has_times(device: &Device) -> Result<()> {
    if device.info().kind == DriverKind::Soft {
        return Err(Error::new(ErrorKind::Unavailable, "the software GPU has no times to measure; use a CUDA device"));
    }
    Ok(())
}

/// Queues all samples behind a gate; whether that was done before it opened.
fn queue_behind(
    gate: Duration,
    device: &Device,
    stream: &Stream,
    pairs: &[(Event, Event)],
    launch: &mut impl FnMut() -> Result<()>,
) -> Result<bool> {
    let begin = Instant::now();
    ops::spin(device, gate, stream)?;
    for (start, end) in pairs {
        stream.record(start)?;
        launch()?;
        stream.record(end)?;
    }
    Ok(begin.elapsed() < gate)
}

/// Microseconds of the host's clock from one launch to the next, where 200 are queued one behind the other and the last is
/// waited for, the median of nine times: what a short operation costs with its launch included. `launch` as for [`time`].
///
/// # Errors
///
/// What `launch` and the driver failed with.
pub fn launch_us(stream: &Stream, mut launch: impl FnMut() -> Result<()>) -> Result<f64> {
    for _ in 0..WARM_UPS {
        launch()?;
    }
    stream.synchronize()?;
    let mut mean_us = || -> Result<f64> {
        let begin = Instant::now();
        for _ in 0..LAUNCHES.0 {
            launch()?;
        }
        stream.synchronize()?;
        Ok(begin.elapsed().as_secs_f64() * 1e6 / f64::from(LAUNCHES.0))
    };
    let mut means = (0..LAUNCHES.1).map(|_| mean_us()).collect::<Result<Vec<f64>>>()?;
    means.sort_by(f64::total_cmp);
    Ok(means[LAUNCHES.1 / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate() {
        let timing = Timing { samples: vec![1.0, 2.0, 3.0, 5.0], gapless: true, discarded: 0, clocks: None };
        assert_eq!(timing.median_ms(), 2.5);
        assert_eq!([timing.quantile_ms(0.0), timing.quantile_ms(1.0), timing.quantile_ms(2.0)], [1.0, 5.0, 5.0]);
        assert_eq!(timing.gbps(5_000_000), 2.0);
        assert_eq!(Timing { samples: vec![4.0], gapless: true, discarded: 0, clocks: None }.quantile_ms(0.9), 4.0);
    }

    #[test]
    fn rotation_covers_four_caches() {
        assert_eq!(cold_sets(1 << 20, 50 << 20), 200);
        assert_eq!(cold_sets(1 << 30, 50 << 20), 1);
        assert_eq!(cold_sets(0, 0), 1);
    }
}
