//! The rates of the link and of the work, each alone.

use std::time::Instant;

use super::workload::{Pixel, Stages, Workload};
use crate::run::pipelines::Bound;
use warpstride::device::Device;
use warpstride::error::Result;
use warpstride::memory::{DeviceBuffer, PinnedBuffer};
use warpstride::roofline::measure::time;
use warpstride::stream::Stream;
use warpstride::transfer::InFlight;

/// Batches in flight while the link is measured: the fewest, which keep it busy if they are large,
/// and the bytes up to which there are more, at most this number.
pub(super) const IN_FLIGHT: usize = 3;
const SMALL_BYTES: usize = 64 << 20;
const MOST_IN_FLIGHT: usize = 16;
/// Samples of the link, the fastest of which counts, and the seconds of each, at least.
const SAMPLES: usize = 3;
const SECONDS: f64 = 0.15;
/// Samples of the work.
const WORK_SAMPLES: usize = 15;

/// Measures link and work for batches of `batch` frames.
pub(super) fn measure<I: Pixel>(device: &Device, workload: Workload, batch: usize) -> Result<Bound> {
    let elements = batch * workload.elements();
    let bytes = elements * (size_of::<I>() + size_of::<f32>());
    let lanes = (SMALL_BYTES / bytes).clamp(IN_FLIGHT, MOST_IN_FLIGHT);
    let link = batch as f64 / link_seconds::<I>(device, elements, lanes)?;
    let mut stages = Stages::<I>::new(device, workload, batch)?;
    let (input, mut output) = (device.zeros::<I>(elements)?, device.zeros::<f32>(elements)?);
    let stream = device.stream()?;
    let work =
        time(device, &stream, WORK_SAMPLES, || stages.queue_on(&input, output.view_mut(&[elements])?, batch, &stream))?;
    Ok(Bound { link, compute: batch as f64 / (work.median_ms() / 1e3) })
}

/// The copies of a batch, there and back.
type BothWays<I> = (InFlight<PinnedBuffer<I>>, InFlight<PinnedBuffer<f32>>);

/// A batch in each direction.
struct Lane<I: Pixel> {
    input: DeviceBuffer<I>,
    output: DeviceBuffer<f32>,
    flying: Option<BothWays<I>>,
}

impl<I: Pixel> Lane<I> {
    fn new(device: &Device, elements: usize, streams: &[Stream; 2]) -> Result<Self> {
        let mut lane = Self { input: device.zeros(elements)?, output: device.zeros(elements)?, flying: None };
        lane.fly(device.pinned_zeros(elements)?, device.pinned_zeros(elements)?, streams)?;
        Ok(lane)
    }

    fn fly(&mut self, there: PinnedBuffer<I>, back: PinnedBuffer<f32>, [up, down]: &[Stream; 2]) -> Result<()> {
        let elements = [there.len()];
        let there = up.upload(there, self.input.view_mut(&elements)?)?;
        let back = down.download(self.output.view(&elements)?, back)?;
        self.flying = Some((there, back));
        Ok(())
    }

    /// Waits for both copies.
    fn land(&mut self) -> Result<Option<(PinnedBuffer<I>, PinnedBuffer<f32>)>> {
        let Some((there, back)) = self.flying.take() else { return Ok(None) };
        Ok(Some((there.wait()?, back.wait()?)))
    }
}

/// Returns the seconds that a batch takes the link in both directions.
fn link_seconds<I: Pixel>(device: &Device, elements: usize, lanes: usize) -> Result<f64> {
    let streams = [device.stream()?, device.stream()?];
    let mut lanes: Vec<_> = (0..lanes).map(|_| Lane::<I>::new(device, elements, &streams)).collect::<Result<_>>()?;
    let mut sample = |turns: usize| {
        let start = Instant::now();
        for _ in 0..turns {
            for lane in &mut lanes {
                // Both copies have landed, and the next ones begin.
                lane.land()?.map_or(Ok(()), |(there, back)| lane.fly(there, back, &streams))?;
            }
        }
        Ok::<_, warpstride::error::Error>(start.elapsed().as_secs_f64() / (turns * lanes.len()) as f64)
    };
    sample(2)?;
    let turns = (SECONDS / sample(4)?.max(1e-9)).ceil() as usize;
    let mut least = f64::INFINITY;
    for _ in 0..SAMPLES {
        least = least.min(sample(turns.clamp(4, 100_000))?);
    }
    // The next measurement must have the link and the memory to itself.
    lanes.iter_mut().try_for_each(|lane| lane.land().map(drop))?;
    Ok(least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpstride::device::Backend;

    /// No time is checked: the software GPU has none that mean anything.
    #[test]
    fn copies_of_the_link_go_both_ways_and_all_land() {
        let device = Device::open(Backend::Soft).unwrap();
        let before = device.stats();
        let seconds = link_seconds::<u8>(&device, 100, IN_FLIGHT).unwrap();
        assert!(seconds > 0.0 && seconds.is_finite());
        let calls = device.stats().since(&before);
        assert_eq!(calls.calls_of("copy_h2d"), calls.calls_of("copy_d2h"));
        assert_eq!(device.pinned_memory().in_use, 0);
    }
}
