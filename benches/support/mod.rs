//! Device time for criterion.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use warpstride::device::Device;
use warpstride::error::Result;
use warpstride::roofline::measure::{self, Timing};
use warpstride::stream::Event;

/// The most timed runs that are queued at once. criterion plans their number by the host's clock,
/// and a short kernel takes almost none of it. The events of all runs are held meanwhile.
const MOST: u64 = 200;

/// Measures the time between events on a device's default stream.
pub(crate) struct DeviceTime(pub(crate) Device);

impl DeviceTime {
    fn record(&self) -> Result<Event> {
        let event = self.0.event()?;
        self.0.default_stream().record(&event)?;
        Ok(event)
    }
}

/// `iter` runs between two events, so its time contains the gaps between launches. `iter_custom`
/// with [`time`] keeps them out.
impl Measurement for DeviceTime {
    type Intermediate = Event;
    type Value = Duration;

    fn start(&self) -> Event {
        self.record().expect("an event is recorded")
    }

    fn end(&self, start: Event) -> Duration {
        let end = self.record().expect("an event is recorded");
        self.0.synchronize().expect("the work has run");
        let ms = end.elapsed_ms_since(&start).expect("both were passed");
        Duration::from_secs_f64(f64::from(ms) / 1e3)
    }

    fn add(&self, one: &Duration, other: &Duration) -> Duration {
        *one + *other
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

/// Times `runs` runs by the crate's protocol (see [`measure`]): the median of at most [`MOST`],
/// times `runs`. It prints a note where the device was throttled, once for each name.
pub(crate) fn time(device: &Device, name: &str, runs: u64, run: impl FnMut() -> Result<()>) -> Duration {
    let timing = measure::time(device, device.default_stream(), runs.min(MOST) as usize, run);
    let timing = timing.unwrap_or_else(|error| panic!("{name}: {error}"));
    if let Some(note) = throttling(&timing) {
        static NOTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
        let mut noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.insert(name.into()) {
            println!("{name}: {note}");
        }
    }
    Duration::from_secs_f64(timing.median_ms() / 1e3 * runs as f64)
}

fn throttling(timing: &Timing) -> Option<String> {
    if timing.clocks().is_some_and(|clocks| clocks.are_throttled()) {
        return Some("the device is throttled, so this time says little".into());
    }
    let discarded = timing.discarded();
    (discarded > 0).then(|| format!("{discarded} samples of a throttled device were discarded"))
}
