//! The time of a launch: GB/s by the bytes that it must move, as a run that is kept and compared.

use crate::export::{self, json, text};
use crate::run::Run;
use anyhow::{Context, Result};
use serde_json::Value;
use warpstride::counters::Counters;
use warpstride::device::Device;
use warpstride::error::{Error, counted};
use warpstride::interp::stop::Reason;
use warpstride::interp::{Footprint, Kernel, Report, Stop};
use warpstride::roofline::measure::{Timing, has_times};
use warpstride::roofline::record::{KernelLaunch, Record, Subject};

use super::super::runs::Kept;
use super::super::{args, bench, kernel_names, output::Output, peaks};
use super::{Launch, Program, ensure_room, require};

/// Timed launches, unless another number was asked for.
const SAMPLES: u16 = 20;
/// The most bytes of a side of the copy that a launch is compared with.
const LARGEST_COPY: u64 = 1 << 30;

/// The measurement that `--time` asks for.
pub(super) struct Time<'a> {
    args: &'a args::Timed,
    pub(super) kept: Kept<'a>,
    date: String,
    /// The file of the kernel, unless a compiler made the PTX.
    ptx: Option<String>,
    kernel: String,
    launch: KernelLaunch,
}

/// The figures of a launch.
pub(super) struct Measured {
    /// Bytes read and written.
    bytes: [u64; 2],
    counters: Option<Counters>,
    /// On a GPU: the times, and GB/s of a copy of the same number of bytes.
    timing: Option<(Timing, Option<f64>)>,
}

impl<'a> Time<'a> {
    /// Reads the run that is compared with, before any work; `None` where no time is asked for.
    pub(super) fn asked(program: &Program, args: &'a args::Launched, kernel: &Kernel) -> Result<Option<Self>> {
        let timed = &args.timed;
        if !timed.time {
            return Ok(None);
        }
        let sets = args.sets.iter().map(ToString::to_string);
        let arguments = args.arguments.iter().map(ToString::to_string).chain(sets).collect();
        let launch = KernelLaunch { grid: args.grid, block: args.block, shared_bytes: args.shared, arguments };
        let mut time = Self {
            args: timed,
            kept: Kept::new(timed.save.as_deref(), timed.compare.as_deref())?,
            date: jiff::Timestamp::now().to_string(),
            ptx: program.compiler.is_none().then(|| program.file.display().to_string()),
            kernel: kernel_names::short(kernel.name()),
            launch,
        };
        time.kept.narrow_to(&time.subject([0; 2]).name())?;
        Ok(Some(time))
    }

    /// Counts a launch on the software GPU.
    pub(super) fn counted(&self, launch: &Launch) -> Result<Report> {
        let buffers = launch.buffers()?;
        // On the host, contents that are made or read, those of the software GPU, and two bits for
        // each byte.
        let bytes = launch.bytes(&buffers);
        let asks = || {
            let kernel = &self.kernel;
            format!("the software GPU cannot count the bytes that `{kernel}` touches; pass them with --bytes")
        };
        ensure_room(bytes, 3, &[]).with_context(asks)?;
        let outcome = launch.silently_on_soft(buffers, u64::MAX).with_context(asks)?;
        match (outcome.stopped, outcome.report) {
            // The kernel goes wrong on a GPU too.
            (Some(stop), _) if !is_beyond_soft(&stop) => Err(Error::from(stop).into()),
            (Some(stop), _) => Err(Error::from(stop)).with_context(asks),
            (None, report) => report.with_context(asks),
        }
    }

    /// Times the launch where that means something; `report` is what the software GPU counted.
    pub(super) fn measure(&self, launch: &Launch, report: Option<&Report>, device: &Device) -> Result<Measured> {
        let bytes = match self.args.bytes {
            Some(bytes) => [bytes.div_ceil(2), bytes / 2].map(|bytes| bytes as u64),
            None => {
                let Footprint { read, written } = report.and_then(|report| report.footprint).unwrap_or_default();
                [read, written]
            }
        };
        let counters = report.map(|report| report.counters);
        if !has_times(device) {
            return Ok(Measured { bytes, counters, timing: None });
        }
        let all = bytes[0].saturating_add(bytes[1]);
        require!(
            all > 0,
            InvalidArgument,
            "`{}` touches no global memory, so it has no bandwidth; pass --bytes with the bytes to divide by its time",
            self.kernel
        );
        let buffers = launch.buffers()?;
        let there_are = buffers.iter().flatten().map(|buffer| buffer.bytes as u64).fold(0, u64::saturating_add);
        let timing = launch.timing(device, buffers, all.min(there_are), self.samples())?;
        let copy = usize::try_from((all / 2).min(LARGEST_COPY)).ok().filter(|&len| len > 0);
        let copy = copy.map(|len| bench::measure::copy_gbps(device, len, self.samples())).transpose()?;
        Ok(Measured { bytes, counters, timing: Some((timing, copy)) })
    }

    /// Prints the times below the title of the launch, or where there are none the bytes below what
    /// was counted; keeps and compares the run.
    pub(super) fn finish(
        self,
        measured: Measured,
        [title, below]: [&str; 2],
        document: Value,
        device: &Device,
        output: &Output,
    ) -> Result<()> {
        let Measured { bytes: bytes @ [read, written], counters, timing } = measured;
        let ceilings = timing.as_ref().map(|_| peaks::known(device, output)).transpose()?;
        let ceilings = ceilings.map(|kept| (kept.peaks, kept.date));
        let record = Record::new(self.subject(bytes), Some(&self.kernel), None);
        let record = Record { samples: self.samples(), launches: Some(1), counters, ..record };
        let record = match timing {
            Some((timing, copy)) => record.timed(&timing, copy, ceilings.as_ref().map(|(peaks, _)| peaks)),
            None => record,
        };
        let mut run = Run::new(device, self.date.clone(), ceilings, vec![record]);
        (run.records.ptx, run.records.policy) = (self.ptx.clone(), None);
        // The line says which bytes are divided by the time.
        let moved = match self.args.bytes {
            Some(bytes) => format!("{} read and written, as --bytes says\n", counted(bytes, "byte")),
            None => {
                let read = counted(read, "byte");
                format!("{read} read and {written} written, each counted once, by the software GPU\n")
            }
        };
        let shown = match run.has_times() {
            true => format!("{title}\n{moved}{}", text::figures(&run, &run.cases[0])),
            false => format!("{below}{moved}{}\n", export::NO_TIMES),
        };
        let mut members = json::document_of_one(&run)?;
        if let Value::Object(launch) = document {
            for (member, value) in launch {
                if !value.is_null() || !members.contains_key(&member) {
                    members.insert(member, value);
                }
            }
        }
        self.kept.finish(&run, shown, members, output)
    }

    fn subject(&self, bytes: [u64; 2]) -> Subject {
        Subject::of_kernel(&self.kernel, self.launch.clone(), bytes)
    }

    fn samples(&self) -> usize {
        usize::from(self.args.samples.unwrap_or(SAMPLES))
    }
}

/// Returns whether a launch stopped for a reason that the software GPU alone has.
fn is_beyond_soft(stop: &Stop) -> bool {
    use Reason::{GridLimit, Launch, LaunchLimit, TooManyCopies, Unsupported, WorkLimit};
    matches!(
        stop.reason,
        GridLimit { .. } | Launch(_) | LaunchLimit { .. } | TooManyCopies { .. } | Unsupported(_) | WorkLimit(_)
    )
}

#[cfg(test)]
mod tests;
