//! A run as one HTML page, which needs no other file and no network: its style, its script and its
//! charts are inside.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::svg::{self, Chart};
use crate::run::Run;
use crate::run::answer::Answer;
use crate::run::columns::CASE;
use crate::run::compare::Compared;
use crate::run::pipelines::WORDS;
use crate::run::reasons::{self, Reason};
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
    let charts = svg::charts(run, compared.map(|compared| &compared.before))?;
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
                    @if let Some(found) = Answer::of(run) { (answer(run, &found)) }
                    @if !run.has_times() { p { (super::NO_TIMES) } }
                    (figures(&of("roofline")))
                    @for group in run.groups() { (cases(run, group)) }
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
        p.note { (run.heading()) @if let Some(ptx) = &run.ptx { br; "kernels: " (ptx) } }
        @if let Some(clocks) = run.clocks {
            p.note {
                "Clocks at the end: multiprocessors " (clocks.sm_mhz) " of " (clocks.sm_max_mhz) " MHz, memory "
                (clocks.memory_mhz) " MHz" @if clocks.are_throttled() { ", throttled" } "."
            }
        }
        @if let Some(peaks) = &run.peaks { p { (ceilings_line(peaks)) } }
        @if !wrong.is_empty() { p.wrong { "Wrong results: " (wrong.join(", ")) } }
    }
}

/// The cases furthest from their ceilings, and why.
fn answer(run: &Run, answer: &Answer<'_>) -> Markup {
    html! {
        h2 { (answer.title()) }
        p.note { (answer.intro()) }
        ol.answer {
            @for finding in &answer.findings {
                li {
                    a href={ "#" (id(run, finding.record)) } { (finding.record.name) } br; (finding.line())
                    dl { @for (label, row) in finding.rows() { dt { (label) } dd { (row) } } }
                }
            }
        }
        p { (answer.summary()) }
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

/// A group of cases, which opens: its table, and why some are slow.
fn cases(run: &Run, group: Group) -> Markup {
    let cases: Vec<&Record> = run.group(group).collect();
    // Cases with one reason share it.
    let mut slow: Vec<(Vec<&str>, Reason)> = Vec::new();
    for case in cases.iter().filter(|case| reasons::is_slow(case)) {
        let reason = reasons::of(run, case);
        match slow.iter_mut().find(|(_, other)| (&other.why, &other.attempt) == (&reason.why, &reason.attempt)) {
            Some((names, _)) => names.push(&case.name),
            None => slow.push((vec![&case.name], reason)),
        }
    }
    let parts = || cases.iter().filter_map(|case| case.fraction_of_ceiling);
    let (least, most) = (parts().fold(f64::MAX, f64::min), parts().fold(0.0, f64::max));
    let rows = cases.iter().map(|case| id(run, case)).collect::<Vec<_>>();
    html! {
        details {
            summary {
                h2 { (group.title()) } " "
                span {
                    (counted(cases.len(), "case"))
                    @if most > 0.0 { ", " (percent(Some(least))) " to " (percent(Some(most))) " of the ceiling" }
                }
            }
            (sorted_table(group.title(), &Table::of(CASE, cases.iter().copied()), &rows))
            @if !slow.is_empty() {
                dl {
                    @for (names, reason) in slow {
                        dt { (names.join("; ")) }
                        dd { (reason.cause) ". " (reason.why) " " (reason.attempt) }
                    }
                }
            }
        }
    }
}

/// The name of a case's row in the page.
fn id(run: &Run, record: &Record) -> String {
    let at = run.cases.iter().position(|case| std::ptr::eq(case, record));
    at.map_or(String::new(), |at| format!("case-{at}"))
}

fn figures(charts: &[&Chart]) -> Markup {
    html! {
        div.charts {
            @for chart in charts {
                figure {
                    figcaption { (chart.title) }
                    div.scroll tabindex="0" role="region" aria-label={ "Chart: " (chart.title) } { (PreEscaped(&chart.svg)) }
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
                dd { "Against the best simple kernels of this device for as many bytes read and written." }
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
        dd { "Passes through shared memory beyond those that the width of the accesses needs." }
        dt { "warp, lane, request" }
        dd { "32 threads execute together as a warp, each as a lane of it. An access of a warp to memory is a request." }
    }
}
