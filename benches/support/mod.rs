//! Device time for criterion.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::{env, fs, mem};

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use warpstride::device::Device;
use warpstride::error::{Result, counted};
use warpstride::roofline::measure::{self, Timing};
use warpstride::roofline::record::{Record, Subject};
use warpstride::roofline::run::Run;
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

/// The records of this process, by the names of their subjects.
static RECORDS: Mutex<BTreeMap<String, Record>> = Mutex::new(BTreeMap::new());

/// Times `runs` runs by the crate's protocol (see [`measure`]): the median of at most [`MOST`],
/// times `runs`. Keeps the record of the last measurement of a subject, and prints a note where the
/// device was throttled, once for each subject.
pub(crate) fn time(device: &Device, subject: &Subject, runs: u64, run: impl FnMut() -> Result<()>) -> Duration {
    let (name, samples) = (subject.name(), runs.min(MOST) as usize);
    let timing = measure::time(device, device.default_stream(), samples, run);
    let timing = timing.unwrap_or_else(|error| panic!("{name}: {error}"));
    // The benches verify before they time.
    let record = Record { samples, ..Record::new(subject.clone(), None, true) }.timed(&timing, None, None);
    let is_first = RECORDS.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), record).is_none();
    if let Some(note) = throttling(&timing).filter(|_| is_first) {
        println!("{name}: {note}");
    }
    Duration::from_secs_f64(timing.median_ms() / 1e3 * runs as f64)
}

/// Writes the records beside criterion's own files, as a run that `warpstride report` reads.
pub(crate) fn write(bench: &str, device: &Device) {
    let records = mem::take(&mut *RECORDS.lock().unwrap_or_else(PoisonError::into_inner));
    let run = Run::new(device, jiff::Timestamp::now().to_string(), None, records.into_values().collect());
    let folder = env::var_os("CRITERION_HOME").map_or_else(|| "target/criterion".into(), PathBuf::from);
    let file = folder.join(format!("{bench}.json"));
    let text = serde_json::to_vec_pretty(&run).expect("numbers that are finite");
    match fs::create_dir_all(&folder).and_then(|()| fs::write(&file, text)) {
        Ok(()) => println!("wrote {}", file.display()),
        Err(error) => println!("cannot write {}: {error}", file.display()),
    }
}

fn throttling(timing: &Timing) -> Option<String> {
    if timing.clocks().is_some_and(|clocks| clocks.are_throttled()) {
        return Some("the device is throttled, so this time says little".into());
    }
    let discarded = timing.discarded();
    (discarded > 0).then(|| format!("{} of a throttled device were discarded", counted(discarded, "sample")))
}
