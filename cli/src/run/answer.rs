//! The beginning of every report: the slowest cases, and why.

use std::collections::HashMap;
use std::iter;

use super::Run;
use super::causes::Word;
use super::figures::{ordinal, percent, speed, three, time};
use super::index::Index;
use super::reasons::{self, Link, NEAR, OF_CEILING, Reason, is_beside_sectors};
use warpstride::error::counted;
use warpstride::roofline::record::Record;

/// Most entries of an answer.
const MOST: usize = 6;
/// Most small arrays that are named.
const NAMED: usize = 3;
/// Most cases that an entry shows.
const SHOWN: usize = 6;

/// The slowest cases of a run.
pub(crate) struct Answer<'r> {
    /// The one with the slowest case comes first.
    pub(crate) entries: Vec<Entry<'r>>,
    /// Small arrays, which are in no entry.
    small: Vec<&'r Record>,
    /// The places of the slow cases in the run, with where each stands in the answer.
    places: HashMap<usize, Place>,
    /// The parts of the least and the greatest case that is neither listed nor small.
    others: Option<(usize, f64, f64)>,
    measure: Measure,
    /// The numbers of cases, and of those that are near their ceilings.
    cases: [usize; 2],
    is_counted: bool,
}

/// The place of a slow case in the answer.
enum Place {
    /// The number of its entry.
    Entry(usize),
    /// A small array has no rank.
    Small(Reason),
    Other(Reason),
}

/// The slow cases of one kernel and cause, or of one kernel, type and command where the run does
/// not show the cause.
pub(crate) struct Entry<'r> {
    /// The cases, the slowest first.
    pub(crate) cases: Vec<Ranked<'r>>,
    /// The words that no earlier entry explains.
    words: Vec<Word>,
    /// The rank of an earlier case with the same advice.
    advised: Option<usize>,
}

/// A slow case, its place among all slow ones but small arrays, and why it is slow.
pub(crate) struct Ranked<'r> {
    pub(crate) record: &'r Record,
    /// The place of the case in the run.
    pub(crate) at: usize,
    pub(crate) rank: usize,
    part: f64,
    reason: Reason,
}

/// A line of an entry.
pub(crate) struct Row {
    pub(crate) label: &'static str,
    pub(crate) text: String,
    /// Steps, which stand below the text as an ordered list.
    pub(crate) steps: &'static [&'static str],
    /// A list below the last step, or below the text.
    pub(crate) stalls: &'static [&'static str],
    /// A command, which stands below the first step, or below the text.
    pub(crate) command: Option<String>,
}

/// The speed or the figure that the cases of a run are compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Measure {
    Ceiling,
    /// A copy of the sectors of each case, all of which are drawn.
    Sectors,
    Copy,
    /// One of these, and not the same for each case.
    Several,
    Accesses,
}

impl Measure {
    fn of(run: &Run) -> Self {
        let mut speeds = run.cases.iter().filter_map(reasons::reached).map(|(_, speed)| speed);
        let first = speeds.next();
        if speeds.any(|speed| Some(speed) != first) {
            Self::Several
        } else if first == Some(OF_CEILING) {
            Self::Ceiling
        } else if run.cases.iter().any(is_beside_sectors) {
            Self::Sectors
        } else if run.has_times() {
            Self::Copy
        } else {
            Self::Accesses
        }
    }
}

impl<'r> Answer<'r> {
    /// Finds them; `None` where the run compares no case with anything.
    pub(crate) fn of(run: &'r Run) -> Option<Self> {
        let measure = Measure::of(run);
        let index = Index::of(run);
        let compared = run.cases.iter().enumerate().filter_map(|(at, case)| Some((at, case, reasons::part(case)?)));
        let mut cases: Vec<(usize, &Record, f64)> = compared.collect();
        let count = cases.len();
        cases.sort_by(|a, b| a.2.total_cmp(&b.2));
        cases.retain(|(.., part)| *part < NEAR);
        let near = count - cases.len();
        let (mut small, mut places, mut slow) = (Vec::new(), HashMap::new(), Vec::new());
        for (at, record, part) in cases {
            let reason = reasons::of(&index, record);
            if reason.is_small {
                small.push(record);
                places.insert(at, Place::Small(reason));
            } else {
                slow.push(Ranked { record, at, rank: slow.len() + 1, part, reason });
            }
        }
        let is_counted = run.cases.iter().any(|case| case.counters.is_some());
        let (entries, unlisted) = entries(slow);
        let others = unlisted.first().zip(unlisted.last());
        let others = others.map(|(least, most)| (unlisted.len(), least.part, most.part));
        places.extend(unlisted.into_iter().map(|case| (case.at, Place::Other(case.reason))));
        let listed =
            entries.iter().enumerate().flat_map(|(entry, of)| of.cases.iter().map(move |case| (entry, case.at)));
        places.extend(listed.map(|(entry, at)| (at, Place::Entry(entry))));
        (count > 0).then_some(Self { entries, small, places, others, measure, cases: [count, near], is_counted })
    }

