//! Why a case is slower than its ceiling, by what the run holds. No reason goes by a case's name.

use std::borrow::Cow;

use super::table::{percent, times};
use super::{Run, counting};
use warpstride::counters::{GlobalCounters, SECTOR_BYTES, SharedCounters, table};
use warpstride::error::counted;
use warpstride::roofline::model::Bound;
use warpstride::roofline::record::Record;

/// Parts of a time that count as the whole: what is left is within the spread of launches.
const MOST: f64 = 0.75;
/// A case that reaches this part of its ceiling is near it.
pub(super) const NEAR: f64 = 0.95;
/// The part of the ceiling by which another case must be faster to show something.
const CLEAR: f64 = 0.2;
/// The least multiple of the ideal sectors that is worth telling.
const WASTE: f64 = 1.05;
/// The least part of a time that makes a cause the reason; a smaller one stands beside.
const LEAST: f64 = 0.25;
/// Microseconds that the start and the end of a launch take at most.
const LAUNCH_US: f64 = 10.0;

/// A reason, what shows it, and what to try.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reason {
    /// The cause, in a few words.
    pub(crate) cause: &'static str,
    /// The cause, in a sentence or two.
    pub(crate) why: String,
    /// The counter or the figure, with its value.
    pub(crate) shown_by: String,
    /// An attempt to make the case faster, in a sentence.
    pub(crate) attempt: Cow<'static, str>,
    /// The part of the time that it explains, about; of the accesses where nothing was timed.
    explains: f64,
}

/// Returns the part of its ceiling that a case reaches, or of a copy where the run has no ceilings.
/// In a run without times, it is the part of the accesses that an ideal kernel would need.
pub(crate) fn part(record: &Record) -> Option<f64> {
    reached(record).map(|(part, _)| part).or_else(|| useful(record))
}

/// The part of a speed that a case reaches, and the speed in words.
fn reached(record: &Record) -> Option<(f64, &'static str)> {
    // Drawn permutes are compared with a copy of their sectors: many are small, or have gaps.
    let beside_copy = record.drawn.as_ref().and(record.fraction_of_copy);
    let of = |part: Option<f64>, speed| Some((part?, speed));
    of(beside_copy, "of a copy of its sectors")
        .or(of(record.fraction_of_ceiling, "of its ceiling"))
        .or(of(record.fraction_of_copy, "of a copy's speed"))
}

/// Returns whether a case is not near its ceiling.
pub(crate) fn is_slow(record: &Record) -> bool {
    part(record).is_some_and(|part| part < NEAR)
}

/// Returns the reason that explains most of a case's time, or says that it is not known.
pub(crate) fn of(run: &Run, record: &Record) -> Reason {
    if let Some(doubt) = doubtful(record) {
        return doubt;
    }
    let causes = [launches(record), lost_by_copy(run, record), gaps(record), conflicts(run, record)];
    let causes = causes.into_iter().chain([sectors(record, true), sectors(record, false)]).flatten();
    let most = causes.max_by(|a, b| a.explains.total_cmp(&b.explains));
    let has_part = |cause: &Reason| cause.explains >= LEAST || record.ms.is_none();
    let (main, aside) =
        most.map_or((None, None), |cause| if has_part(&cause) { (Some(cause), None) } else { (None, Some(cause)) });
    // Small requests do not answer better where a part of the accesses is waste.
    let known = main
        .or_else(|| another_kernel(run, record))
        .or_else(|| small_requests(run, record).filter(|_| aside.is_none()));
    let is_known = known.is_some();
    let mut reason = known.unwrap_or_else(|| unexplained(record));
    if let Some(aside) = aside {
        reason.why = format!(
            "{} {} That explains {} of the time at most.",
            reason.why,
            aside.why,
            percent(Some(aside.explains))
        );
        reason.shown_by = aside.shown_by;
    } else if record.ms.is_some() && record.counters.is_some() && is_known && reason.explains < MOST {
        reason.why += " Nothing in the counters explains the rest.";
    }
    if let Some(shape) = &record.counted_shape {
        reason.shown_by += &format!("; counted at {shape:?}, where the accesses are of the same kinds, and multiplied");
    }
    reason
}

