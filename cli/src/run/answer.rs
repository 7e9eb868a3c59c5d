//! The beginning of every report: the cases furthest from their ceilings, and why.

use super::reasons::{self, NEAR, Reason};
use super::table::number;
use super::{Run, table::percent};
use warpstride::error::counted;
use warpstride::roofline::record::Record;

/// Most cases that an answer tells of.
const MOST: usize = 6;
/// Most further cases of a kernel and cause that it names.
const NAMED: usize = 3;

/// The cases of a run that are furthest from their ceilings.
pub(crate) struct Answer<'r> {
    /// The worst first, and of each kernel and cause one.
    pub(crate) findings: Vec<Finding<'r>>,
    /// The speed or the figure that they are compared with.
    measure: Measure,
    /// The numbers of cases, and of those that are near their ceilings.
    cases: [usize; 2],
}

/// A case, and why it is slow.
pub(crate) struct Finding<'r> {
    /// The case.
    pub(crate) record: &'r Record,
    /// The reason.
    pub(crate) reason: Reason,
    part: f64,
    measure: Measure,
    /// Further cases of its kernel and cause that are not near their ceilings, each with its part.
    others: Vec<(&'r Record, f64)>,
}

/// The speed or the figure that the cases of a run are compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Measure {
    Ceiling,
    Copy,
    Accesses,
}

impl Measure {
    fn of(run: &Run) -> Self {
        if run.cases.iter().any(|case| case.fraction_of_ceiling.is_some() && case.drawn.is_none()) {
            Self::Ceiling
        } else if run.has_times() {
            Self::Copy
        } else {
            Self::Accesses
        }
    }

    /// A part of it, in words.
    fn told(self, part: f64) -> String {
        let percent = percent(Some(part));
        match self {
            Self::Ceiling => format!("{percent} of its ceiling"),
            Self::Copy => format!("{percent} of a copy's speed"),
            Self::Accesses => format!("{percent} of its accesses are needed"),
        }
    }
}

impl<'r> Answer<'r> {
    /// Finds them; `None` where the run compares no case with anything.
    pub(crate) fn of(run: &'r Run) -> Option<Self> {
        let measure = Measure::of(run);
        let compared = run.cases.iter().filter_map(|case| Some((case, reasons::part(case)?)));
        let mut cases: Vec<(&Record, f64)> = compared.collect();
        let count = cases.len();
        cases.sort_by(|a, b| a.1.total_cmp(&b.1));
        cases.retain(|(_, part)| *part < NEAR);
        let near = count - cases.len();
        let mut findings: Vec<Finding<'r>> = Vec::new();
        for (record, part) in cases {
            let has_room = findings.len() < MOST;
            let reason = reasons::of(run, record);
            let is_like = |found: &&mut Finding<'_>| {
                record.kernel.is_some() && found.record.kernel == record.kernel && found.reason.cause == reason.cause
            };
            match findings.iter_mut().find(is_like) {
                Some(found) => found.others.push((record, part)),
                None if has_room => {
                    findings.push(Finding { record, reason, part, measure, others: Vec::new() });
                }
                None => {}
            }
        }
        (count > 0).then_some(Self { findings, measure, cases: [count, near] })
    }

    /// The heading.
    pub(crate) fn title(&self) -> &'static str {
        match self.measure {
            Measure::Ceiling => "Furthest from their ceilings",
            Measure::Copy => "Furthest from the speed of a copy",
            Measure::Accesses => "Most accesses beyond those needed",
        }
    }

    /// Says in a sentence how the cases are compared.
    pub(crate) fn intro(&self) -> String {
        let compared = match self.measure {
            Measure::Ceiling => {
                "The ceiling of a case is the speed of the best simple kernels of this device for as many bytes read and written."
            }
            Measure::Copy => "Each case is compared with a copy of as many bytes in the same run.",
            Measure::Accesses => {
                "Nothing was timed. The sectors and passes of each case are compared with those that its bytes would fill."
            }
        };
        format!("{compared} Cases that one kernel and one cause make slow stand together, by the slowest.")
    }

    /// How many cases are near their ceilings, in a sentence.
    pub(crate) fn summary(&self) -> String {
        let [count, near] = self.cases;
        let (cases, least) = (counted(count, "case"), 100.0 * NEAR);
        match self.measure {
            Measure::Ceiling => format!("Among {cases}, {near} reached {least:.0} % of the ceiling."),
            Measure::Copy => format!("Among {cases}, {near} reached {least:.0} % of a copy's speed."),
            Measure::Accesses => format!("Among {cases}, {near} needed {least:.0} % of the accesses."),
        }
    }
}

impl Finding<'_> {
    /// How far it is from its ceiling, and the cause, in a line.
    pub(crate) fn line(&self) -> String {
        let gbps = self.record.gbps.map_or(String::new(), |gbps| format!(", {gbps:.1} GB/s"));
        let ms = self.record.ms.map_or(String::new(), |ms| format!(", {} ms", number(Some(ms.median), 4, "")));
        format!("{}{gbps}{ms}: {}", self.measure.told(self.part), self.reason.cause)
    }

    /// Why it is slow, what shows it, what to try, and which other cases its kernel does.
    pub(crate) fn rows(&self) -> Vec<(&'static str, String)> {
        let Reason { why, shown_by, attempt, .. } = &self.reason;
        let mut rows = vec![("why", why.clone()), ("shown by", shown_by.clone() + "."), ("try", attempt.to_string())];
        if let Some(kernel) = self.record.kernel.as_deref().filter(|_| !self.others.is_empty()) {
            let named = self.others.iter().take(NAMED);
            let named: Vec<String> =
                named.map(|(other, part)| format!("{} ({})", other.name, percent(Some(*part)))).collect();
            let more = self.others.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {}", counted(more, "other case")) } else { String::new() };
            rows.push(("also", format!("The same kernel, {kernel}, also does {}{more}.", named.join(", "))));
        }
        rows
    }
}