    /// The heading.
    pub(crate) fn title(&self) -> &'static str {
        match self.measure {
            Measure::Ceiling | Measure::Sectors | Measure::Copy | Measure::Several => "The slowest cases",
            Measure::Accesses => "Most accesses beyond those needed",
        }
    }

    /// How many cases are near their ceilings, in a sentence.
    pub(crate) fn summary(&self) -> String {
        let [count, near] = self.cases;
        let least = format!("{:.0}\u{a0}%", 100.0 * NEAR);
        let of = format!("{near} of {}", counted(count, "case"));
        let is_one = near == 1 || count == 1;
        let (reach, need, their) = if is_one { ("reaches", "needs", "its") } else { ("reach", "need", "their") };
        let speed = if is_one { "the speed that it is compared with" } else { "the speed that each is compared with" };
        match self.measure {
            Measure::Ceiling => format!("{of} {reach} {least} of {their} ceiling."),
            Measure::Sectors => format!("{of} {reach} {least} of a copy of the same sectors."),
            Measure::Copy => format!("{of} {reach} {least} of a copy's speed."),
            Measure::Several => format!("{of} {reach} {least} of {speed}."),
            Measure::Accesses => format!("{of} {need} at least {least} of {their} accesses."),
        }
    }

    /// Says which of the others the list has; `None` where all are near their ceilings.
    pub(crate) fn coverage(&self) -> Option<String> {
        let [count, near] = self.cases;
        let are = |count: usize| if count == 1 { "is" } else { "are" };
        let slow = count - near;
        let mut text = format!("{} {} below {:.0}\u{a0}%.", counted(slow, "case"), are(slow), 100.0 * NEAR);
        let listed = || self.entries.iter().flat_map(|entry| &entry.cases);
        if let Some(most) = listed().map(|case| case.part).max_by(f64::total_cmp) {
            // Cases of a kernel and cause that the list has are in it in any case.
            let verb = if self.others.is_some() { "ends after" } else { "has" };
            let entries = match self.entries.len() {
                1 => "1 entry".into(),
                many => format!("{many} entries"),
            };
            text += &format!(
                " The list {verb} {entries} with {} of these cases, up to {}.",
                listed().count(),
                percent(most)
            );
        }
        text += &match self.others {
            None => String::new(),
            Some((1, part, _)) => format!(" The other one ({}) stands in the tables.", percent(part)),
            Some((others, least, most)) => {
                format!(" The other {others}, from {} to {}, stand in the tables.", percent(least), percent(most))
            }
        };
        text += &self.left_out().map_or(String::new(), |left_out| format!(" {left_out}"));
        (near < count).then_some(text)
    }

    /// Names the small arrays, which have no rank.
    fn left_out(&self) -> Option<String> {
        self.small.first()?;
        let named = self.small.iter().take(NAMED);
        let part = |case: &Record| reasons::part(case).map_or(String::new(), |part| format!(" ({})", percent(part)));
        let mut named: Vec<String> = named.map(|case| format!("{}{}", case.name, part(case))).collect();
        if self.small.len() > NAMED {
            named.push(format!("and {} more", self.small.len() - NAMED));
        }
        let (arrays, have) =
            (counted(self.small.len(), "small array"), if self.small.len() == 1 { "has" } else { "have" });
        Some(format!(
            "{arrays} {have} no rank, because a plain copy of the same size is as slow: {}.",
            named.join(", ")
        ))
    }

    /// Returns whether the case at this place of the run is a small array, which has no rank.
    pub(crate) fn leaves_out(&self, at: usize) -> bool {
        matches!(self.places.get(&at), Some(Place::Small(_)))
    }

    /// Says how the cases are compared, and where times and counters come from.
    pub(crate) fn intro(&self) -> String {
        let compared = match self.measure {
            Measure::Ceiling => "Each case has its speed beside its ceiling, the part that it reaches, and its time.",
            Measure::Sectors => "Each case is compared with a copy of the sectors that it reads and writes.",
            Measure::Copy => "Each case is compared with a copy of as many bytes in the same run.",
            Measure::Several => {
                "Each case is compared with its ceiling, with a copy of the sectors that it reads and writes, or with a copy of as many \
                 bytes. Its figures say which."
            }
            Measure::Accesses => {
                "Nothing was timed. The sectors and wavefronts of each case are compared with those that its bytes would fill."
            }
        };
        let simulator = "The software GPU, a simulator on the CPU,";
        let sources = match self.measure {
            _ if !self.is_counted => "The times were measured on this GPU.".into(),
            Measure::Accesses => {
                format!(
                    "{simulator} counted them; the Nsight Compute name beside a counter is the metric to compare it with."
                )
            }
            _ => format!(
                "The times were measured on this GPU. {simulator} counted sectors and bank conflicts; the Nsight Compute name beside a \
                 counter is the metric to compare it with."
            ),
        };
        format!("{compared} {sources} Cases with the same kernel and the same known cause share one entry.")
    }

    /// The cases that the entries show, by their rank.
    pub(crate) fn shown(&self) -> Vec<&Ranked<'r>> {
        let mut all: Vec<&Ranked<'r>> = self.entries.iter().flat_map(Entry::shown).collect();
        all.sort_by_key(|case| case.rank);
        all
    }

    /// Refers to the entry that has the same advice, if there is one.
    pub(crate) fn same_advice(&self, reason: &Reason) -> Option<String> {
        let of = |reason: &Reason| (reason.attempt.clone(), reason.steps);
        let like = self.entries.iter().map(Entry::first).find(|first| of(&first.reason) == of(reason))?;
        Some(advice_for(like.rank))
    }

    /// The number of the entry of the case at this place of the run, if it has one.
    pub(crate) fn entry_of(&self, at: usize) -> Option<usize> {
        match self.places.get(&at)? {
            Place::Entry(entry) => Some(*entry),
            Place::Small(_) | Place::Other(_) => None,
        }
    }

    /// Why the case at this place of the run is slow, if it has no entry that says so.
    pub(crate) fn reason_of(&self, at: usize) -> Option<&Reason> {
        match self.places.get(&at)? {
            Place::Entry(_) => None,
            Place::Small(reason) | Place::Other(reason) => Some(reason),
        }
    }
}

