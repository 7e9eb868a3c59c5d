//! What a run of the whole bench found, with everything that its tables and charts are drawn from.
//!
//! Whoever measures makes a [`Run`], the command line and Criterion's benches alike; whoever draws reads one, from a file.

use super::measure::{Clocks, Timing};
use super::peak::Peaks;
use crate::counters::Counters;
use crate::device::Device;
use crate::driver::DriverKind;
use crate::element::DType;

/// The version of the document that a [`Run`] is written as.
pub const SCHEMA: u32 = 1;

/// A run: what was measured, where, with what and when.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Run {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Where the kernels came from: [`PROVENANCE`](crate::ptx::PROVENANCE).
    pub ptx: String,
    /// When it began, as RFC 3339; its ceilings were measured right after.
    pub date: String,
    /// Of this crate.
    pub version: String,
    /// Where it ran.
    pub device: Machine,
    /// When it ended; `None` where the device tells none.
    pub clocks: Option<Clocks>,
    /// What times are held against; `None` on the software GPU.
    pub peaks: Option<Peaks>,
    /// What was measured.
    pub cases: Vec<Case>,
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
    /// Major and minor, as `9.0`.
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
        let info = device.info();
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

/// What a case belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Group {
    /// Fills, copies, arithmetic and reductions of long arrays.
    Stream,
    /// Permutes, each by the kernel that is chosen for it.
    Permute,
    /// One matrix transposed by every kernel.
    Transpose,
    /// What is done along an axis: reductions, softmax, mean and variance.
    Axis,
    /// Casts, images, and rows by their indices.
    Conversion,
}

impl Group {
    /// All, in the order of reports.
    pub const ALL: [Self; 5] = [Self::Stream, Self::Permute, Self::Transpose, Self::Axis, Self::Conversion];

    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Stream => "Streams",
            Self::Permute => "Permutes",
            Self::Transpose => "Transposes",
            Self::Axis => "Axes",
            Self::Conversion => "Conversions",
        }
    }
}

/// One operation on arrays of one shape and type.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Case {
    /// Operation, type and shape; no other case of the run has it.
    pub name: String,
    /// What it belongs to.
    pub group: Group,
    /// The operation, or the transpose kernel.
    pub op: String,
    /// Of the elements.
    pub dtype: DType,
    /// Of each operand.
    pub shape: Vec<usize>,
    /// Of a permute: the source's axes in the result's order; of a reduction, the one that goes.
    pub axes: Option<Vec<usize>>,
    /// The type that elements had before, where `dtype` is the result's.
    #[cfg_attr(feature = "serde", serde(default))]
    pub from: Option<DType>,
    /// Bytes that the operation itself reads.
    pub read: u64,
    /// Bytes that it writes.
    pub written: u64,
    /// The kernel that did it; `None` where there was nothing to launch.
    pub kernel: Option<String>,
    /// Whether the result was right; what is wrong is not timed.
    pub verified: bool,
    /// `None` on the software GPU.
    pub times: Option<Times>,
    /// What a launch did to memory, where somebody counted.
    pub counters: Option<Counters>,
    /// The shape that was counted, where the counters are those of fewer elements, multiplied by how many more there are.
    pub counted_shape: Option<Vec<usize>>,
    /// Milliseconds that the model says it takes, of a transpose on a device that the model knows.
    pub predicted_ms: Option<f64>,
}

/// The times of a case.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Times {
    /// Milliseconds of each sample, shortest first.
    pub samples_ms: Vec<f64>,
    /// Milliseconds that half of them took at most.
    pub median_ms: f64,
    /// Milliseconds that a tenth took at most.
    pub p10_ms: f64,
    /// Milliseconds that a quarter took at most.
    pub p25_ms: f64,
    /// Milliseconds that three quarters took at most.
    pub p75_ms: f64,
    /// Milliseconds that nine tenths took at most.
    pub p90_ms: f64,
    /// 10^9 bytes read and written a second, at the median.
    pub gbps: f64,
    /// Against the best of simple kernels for as many bytes read and written.
    pub fraction_of_ceiling: f64,
    /// Against the device's attributes; `None` beyond them, where the L2 cache holds a part.
    pub fraction_of_nominal: Option<f64>,
    /// Whether all samples were queued before the first ran; else the host's gaps between launches are in them.
    pub gapless: bool,
    /// Samples of a throttled device, thrown away.
    pub discarded: usize,
    /// When the samples had been taken.
    pub clocks: Option<Clocks>,
}

