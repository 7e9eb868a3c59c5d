//! Device time for [criterion]'s benches.
//!
//! ```no_run
//! use criterion::{Criterion, Throughput};
//! use warpstride::roofline::criterion::DeviceTime;
//! use warpstride::roofline::measure::Rotation;
//! use warpstride::{Backend, Device, ops};
//!
//! fn copies(c: &mut Criterion<DeviceTime>, device: &Device) -> warpstride::Result<()> {
//!     let (time, stream) = (DeviceTime::new(device), device.default_stream());
//!     let mut rotation = Rotation::new(device, &[4 << 20; 2]);
//!     let source = rotation.upload(&vec![1.0_f32; 1 << 20])?;
//!     let mut result = rotation.zeros::<f32>(1 << 20)?;
//!     let mut group = c.benchmark_group("copy cold");
//!     group.throughput(Throughput::BytesDecimal(2 * (4 << 20)));
//!     group.bench_function("f32 1048576", |bencher| {
//!         bencher.iter_custom(|runs| {
//!             let timed = time.runs(runs, || {
//!                 let set = rotation.advance();
//!                 ops::copy_into(source.view(set)?, result.view_mut(set)?, stream)
//!             });
//!             timed.expect("the copies run").0
//!         })
//!     });
//!     group.finish();
//!     Ok(())
//! }
//!
//! let device = Device::open(Backend::Cuda(0))?;
//! let time = DeviceTime::new(&device);
//! copies(&mut Criterion::default().configure_from_args().with_measurement(time), &device)?;
//! # Ok::<(), warpstride::Error>(())
//! ```

use std::time::Duration;

use ::criterion::measurement::{Measurement, ValueFormatter, WallTime};

use super::measure::{self, Timing};
use crate::device::Device;
use crate::error::Result;
use crate::stream::{Event, Stream};

/// The most timed runs that are queued at once. criterion plans their number by the host's clock,
/// and a short kernel takes almost none of it. The events of all runs are held meanwhile.
const MOST: u64 = 200;

/// Measures the time between events on a stream of a device.
///
/// With `iter`, a time contains the gaps between launches. `iter_custom` with [`runs`](Self::runs)
/// keeps them out: it is the protocol of [`measure`].
#[derive(Debug, Clone)]
pub struct DeviceTime {
    device: Device,
    stream: Stream,
}

impl DeviceTime {
    /// Measures on the device's default stream.
    pub fn new(device: &Device) -> Self {
        Self::on(device, device.default_stream())
    }

    /// Measures on a stream of the device, which may be another crate's
    /// ([`Device::stream_from_raw`]).
    pub fn on(device: &Device, stream: &Stream) -> Self {
        Self { device: device.clone(), stream: stream.clone() }
    }

    /// Times `runs` runs of the operation that `launch` queues, as [`measure::time`] does: at most
    /// 200 of them, whose median stands for each. Returns what `iter_custom` expects, the time of
    /// all runs, and the samples behind it.
    ///
    /// # Errors
    ///
    /// As [`measure::time`]: `Unavailable` on the software GPU.
    pub fn runs(&self, runs: u64, launch: impl FnMut() -> Result<()>) -> Result<(Duration, Timing)> {
        let timing = measure::time(&self.device, &self.stream, runs.min(MOST) as usize, launch)?;
        Ok((Duration::from_secs_f64(timing.median_ms() / 1e3 * runs as f64), timing))
    }

    fn record(&self) -> Result<Event> {
        let event = self.device.event()?;
        self.stream.record(&event)?;
        Ok(event)
    }
}

/// # Panics
///
/// Where the driver fails, since criterion has no way to tell.
impl Measurement for DeviceTime {
    type Intermediate = Event;
    type Value = Duration;

    fn start(&self) -> Event {
        self.record().expect("an event is recorded")
    }

    fn end(&self, start: Event) -> Duration {
        let end = self.record().expect("an event is recorded");
        self.stream.synchronize().expect("the work has run");
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

#[cfg(all(test, feature = "interp"))]
mod tests {
    use super::*;
    use crate::device::Backend;
    use crate::error::ErrorKind;
    use crate::ops;

    #[test]
    fn criterion_gets_times_of_the_work_on_the_stream() {
        let device = Device::open(Backend::Soft).expect("the software GPU is always there");
        let time = DeviceTime::on(&device, &device.stream().expect("a stream"));
        let start = time.start();
        ops::spin(&device, Duration::from_micros(10), &time.stream).expect("it spins");
        let spent = time.end(start);
        assert_eq!(time.add(&time.zero(), &spent), spent);
        assert_eq!(time.to_f64(&Duration::from_micros(3)), 3000.0);
        let error = time.runs(3, || panic!("nothing is launched for it")).expect_err("it has no times");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
}