fn doubtful(record: &Record) -> Option<Reason> {
    let doubt = record.doubt()?;
    Some(Reason {
        cause: "doubtful times",
        why: if record.is_throttled() {
            "The clocks stayed low while the case was measured, so its times say little.".into()
        } else {
            "Not all launches were queued before the first ran, so times of the host are in those of the case.".into()
        },
        shown_by: format!("the doubt {doubt}"),
        attempt: "Measure the case again on a device that does nothing else.".into(),
        explains: 1.0,
    })
}

/// Launches one after the other, each with too little to move.
fn launches(record: &Record) -> Option<Reason> {
    let predicted = record.predicted.filter(|predicted| predicted.bound == Bound::Launches)?;
    let ms = record.ms.map_or(predicted.ms, |ms| ms.median);
    Some(Reason {
        cause: "launches",
        why: format!(
            "The kernel is launched many times, one launch after the other: by the model the launches alone take {:.4} ms, longer \
             than the bytes need, and the case took {ms:.4} ms.",
            predicted.ms
        ),
        shown_by: format!("the model's time of all launches, {:.4} ms", predicted.ms),
        attempt: "Let one launch move the whole array: give the grid a dimension in place of the host's loop.".into(),
        explains: predicted.ms / ms,
    })
}

/// A copy that loses as much time: few bytes, so that the start and the end of a launch weigh, or
/// a device that is slow for this array.
fn lost_by_copy(run: &Run, record: &Record) -> Option<Reason> {
    let (peaks, ms, part) = (run.peaks.as_ref()?, record.ms?.median, record.fraction_of_ceiling?);
    let bytes = record.subject.bytes as f64;
    // GB/s to bytes a millisecond.
    let of_copy = bytes / (record.copy_gbps? * 1e6);
    let (lost, lost_by_copy) = (ms * (1.0 - part), of_copy - bytes / (peaks.copy.gbps * 1e6));
    if lost_by_copy <= 0.02 * ms || lost >= 1.25 * lost_by_copy {
        return None;
    }
    let both = format!("A copy of the same array takes {of_copy:.4} ms, and this case {ms:.4} ms");
    let shown_by =
        format!("of copy {}; {:.1} us beyond the ceiling's time", percent(record.fraction_of_copy), 1e3 * lost);
    Some(if 1e3 * lost_by_copy <= LAUNCH_US {
        Reason {
            cause: "launch",
            why: format!(
                "{both}: with {}, the start and the end of a launch weigh, when few bytes are on their way.",
                size(record.subject.bytes)
            ),
            shown_by,
            attempt: "Move several arrays by one launch. A faster kernel gains little at this size.".into(),
            explains: 1.0,
        }
    } else {
        Reason {
            cause: "a slow copy",
            why: format!(
                "{both}. The copy itself is slow: it takes {:.1} us longer than at its ceiling, and a launch accounts for \
                 {LAUNCH_US:.0} us at most.",
                1e3 * lost_by_copy
            ),
            shown_by,
            attempt: "Measure the case and the ceilings again (bench --all) on a device that does nothing else.".into(),
            explains: 1.0,
        }
    })
}

/// Bytes in a unit that suits them.
fn size(bytes: u64) -> String {
    if bytes < 1 << 20 { format!("{} KiB", bytes.div_ceil(1 << 10)) } else { format!("{} MiB", bytes >> 20) }
}

