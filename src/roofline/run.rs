//! A run: the records of what was measured together, and where, with what and when.

use std::fmt;

use super::measure::Clocks;
use super::peak::Peaks;
use super::record::{Group, Record, SCHEMA};
use crate::device::{Device, TuningFile};
use crate::driver::{DeviceInfo, DriverKind};
use crate::error::counted;
use crate::ops::Target;

/// The records of one call, and what they share.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Run {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The source of the kernels: [`PROVENANCE`](crate::ptx::PROVENANCE), or the file of a user's
    /// kernel; `None` if a compiler made it.
    pub ptx: Option<String>,
    /// When it began, as RFC 3339.
    pub date: String,
    /// Version of this crate.
    pub version: String,
    /// The machine that it ran on.
    pub device: Machine,
    /// The policy of its plans; `None` for a user's kernel, and in documents that lack it.
    pub policy: Option<Policy>,
    /// The clocks at its end; `None` where the device reports none.
    pub clocks: Option<Clocks>,
    /// The ceilings that times are compared with; `None` on the software GPU.
    pub peaks: Option<Peaks>,
    /// When the ceilings were measured, as RFC 3339.
    pub ceilings_date: Option<String>,
    /// The measurements.
    pub cases: Vec<Record>,
}

/// A [policy](crate::ops::Policy) as documents describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Policy {
    /// Its name: `measured`, `rule` or `tuned`.
    pub from: String,
    /// The same in words.
    pub text: String,
    /// The user's tuning file, if it is `tuned`.
    pub file: Option<String>,
}

impl Policy {
    /// Describes the policy of a device.
    pub fn of(info: &DeviceInfo, file: &TuningFile) -> Self {
        let policy = Target::of_info(info, file.row(), file.weights()).policy();
        let mut text = policy.to_string();
        if !file.plans().is_empty() {
            text += &format!(", with {} of the tuning file", counted(file.plans().len(), "measured plan"));
        }
        Self { from: policy.name().into(), text, file: file.path().map(|path| path.display().to_string()) }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}, from {file}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// A device as documents describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Machine {
    /// As its maker calls it.
    pub name: String,
    /// `cuda`, or `soft` for the software GPU.
    pub kind: String,
    /// Its number among devices of its kind.
    pub ordinal: u32,
    /// Compute capability: major and minor, as `9.0`.
    pub compute_capability: String,
    /// Version of the driver.
    pub driver_version: String,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// Bytes of its L2 cache; 0 where there is none.
    pub l2_bytes: u64,
}

impl Machine {
    /// Describes a device.
    pub fn of(device: &Device) -> Self {
        Self::of_info(device.info())
    }

    /// Describes a device that is not open.
    pub fn of_info(info: &DeviceInfo) -> Self {
        let (major, minor) = info.compute_capability;
        let kind = match info.kind {
            DriverKind::Cuda => "cuda",
            DriverKind::Soft => "soft",
        };
        Self {
            name: info.name.clone(),
            kind: kind.into(),
            ordinal: info.ordinal,
            compute_capability: format!("{major}.{minor}"),
            driver_version: info.driver_version.clone(),
            multiprocessors: info.multiprocessors,
            memory_bytes: info.memory_bytes,
            l2_bytes: info.l2_bytes,
        }
    }
}

impl Run {
    /// A run on a device that began at `date`. `ceilings` come with the date of their measurement.
    pub fn new(device: &Device, date: String, ceilings: Option<(Peaks, String)>, cases: Vec<Record>) -> Self {
        let (peaks, ceilings_date) = ceilings.unzip();
        Self {
            schema: SCHEMA,
            ptx: Some(crate::ptx::PROVENANCE.into()),
            date,
            version: env!("CARGO_PKG_VERSION").into(),
            device: Machine::of(device),
            policy: Some(Policy::of(device.info(), device.tuning_file())),
            clocks: Clocks::of(device),
            peaks,
            ceilings_date,
            cases,
        }
    }

    /// Returns whether anything was timed.
    pub fn has_times(&self) -> bool {
        self.cases.iter().any(|case| case.ms.is_some())
    }

    /// The records of a group.
    pub fn group(&self, group: Group) -> impl Iterator<Item = &Record> {
        self.cases.iter().filter(move |case| case.subject.group == group)
    }

    /// The groups that the run has records of, in the order of reports.
    pub fn groups(&self) -> impl Iterator<Item = Group> {
        Group::ALL.into_iter().filter(|&group| self.group(group).next().is_some())
    }

    /// The names of the cases whose results were wrong.
    pub fn wrong(&self) -> Vec<String> {
        self.cases.iter().filter(|case| case.verified == Some(false)).map(|case| case.name.clone()).collect()
    }

    /// A line that says where, when and with which versions it ran. The version of a GPU's driver
    /// is that of the CUDA release that it supports.
    pub fn heading(&self) -> String {
        let Machine { name, kind, driver_version, .. } = &self.device;
        let driver = if kind == "cuda" { "CUDA" } else { "driver" };
        let low = self.peaks.as_ref().is_some_and(|peaks| peaks.low_clocks);
        let low = if low { "; ceilings measured at low clocks" } else { "" };
        format!("{name}, {driver} {driver_version}, {}, warpstride {}{low}", to_minutes(&self.date), self.version)
    }
}

/// A date of RFC 3339 in UTC without its seconds: `2026-11-25 19:50 UTC`. Other text stays.
fn to_minutes(date: &str) -> String {
    let parts = date.split_once('T').filter(|_| date.ends_with('Z'));
    match parts.and_then(|(day, time)| Some((day, time.get(..5)?))) {
        Some((day, minutes)) => format!("{day} {minutes} UTC"),
        None => date.into(),
    }
}