fn advice_for(rank: usize) -> String {
    format!("The advice is that for the {} case.", ordinal(rank))
}

/// Puts cases of one kernel and cause together, and also returns those that find no room.
fn entries(slow: Vec<Ranked<'_>>) -> (Vec<Entry<'_>>, Vec<Ranked<'_>>) {
    let (mut entries, mut others): (Vec<Entry<'_>>, Vec<Ranked<'_>>) = (Vec::new(), Vec::new());
    for case in slow {
        let is_like = |entry: &&mut Entry<'_>| entry.first().is_like(&case);
        let has_room = entries.len() < MOST;
        match entries.iter_mut().find(is_like) {
            Some(entry) => entry.cases.push(case),
            None if has_room => entries.push(Entry { cases: vec![case], words: Vec::new(), advised: None }),
            None => others.push(case),
        }
    }
    let (mut known, mut advice): (Vec<Word>, Vec<(String, usize)>) = (Vec::new(), Vec::new());
    for entry in &mut entries {
        let attempt = entry.first().reason.attempt.clone().into_owned();
        entry.advised = advice.iter().find(|(earlier, _)| *earlier == attempt).map(|(_, rank)| *rank);
        advice.push((attempt, entry.first().rank));
        entry.words = entry.first().reason.words.iter().copied().filter(|word| !known.contains(word)).collect();
        known.extend(&entry.words);
    }
    (entries, others)
}