/// Elements with gaps between them, whose sectors move whole.
fn gaps(record: &Record) -> Option<Reason> {
    let (step, width) = (record.subject.step? as u64, record.subject.dtype?.width() as u64);
    let moved = step.min(SECTOR_BYTES.div_ceil(width));
    let times_bytes = weighted(record, moved as f64, true)?;
    (moved > 1).then(|| Reason {
        cause: "bytes beyond the ideal",
        why: format!(
            "Memory moves whole sectors of {SECTOR_BYTES} bytes, and this case uses one element in {step}: {} the \
             bytes of the operation move{}.",
            times(times_bytes),
            record.gbps.map_or(String::new(), |gbps| format!(", at {:.0} GB/s", gbps * times_bytes))
        ),
        shown_by: format!("step {step} of elements of {}", counted(width, "byte")),
        attempt: "Keep together the elements that are used together, so that sectors hold nothing else.".into(),
        explains: explained(record, times_bytes),
    })
}

/// The multiple of all bytes that moves where one side, the loads or the stores, moves `multiple`
/// of its own.
fn weighted(record: &Record, multiple: f64, is_load: bool) -> Option<f64> {
    let [read, written] = [record.subject.read, record.subject.written].map(|bytes| bytes as f64);
    let [side, other] = if is_load { [read, written] } else { [written, read] };
    (side + other > 0.0).then(|| (multiple * side + other) / (side + other))
}

/// Sectors of 32 bytes that loads or stores touch beyond those that their bytes fill.
fn sectors(record: &Record, is_load: bool) -> Option<Reason> {
    let (global, waste) = waste(record, is_load)?;
    let requests = global.requests.max(1) as f64;
    let touched = global.sectors as f64 / requests;
    let (access, name, way) = if is_load {
        (
            "load",
            "global_load.sectors",
            "Let neighbouring threads load neighbouring addresses, for example into a tile in shared memory.",
        )
    } else {
        (
            "store",
            "global_store.sectors",
            "Let neighbouring threads store to neighbouring addresses, for example from a tile in shared memory.",
        )
    };
    (waste > WASTE).then(|| Reason {
        cause: "bytes beyond the ideal",
        why: format!(
            "Each {access} of a warp, 32 threads, touches {touched:.1} sectors of {SECTOR_BYTES} bytes where {:.1} would hold its bytes, so \
             {waste:.1} times the bytes of {access}s move.",
            touched / waste
        ),
        shown_by: format!("sectors/ideal {} of {access}s; {}", times(waste), counter(name, global.sectors)),
        attempt: way.into(),
        explains: match record.predicted.zip(record.ms) {
            Some((predicted, ms)) if predicted.bound == Bound::L2 => (predicted.ms / ms.median).min(1.0),
            // The model says that sectors are not the limit.
            Some((predicted, _)) if predicted.bound != Bound::Memory => 0.0,
            _ => explained(record, weighted(record, waste, is_load).unwrap_or(waste)),
        },
    })
}

/// The counters of loads or stores, and their sectors for each that is needed.
fn waste(record: &Record, is_load: bool) -> Option<(GlobalCounters, f64)> {
    let counters = record.counters?;
    let (global, ideal, bytes) = if is_load {
        (counters.global_load, counters.ideal.global_load, record.subject.read)
    } else {
        (counters.global_store, counters.ideal.global_store, record.subject.written)
    };
    // Documents of earlier versions have no ideal: the sectors that the bytes need, one a request
    // at least.
    let needed = if counters.ideal.sectors() > 0 { ideal } else { bytes.div_ceil(SECTOR_BYTES).max(global.requests) };
    (needed > 0).then(|| (global, global.sectors as f64 / needed as f64))
}

