//! The causes that make a case slow: each with what shows it, the time that it explains, and what
//! to try. No cause goes by a case's name.

use super::figures::{code, of_time, ordinal, percent, short, thousands, time, with_unit};
use super::index::Index;
use super::reasons::{
    LAUNCH_US, Link, Reason, WASTE, bytes_a_request, clocks_a_ms, is_beside_sectors, is_the_copy, moving_ms, reached,
};
use super::{Run, counting};
use warpstride::counters::{GlobalCounters, SECTOR_BYTES, SharedCounters, table};
use warpstride::error::counted;
use warpstride::roofline::model::Bound;
use warpstride::roofline::record::Record;

/// A word of the reasons, with its meaning in a sentence.
pub(crate) type Word = &'static str;

const SECTOR: Word = "A sector is 32 bytes, the piece in which the GPU moves memory.";
const REQUEST: Word = "A request is one load or store of a warp; the warp's 32 threads are its lanes.";
const UNCOALESCED: Word = "Uncoalesced accesses are those whose lanes touch more sectors than their bytes fill.";
const BANK: Word = "Shared memory has 32 banks, each 4 bytes wide. A bank serves one of its words at a time.";
const WAVEFRONT: Word = "Nsight Compute calls a pass of a request through shared memory a wavefront.";
const IN_FLIGHT: Word = "Bytes in flight are those that loads asked for and that have not arrived.";

/// A part of a time that is within the spread of launches.
const SPREAD: f64 = 0.05;

pub(super) fn doubtful(record: &Record) -> Option<Reason> {
    let doubt = record.doubt()?;
    Some(Reason {
        cause: "Doubtful times",
        why: if record.is_throttled() {
            "The clocks stayed low while the case was measured, so its times say little.".into()
        } else {
            "Not all launches were queued before the first ran, so times of the host are in those of the case.".into()
        },
        shown_by: format!("The doubt {doubt}"),
        attempt: "Measure the case again on a device that does nothing else.".into(),
        explains: 1.0,
        ..Reason::default()
    })
}

/// A copy that loses as much time: few bytes, so that the start and the end of a launch weigh, or
/// a device that is slow for this array.
pub(super) fn lost_by_copy(run: &Run, record: &Record) -> Option<Reason> {
    let (peaks, ms, part) = (run.peaks.as_ref()?, record.ms?.median, record.fraction_of_ceiling?);
    let bytes = record.subject.bytes as f64;
    // GB/s to bytes a millisecond.
    let of_copy = bytes / (record.copy_gbps? * 1e6);
    let (lost, lost_by_copy) = (ms * (1.0 - part), of_copy - bytes / (peaks.copy.gbps * 1e6));
    if lost_by_copy <= 0.02 * ms || lost >= 1.25 * lost_by_copy {
        return None;
    }
    let both = if is_the_copy(record) {
        format!("This case is a copy itself, and takes {}", time(ms))
    } else {
        format!("A copy of as many bytes takes {}, and this case {}", time(of_copy), time(ms))
    };
    let shown_by = format!("{} beyond the time at the ceiling", time(lost));
    let is_small = 1e3 * lost_by_copy <= LAUNCH_US;
    let share = Some(format!("The bytes alone need {}; a copy loses as much time.", of_time(ms * part, ms)));
    let reason = Reason { shown_by, share, is_small, explains: 1.0, ..Reason::default() };
    Some(if is_small {
        Reason {
            cause: "The start and the end of a launch",
            why: format!("{both}. The start and the end of a launch take about {} of it.", time(lost_by_copy)),
            attempt: "Move several arrays by one launch. A faster kernel gains little at this size.".into(),
            ..reason
        }
    } else {
        Reason {
            cause: "A slow copy",
            why: format!(
                "{both}. The copy is slow: it takes {} longer than at its ceiling, and a launch accounts for {} at most.",
                time(lost_by_copy),
                time(LAUNCH_US / 1e3)
            ),
            attempt: "Measure the case and the ceilings again (bench --all) on a device that does nothing else.".into(),
            ..reason
        }
    })
}

