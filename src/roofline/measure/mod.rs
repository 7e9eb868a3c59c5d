//! Measures device time, one way everywhere.
//!
//! The protocol: warm up; hold the stream with a spin kernel until every sample is queued, so that
//! the gaps between launches stay out (the idea of nvbandwidth and nvbench); record a pair of
//! events around each sample; report the median and quantiles. An operation of more launches than a
//! stream's queue holds comes in parts: each part is held in turn, and a sample is the sum of its
//! parts. The caller takes its buffers from a [`Rotation`], so that no sample finds its data in the
//! L2 cache. Lines that kernels asked the cache to keep may outlast a rotation, so they are reset
//! first: a copy of 128 MiB reached 2980 GB/s on an H100 where such lines of its arrays were left,
//! and 2905 where none were (benches/record/experiments.md).
//!
//! Where the device reports its clocks, throttled samples are retaken for at most 15 s and counted
//! (nvbench's rule); once that fails, the process stops retrying.

mod clocks;
mod rotation;
mod throttle;

pub use clocks::{Clocks, read_clocks_by};
pub(super) use rotation::cold_bytes;
pub use rotation::{RotatingBuffer, Rotation};

use std::thread;
use std::time::{Duration, Instant};

use crate::device::Device;
use crate::driver::DriverKind;
use crate::error::{Result, require};
use crate::ops;
use crate::stream::{Event, Stream};
use throttle::BackOff;

const WARM_UPS: usize = 3;
/// The first gate, and the longest: an operation that takes longer to queue is bound by its own
/// launches.
const GATES: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(64));
/// How long throttled samples are retaken.
const DEADLINE: Duration = Duration::from_secs(15);
/// Fewest samples, however long each takes.
const FEWEST: usize = 3;
/// Launches of a batch, and batches. [`launch_us`] returns the median of the batches' means: the
/// mean of all would hold whatever else the host did.
const LAUNCHES: (u32, usize) = (200, 9);

/// Times of one operation on a GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    /// Milliseconds of each sample, shortest first; at least one.
    samples: Vec<f64>,
    /// True if every launch was queued before its gate opened, so that the samples contain no gap
    /// between launches.
    gapless: bool,
    /// Throttled samples that were discarded.
    discarded: usize,
    /// When the samples were taken.
    clocks: Option<Clocks>,
}

impl Timing {
    /// Makes one of milliseconds that were measured otherwise, at least one, in any order.
    #[cfg(feature = "distributed")]
    pub(crate) fn of_samples(mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        Self { samples, gapless: false, discarded: 0, clocks: None }
    }

    /// Milliseconds that a fraction `q` of the samples (from 0 to 1) took at most, interpolated
    /// between two samples.
    pub(crate) fn quantile_ms(&self, q: f64) -> f64 {
        let place = q.clamp(0.0, 1.0) * (self.samples.len() - 1) as f64;
        let (below, above) = (place.floor() as usize, place.ceil() as usize);
        self.samples[below] + (self.samples[above] - self.samples[below]) * place.fract()
    }

    /// Milliseconds of the middle sample.
    pub fn median_ms(&self) -> f64 {
        self.quantile_ms(0.5)
    }

    /// Returns whether all samples (of an operation in parts, each part) were queued before the
    /// first one ran. An operation of very many launches cannot be, and its time then includes the
    /// gaps between them.
    pub fn gapless(&self) -> bool {
        self.gapless
    }

    /// Milliseconds of each sample, shortest first; at least one. There are fewer than the caller
    /// asked for where each takes seconds.
    pub fn samples_ms(&self) -> &[f64] {
        &self.samples
    }

    /// Samples that were discarded, because the device was throttled while they were taken.
    pub fn discarded(&self) -> usize {
        self.discarded
    }

    /// The clocks right after the samples; `None` where the device reports none. They are throttled
    /// still where the device did not recover in time, in this measurement or an earlier one.
    pub fn clocks(&self) -> Option<Clocks> {
        self.clocks
    }

    /// GB/s (10^9 bytes a second) at the median, for an operation that reads and writes `bytes`
    /// bytes in all.
    pub fn gbps(&self, bytes: u64) -> f64 {
        bytes as f64 / self.median_ms() / 1e6
    }
}

