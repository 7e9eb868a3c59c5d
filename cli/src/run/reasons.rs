//! Why a case is slower than its ceiling, by what the run holds. No reason goes by a case's name.

use std::borrow::Cow;

use super::Run;
use super::causes::{self, Word};
use super::figures::{code, percent, time};
use super::index::Index;
use super::launches;
use warpstride::roofline::record::Record;

/// A case that reaches this part of its ceiling is near it.
pub(super) const NEAR: f64 = 0.95;
/// The part of the ceiling by which another case must be faster to show something.
pub(super) const CLEAR: f64 = 0.2;
/// The least multiple of the ideal sectors that is worth telling.
pub(super) const WASTE: f64 = 1.05;
/// The least part of a time that makes a cause the reason; a smaller one stands beside.
const LEAST: f64 = 0.25;
/// Microseconds that the start and the end of a launch take at most.
pub(super) const LAUNCH_US: f64 = 10.0;

/// The speeds that a case is compared with, in words.
pub(super) const OF_CEILING: &str = "of its ceiling";
const OF_COPY: &str = "of a copy's speed";
/// An array over several GPUs is compared with a push of as many bytes over their links.
const OF_PUSH: &str = "of a flat push";
/// Between processes it is compared with an all-to-all.
const OF_ALL_TO_ALL: &str = "of an all-to-all";
const OF_SECTORS: &str = "of a copy of its sectors";

/// A name in code type that leads to a case.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Link {
    pub(crate) text: String,
    /// The place of the case in the run.
    pub(crate) case: usize,
}

/// A reason, what shows it, and what to try.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Reason {
    /// The cause, in a few words.
    pub(crate) cause: &'static str,
    /// The figures of this case alone, in a few words.
    pub(crate) figures: Option<String>,
    /// The cause, in a sentence or two.
    pub(crate) why: String,
    /// The time of the bytes alone, and the part of the case's time that the cause explains.
    pub(crate) share: Option<String>,
    /// The counter or the figure, with its value.
    pub(crate) shown_by: String,
    /// An attempt to make the case faster, in sentences.
    pub(crate) attempt: Cow<'static, str>,
    /// The steps of the attempt, if it has several.
    pub(crate) steps: &'static [&'static str],
    /// The stalls of the last step, each with what to do.
    pub(crate) stalls: &'static [&'static str],
    /// The command of the attempt, or of its first step.
    pub(crate) command: Option<String>,
    /// The cases that the sentences name.
    pub(crate) links: Vec<Link>,
    /// The limit that comes next, in sentences.
    pub(crate) next: Option<String>,
    /// The words that need a meaning.
    pub(crate) words: &'static [Word],
    /// True where the run does not show the cause.
    pub(super) is_unknown: bool,
    /// True where a copy of as many bytes is as slow, so that no kernel is at fault.
    pub(crate) is_small: bool,
    /// The part of the time that it explains, about; of the accesses where nothing was timed.
    pub(super) explains: f64,
}

/// Returns the part of its ceiling that a case reaches, or of a copy where the run has no ceilings.
/// In a run without times, it is the part of the accesses that an ideal kernel would need.
pub(crate) fn part(record: &Record) -> Option<f64> {
    reached(record).map(|(part, _)| part).or_else(|| useful(record))
}

/// The part of a speed that a case reaches, and the speed in words.
pub(super) fn reached(record: &Record) -> Option<(f64, &'static str)> {
    // Drawn permutes are compared with a copy of their sectors: many are small, or have gaps.
    let beside_copy = record.drawn.as_ref().and(record.fraction_of_copy);
    let of = |part: Option<f64>, speed| Some((part?, speed));
    of(beside_copy, OF_SECTORS).or(of(record.fraction_of_ceiling, OF_CEILING)).or(of(
        record.fraction_of_copy,
        match &record.subject.spread {
            Some(spread) if spread.engine.is_some() => OF_ALL_TO_ALL,
            Some(_) => OF_PUSH,
            None => OF_COPY,
        },
    ))
}

/// The milliseconds that a case would take at that speed.
pub(super) fn moving_ms(record: &Record) -> Option<f64> {
    Some(record.ms?.median * reached(record)?.0)
}

/// Returns whether that speed is the one of a copy of the same sectors.
pub(super) fn is_beside_sectors(record: &Record) -> bool {
    reached(record).is_some_and(|(_, speed)| speed == OF_SECTORS)
}

/// Returns whether a case is the copy that others are compared with.
pub(super) fn is_the_copy(record: &Record) -> bool {
    record.gbps.is_some() && record.gbps == record.copy_gbps
}