/// Elements with gaps between them, whose sectors move whole.
pub(super) fn gaps(record: &Record) -> Option<Reason> {
    let (step, width) = (record.subject.step? as u64, record.subject.dtype?.width() as u64);
    let moved = step.min(SECTOR_BYTES.div_ceil(width));
    let multiple = 1.0 + (moved as f64 - 1.0) * side(record, true)?;
    (moved > 1).then(|| Reason {
        cause: "Gaps between the elements",
        why: format!(
            "Memory moves whole sectors, and this case uses every {} element, so {} the bytes of the operation move.",
            ordinal(step as usize),
            counted(short(multiple), "time")
        ),
        share: share(record, multiple, "the unused bytes"),
        shown_by: format!("The shape of the case: step {step} of elements of {}", counted(width, "byte")),
        attempt: "Keep together the elements that are used together, so that sectors hold nothing else.".into(),
        words: &[SECTOR],
        explains: explained(record, multiple),
        ..Reason::default()
    })
}

/// The part of all bytes that loads read, or that stores write.
pub(super) fn side(record: &Record, is_load: bool) -> Option<f64> {
    let [read, written] = [record.subject.read, record.subject.written].map(|bytes| bytes as f64);
    (read + written > 0.0).then(|| if is_load { read } else { written } / (read + written))
}

/// Sectors of 32 bytes that loads or stores touch beyond those that their bytes fill.
pub(super) fn sectors(record: &Record, is_load: bool) -> Option<Reason> {
    let (global, waste) = waste(record, is_load)?;
    let touched = global.sectors as f64 / global.requests.max(1) as f64;
    let (cause, access, name, way) = if is_load {
        (
            "Uncoalesced loads",
            "load",
            "global_load.sectors",
            "Let neighbouring threads load neighbouring addresses, for example into a tile in shared memory.",
        )
    } else {
        (
            "Uncoalesced stores",
            "store",
            "global_store.sectors",
            "Let neighbouring threads store to neighbouring addresses, for example from a tile in shared memory.",
        )
    };
    let multiple = 1.0 + (waste - 1.0) * side(record, is_load).unwrap_or(1.0);
    // The model's limit is sectors, or the lines of 128 bytes that requests store.
    let by_l2 = if is_load {
        "the extra sectors, which the L2 cache passes on,"
    } else {
        "the extra sectors, and the lines of 128 bytes that the L2 cache takes one at a time,"
    };
    let by_model = record.predicted.zip(record.ms).filter(|(predicted, _)| predicted.bound == Bound::L2);
    (waste > WASTE).then(|| Reason {
        cause,
        why: format!(
            "The lanes of a warp {access} at addresses far apart, so {} the bytes of {access}s move.",
            counted(short(waste), "time")
        ),
        share: match by_model {
            Some((predicted, ms)) => account(record, predicted.ms.min(ms.median), by_l2, " by the model"),
            None => share(record, multiple, "the extra sectors"),
        },
        shown_by: format!(
            "{COUNTED} {} for each of {}, where {} would hold the bytes of a request ({})",
            counted(short(touched), "sector"),
            counted(thousands(global.requests), "request"),
            short(touched / waste),
            counter(name, global.sectors)
        ),
        attempt: way.into(),
        words: &[SECTOR, REQUEST, UNCOALESCED],
        explains: match record.predicted.zip(record.ms) {
            Some((predicted, _)) if predicted.bound == Bound::L2 => beyond_bytes(record, predicted.ms).unwrap_or(0.0),
            // The model says that sectors are not the limit.
            Some((predicted, _)) if predicted.bound != Bound::Memory => 0.0,
            _ => explained(record, multiple),
        },
        ..Reason::default()
    })
}

/// The counters of loads or stores, and their sectors for each that is needed.
pub(super) fn waste(record: &Record, is_load: bool) -> Option<(GlobalCounters, f64)> {
    let (global, needed) = needed_sectors(record, is_load)?;
    Some((global, global.sectors as f64 / needed as f64))
}

/// The counters of loads or stores, and the sectors that they need.
fn needed_sectors(record: &Record, is_load: bool) -> Option<(GlobalCounters, u64)> {
    let counters = record.counters?;
    let (global, ideal, bytes) = if is_load {
        (counters.global_load, counters.ideal.global_load, record.subject.read)
    } else {
        (counters.global_store, counters.ideal.global_store, record.subject.written)
    };
    // Documents of earlier versions have no ideal: the sectors that the bytes need, one a request
    // at least.
    let needed = if counters.ideal.sectors() > 0 { ideal } else { bytes.div_ceil(SECTOR_BYTES).max(global.requests) };
    (needed > 0).then_some((global, needed))
}

