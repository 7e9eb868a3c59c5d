//! Many launches, one after another: how many there are, and what each costs.

use super::Run;
use super::causes::{need, side, waste};
use super::figures::{code, of_time, short, thousands, time};
use super::index::Index;
use super::reasons::{LAUNCH_US, Link, Reason, WASTE, kernel_name, moving_ms};
use warpstride::error::counted;
use warpstride::roofline::model::{Bound, DeviceModel};
use warpstride::roofline::record::Record;

/// The least launches of a case without a model that are many.
const MANY: u64 = 16;

/// The launches of a case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Launches {
    pub(super) count: u64,
    from: From,
}

/// The source of a count.
#[derive(Debug, Clone, Copy, PartialEq)]
enum From {
    Run,
    Model,
    /// The same of another case with the same kernel and the same accesses.
    RunOfLike,
    ModelOfLike,
}

impl From {
    /// The source in a clause.
    fn words(self) -> &'static str {
        match self {
            Self::Run => "a run of the case counted them",
            Self::Model => "the model's time of a launch gives their number",
            Self::RunOfLike => "they were counted in a case of the same accesses",
            Self::ModelOfLike => "the model's time of a launch gives their number in a case of the same accesses",
        }
    }
}

impl Launches {
    /// The same number, as that of another case with the same accesses.
    pub(super) fn of_like(self) -> Self {
        let from = match self.from {
            From::Run | From::RunOfLike => From::RunOfLike,
            From::Model | From::ModelOfLike => From::ModelOfLike,
        };
        Self { from, ..self }
    }
}

/// The number of launches of a case that they limit: the document has it, or the model counted each
/// as the device's time of one.
pub(super) fn limiting(run: &Run, record: &Record) -> Option<Launches> {
    let counted = record.launches.map(|count| Launches { count, from: From::Run });
    let Some(predicted) = record.predicted else {
        // A graph of launches has no model. Many short ones take little else.
        let is_short = |count: u64| record.ms.is_none_or(|ms| 1e3 * ms.median <= LAUNCH_US * count as f64);
        return counted.filter(|launches| launches.count >= MANY && is_short(launches.count));
    };
    if predicted.bound != Bound::Launches {
        return None;
    }
    counted.or_else(|| derived(run, record, predicted.ms)).filter(|launches| launches.count >= 2)
}

/// The number of launches by the model's time of all of them. Only equal launches are so many.
fn derived(run: &Run, record: &Record, ms: f64) -> Option<Launches> {
    let launches = 1e3 * ms / DeviceModel::of(&run.device.name)?.launch_us;
    let whole = launches.round();
    let requests = record.counters?.global_load.requests.max(record.counters?.global_store.requests);
    let is_whole = (launches - whole).abs() < 1e-6 * whole && (2.0..1e9).contains(&whole);
    (is_whole && requests.is_multiple_of(whole as u64)).then_some(Launches { count: whole as u64, from: From::Model })
}

/// Launches one after the other, each with too little to move.
pub(super) fn launches(index: &Index<'_>, record: &Record) -> Option<Reason> {
    let (Launches { count, from }, ms) = (index.launches(record)?, record.ms?.median);
    let bytes = moving_ms(record)?;
    let multiple = [true, false]
        .into_iter()
        .filter_map(|is_load| Some(waste(record, is_load)?.1 - 1.0).zip(side(record, is_load)));
    let moved = bytes * (1.0 + multiple.map(|(more, part)| more.max(0.0) * part).sum::<f64>());
    let launched = counted(thousands(count), "launch").to_string();
    let all = if moved > WASTE * bytes {
        format!(", and {} with all sectors that the accesses touch", time(moved))
    } else {
        String::new()
    };
    let each = ms / count as f64;
    let proofs: Vec<String> = [larger_launches(index, record, count, each), as_graph(index, record, count, each)]
        .into_iter()
        .flatten()
        .collect();
    let quotient = if proofs.is_empty() {
        format!(" ({} / {}, with their work)", time(ms), thousands(count))
    } else {
        String::new()
    };
    let why =
        format!("{launched} run one after another, {} each{quotient}, and each of them moves few bytes.", time(each));
    let (alone, links) =
        one_launch(index, record).map_or_else(Default::default, |(text, link)| (format!(" {text}"), vec![link]));
    Some(Reason {
        cause: "Many launches, one after another",
        figures: Some(format!("{launched} of {}", time(each))),
        why: [vec![why], proofs].concat().join(" "),
        share: Some(format!(
            "{}{all}. The launches explain the other {}.",
            need(record, bytes),
            of_time((ms - moved).max(0.0), ms)
        )),
        shown_by: format!(
            "No counter of memory: {launched} of {} each make the {} ({from}). The timeline of `nsys profile --cuda-graph-trace=node` shows \
             the idle time between them",
            time(each),
            time(ms),
            from = from.words()
        ),
        attempt: format!(
            "Let one launch move the whole array: give the grid one more dimension in place of the loop or the graph of launches.{alone}"
        )
        .into(),
        links,
        explains: 1.0 - moved / ms,
        ..Reason::default()
    })
}

/// The time of larger launches of the same kernel, where it shows that the bytes hardly matter.
fn larger_launches(index: &Index<'_>, record: &Record, count: u64, each: f64) -> Option<String> {
    let bytes = record.subject.bytes as f64 / count as f64;
    let largest = index.largest_launch(record).map(|(larger, ms)| (larger / bytes, ms));
    let (times, larger) = largest.filter(|(times, _)| *times >= 1.5)?;
    let by_bytes = ((larger - each) / (times - 1.0)).max(0.0);
    (by_bytes < 0.1 * each).then(|| {
        format!(
            "A launch of {} the bytes takes {}, so nearly all of it is a fixed cost.",
            counted(short(times), "time"),
            time(larger)
        )
    })
}

/// The time of the same launches as a graph, which has no model.
fn as_graph(index: &Index<'_>, record: &Record, count: u64, each: f64) -> Option<String> {
    record.predicted?;
    let graph = index.graph(record)?.ms?.median / count as f64;
    (graph < each).then(|| format!("A graph of them takes {} each.", time(graph)))
}

/// The time of one launch for the same array whose requests touch as many sectors, and its case.
fn one_launch(index: &Index<'_>, record: &Record) -> Option<(String, Link)> {
    let case = index.one_launch(record)?;
    let other = &index.run.cases[case];
    let kernel = kernel_name(other)?;
    let text = format!(
        "The kernel {} does it in one launch, with as many sectors, and takes {}.",
        code(kernel),
        time(other.ms?.median)
    );
    Some((text, Link { text: kernel.into(), case }))
}

/// The sectors and the requests of the accesses to global memory, in either direction.
pub(super) fn touched(record: &Record) -> Option<[(u64, u64); 2]> {
    let counters = record.counters?;
    let mut both = [counters.global_load, counters.global_store].map(|all| (all.sectors, all.requests));
    both.sort_unstable();
    Some(both)
}