impl Times {
    /// Holds a timing against what the device can do for so many bytes.
    pub fn new(timing: &Timing, read: u64, written: u64, peaks: &Peaks) -> Self {
        let gbps = timing.gbps(read + written);
        Self {
            samples_ms: timing.samples_ms().to_vec(),
            median_ms: timing.median_ms(),
            p10_ms: timing.quantile_ms(0.1),
            p25_ms: timing.quantile_ms(0.25),
            p75_ms: timing.quantile_ms(0.75),
            p90_ms: timing.quantile_ms(0.9),
            gbps,
            fraction_of_ceiling: gbps / peaks.ceilings().of(read, written),
            fraction_of_nominal: peaks.fraction_of_nominal(gbps),
            gapless: timing.gapless(),
            discarded: timing.discarded(),
            clocks: timing.clocks(),
        }
    }

    /// What makes them say little, in a word or two: the device was throttled still, or the host's gaps are in them.
    pub fn doubt(&self) -> Option<&'static str> {
        match (self.are_throttled(), self.gapless) {
            (false, true) => None,
            (true, true) => Some("throttled"),
            (false, false) => Some("gaps"),
            (true, false) => Some("throttled, gaps"),
        }
    }

    /// Whether the device was throttled still when they had been taken.
    pub fn are_throttled(&self) -> bool {
        self.clocks.is_some_and(|clocks| clocks.are_throttled())
    }
}

/// A table as text: one heading a column, and as many cells a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The headings.
    pub header: Vec<&'static str>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
}

impl Run {
    /// Whether anything was timed.
    pub fn has_times(&self) -> bool {
        self.cases.iter().any(|case| case.times.is_some())
    }

    /// The cases of a group.
    pub fn group(&self, group: Group) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(move |case| case.group == group)
    }

    /// A line on what ran where and when.
    pub fn heading(&self) -> String {
        let Machine { name, driver_version, .. } = &self.device;
        let low = self.peaks.as_ref().is_some_and(|peaks| peaks.low_clocks);
        let low = if low { "; ceilings measured at low clocks" } else { "" };
        format!("{name}, driver {driver_version}, {}, warpstride {}{low}", self.date, self.version)
    }

    /// The cases of a group as a table: with speeds where there are times, with counters where somebody counted.
    pub fn table(&self, group: Group) -> Table {
        let timed = self.has_times();
        let counted = self.group(group).any(|case| case.counters.is_some());
        let predicted = self.group(group).any(|case| case.predicted_ms.is_some());
        let doubted = self.group(group).any(|case| case.doubt().is_some());
        let mut header = vec!["case", "kernel", "verified"];
        if timed {
            header.extend(["ms", "p10", "p90", "GB/s", "of ceiling", "of nominal", "discarded"]);
        }
        if doubted {
            header.push("doubts");
        }
        if predicted {
            header.push("predicted ms");
        }
        if counted {
            header.extend(["load sectors/request", "store sectors/request", "bank conflicts"]);
        }
        let row = |case: &Case| {
            let mut cells = vec![case.name.clone(), case.kernel.clone().unwrap_or("-".into())];
            cells.push(if case.verified { "yes" } else { "NO" }.into());
            if timed {
                cells.extend(case.speed_cells());
            }
            if doubted {
                cells.push(case.doubt().unwrap_or("-").into());
            }
            if predicted {
                cells.push(number(case.predicted_ms, 4, ""));
            }
            if counted {
                cells.extend(case.counter_cells());
            }
            cells
        };
        Table { header, rows: self.group(group).map(row).collect() }
    }
}

impl Case {
    /// Bytes read and written.
    pub fn bytes(&self) -> u64 {
        self.read.saturating_add(self.written)
    }