/// Passes through shared memory beyond those that the widths of the accesses need.
fn conflicts(run: &Run, record: &Record) -> Option<Reason> {
    let counters = record.counters?;
    let all = counters.shared();
    let kinds = [
        ("load", "shared_load.bank_conflicts", counters.shared_load),
        ("store", "shared_store.bank_conflicts", counters.shared_store),
    ];
    let atomics = ("atomic", "shared_atomic.bank_conflicts", counters.shared_atomic);
    let (access, name, worst) =
        kinds.into_iter().fold(atomics, |a, b| if b.2.bank_conflicts >= a.2.bank_conflicts { b } else { a });
    let SharedCounters { instructions, wavefronts, bank_conflicts } = worst;
    if bank_conflicts == 0 || instructions == 0 {
        return None;
    }
    // Each multiprocessor makes one pass a clock, and takes a request to its L1 cache in one.
    let passes: f64 =
        [all.wavefronts, counters.global_load.requests, counters.global_store.requests].map(|n| n as f64).iter().sum();
    let needed = clocks_a_ms(run, record).zip(record.ms).map(|(clocks, ms)| (passes / clocks, ms.median));
    let said = needed
        .map_or(String::new(), |(needed, ms)| format!(" All passes together need {needed:.4} of the {ms:.4} ms."));
    Some(Reason {
        cause: "bank conflicts",
        why: format!(
            "Each {access} of a warp takes {:.1} passes through shared memory where {:.1} would do, because lanes need different \
             words of one bank.{said}",
            wavefronts as f64 / instructions as f64,
            wavefronts.saturating_sub(bank_conflicts) as f64 / instructions as f64
        ),
        shown_by: counter(name, bank_conflicts),
        attempt: "Give each row of the tile a word more, or swizzle its columns, so that the lanes of a warp use different banks.".into(),
        explains: match needed {
            Some((needed, ms)) => (needed / ms).min(1.0),
            None => explained(
                record,
                all.wavefronts as f64 / all.wavefronts.saturating_sub(all.bank_conflicts).max(1) as f64,
            ),
        },
    })
}

/// A case that moves as much for each element by another kernel, and clearly faster: all there is
/// where nothing was counted.
fn another_kernel(run: &Run, record: &Record) -> Option<Reason> {
    if record.counters.is_some() || has_gaps(record) {
        return None;
    }
    record.ms?;
    let ((reached, speed), mix) = (self::reached(record)?, mix(record)?);
    let this = rate(run, record);
    let is_like = |other: &&Record| {
        let sizes = other.subject.bytes as f64 / record.subject.bytes as f64;
        other.kernel != record.kernel
            && other.doubt().is_none()
            && !has_gaps(other)
            && rate(run, other).zip(this).is_none_or(|(other, this)| other > this)
            && self::mix(other) == Some(mix)
            && (0.25..=4.0).contains(&sizes)
    };
    let of_speed = |other| self::reached(other).filter(|reached| reached.1 == speed);
    let others = run.cases.iter().filter(is_like).filter_map(|other| Some((of_speed(other)?.0, other)));
    let (best, other) = others.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|other| other.0 > reached + CLEAR)?;
    let rates = this.zip(rate(run, other));
    Some(Reason {
        cause: "the kernel, not the bytes",
        why: format!(
            "By another kernel, {} moves as many bytes for each element, and reaches {} {speed}. So the bytes are not the limit: the kernel or its \
             order of accesses is. Nothing was counted of this case, so the run does not tell wasted sectors from too many \
             instructions or too few bytes in flight.",
            other.name,
            percent(Some(best))
        ),
        shown_by: rates.map_or("the times of both".into(), |(this, other)| {
            format!("elements a clock of a multiprocessor: {this:.1} here, {other:.1} there")
        }),
        attempt: format!("{} Let each thread move several neighbouring elements.", to_count(record)).into(),
        explains: 1.0,
    })
}

/// Returns whether elements that are not used lie between those of a case.
fn has_gaps(record: &Record) -> bool {
    record.subject.step.is_some_and(|step| step > 1)
        || record.drawn.as_ref().is_some_and(|drawn| drawn.touched > record.subject.bytes)
}

/// Bytes that an element has in the source and in the result, and the percent that is written.
fn mix(record: &Record) -> Option<(usize, usize, u128)> {
    let subject = &record.subject;
    let dtype = subject.dtype?;
    let written = (100 * u128::from(subject.written)).checked_div(subject.bytes.into())?;
    Some((subject.from.unwrap_or(dtype).width(), dtype.width(), written))
}