/// Passes through shared memory beyond those that the widths of the accesses need.
pub(super) fn conflicts(run: &Run, record: &Record) -> Option<Reason> {
    let counters = record.counters?;
    let all = counters.shared();
    let kinds = [
        ("load", "shared_load.bank_conflicts", counters.shared_load),
        ("store", "shared_store.bank_conflicts", counters.shared_store),
    ];
    let atomics = ("atomic", "shared_atomic.bank_conflicts", counters.shared_atomic);
    let (access, name, worst) =
        kinds.into_iter().fold(atomics, |a, b| if b.2.bank_conflicts >= a.2.bank_conflicts { b } else { a });
    let SharedCounters { instructions, bank_conflicts, .. } = worst;
    if multiple_of(worst) <= WASTE || instructions == 0 {
        return None;
    }
    // Each multiprocessor makes one pass a clock, and takes a request to its L1 cache in one.
    let passes: f64 =
        [all.wavefronts, counters.global_load.requests, counters.global_store.requests].map(|n| n as f64).iter().sum();
    let needed = clocks_a_ms(run, record).zip(record.ms).map(|(clocks, ms)| (passes / clocks, ms.median));
    let extra = short(bank_conflicts as f64 / instructions as f64);
    let passes_of = if extra == "1" { "pass" } else { "passes" };
    Some(Reason {
        cause: "Bank conflicts",
        why: format!("The lanes of a warp {access} different words of one bank, and the bank serves them one after another."),
        share: needed.and_then(|(needed, _)| passing(run, record, needed)),
        shown_by: format!(
            "{COUNTED} {extra} extra {passes_of} for each of {} ({})",
            counted(thousands(instructions), access),
            counter(name, bank_conflicts)
        ),
        attempt: "Pad each row of the tile by one 4-byte word (32x33), or swizzle its columns, so that the lanes of a warp use different banks.".into(),
        words: &[BANK, WAVEFRONT],
        explains: match needed {
            Some((needed, _)) => beyond_bytes(record, needed).unwrap_or(0.0),
            None => explained(record, multiple_of(all)),
        },
        ..Reason::default()
    })
}

/// The time of all passes beside that of the bytes.
fn passing(run: &Run, record: &Record, needed: f64) -> Option<String> {
    let (ms, bytes, clocks) = (record.ms?.median, moving_ms(record)?, record.clocks.or(run.clocks)?);
    let than = if needed > bytes { "more" } else { "less" };
    Some(format!(
        "All passes through shared memory and the L1 cache take {} at {}, {than} than the {} of {}{}.",
        time(needed.min(ms)),
        with_unit(&thousands(clocks.sm_mhz.into()), "MHz"),
        time(bytes),
        if is_beside_sectors(record) { "a copy of the same sectors" } else { "the bytes" },
        unexplained_rest(needed.max(bytes), ms)
    ))
}

/// A case that moves as much for each element by another kernel, and clearly faster: all there is
/// where nothing was counted.
pub(super) fn another_kernel(index: &Index<'_>, record: &Record) -> Option<Reason> {
    let (case, rates) = super::reasons::faster_peer(index, record)?;
    let other = &index.run.cases[case];
    let (best, speed) = reached(other)?;
    Some(Reason {
        cause: NOT_COUNTED,
        why: format!(
            "The case {} moves as many bytes for each element and reaches {} {speed}, so the access order or the work for each \
             element costs the time, not the bytes that must move. The run has no counters of this case and cannot distinguish \
             extra sectors from too many instructions or too few bytes in flight.",
            code(&other.name),
            percent(best)
        ),
        shown_by: rates.map_or("No counter yet: the times of both only say that it is slow".into(), |(this, other_rate)| {
            format!(
                "No counter yet: it moves {this:.1} elements in a clock of a multiprocessor, and {} {other_rate:.1}",
                other.subject.op
            )
        }),
        links: vec![Link { text: other.name.clone(), case }],
        explains: 1.0,
        ..uncounted(record)
    })
}