impl<'r> Entry<'r> {
    /// The slowest case.
    pub(crate) fn first(&self) -> &Ranked<'r> {
        &self.cases[0]
    }

    /// The cause.
    pub(crate) fn cause(&self) -> &'static str {
        self.first().reason.cause
    }

    /// The cases that have a line each.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &Ranked<'r>> {
        self.cases.iter().take(SHOWN)
    }

    /// Says how many cases have no line; `None` where each has one.
    pub(crate) fn more(&self) -> Option<String> {
        let (first, last) = (self.cases.get(SHOWN)?, self.cases.last()?);
        let ranks = if first.rank == last.rank {
            ordinal(first.rank)
        } else {
            format!("{} to {}", ordinal(first.rank), ordinal(last.rank))
        };
        let like = if first.reason.is_unknown { "kernel, type and command" } else { "kernel and cause" };
        Some(format!("{} of the same {like}, {ranks}", counted(self.cases.len() - SHOWN, "more case")))
    }

    /// Says whose numbers its lines have; `None` where it has one case.
    pub(crate) fn whose(&self) -> Option<String> {
        let rank = ordinal(self.first().rank);
        (self.cases.len() > 1).then(|| format!("The numbers below are those of the {rank} case."))
    }

    /// The names in its lines that lead to cases.
    pub(crate) fn links(&self) -> &[Link] {
        &self.first().reason.links
    }

    /// Why the slowest case is slow, what shows it, and what to try.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let Reason { why, share, shown_by, attempt, steps, stalls, command, next, .. } = &self.first().reason;
        let row = |label, text: &str| Row { label, text: text.into(), steps: &[], stalls: &[], command: None };
        let mut rows = vec![row("why", why)];
        rows.extend(share.iter().map(|share| row("time", share)));
        rows.push(row("shown by", &format!("{shown_by}.")));
        let again = self.advised.map(advice_for);
        let below = command.as_ref().map_or("", |_| " The command for this case is:");
        rows.push(match again {
            Some(again) => Row { command: command.clone(), ..row("try", &(again + below)) },
            None => Row { command: command.clone(), steps, stalls, ..row("try", attempt) },
        });
        rows.extend(next.iter().map(|next| row("then", next)));
        rows.extend((!self.words.is_empty()).then(|| row("words", &self.words.join(" "))));
        rows
    }
}

impl Ranked<'_> {
    /// Returns whether the advice for one of the two holds for the other: they have one kernel and
    /// one cause. Where the run does not show the cause, they have all else in common.
    fn is_like(&self, other: &Self) -> bool {
        let ([this, that], [reason, found]) = ([self.record, other.record], [&self.reason, &other.reason]);
        let is_alike =
            this.subject.dtype == that.subject.dtype && (&reason.why, &reason.command) == (&found.why, &found.command);
        this.kernel.is_some()
            && (&this.kernel, reason.cause) == (&that.kernel, found.cause)
            && (!reason.is_unknown || is_alike)
    }

    /// Says how far it is from its ceiling, and what it has of the cause.
    pub(crate) fn figures(&self) -> String {
        let ceiling = self.record.gbps.map(|gbps| (gbps, gbps / self.part)).filter(|both| both.1.is_finite());
        let gbps = self.record.gbps.map(speed);
        let (told, gbps) = match (reasons::reached(self.record), ceiling) {
            (Some((part, OF_CEILING)), Some((gbps, ceiling))) => {
                (format!("{} of {} ({})", three(gbps), speed(ceiling), percent(part)), None)
            }
            (Some((part, of)), _) => (format!("{} {of}", percent(part)), gbps),
            (None, _) => (format!("{} of its accesses are needed", percent(self.part)), gbps),
        };
        let ms = self.record.ms.map(|ms| time(ms.median));
        let figures: Vec<String> = iter::once(told).chain(gbps).chain(ms).collect();
        let more = self.reason.figures.as_ref().map_or(String::new(), |more| format!("; {more}"));
        figures.join(", ") + &more
    }

    /// Its place among the slow cases, in words.
    pub(crate) fn place(&self) -> String {
        ordinal(self.rank)
    }
}
