//! Records of what criterion measures in device time.

// The command line is a program, whose modules no other package can import.
#[allow(dead_code)]
#[path = "../../cli/src/nvml.rs"]
mod nvml;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::{env, fs, mem};

use warpstride::device::Device;
use warpstride::error::{Result, counted};
use warpstride::roofline::criterion::DeviceTime;
use warpstride::roofline::measure::{self, Timing};
use warpstride::roofline::record::{Record, Subject};
use warpstride::roofline::run::Run;

/// The records of this process, by the names of their subjects.
static RECORDS: Mutex<BTreeMap<String, Record>> = Mutex::new(BTreeMap::new());

/// Times `runs` runs on the device's default stream, and returns the time of all. Keeps the record
/// of the last measurement of a subject, and prints a note where the device was throttled, once for
/// each subject.
pub(crate) fn time(device: &Device, subject: &Subject, runs: u64, run: impl FnMut() -> Result<()>) -> Duration {
    measure::read_clocks_by(nvml::clocks);
    let name = subject.name();
    let timed = DeviceTime::new(device).runs(runs, run);
    let (time, timing) = timed.unwrap_or_else(|error| panic!("{name}: {error}"));
    // The benches verify before they time.
    let samples = timing.samples_ms().len();
    let record = Record { samples, ..Record::new(subject.clone(), None, true) }.timed(&timing, None, None);
    let is_first = RECORDS.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), record).is_none();
    if let Some(note) = throttling(&timing).filter(|_| is_first) {
        println!("{name}: {note}");
    }
    time
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