/// Requests of fewer bytes than those of a faster case.
pub(super) fn small_requests(index: &Index<'_>, record: &Record) -> Option<Reason> {
    let size = bytes_a_request(record)?;
    let (larger, other) = index.larger_requests(record).filter(|other| other.0 >= 2.0 * size)?;
    Some(Reason {
        cause: "Perhaps too few bytes in flight",
        why: format!(
            "{} Each request of a warp carries {size:.0} bytes, and {larger:.0} in {}, which reaches {} of its ceiling.",
            beyond_needed(record).map_or("The accesses waste no sector and have no bank conflict.".into(), |beyond| {
                format!("The accesses waste little: {beyond}.")
            }),
            other.name,
            percent(other.fraction_of_ceiling.unwrap_or_default())
        ),
        share: unknown_share(record),
        shown_by: format!("{COUNTED} {size:.0} bytes for each request of `global_load` and `global_store`"),
        attempt: format!(
            "Let each thread load a vector of up to 16 bytes, or several elements before its first store. {PROFILE}"
        )
        .into(),
        stalls: &STALLS,
        is_unknown: true,
        words: &[REQUEST, IN_FLIGHT],
        ..Reason::default()
    })
}

const NOT_COUNTED: &str = "Cause unknown: no counters";
/// It begins figures that come from there.
const COUNTED: &str = "Counted on the software GPU:";

/// Nsight Compute tells a cause where no counter does.
const PROFILE: &str =
    "Profile the kernel in Nsight Compute. Its section Warp State Statistics shows the most frequent stall:";
const STALLS: [&str; 4] = [
    "Long Scoreboard: warps wait for global memory. Put more bytes in flight, and raise the achieved occupancy if the section Occupancy has \
     it below 50 %.",
    "LG Throttle: too many requests to global memory are queued. Let each request carry more bytes.",
    "Short Scoreboard or MIO Throttle: warps mostly wait for shared memory. Access it less often, or by wider vectors.",
    "Math Pipe Throttle or Not Selected: instructions are the limit. Let each thread do fewer of them for each element.",
];
const IF_SECTORS: &str = "If it prints sectors/ideal above 1.05x, the accesses are uncoalesced: let neighbouring threads access neighbouring \
                          addresses.";
const IF_CONFLICTS: &str = "If it prints bank conflicts, pad each row of the tile by one 4-byte word.";
const ELSE_PROFILE: &str =
    "Else profile the kernel in Nsight Compute. Its section Warp State Statistics shows the most frequent stall:";
/// The search for a cause, by a command or without one.
const BY_COMMAND: [&str; 4] = [
    "Run this command, which counts the accesses of a small case of the kind on the software GPU:",
    IF_SECTORS,
    IF_CONFLICTS,
    ELSE_PROFILE,
];
const BY_COUNTING: [&str; 4] =
    ["Count the accesses of a small case on the software GPU.", IF_SECTORS, IF_CONFLICTS, ELSE_PROFILE];

/// A case of which no counter tells the cause.
pub(super) fn unexplained(record: &Record) -> Reason {
    if record.counters.is_none() {
        return uncounted(record);
    }
    Reason {
        cause: "Cause not known",
        why: "No counter explains most of the time.".into(),
        share: unknown_share(record),
        shown_by: format!(
            "{COUNTED} {}",
            beyond_needed(record).unwrap_or_else(|| "all sectors and wavefronts are needed".into())
        ),
        attempt: PROFILE.into(),
        stalls: &STALLS,
        is_unknown: true,
        words: &[IN_FLIGHT],
        ..Reason::default()
    }
}

fn uncounted(record: &Record) -> Reason {
    let command = counting::command(&record.subject);
    Reason {
        cause: NOT_COUNTED,
        why: "The run has no counters of this case.".into(),
        share: unknown_share(record),
        shown_by: "Nothing yet: no counter".into(),
        attempt: "Find the cause first:".into(),
        steps: if command.is_some() { &BY_COMMAND } else { &BY_COUNTING },
        stalls: &STALLS,
        is_unknown: true,
        command,
        words: &[SECTOR, UNCOALESCED, IN_FLIGHT],
        ..Reason::default()
    }
}

