//! The record of a measurement: one operation, its times and its counters.
//!
//! The command line and Criterion's benches make records; tables, charts and documents are drawn
//! from them. A record is flat, as its JSON is: a member is `null` where nothing was timed or
//! counted.

use std::fmt;

use super::measure::{Clocks, Timing};
use super::model::Prediction;
use super::peak::Peaks;
use crate::counters::{Counters, over_ideal};
use crate::element::DType;
use crate::error::counted;
use crate::names::named;

/// The version of every JSON document of this crate. The command line reads documents of versions 1
/// and 2, too.
pub const SCHEMA: u32 = 3;

named! {
    /// Its heading.
    title;

    /// The part of a report that an operation belongs to.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
    pub enum Group {
        /// Fills, copies, arithmetic and reductions of long arrays.
        #[default]
        Stream = "Streams",
        /// Permutes, each by the kernel that is chosen for it.
        Permute = "Permutes",
        /// One matrix transposed by every kernel.
        Transpose = "Transposes",
        /// Operations along an axis: reductions, softmax, mean and variance.
        Axis = "Axes",
        /// Casts, images, and rows by their indices.
        Conversion = "Conversions",
        /// Arrays over several GPUs, whose bytes cross links.
        Distributed = "Several GPUs",
        /// Kernels of users.
        Kernel = "Kernels",
    }
}

impl Group {
    /// All, in the order of reports.
    pub const ALL: [Self; 7] =
        [Self::Stream, Self::Permute, Self::Transpose, Self::Axis, Self::Conversion, Self::Distributed, Self::Kernel];
}

/// An operation on arrays of one shape and type, and its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Subject {
    /// The part of a report that it belongs to.
    pub group: Group,
    /// The operation.
    pub op: String,
    /// The kernel that the caller chose for a transpose.
    pub variant: Option<String>,
    /// Type of the result's elements; `None` for a kernel, whose arguments say what they are.
    pub dtype: Option<DType>,
    /// Type of the source's elements, where it is another.
    pub from: Option<DType>,
    /// Extents of each operand, in elements.
    pub shape: Vec<usize>,
    /// A permute's axes of the source in the result's order; the axis that a reduction removes.
    pub axes: Option<Vec<usize>>,
    /// Elements from one of a strided copy's elements to the next.
    pub step: Option<usize>,
    /// Along each axis of a drawn permute's view, the step of its array from index to index.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub steps: Option<Vec<isize>>,
    /// The axis of the result whose indices have factors and offsets of their own.
    pub channels: Option<usize>,
    /// How a user's kernel is launched.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub launch: Option<KernelLaunch>,
    /// The GPUs that an array is spread over.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub spread: Option<Spread>,
    /// Bytes that the operation itself reads. Where it spreads over several GPUs, this and the
    /// written ones are those that the busiest GPU gets from or stores to its peers.
    pub read: u64,
    /// Bytes that it writes.
    pub written: u64,
    /// Both together.
    pub bytes: u64,
}

impl Subject {
    /// Makes an operation that reads and writes these bytes, with no axes, variant or other type.
    pub fn new(group: Group, op: &str, dtype: DType, shape: &[usize], [read, written]: [u64; 2]) -> Self {
        let (op, dtype, shape, bytes) = (op.into(), Some(dtype), shape.into(), read.saturating_add(written));
        Self { group, op, dtype, shape, read, written, bytes, ..Self::default() }
    }

    /// Makes the launch of a kernel that reads and writes these bytes.
    pub fn of_kernel(kernel: &str, launch: KernelLaunch, [read, written]: [u64; 2]) -> Self {
        Self { dtype: None, launch: Some(launch), ..Self::new(Group::Kernel, kernel, DType::U8, &[], [read, written]) }
    }