/// Elements that a multiprocessor moves in a clock.
fn rate(run: &Run, record: &Record) -> Option<f64> {
    let elements: f64 = record.subject.shape.iter().map(|&extent| extent as f64).product();
    Some(elements / record.ms?.median / clocks_a_ms(run, record)?)
}

/// Clocks of all multiprocessors together in a millisecond.
fn clocks_a_ms(run: &Run, record: &Record) -> Option<f64> {
    let clocks = record.clocks.or(run.clocks)?;
    let clocks = f64::from(run.device.multiprocessors) * f64::from(clocks.sm_mhz) * 1e3;
    (clocks > 0.0).then_some(clocks)
}

/// Requests of fewer bytes than those of a faster case.
fn small_requests(run: &Run, record: &Record) -> Option<Reason> {
    let (size, reached) = (bytes_a_request(record)?, record.fraction_of_ceiling?);
    let is_like =
        |other: &&Record| other.subject.bytes == record.subject.bytes && other.fraction_of_ceiling > Some(reached);
    let others = run.cases.iter().filter(is_like).filter_map(|other| Some((bytes_a_request(other)?, other)));
    let (larger, other) = others.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|other| other.0 >= 2.0 * size)?;
    Some(Reason {
        cause: "maybe too few bytes in flight",
        why: format!(
            "No sector is wasted, and no bank is fought over. Each request of a warp carries {size:.0} bytes, and {larger:.0} in \
             {}, which reaches {}. Maybe too few bytes are on their way at once.",
            other.name,
            percent(other.fraction_of_ceiling)
        ),
        shown_by: format!("{size:.0} bytes a request of global_load and global_store"),
        attempt: "Let each thread move several elements or a vector of up to 16 bytes, and start all loads before the first store.".into(),
        explains: 0.0,
    })
}

fn bytes_a_request(record: &Record) -> Option<f64> {
    let counters = record.counters?;
    let requests = counters.global_load.requests as f64 + counters.global_store.requests as f64;
    (requests > 0.0).then(|| record.subject.bytes as f64 / requests)
}

fn unexplained(record: &Record) -> Reason {
    let is_counted = record.counters.is_some();
    Reason {
        cause: "not known",
        why: if is_counted {
            "Nothing in the counters explains most of the time."
        } else {
            "Nothing was counted of this case, so the run does not say why."
        }
        .into(),
        shown_by: if is_counted { "all sectors and passes are needed" } else { "no counter" }.into(),
        attempt: if is_counted {
            "Compare it with other types, shapes and kernels, and look at stalls in a profiler.".into()
        } else {
            to_count(record).into()
        },
        explains: 0.0,
    }
}

/// Says how a case is counted.
fn to_count(record: &Record) -> String {
    let how = counting::command(&record.subject).map_or(String::new(), |command| format!(": {command}"));
    format!("Count the accesses of a small case of the kind on the software GPU{how}.")
}

/// The part of the time that this multiple of the bytes explains; of the accesses, where nothing
/// was timed.
fn explained(record: &Record, multiple: f64) -> f64 {
    let part = record.ms.and_then(|_| part(record));
    part.map_or(1.0 - 1.0 / multiple, |part| (part * multiple).min(1.0))
}

/// The part of the accesses that an ideal kernel would need.
fn useful(record: &Record) -> Option<f64> {
    let shared = record.counters?.shared();
    let passes = (shared.wavefronts > 0).then(|| 1.0 - shared.bank_conflicts as f64 / shared.wavefronts as f64);
    let sectors = [true, false].map(|is_load| waste(record, is_load).map(|(_, waste)| 1.0 / waste.max(1.0)));
    sectors.into_iter().chain([passes]).flatten().min_by(f64::total_cmp)
}

/// A counter, its value, and its metric in Nsight Compute.
fn counter(name: &str, value: u64) -> String {
    let metric = table::counters().find(|counter| counter.name() == name).map(|counter| counter.metric());
    format!("{name} {value} (in Nsight Compute {})", metric.unwrap_or_default())
}
