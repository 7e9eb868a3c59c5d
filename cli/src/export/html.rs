//! A run as one HTML page, which needs no other file and no network: its style, its script and its
//! charts are inside.

use std::collections::{BTreeSet, HashMap};

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::svg::{self, Chart};
use crate::run::Run;
use crate::run::about;
use crate::run::answer::{Answer, Row};
use crate::run::columns::CASE;
use crate::run::compare::Compared;
use crate::run::figures::parts_of_code;
use crate::run::pipelines::WORDS;
use crate::run::reasons::{Link, Reason};
use crate::run::table::{self, Table, ceilings_line, percent};
use warpstride::error::{Result, counted, printable};
use warpstride::roofline::model::DeviceModel;
use warpstride::roofline::peak::Peaks;
use warpstride::roofline::record::{Group, Record};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Draws the page of a run, and of what changed since another.
///
/// # Errors
///
/// As [`svg::charts`].
pub(crate) fn page(run: &Run, compared: Option<&Compared>) -> Result<String> {
    let found = Answer::of(run);
    let charts = svg::charts(run, compared.map(|compared| &compared.before), found.as_ref())?;
    let of = |part: &str| charts.iter().filter(|chart| chart.name.starts_with(part)).collect::<Vec<_>>();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                // Browsers ask the server for an icon unless they are given one.
                link rel="icon" href="data:,";
                title { (run.title()) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    (heading(run))
                    @if let Some(compared) = compared { (changes(compared, run)) }
                    @if let Some(found) = &found { (answer(found)) }
                    @if !run.has_times() { p { (super::NO_TIMES) } }
                    (figures(&of("roofline")))
                    @for group in run.groups() { (cases(run, group, found.as_ref())) }
                    @if let Some(transfers) = &run.transfers {
                        h2 { "Transfers" }
                        p.note { (transfers.link_line()) }
                        (table("Transfers", &transfers.table()))
                        (figures(&of("transfers")))
                        (table("Page-locking", &transfers.pinning_table()))
                        (table("Frames", &transfers.frames_table()))
                    }
                    @if let Some(all) = &run.pipeline {
                        h2 { "Pipeline" }
                        p.note { (all.heading()) }
                        (table("Pipeline", &all.table()))
                        p.note { (WORDS) }
                        (figures(&of("pipeline")))
                    }
                    @if let Some(peaks) = &run.peaks { (ceilings(peaks, &of("sizes"))) }
                    @if !run.cases.is_empty() || run.transfers.is_some() { (words(run)) }
                    (foot(run))
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    Ok(printable(&page.into_string()))
}

/// The device, its ceilings, and what is wrong.
fn heading(run: &Run) -> Markup {
    let wrong = run.wrong();
    html! {
        h1 { (run.title()) }
        @if let Some(lead) = about::lead(run) { p { (lead) } }
        p.note { (run.heading()) @if let Some(peaks) = &run.peaks { br; (ceilings_line(peaks)) } }
        @if !wrong.is_empty() { p.wrong { "Wrong results: " (wrong.join(", ")) } }
    }
}

/// The slowest cases, and why.
fn answer(answer: &Answer<'_>) -> Markup {
    html! {
        h2 { (answer.title()) }
        p { strong { (answer.summary()) } " " (answer.coverage().unwrap_or_default()) }
        p.note { (answer.intro()) }
        @for (at, entry) in answer.entries.iter().enumerate() {
            section.entry id=(format!("entry-{at}")) {
                h3 { (entry.cause()) }
                ul {
                    @for case in entry.shown() {
                        li {
                            strong { (case.place()) } ", "
                            a href={ "#" (id(case.at)) } { (broken(&case.record.name)) } ": " (case.figures())
                        }
                    }
                    @if let Some(more) = entry.more() { li { (more) } }
                }
                @if let Some(whose) = entry.whose() { p.note { (whose) } }
                dl {
                    @for Row { label, text, steps, stalls, command } in entry.rows() {
                        dt { (label) }
                        dd {
                            (linked(&text, entry.links()))
                            (lists(steps, stalls, command.as_deref()))
                        }
                    }
                }
            }
        }
    }
}

/// A text that may break behind the underscores of its names.
fn broken(text: &str) -> Markup {
    html! { @for (at, part) in text.split('_').enumerate() { @if at > 0 { "_" wbr; } (part) } }
}

/// A text with its names in code type, which lead to their cases.
fn linked(text: &str, links: &[Link]) -> Markup {
    let case_of = |name: &str| links.iter().find(|link| link.text == name).map(|link| link.case);
    html! {
        @for (at, part) in parts_of_code(text).into_iter().enumerate() {
            @if at % 2 == 0 { (broken(part)) }
            @else if let Some(case) = case_of(part) { a href={ "#" (id(case)) } { code { (broken(part)) } } }
            // An option has hyphens, where it does not break.
            @else { code.whole[!part.contains(['_', ' '])] { (broken(part)) } }
        }
    }
}

/// Commands, each as a block of its own.
fn codes<'c>(commands: impl IntoIterator<Item = &'c str>) -> Markup {
    html! { @for command in commands { pre tabindex="0" { code { (command) } } } }
}