    /// Operation, type, shape and whatever else tells it from other operations: `permute u8
    /// 64x56x56x256 by 0,3,1,2`. A kernel's name has its arguments. It has no grid and no block, so
    /// that launches of several shapes can be compared.
    pub fn name(&self) -> String {
        fn listed(numbers: &[impl ToString], between: &str) -> String {
            numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
        }
        let mut name = self.op.clone();
        name += &self.variant.as_ref().map_or(String::new(), |variant| format!(" {variant}"));
        name += &self.from.map_or(String::new(), |from| format!(" {from} to"));
        name += &self.dtype.map_or(String::new(), |dtype| format!(" {dtype} {}", listed(&self.shape, "x")));
        name +=
            &self.launch.iter().flat_map(|launch| &launch.arguments).fold(String::new(), |all, one| all + " " + one);
        let is_permute = matches!(self.group, Group::Permute | Group::Distributed);
        let preposition = if is_permute { "by" } else { "along" };
        name += &self.axes.as_ref().map_or(String::new(), |axes| format!(" {preposition} {}", listed(axes, ",")));
        name += &self.step.map_or(String::new(), |step| format!(" step {step}"));
        name += &self.spread.as_ref().map_or(String::new(), |spread| format!(" {spread}"));
        name += &self.steps.as_ref().map_or(String::new(), |steps| format!(" steps {}", listed(steps, ",")));
        name + &self.channels.map_or(String::new(), |axis| format!(" channels {axis}"))
    }
}

/// How an array is spread over GPUs, before and after an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Spread {
    /// The number of GPUs.
    pub gpus: usize,
    /// The cuts of the source, as the command line has them: `0:4`.
    pub from: String,
    /// The cuts of the result.
    pub to: String,
    /// The engine by which processes exchange messages; `None` if one process has all GPUs.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub engine: Option<String>,
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |cuts: &str| if cuts.is_empty() { "whole".to_owned() } else { cuts.to_owned() };
        write!(f, "from {} to {} over {}", whole(&self.from), whole(&self.to), counted(self.gpus, "GPU"))?;
        self.engine.as_ref().map_or(Ok(()), |engine| write!(f, " by {engine}"))
    }
}

/// How a user's kernel is launched.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct KernelLaunch {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// The arguments, as they are typed on the command line: `f32[1024]=iota`.
    pub arguments: Vec<String>,
}

/// Milliseconds of the samples of an operation.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Milliseconds {
    /// Half of the samples took at most this.
    pub median: f64,
    /// A tenth took at most this.
    pub p10: f64,
    /// A quarter took at most this.
    pub p25: f64,
    /// Three quarters took at most this.
    pub p75: f64,
    /// Nine tenths took at most this.
    pub p90: f64,
}

impl Milliseconds {
    /// The quantiles of a timing.
    pub fn of(timing: &Timing) -> Self {
        let [p10, p25, median, p75, p90] = [0.1, 0.25, 0.5, 0.75, 0.9].map(|q| timing.quantile_ms(q));
        Self { median, p10, p25, p75, p90 }
    }
}

/// A drawn permute, as `bench permute --random` describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Drawn {
    /// The sort of its shape.
    pub kind: String,
    /// The strategy that takes it.
    pub strategy: String,
    /// Bytes of the sectors that it reads and writes. `fraction_of_copy` is compared with a copy of
    /// them.
    pub touched: u64,
}