/// The sectors and wavefronts that a case does not need; `None` where it needs all.
fn beyond_needed(record: &Record) -> Option<String> {
    let sectors = [(true, "loads"), (false, "stores")].into_iter().filter_map(|(is_load, accesses)| {
        let (global, needed) = needed_sectors(record, is_load)?;
        (global.sectors > needed).then(|| {
            format!("{accesses} touch {} and need {}", counted(thousands(global.sectors), "sector"), thousands(needed))
        })
    });
    let shared = record.counters?.shared();
    let conflicts = (shared.bank_conflicts > 0).then(|| {
        let [conflicts, wavefronts] = [(shared.bank_conflicts, "bank conflict"), (shared.wavefronts, "wavefront")]
            .map(|(count, of)| counted(thousands(count), of));
        format!("{conflicts} among {wavefronts}")
    });
    let beyond: Vec<String> = sectors.chain(conflicts).collect();
    (!beyond.is_empty()).then(|| beyond.join("; "))
}

fn unknown_share(record: &Record) -> Option<String> {
    let (ms, bytes) = (record.ms?.median, moving_ms(record)?);
    Some(format!("{}; {} stay unexplained.", need(record, bytes), of_time((ms - bytes).max(0.0), ms)))
}

/// Says which time the case would take at the speed that it is compared with.
pub(super) fn need(record: &Record, ms: f64) -> String {
    if is_beside_sectors(record) {
        return format!("A copy of the same sectors takes {}", time(ms));
    }
    let speed = match (record.fraction_of_ceiling, &record.subject.spread) {
        (Some(_), _) => "At the ceiling",
        (None, Some(spread)) if spread.engine.is_some() => "In an all-to-all",
        (None, Some(_)) => "In a flat push",
        (None, None) => "At a copy's speed",
    };
    format!("{speed}, the bytes alone need {}", time(ms))
}

/// Says which part of the time this multiple of the bytes explains.
fn share(record: &Record, multiple: f64, cause: &str) -> Option<String> {
    let ms = record.ms?.median;
    account(record, (moving_ms(record)? * multiple).min(ms), cause, "")
}

/// Says which part of the time a cause explains, with the bytes or the copy of the sectors.
fn account(record: &Record, explained: f64, cause: &str, by: &str) -> Option<String> {
    let (ms, bytes) = (record.ms?.median, moving_ms(record)?);
    let rest = unexplained_rest(explained, ms);
    let most = if rest.is_empty() { of_time(explained, ms) } else { time(explained) };
    let takes = if is_beside_sectors(record) { "this case takes" } else { "the bytes take" };
    Some(format!("{}. With {cause} {takes} up to {most}{by}{rest}.", need(record, bytes)))
}

/// Says how much of a time nothing explains, if it is more than the spread.
fn unexplained_rest(explained: f64, ms: f64) -> String {
    let rest = ms - explained;
    if rest > SPREAD * ms { format!("; {} stay unexplained", of_time(rest, ms)) } else { String::new() }
}

/// The passes through shared memory for each that is needed.
fn multiple_of(shared: SharedCounters) -> f64 {
    shared.wavefronts as f64 / shared.wavefronts.saturating_sub(shared.bank_conflicts).max(1) as f64
}

/// The part of the time that this multiple of the bytes explains beyond the bytes alone; of the
/// accesses, where nothing was timed.
fn explained(record: &Record, multiple: f64) -> f64 {
    let timed = moving_ms(record).and_then(|bytes| beyond_bytes(record, bytes * multiple));
    timed.unwrap_or(1.0 - 1.0 / multiple)
}

/// The part of a case's time that a cause which needs this time explains beyond the bytes alone.
fn beyond_bytes(record: &Record, needed: f64) -> Option<f64> {
    let (ms, bytes) = (record.ms?.median, moving_ms(record)?);
    Some(((needed.min(ms) - bytes) / ms).max(0.0)).filter(|part| part.is_finite())
}

/// A counter, its value, and its metric in Nsight Compute.
fn counter(name: &str, value: u64) -> String {
    let metric = table::counters().find(|counter| counter.name() == name).map(|counter| counter.metric());
    let metric = metric.map_or(String::new(), |metric| format!("; in Nsight Compute {}", code(&metric)));
    format!("{} {}{metric}", code(name), thousands(value))
}