/// Times `samples` runs (at least one) of the operation that `launch` queues. `launch` does nothing
/// but queue work on `stream`, and takes the next set of buffers at each call; warm-ups and retries
/// are calls too. Persisting lines of the L2 cache are reset first
/// ([`Memory::reset_persisting_l2`](crate::driver::Memory::reset_persisting_l2)), the caller's too.
///
/// # Errors
///
/// `Unavailable` on the software GPU, whose times say nothing about a GPU; what `launch` and the
/// driver failed with.
///
/// ```no_run
/// use warpstride::roofline::{measure, peak::Peaks};
/// use warpstride::{Backend, Device, ops};
///
/// let device = Device::open(Backend::Cuda(0))?;
/// let stream = device.default_stream();
/// let a = device.array(&[1 << 26], &vec![1.0_f32; 1 << 26])?; // 256 MiB: a few times the L2
/// let mut b = device.alloc_array(&[1 << 26])?;
/// let timing = measure::time(&device, stream, 20, || ops::scale_into(2.0, &a, &mut b, stream))?;
/// let gbps = timing.gbps(2 * 4 << 26); // read and written
/// let ceiling = Peaks::measure(&device, |_| ())?.ceilings().of(4 << 26, 4 << 26);
/// println!("{gbps:.0} GB/s, {:.1} % of what a copy reaches", 100.0 * gbps / ceiling);
/// # Ok::<(), warpstride::Error>(())
/// ```
pub fn time(
    device: &Device,
    stream: &Stream,
    samples: usize,
    mut launch: impl FnMut() -> Result<()>,
) -> Result<Timing> {
    time_parts(device, stream, samples, 1, |_| launch())
}

/// Times an operation of more launches than a stream's queue holds, about a thousand, in `parts`
/// parts (at least one) of fewer: `launch` queues the part whose number it gets. The parts of a
/// sample run one after the other, in order from 0; `launch` takes the next set of buffers from
/// sample to sample, not from part to part.
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
    let mut back_off = BackOff::new(device.info().pci_bus_id.as_deref().unwrap_or_default(), DEADLINE);
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
        if !gapless && gate < GATES.1 && !back_off.is_over() {
            gate *= 2;
            continue;
        }
        let mut clocks = Clocks::of(device);
        if let Some(pause) = clocks.as_mut().and_then(|clocks| back_off.pause(clocks)) {
            discarded += samples.len();
            thread::sleep(pause);
            continue;
        }
        samples.sort_by(f64::total_cmp);
        return Ok(Timing { samples, gapless, discarded, clocks });
    }
}

/// Returns whether times on the device say anything about a GPU: they do not on the software GPU.
pub fn has_times(device: &Device) -> bool {
    device.info().kind == DriverKind::Cuda
}

/// Fails where times on the device say nothing about a GPU.
pub(super) fn check_has_times(device: &Device) -> Result<()> {
    require!(has_times(device), Unavailable, "the software GPU has no times to measure; use a CUDA device");
    Ok(())
}

/// Milliseconds of each sample, and whether every launch was queued before its gate opened. All
/// samples are behind one gate; samples in several parts have a gate for each part.
fn sample(
    gate: Duration,
    device: &Device,
    stream: &Stream,
    samples: usize,
    parts: usize,
    launch: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<(Vec<f64>, bool)> {
    let together = if parts == 1 { samples } else { 1 };
    device.reset_persisting_l2()?;
    let pairs: Vec<(Event, Event)> =
        (0..together).map(|_| Ok((device.event()?, device.event()?))).collect::<Result<_>>()?;
    let (mut times, mut gapless) = (vec![0.0; samples], true);
    for times in times.chunks_mut(together) {
        for part in 0..parts {
            gapless &= queue_behind(gate, device, stream, &pairs, &mut || launch(part))?;
            stream.synchronize()?;
            for (ms, (start, end)) in times.iter_mut().zip(&pairs) {
                *ms += f64::from(end.elapsed_ms_since(start)?);
            }
        }
    }
    Ok((times, gapless))
}

/// Queues a launch for each pair of events behind a gate; returns whether all were queued in time.
fn queue_behind(
    gate: Duration,
    device: &Device,
    stream: &Stream,
    pairs: &[(Event, Event)],
    launch: &mut dyn FnMut() -> Result<()>,
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

/// Measures what a short operation costs with its launch included, in microseconds: the host's
/// clock from one launch to the next, where 200 are queued one behind the other and the last is
/// waited for, the median of nine such times. `launch` is as for [`time`].
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

#[cfg(all(test, feature = "interp"))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::driver::Driver;
    use crate::driver::soft::Soft;
    use crate::driver::trace::{Call, Trace};

    #[test]
    fn quantiles_interpolate() {
        let timing = Timing { samples: vec![1.0, 2.0, 3.0, 5.0], gapless: true, discarded: 0, clocks: None };
        assert_eq!(timing.median_ms(), 2.5);
        assert_eq!([timing.quantile_ms(0.0), timing.quantile_ms(1.0), timing.quantile_ms(2.0)], [1.0, 5.0, 5.0]);
        assert_eq!(timing.gbps(5_000_000), 2.0);
        assert_eq!(Timing { samples: vec![4.0], gapless: true, discarded: 0, clocks: None }.quantile_ms(0.9), 4.0);
    }

    /// The driver's calls that [`sample`] makes, but those that make events, and the parts in their
    /// order. The gate has no length, so nothing is ever queued before it opens.
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