/// The steps of an attempt, with the commands of the first and the stalls of the last.
fn lists<'c>(steps: &[&str], stalls: &[&str], commands: impl IntoIterator<Item = &'c str>) -> Markup {
    let mut commands = Some(codes(commands));
    let stalls = html! { @if !stalls.is_empty() { ul { @for stall in stalls { li { (stall) } } } } };
    html! {
        @if steps.is_empty() { (commands.take().unwrap_or_default()) (stalls) }
        @else {
            ol {
                @for (at, step) in steps.iter().enumerate() {
                    li {
                        (step)
                        @if at == 0 { (commands.take().unwrap_or_default()) }
                        @if at + 1 == steps.len() { (stalls) }
                    }
                }
            }
        }
    }
}

/// Shows both runs side by side, and the changes since the earlier one.
fn changes(compared: &Compared, run: &Run) -> Markup {
    let (all, words) = table::changes(&compared.changes);
    // A table of permutes beside copies has news alone.
    let has_all = all.rows.len() == compared.changes.len();
    let (changed, same): (Vec<_>, Vec<_>) =
        all.rows.iter().cloned().zip(&compared.changes).partition(|(_, change)| change.is_news() || !has_all);
    let [changed, same] =
        [changed, same].map(|rows| Table { rows: rows.into_iter().map(|(row, _)| row).collect(), ..all.clone() });
    html! {
        h2 { "What changed" }
        dl.runs {
            @for (label, run) in [("before", &compared.before), ("now", run)] {
                dt { (label) }
                dd { (run.heading()) @if let Some(peaks) = &run.peaks { br; (ceilings_line(peaks)) } }
            }
        }
        @if !changed.rows.is_empty() { (table("What changed", &changed)) }
        p.note { (words) }
        @if !same.rows.is_empty() {
            details {
                summary { (counted(same.rows.len(), "case")) " did as before" }
                (table("Cases that did as before", &same))
            }
        }
    }
}

/// A group of cases, which opens: its table, and why those are slow that the list does not have.
fn cases(run: &Run, group: Group, found: Option<&Answer<'_>>) -> Markup {
    let of_group = run.cases.iter().enumerate().filter(|(_, case)| case.subject.group == group);
    let cases: Vec<(usize, &Record)> = of_group.collect();
    let parts = || cases.iter().filter_map(|(_, case)| case.fraction_of_ceiling);
    let (least, most) = (parts().fold(f64::MAX, f64::min), parts().fold(0.0, f64::max));
    let rows = cases.iter().map(|(at, _)| id(*at)).collect::<Vec<_>>();
    html! {
        details {
            summary {
                h2 { (group.title()) } " "
                span {
                    (counted(cases.len(), "case"))
                    @if most > 0.0 { ", " (percent(Some(least))) " to " (percent(Some(most))) " of the ceiling" }
                }
            }
            (sorted_table(group.title(), &Table::of(CASE, cases.iter().map(|(_, case)| *case)), &rows))
            @if let Some(found) = found { (notes(&cases, found)) }
        }
    }
}

/// Why some cases of a table are slow. It refers to the list for those that have an entry there.
fn notes(cases: &[(usize, &Record)], found: &Answer<'_>) -> Markup {
    // Cases with one reason share it, and each has its command.
    let mut slow: Vec<(Vec<&Record>, Vec<&Reason>)> = Vec::new();
    let mut places: HashMap<(&str, &str), usize> = HashMap::new();
    for (case, reason) in cases.iter().filter_map(|(at, case)| Some((*case, found.reason_of(*at)?))) {
        let place = *places.entry((&reason.why, &reason.attempt)).or_insert(slow.len());
        if place == slow.len() {
            slow.push((Vec::new(), Vec::new()));
        }
        slow[place].0.push(case);
        slow[place].1.push(reason);
    }
    let advice = |reason: &Reason, commands: Vec<&str>| {
        let (text, steps, stalls) = match found.same_advice(reason) {
            Some(again) => (again, &[][..], &[][..]),
            None => (reason.attempt.to_string(), reason.steps, reason.stalls),
        };
        html! { (linked(&text, &reason.links)) (lists(steps, stalls, commands)) }
    };
    let entries: BTreeSet<usize> = cases.iter().filter_map(|(at, _)| found.entry_of(*at)).collect();
    html! {
        @if !entries.is_empty() {
            p {
                "The list of the slowest cases has the causes for the "
                @for (at, entry) in entries.iter().enumerate() {
                    @if at > 0 { ", " }
                    a href=(format!("#entry-{entry}")) { (found.entries[*entry].first().place()) " case" }
                }
                "."
            }
        }
        @if !slow.is_empty() {
            dl {
                @for (all, reasons) in slow {
                    dt { (all.iter().map(|case| &*case.name).collect::<Vec<_>>().join("; ")) }
                    dd {
                        (reasons[0].cause) ". " (linked(&reasons[0].why, &reasons[0].links)) " "
                        (advice(reasons[0], reasons.iter().filter_map(|reason| reason.command.as_deref()).collect()))
                    }
                }
            }
        }
    }
}