/// The measurement of one operation.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Record {
    /// [`Subject::name`]; no other record of a run has it.
    pub name: String,
    /// The operation.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub subject: Subject,
    /// The kernel that did it; `None` where there was nothing to launch.
    pub kernel: Option<String>,
    /// True if the result was right; a wrong one is not timed. `None` if the right one is not
    /// known.
    pub verified: Option<bool>,
    /// Timed runs that the caller asked for.
    pub samples: usize,
    /// Its times; `None` on the software GPU, as everything down to `launch_us`.
    pub ms: Option<Milliseconds>,
    /// 10^9 bytes read and written a second, at the median.
    pub gbps: Option<f64>,
    /// GB/s of a copy of the same array in the same run.
    pub copy_gbps: Option<f64>,
    /// The part of that which the operation reaches.
    pub fraction_of_copy: Option<f64>,
    /// The part that it reaches of the best simple kernels for as many bytes read and written.
    pub fraction_of_ceiling: Option<f64>,
    /// The part of the device's attributes; `None` beyond them, where the L2 cache holds a part.
    pub fraction_of_nominal: Option<f64>,
    /// True if each sample found a cold L2 cache.
    pub cold: Option<bool>,
    /// True if all samples were queued before the first ran; else the samples contain the host's
    /// gaps between launches.
    pub gapless: Option<bool>,
    /// Throttled samples that were discarded.
    pub discarded: Option<usize>,
    /// The device's clocks right after the samples.
    pub clocks: Option<Clocks>,
    /// Milliseconds of each sample, shortest first.
    pub samples_ms: Option<Vec<f64>>,
    /// Microseconds from launch to launch, for small arrays.
    pub launch_us: Option<f64>,
    /// The kernels that one run launches, where they were counted; one after another.
    pub launches: Option<u64>,
    /// The memory accesses of one run, where they were counted.
    pub counters: Option<Counters>,
    /// The shape that was counted, where the counters are those of fewer elements, multiplied by
    /// how many more there are.
    pub counted_shape: Option<Vec<usize>>,
    /// The time that a model predicts from the counters.
    pub predicted: Option<Prediction>,
    /// More about a drawn permute.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub drawn: Option<Drawn>,
}

impl Record {
    /// A record without times and counters.
    pub fn new(subject: Subject, kernel: Option<&str>, verified: impl Into<Option<bool>>) -> Self {
        let (name, kernel, verified) = (subject.name(), kernel.map(Into::into), verified.into());
        Self { name, subject, kernel, verified, ..Self::default() }
    }

    /// The record with a timing, which is compared with a copy of `copy_gbps` and with the
    /// ceilings, where they are known.
    #[must_use]
    pub fn timed(self, timing: &Timing, copy_gbps: Option<f64>, peaks: Option<&Peaks>) -> Self {
        let Subject { read, written, bytes, .. } = self.subject;
        let gbps = timing.gbps(bytes);
        Self {
            ms: Some(Milliseconds::of(timing)),
            gbps: Some(gbps),
            copy_gbps,
            fraction_of_copy: copy_gbps.map(|copy| gbps / copy),
            fraction_of_ceiling: peaks.map(|peaks| gbps / peaks.ceilings().of(read, written)),
            fraction_of_nominal: peaks.and_then(|peaks| peaks.fraction_of_nominal(gbps)),
            cold: Some(true),
            gapless: Some(timing.gapless()),
            discarded: Some(timing.discarded()),
            clocks: timing.clocks(),
            samples_ms: Some(timing.samples_ms().to_vec()),
            ..self
        }
    }

    /// A reason to doubt the times, in a word or two: the device was still throttled, or the host's
    /// gaps are in them.
    pub fn doubt(&self) -> Option<&'static str> {
        match (self.is_throttled(), self.gapless.unwrap_or(true)) {
            (false, true) => None,
            (true, true) => Some("throttled"),
            (false, false) => Some("gaps"),
            (true, false) => Some("throttled, gaps"),
        }
    }

    /// Returns whether the device was still throttled right after the samples.
    pub fn is_throttled(&self) -> bool {
        self.clocks.is_some_and(|clocks| clocks.are_throttled())
    }

    /// The sectors that loads touched for each one that would hold the bytes that they asked for.
    pub fn load_sectors_over_ideal(&self) -> Option<f64> {
        let counters = self.counters?;
        over_ideal(counters.global_load.sectors, counters.ideal.global_load)
    }

    /// The same for stores.
    pub fn store_sectors_over_ideal(&self) -> Option<f64> {
        let counters = self.counters?;
        over_ideal(counters.global_store.sectors, counters.ideal.global_store)
    }
}