/// Returns the reason that explains most of a case's time, or says that it is not known.
pub(super) fn of(index: &Index<'_>, record: &Record) -> Reason {
    let run = index.run;
    if let Some(doubt) = causes::doubtful(record) {
        return doubt;
    }
    let accesses = || {
        [causes::conflicts(run, record), causes::sectors(record, true), causes::sectors(record, false)]
            .into_iter()
            .flatten()
    };
    let many = launches::launches(index, record);
    let is_many = many.is_some();
    let others = [many, causes::lost_by_copy(run, record), causes::gaps(record)].into_iter().flatten();
    let most = others.chain(accesses()).max_by(|a, b| a.explains.total_cmp(&b.explains));
    let has_part = |cause: &Reason| cause.explains >= LEAST || record.ms.is_none();
    let (main, aside) =
        most.map_or((None, None), |cause| if has_part(&cause) { (Some(cause), None) } else { (None, Some(cause)) });
    // Small requests do not answer better where a part of the accesses is waste.
    let known = main
        .or_else(|| causes::another_kernel(index, record))
        .or_else(|| causes::small_requests(index, record).filter(|_| aside.is_none()));
    let mut reason = known.unwrap_or_else(|| causes::unexplained(record));
    if let Some(aside) = aside {
        reason.why = format!("{} {}", reason.why, aside.why);
        (reason.share, reason.shown_by, reason.words) = (aside.share, aside.shown_by, aside.words);
    }
    if is_many && reason.figures.is_some() {
        // Launches hide the waste of each.
        if let Some(next) = accesses().max_by(|a, b| a.explains.total_cmp(&b.explains)) {
            reason.next =
                Some(format!("The next limit is {}. {}. {}", next.cause.to_lowercase(), next.shown_by, next.attempt));
            reason.words = next.words;
        }
    }
    if let Some(counted) = counted_elsewhere(record) {
        reason.shown_by += &counted;
    }
    if let Some((example, link)) = example(index, record).filter(|_| !reason.is_small) {
        match &mut reason.next {
            // One launch alone is not as fast.
            Some(next) => *next += &format!(" {example}"),
            None if reason.stalls.is_empty() => reason.attempt = format!("{} {example}", reason.attempt).into(),
            // A list follows the attempt.
            None => reason.attempt = format!("{example} {}", reason.attempt).into(),
        }
        reason.links.push(link);
    }
    reason
}

/// Says of which shape the counters are, where it is another one.
fn counted_elsewhere(record: &Record) -> Option<String> {
    let elements = |shape: &[usize]| shape.iter().map(|&extent| extent as f64).product::<f64>();
    let counted = record.counted_shape.as_deref()?;
    let listed = counted.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
    let multiple = elements(&record.subject.shape) / elements(counted);
    let multiple = if multiple.is_finite() { format!(", multiplied by {multiple:.0}") } else { String::new() };
    Some(format!(". The counts are those of an array of {listed}{multiple}"))
}

/// Names the fastest other kernel for the same operation on the same array, if it is clearly
/// faster.
fn example(index: &Index<'_>, record: &Record) -> Option<(String, Link)> {
    let ((best, case), (_, speed)) = (index.faster(record)?, reached(record)?);
    let other = &index.run.cases[case];
    let kernel = kernel_name(other)?;
    let text = format!(
        "On the same array, the kernel {} takes {} and reaches {} {speed}.",
        code(kernel),
        time(other.ms?.median),
        percent(best)
    );
    Some((text, Link { text: kernel.into(), case }))
}

/// The short name of a case's kernel.
pub(super) fn kernel_name(record: &Record) -> Option<&str> {
    record.subject.variant.as_deref().or(record.kernel.as_deref())
}

/// A case without gaps that moves as many bytes for each element by another kernel, clearly faster,
/// and the elements of both for each clock of a multiprocessor.
pub(super) fn faster_peer(index: &Index<'_>, record: &Record) -> Option<(usize, Option<(f64, f64)>)> {
    if record.counters.is_some() || has_gaps(record) {
        return None;
    }
    record.ms?;
    let this = rate(index.run, record);
    let is_faster = |other: &Record| rate(index.run, other).zip(this).is_none_or(|(other, this)| other > this);
    let at = index.faster_peer(record, is_faster)?;
    Some((at, this.zip(rate(index.run, &index.run.cases[at]))))
}

/// Returns whether elements that are not used lie between those of a case.
pub(super) fn has_gaps(record: &Record) -> bool {
    record.subject.step.is_some_and(|step| step > 1)
        || record.drawn.as_ref().is_some_and(|drawn| drawn.touched > record.subject.bytes)
}

/// Bytes that an element has in the source and in the result, and the percent that is written.
pub(super) fn mix(record: &Record) -> Option<(usize, usize, u128)> {
    let subject = &record.subject;
    let dtype = subject.dtype?;
    let written = (100 * u128::from(subject.written)).checked_div(subject.bytes.into())?;
    Some((subject.from.unwrap_or(dtype).width(), dtype.width(), written))
}

/// The bytes that a request carries on average.
pub(super) fn bytes_a_request(record: &Record) -> Option<f64> {
    let counters = record.counters?;
    let requests = counters.global_load.requests as f64 + counters.global_store.requests as f64;
    (requests > 0.0).then(|| record.subject.bytes as f64 / requests)
}

/// Elements that a multiprocessor moves in a clock.
fn rate(run: &Run, record: &Record) -> Option<f64> {
    let elements: f64 = record.subject.shape.iter().map(|&extent| extent as f64).product();
    Some(elements / record.ms?.median / clocks_a_ms(run, record)?)
}

/// Clocks of all multiprocessors together in a millisecond.
pub(super) fn clocks_a_ms(run: &Run, record: &Record) -> Option<f64> {
    let clocks = record.clocks.or(run.clocks)?;
    let clocks = f64::from(run.device.multiprocessors) * f64::from(clocks.sm_mhz) * 1e3;
    (clocks > 0.0).then_some(clocks)
}

/// The part of the accesses that an ideal kernel would need.
fn useful(record: &Record) -> Option<f64> {
    let shared = record.counters?.shared();
    let passes = (shared.wavefronts > 0).then(|| 1.0 - shared.bank_conflicts as f64 / shared.wavefronts as f64);
    let sectors = [true, false].map(|is_load| causes::waste(record, is_load).map(|(_, waste)| 1.0 / waste.max(1.0)));
    sectors.into_iter().chain([passes]).flatten().min_by(f64::total_cmp)
}
