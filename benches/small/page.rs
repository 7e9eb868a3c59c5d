//! The page of the times, in Markdown.

use std::fmt::Write;

use super::{OURS, PEERS, TITLES};

/// The times of a case: of each contestant those in a row and those alone, one of each a round. A
/// contestant that cannot do the case has none.
pub(crate) struct Outcome {
    pub(crate) name: String,
    pub(crate) kernel: &'static str,
    pub(crate) times: [[Vec<f64>; 2]; TITLES.len()],
}

impl Outcome {
    /// Returns the best peer, by the median.
    fn best_peer(&self, how: usize) -> Option<usize> {
        let median = |peer: usize| quantile(&self.times[peer][how], 0.5);
        let peers = PEERS.into_iter().filter_map(|peer| Some((peer, median(peer)?)));
        peers.min_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(peer, _)| peer)
    }

    /// Returns the best peer, and the quartiles of its time over ours in the same round. A state of
    /// the driver that lasts for a round is in both.
    fn of_best_peer(&self, ours: usize, how: usize) -> Option<(usize, [f64; 3])> {
        let peer = self.best_peer(how)?;
        let (own, theirs) = (&self.times[ours][how], &self.times[peer][how]);
        let parts: Vec<f64> = theirs.iter().zip(own).map(|(theirs, own)| theirs / own).collect();
        Some((peer, [0.25, 0.5, 0.75].map(|part| quantile(&parts, part).expect("there are rounds"))))
    }
}

/// Returns the value below which this part of the values lies; `None` for an empty list.
fn quantile(values: &[f64], part: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get((sorted.len().saturating_sub(1) as f64 * part).round() as usize).copied()
}

/// Writes the whole page.
pub(crate) fn page(heading: &str, outcomes: &[Outcome]) -> String {
    let mut text = format!("# Small permutes beside peers, launch included\n\n{heading}");
    for (how, title) in ["One behind the other", "One by one"].into_iter().enumerate() {
        write!(text, "\n## {title}\n\n").expect("memory");
        OURS.iter().for_each(|&ours| text += &summary(outcomes, ours, how));
        text += &table(outcomes, how);
    }
    text
}

/// Counts the cases in which no peer is faster, and lists the others.
fn summary(outcomes: &[Outcome], ours: usize, how: usize) -> String {
    let parts = outcomes.iter().filter_map(|outcome| Some((outcome, outcome.of_best_peer(ours, how)?)));
    let mut parts: Vec<_> = parts.map(|(outcome, (peer, [_, part, _]))| (part, &outcome.name, TITLES[peer])).collect();
    let all = parts.len();
    parts.retain(|&(part, ..)| part < 1.0);
    parts.sort_by(|(one, ..), (other, ..)| one.total_cmp(other));
    let mut text = format!(
        "{}: no peer is faster in {} of {all} cases that a peer can do.\n\n",
        TITLES[ours].replacen('k', "K", usize::from(TITLES[ours].starts_with('k'))),
        all - parts.len(),
    );
    for (part, name, peer) in &parts {
        writeln!(text, "- {name}: {part:.3} of {peer}").expect("memory");
    }
    if parts.is_empty() { text } else { text + "\n" }
}

fn table(outcomes: &[Outcome], how: usize) -> String {
    let ratios = OURS.map(|ours| format!("{} / best peer", TITLES[ours]));
    let titles: Vec<&str> =
        ["case", "kernel"].into_iter().chain(TITLES).chain(ratios.iter().map(|title| &**title)).collect();
    let mut text = format!("| {} |\n| --- | --- |{}\n", titles.join(" | "), " ---: |".repeat(titles.len() - 2));
    for outcome in outcomes {
        let times = outcome.times.iter().map(|times| quantile(&times[how], 0.5));
        let times = times.map(|time| time.map_or("n/a".into(), |time| format!("{time:.2}")));
        let ratios = OURS.map(|ours| {
            let found = outcome.of_best_peer(ours, how);
            found.map_or("-".into(), |(_, [low, part, high])| format!("{part:.3} ({low:.3} to {high:.3})"))
        });
        let cells: Vec<String> = times.chain(ratios).collect();
        writeln!(text, "| {} | `{}` | {} |", outcome.name, outcome.kernel, cells.join(" | ")).expect("memory");
    }
    text
}
