//! Device time, measured one way everywhere.
//!
//! The protocol: warm up; hold the stream with a spin kernel until every sample is queued, so that the gaps between
//! launches stay out (nvbandwidth's and nvbench's idea); a pair of events around each sample; median and quantiles. An
//! operation of more launches than a stream's queue holds comes in parts, each held in turn; a sample is their sum. The
//! caller rotates its buffers over [`cold_sets`] of them, so that no sample finds its data in the L2 cache: rotating rather
//! than flushing, because a flush by writes leaves dirty lines that the next sample would pay for. Lines that kernels
//! had the cache keep, which may outlast a rotation, are made like others first: a copy of 128 MiB had 2980 GB/s on an
//! H100 where such lines of its arrays were left, and 2905 where none were. Where the device tells its clocks,
//! samples of a device that was throttled are taken again, and counted (nvbench's rule); no measurement starts them
//! anew after 15 seconds, and none of a process after one that did so in vain.

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
    /// Whether all was queued before its gate opened, so that no gap between launches is in the samples.
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

    /// Whether all samples, or of an operation in parts each part, were queued before the first one ran. An operation of very
    /// many launches cannot be, and its time then has the gaps between them.
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
/// and takes its buffers in turn from call to call: warm-ups and retries are calls too. Lines that the L2 cache was asked to keep
/// are made like others first ([`Memory::reset_persisting_l2`](crate::driver::Memory::reset_persisting_l2)), the caller's too.
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
    time_parts(device, stream, samples, 1, |_| launch())
}

/// The same for an operation of more launches than a stream's queue holds, about a thousand, in `parts` parts (at least one)
/// of fewer: `launch` queues the part of the number that it is given. The parts of a sample run one after the other, in order
/// from 0; other buffers are to be taken from sample to sample, not from part to part.
///
/// # Errors
///
/// As [`time`].
pub fn time_parts(
    device: &Device,
    stream: &Stream,
    samples: usize,
    parts: usize,
    mut launch: impl FnMut(usize) -> Result<()>,
) -> Result<Timing> {
    check_has_times(device)?;
    let parts = parts.max(1);
    let mut patience = Patience::new(device.info().pci_bus_id.as_deref().unwrap_or_default(), DEADLINE);
    for _ in 0..WARM_UPS {
        (0..parts).try_for_each(&mut launch)?;
    }
    stream.synchronize()?;
    let begin = Instant::now();
    (0..parts).try_for_each(&mut launch)?;
    stream.synchronize()?;
    let fit = DEADLINE.as_secs_f64() / begin.elapsed().as_secs_f64().max(1e-9);
    let samples = samples.max(1).min((fit as usize).max(FEWEST));
    let (mut gate, mut discarded) = (GATES.0, 0);
    loop {
        let (mut samples, gapless) = sample(gate, device, stream, samples, parts, &mut launch)?;
        if !gapless && gate < GATES.1 && !patience.is_over() {
            gate *= 2;
            continue;
        }
        let mut clocks = Clocks::of(device);
        if let Some(pause) = clocks.as_mut().and_then(|clocks| patience.pause(clocks)) {
            discarded += samples.len();
            thread::sleep(pause);
            continue;
        }
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

/// Milliseconds of each sample, and whether all was queued before its gate opened: all samples behind one gate, but those of
/// several parts part by part.
fn sample(
    gate: Duration,
    device: &Device,
    stream: &Stream,
    samples: usize,
    parts: usize,
    launch: &mut impl FnMut(usize) -> Result<()>,
) -> Result<(Vec<f64>, bool)> {
    let together = if parts == 1 { samples } else { 1 };
    device.reset_persisting_l2()?;
    let pairs: Vec<(Event, Event)> =
        (0..together).map(|_| Ok((device.event()?, device.event()?))).collect::<Result<_>>()?;
    let (mut times, mut gapless) = (vec![0.0; samples], true);
    for times in times.chunks_mut(together) {
        for part in 0..parts {
            gapless &= queue_behind(gate, device, stream, &pairs, || launch(part))?;
            stream.synchronize()?;
            for (ms, (start, end)) in times.iter_mut().zip(&pairs) {
                *ms += f64::from(end.elapsed_ms_since(start)?);
            }
        }
    }
    Ok((times, gapless))
}

/// Queues as many launches as there are pairs of events behind a gate; whether that was done before it opened.
fn queue_behind(
    gate: Duration,
    device: &Device,
    stream: &Stream,
    pairs: &[(Event, Event)],
    mut launch: impl FnMut() -> Result<()>,
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

#[cfg(all(test, feature = "interp"))]
mod tests_of_gates {
    use std::sync::Arc;

    use super::*;
    use crate::driver::Driver;
    use crate::driver::soft::Soft;
    use crate::driver::trace::{Call, Trace};

    /// What [`sample`] calls of the driver, without the making of events, and the parts in their order. The gate has no length,
    /// so nothing is ever queued before it opens.
    fn called(samples: usize, parts: usize) -> (Vec<&'static str>, Vec<usize>) {
        let trace = Arc::new(Trace::new(Arc::new(Soft::new())));
        let device = Device::with_driver(Arc::clone(&trace) as Arc<dyn Driver>).unwrap();
        let (stream, mut order) = (device.default_stream(), Vec::new());
        // The first launch of a device has calls of its own.
        ops::spin(&device, Duration::ZERO, stream).unwrap();
        let before = trace.calls().len();
        let (times, gapless) = sample(Duration::ZERO, &device, stream, samples, parts, &mut |part| {
            order.push(part);
            ops::spin(&device, Duration::ZERO, stream)
        })
        .unwrap();
        assert_eq!((times.len(), gapless), (samples, false));
        let making = ["event_create", "event_destroy"];
        let calls = trace.calls()[before..].iter().map(Call::name).filter(|name| !making.contains(name)).collect();
        (calls, order)
    }

    #[test]
    fn samples_share_a_gate_and_parts_have_one_each() {
        let timed = ["event_record", "launch", "event_record"];
        let (all, order) = called(3, 1);
        let read = ["stream_synchronize", "event_elapsed_ms", "event_elapsed_ms", "event_elapsed_ms"];
        assert_eq!(all, [&["reset_persisting_l2", "launch"][..], &timed.repeat(3), &read].concat());
        assert_eq!(order, [0, 0, 0]);
        let (parts, order) = called(2, 3);
        let part = [&["launch"][..], &timed, &["stream_synchronize", "event_elapsed_ms"]].concat();
        assert_eq!(parts, [&["reset_persisting_l2"][..], &part.repeat(6)].concat());
        assert_eq!(order, [0, 1, 2, 0, 1, 2]);
    }
}
