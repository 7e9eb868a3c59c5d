//! A run as one HTML page, which needs no other file, no network and no script: its style and
//! charts are inside.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::svg::{self, Chart};
use crate::run::Run;
use crate::run::columns::CASE;
use crate::run::pipelines::WORDS;
use crate::run::table::{self, Table};
use warpstride::error::{Result, printable};
use warpstride::roofline::model::DeviceModel;
use warpstride::roofline::peak::Peaks;
use warpstride::roofline::record::Group;

const STYLE: &str = "\
body{font:15px/1.5 system-ui,sans-serif;color:#1f2733;background:#fff;max-width:72rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2.5rem}.note{color:#5b6573}\
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}\
th,td{padding:.25rem .7rem;border-bottom:1px solid #dfe4ec;text-align:right;white-space:nowrap}\
th:first-child,td:first-child,th:nth-child(2),td:nth-child(2){text-align:left}\
.wrong{color:#b42318;font-weight:bold}figure{margin:1rem 0}figure svg{max-width:100%;height:auto}\
dt{font-weight:bold}dd{margin:0 0 .6rem}";

/// Draws the page of a run.
///
/// # Errors
///
/// As [`svg::charts`].
pub(crate) fn page(run: &Run) -> Result<String> {
    let charts = svg::charts(run)?;
    let title = format!("warpstride on {}", run.device.name);
    let wrong = run.wrong();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                // Browsers ask the server for an icon unless they are given one.
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) }
                p.note { (run.heading()) @if let Some(ptx) = &run.ptx { br; "kernels: " (ptx) } }
                @if let Some(clocks) = run.clocks {
                    p.note {
                        "Clocks at the end: multiprocessors " (clocks.sm_mhz) " of " (clocks.sm_max_mhz) " MHz, memory "
                        (clocks.memory_mhz) " MHz" @if clocks.are_throttled() { ", throttled" } "."
                    }
                }
                @if !wrong.is_empty() { p.wrong { "Wrong results: " (wrong.join(", ")) } }
                @if let Some(peaks) = &run.peaks { (ceilings(peaks)) }
                @if !run.has_times() { p { (super::NO_TIMES) } }
                @for chart in charts.iter().filter(|chart| ["roofline", "sizes"].contains(&&*chart.name)) {
                    (figure(chart))
                }
                @for group in run.groups() {
                    h2 { (group.title()) }
                    (table(&Table::of(CASE, run.group(group))))
                    @for chart in charts.iter().filter(|chart| chart.name.starts_with(&group.title().to_lowercase())) { (figure(chart)) }
                    (reasons(run, group))
                }
                @if let Some(transfers) = &run.transfers {
                    h2 { "Transfers" }
                    p.note { (transfers.link_line()) }
                    (table(&transfers.table()))
                    @for chart in charts.iter().filter(|chart| chart.name == "transfers") { (figure(chart)) }
                    (table(&transfers.pinning_table()))
                    (table(&transfers.frames_table()))
                }
                @if let Some(all) = &run.pipeline {
                    h2 { "Pipeline" }
                    p.note { (all.heading()) }
                    (table(&all.table()))
                    @if run.has_times() { p.note { (WORDS) } }
                    @for chart in charts.iter().filter(|chart| chart.name.starts_with("pipeline")) { (figure(chart)) }
                }
                (words(run))
            }
        }
    };
    Ok(printable(&page.into_string()))
}

fn figure(chart: &Chart) -> Markup {
    html! { figure { figcaption { (chart.title) } (PreEscaped(&chart.svg)) } }
}

fn table(table: &Table) -> Markup {
    html! {
        div.scroll {
            table {
                thead { tr { @for heading in &table.header { th { (heading) } } } }
                tbody {
                    @for row in &table.rows {
                        tr { @for cell in row { td.wrong[cell == "NO"] { (cell) } } }
                    }
                }
            }
        }
    }
}

fn ceilings(peaks: &Peaks) -> Markup {
    html! {
        h2 { "Ceilings" }
        (table(&Table {
            words: 2,
            rows: table::ceilings(peaks).into_iter().map(Vec::from).collect(),
            ..Table::new(&["ceiling", "launched as", "GB/s", "of nominal"])
        }))
    }
}

/// Why each case of a group is as fast as it is, by its counters.
fn reasons(run: &Run, group: Group) -> Markup {
    // A stream wastes nothing.
    if group == Group::Stream {
        return html! {};
    }
    html! {
        dl {
            @for case in run.group(group) {
                @if let Some(why) = case.why() {
                    dt { (case.name) }
                    dd {
                        (why)
                        @if let Some(shape) = &case.counted_shape {
                            " Counted at " (format!("{shape:?}")) ", whose accesses are of the same kinds, and multiplied."
                        }
                    }
                }
            }
        }
    }
}

/// The meaning of the tables' words.
fn words(run: &Run) -> Markup {
    html! {
        h2 { "Words" }
        dl {
            @if run.has_times() {
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
            dt { "sectors/ideal" }
            dd {
                "Pieces of 32 bytes that loads or stores touch, for each one that would hold the bytes that their lanes ask for; \
                 1.00x is best."
            }
            @if run.cases.iter().any(|case| case.counters.is_some_and(|counters| counters.ideal.sectors() == 0)) {
                dt { "sectors/request" }
                dd { "Such pieces that a load or store of a warp touches; the best value is the number that its bytes fill." }
            }
            dt { "bank conflicts" }
            dd { "Passes through shared memory beyond those that the width of the accesses needs." }
        }
    }
}