/// The build and the device.
fn foot(run: &Run) -> Markup {
    let lines = about::foot(run);
    html! {
        @if !lines.is_empty() {
            h2 { (about::FOOT) }
            dl { @for (label, line) in lines { dt { (label) } dd { (line) } } }
        }
    }
}

/// The name in the page of the row of the case at this place of the run.
fn id(at: usize) -> String {
    format!("case-{at}")
}

fn figures(charts: &[&Chart]) -> Markup {
    html! {
        div.charts {
            @for chart in charts {
                figure {
                    figcaption { (chart.title) }
                    div.scroll tabindex="0" role="region" aria-label={ "Chart: " (chart.title) } { (PreEscaped(&chart.svg)) }
                    @if !chart.note.is_empty() { p.note { (chart.note) } }
                }
            }
        }
    }
}

fn table(name: &str, table: &Table) -> Markup {
    sorted_table(name, table, &[])
}

/// A table with its rows' names in the page, where they have any. Its first cells are headings.
fn sorted_table(name: &str, Table { words, header, rows }: &Table, ids: &[String]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "Table: " (name) } {
            table {
                thead { tr { @for (at, heading) in header.iter().enumerate() { th.words[at < *words] scope="col" { (heading) } } } }
                tbody {
                    @for (at, row) in rows.iter().enumerate() {
                        tr id=[ids.get(at)] {
                            @for (at, cell) in row.iter().enumerate() {
                                @if at == 0 { th.words scope="row" { (cell) } }
                                @else { td.words[at < *words].wrong[cell == "NO"] { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn ceilings(peaks: &Peaks, charts: &[&Chart]) -> Markup {
    let rows = table::ceilings(peaks).into_iter().map(Vec::from).collect();
    let all = Table { words: 2, rows, ..Table::new(&["ceiling", "launched as", "GB/s", "of nominal"]) };
    html! {
        details {
            summary { h2 { "Ceilings" } " " span { "how they were measured, and the L2 cache" } }
            (table("Ceilings", &all))
            (figures(charts))
        }
    }
}

/// The meaning of the tables' words.
fn words(run: &Run) -> Markup {
    let is_timed = run.cases.iter().any(|case| case.ms.is_some());
    html! {
        h2 { "Words" }
        dl {
            @if is_timed {
                dt { "ms, p10, p90" }
                dd { "The median of the samples, and the times that a tenth and nine tenths of them took at most; each with a cold L2 \
                      cache, by the device's own events." }
                dt { "of copy" }
                dd { "Against a copy of the same array in the same run." }
                dt { "GB/s" }
                dd { "10⁹ bytes a second, read and written by the operation itself, at the median." }
                dt { "of ceiling" }
                dd { "Against the ceiling of the case, which the top of the page explains." }
                dt { "of nominal" }
                dd { "Against the data sheet's speed: the memory's clock and width, by the device's attributes." }
                dt { "discarded" }
                dd { "Samples that were retaken because the device was throttled." }
            }
            @if run.cases.iter().any(|case| case.doubt().is_some()) {
                dt { "doubts" }
                dd {
                    "throttled: the clocks stayed low for as long as the measurement waited, and the times say little. gaps: not all \
                     launches were queued before the first ran, and the host's gaps between them are in the times."
                }
            }
            @if run.cases.iter().any(|case| case.predicted.is_some()) {
                dt { "predicted ms" }
                dd {
                    "By the model, not measured: the slowest of memory, L2 cache, shared memory and launches, from the counters"
                    @if DeviceModel::of(&run.device.name).is_none() { ", on another device" } "."
                }
            }
            @if run.transfers.is_some() {
                dt { "pageable, pinned, registered, write-combined" }
                dd {
                    "Ordinary memory; page-locked memory that the device allocated; ordinary memory that was page-locked where it \
                     lies; page-locked memory that the host's caches pass by, which is slow to read."
                }
                dt { "of link" }
                dd { "Against the link's rate in the direction, or in both; its protocol takes a part of that." }
                dt { "copies until it pays" }
                dd { "The copies to the device after which the time to page-lock is won back against ordinary memory." }
            }
            @if run.cases.iter().any(|case| case.counters.is_some()) { (counters_words()) }
            @if run.cases.iter().any(|case| case.counters.is_some_and(|counters| counters.ideal.sectors() == 0)) {
                dt { "sectors/request" }
                dd { "Such pieces that a load or store of a warp touches; the best value is the number that its bytes fill." }
            }
        }
    }
}

fn counters_words() -> Markup {
    html! {
        dt { "sectors/ideal" }
        dd {
            "Memory moves sectors of 32 bytes. The figure is the number of sectors that loads or stores touch, for each one that \
             would hold the bytes that their lanes ask for; 1.00x is best. Loads and stores have a figure each."
        }
        dt { "bank conflicts" }
        dd { "Wavefronts, or passes through shared memory, beyond those that the width of the accesses needs." }
        dt { "warp, lane, request" }
        dd { "32 threads execute together as a warp, each as a lane of it. An access of a warp to memory is a request." }
    }
}