    /// What makes its times say little, if anything.
    pub fn doubt(&self) -> Option<&'static str> {
        self.times.as_ref().and_then(Times::doubt)
    }

    fn speed_cells(&self) -> [String; 7] {
        let times = self.times.as_ref();
        [
            number(times.map(|times| times.median_ms), 4, ""),
            number(times.map(|times| times.p10_ms), 4, ""),
            number(times.map(|times| times.p90_ms), 4, ""),
            number(times.map(|times| times.gbps), 1, ""),
            number(times.map(|times| 100.0 * times.fraction_of_ceiling), 1, " %"),
            number(times.and_then(|times| times.fraction_of_nominal).map(|part| 100.0 * part), 1, " %"),
            times.map_or("-".into(), |times| times.discarded.to_string()),
        ]
    }

    fn counter_cells(&self) -> [String; 3] {
        let counters = self.counters.as_ref();
        [
            number(counters.and_then(|counters| counters.global_load.sectors_per_request()), 2, ""),
            number(counters.and_then(|counters| counters.global_store.sectors_per_request()), 2, ""),
            counters.map_or("-".into(), |counters| counters.bank_conflicts().to_string()),
        ]
    }

    /// What the counters say about why it is as fast as it is, in a sentence or two; `None` where nobody counted.
    pub fn why(&self) -> Option<String> {
        let counters = self.counters.as_ref()?;
        let mut reasons = Vec::new();
        let sides = [
            ("load", counters.global_load, self.read, "read"),
            ("store", counters.global_store, self.written, "written"),
        ];
        for (name, global, bytes, done) in sides {
            // What the bytes need, spread over the requests there are.
            let (Some(sectors), enough) =
                (global.sectors_per_request(), bytes as f64 / 32.0 / global.requests.max(1) as f64)
            else {
                continue;
            };
            if sectors > 1.05 * enough.max(1.0) {
                reasons.push(format!(
                    "each {name} of a warp touches {sectors:.1} sectors where {enough:.1} would hold what is {done}, so {:.1} \
                     times the bytes go through the L2 cache",
                    sectors / enough
                ));
            }
        }
        let shared = [counters.shared_load, counters.shared_store];
        let instructions: u64 = shared.iter().map(|shared| shared.instructions).sum();
        if counters.bank_conflicts() > 0 && instructions > 0 {
            let (conflicts, wavefronts) =
                (counters.bank_conflicts(), shared.iter().map(|shared| shared.wavefronts).sum::<u64>());
            reasons.push(format!(
                "{conflicts} of {wavefronts} passes through shared memory are bank conflicts, {:.1} for each access",
                conflicts as f64 / instructions as f64
            ));
        }
        if self.op == "column_loop" {
            reasons.push("every column is a launch of its own, which costs more than what it moves".into());
        }
        if reasons.is_empty() {
            return Some("No sector is wasted and no bank is fought over: memory's speed is what is left.".into());
        }
        let mut text = reasons.join("; ");
        if let Some(first) = text.get(..1).map(str::to_uppercase) {
            text.replace_range(..1, &first);
        }
        Some(text + ".")
    }
}

/// A number in a table, or that there is none.
pub(super) fn number(value: Option<f64>, digits: usize, unit: &str) -> String {
    value.map_or("-".into(), |value| format!("{value:.digits$}{unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::{GlobalCounters, SharedCounters};

    fn transpose(op: &str, store_sectors: u64, conflicts: u64) -> Case {
        let global = |sectors| GlobalCounters { instructions: 32, requests: 32, sectors };
        let wavefronts = 32 + conflicts;
        let counters = Counters {
            global_load: global(128),
            global_store: global(store_sectors),
            shared_load: SharedCounters { instructions: 32, wavefronts, bank_conflicts: conflicts },
            ..Counters::default()
        };
        Case {
            name: op.into(),
            group: Group::Transpose,
            op: op.into(),
            dtype: DType::F32,
            shape: vec![32, 32],
            axes: None,
            from: None,
            read: 4096,
            written: 4096,
            kernel: None,
            verified: true,
            times: None,
            counters: Some(counters),
            counted_shape: None,
            predicted_ms: None,
        }
    }

    #[test]
    fn counters_are_put_into_a_sentence() {
        let naive = transpose("naive", 1024, 0).why().unwrap();
        assert!(naive.starts_with("Each store of a warp touches 32.0 sectors where 4.0"), "{naive}");
        assert!(naive.contains("8.0 times the bytes"), "{naive}");
        let tiled = transpose("tiled", 128, 32 * 31).why().unwrap();
        assert!(tiled.starts_with("992 of 1024 passes") && tiled.contains("31.0 for each access"), "{tiled}");
        assert!(transpose("padded", 128, 0).why().unwrap().starts_with("No sector is wasted"));
        assert_eq!(Case { counters: None, ..transpose("padded", 128, 0) }.why(), None);
    }
}
