//! `warpstride report`: tables, charts and a page of a run, from its file alone.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use warpstride::io::Destination;
use warpstride::roofline::compare::{self, Change, THRESHOLD, Verdict};
use warpstride::roofline::report::{Case, Group, Run, Table};
use warpstride::roofline::{page, plot};

use super::output::{self, Output, number};
use super::{args, destination, require, runs};
use warpstride::error::counted;

pub(super) fn run(args: &args::Report, output: &Output) -> Result<()> {
    let run = runs::read(&args.run)?;
    let changes = match &args.compare {
        Some(before) => Some(compare::changes(&runs::read(before)?, &run)?),
        None => None,
    };
    let outputs = outputs(args, &run)?;
    let targets = targets(args, &outputs, output)?;
    for (target, (_, bytes)) in targets.iter().zip(&outputs) {
        destination::replace(target, |file| file.write_all(bytes))?;
    }
    let written: Vec<String> = outputs.iter().map(|(path, _)| path.display().to_string()).collect();
    let mut shown = if written.is_empty() && changes.is_none() { text(&run) } else { String::new() };
    if let Some(changes) = &changes {
        shown += &changes_text(changes);
    }
    shown.extend(written.iter().map(|path| format!("wrote {path}\n")));
    output.result(&shown, json!({ "device": run.device, "date": run.date, "written": written, "changes": changes }))?;
    ensure_none_worse(changes.as_deref().unwrap_or(&[]))
}

/// The files that are asked for, drawn.
fn outputs(args: &args::Report, run: &Run) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut outputs = Vec::new();
    if let Some(path) = &args.html {
        outputs.push((path.clone(), page::page(run)?.into_bytes()));
    }
    if let Some(path) = &args.markdown {
        outputs.push((path.clone(), markdown(run).into_bytes()));
    }
    if let Some(path) = &args.csv {
        outputs.push((path.clone(), csv(run)?));
    }
    if let Some(folder) = &args.svg {
        for chart in plot::charts(run)? {
            outputs.push((folder.join(chart.name).with_extension("svg"), chart.svg.into_bytes()));
        }
        // Last what is in the folder, which is made when all else is known to work.
        outputs.sort_by_key(|(path, _)| path.starts_with(folder));
    }
    Ok(outputs)
}

/// Makes sure, before any is written, that no output is a run that was read, or another output.
fn targets(args: &args::Report, outputs: &[(PathBuf, Vec<u8>)], output: &Output) -> Result<Vec<Destination>> {
    let inputs: Vec<&Path> = args.compare.iter().chain([&args.run]).map(PathBuf::as_path).collect();
    let mut targets = Vec::new();
    for (path, _) in outputs {
        if let Some(folder) = args.svg.as_ref().filter(|folder| path.starts_with(folder)) {
            fs::create_dir_all(folder).with_context(|| {
                format!("cannot make the folder {}: name another one with --svg, or make it", folder.display())
            })?;
        }
        let target = destination::checked(path, &inputs, output)?;
        require!(
            !targets.contains(&target),
            InvalidArgument,
            "two outputs are one file, {}; name another for one",
            path.display()
        );
        targets.push(target);
    }
    Ok(targets)
}

/// The run as tables on a terminal.
pub(super) fn text(run: &Run) -> String {
    let mut text = format!("{}\n", run.heading());
    for group in Group::ALL.into_iter().filter(|&group| run.group(group).next().is_some()) {
        let Table { header, rows } = run.table(group);
        let mut table = output::table(&header);
        rows.into_iter().for_each(|row| {
            table.add_row(row);
        });
        text += &format!("\n{}\n{table}\n", group.title());
    }
    if !run.has_times() {
        text += "No GB/s: the software GPU is exact about what is moved and says nothing of the time a GPU takes.\n";
    }
    text
}

/// The same as Markdown.
fn markdown(run: &Run) -> String {
    let plain = |text: &str| {
        // What Markdown would take for its own, and HTML within it.
        let escaped = text.replace(['\n', '\r'], " ").replace('\\', "\\\\").replace('|', "\\|");
        escaped.replace('&', "&amp;").replace('<', "&lt;").replace('`', "\\`")
    };
    let row = |cells: &mut dyn Iterator<Item = String>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
    let mut text = format!("{}\n", plain(&run.heading()));
    for group in Group::ALL.into_iter().filter(|&group| run.group(group).next().is_some()) {
        let Table { header, rows } = run.table(group);
        text += &format!("\n## {}\n\n", group.title());
        text += &row(&mut header.iter().map(|cell| plain(cell)));
        text += &row(&mut header.iter().enumerate().map(|(at, _)| if at < 2 { "---".into() } else { "---:".into() }));
        for cells in rows {
            text += &row(&mut cells.iter().map(|cell| plain(cell)));
        }
    }
    text
}

/// The cases as comma-separated values: numbers as they are, nothing where there is none.
fn csv(run: &Run) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "group",
        "case",
        "op",
        "dtype",
        "shape",
        "axes",
        "from",
        "kernel",
        "verified",
        "read_bytes",
        "written_bytes",
        "median_ms",
        "p10_ms",
        "p25_ms",
        "p75_ms",
        "p90_ms",
        "gbps",
        "fraction_of_ceiling",
        "fraction_of_nominal",
        "gapless",
        "discarded",
        "throttled",
        "predicted_ms",
        "load_sectors_per_request",
        "store_sectors_per_request",
        "bank_conflicts",
    ])?;
    for case in &run.cases {
        writer.write_record(csv_row(case))?;
    }
    writer.into_inner().context("the table could not be finished")
}

fn csv_row(case: &Case) -> [String; 26] {
    let listed = |numbers: &[usize]| numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let value = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let (times, counters) = (case.times.as_ref(), case.counters.as_ref());
    [
        case.group.title().to_lowercase(),
        case.name.clone(),
        case.op.clone(),
        case.dtype.name().into(),
        listed(&case.shape),
        case.axes.as_deref().map(listed).unwrap_or_default(),
        case.from.map_or(String::new(), |from| from.name().into()),
        case.kernel.clone().unwrap_or_default(),
        case.verified.to_string(),
        case.read.to_string(),
        case.written.to_string(),
        value(times.map(|times| times.median_ms)),
        value(times.map(|times| times.p10_ms)),
        value(times.map(|times| times.p25_ms)),
        value(times.map(|times| times.p75_ms)),
        value(times.map(|times| times.p90_ms)),
        value(times.map(|times| times.gbps)),
        value(times.map(|times| times.fraction_of_ceiling)),
        value(times.and_then(|times| times.fraction_of_nominal)),
        times.map_or(String::new(), |times| times.gapless.to_string()),
        times.map_or(String::new(), |times| times.discarded.to_string()),
        times.map_or(String::new(), |times| times.are_throttled().to_string()),
        value(case.predicted_ms),
        value(counters.and_then(|counters| counters.global_load.sectors_per_request())),
        value(counters.and_then(|counters| counters.global_store.sectors_per_request())),
        counters.map_or(String::new(), |counters| counters.bank_conflicts().to_string()),
    ]
}

/// What changed, as a table.
pub(super) fn changes_text(changes: &[Change]) -> String {
    let mut table = output::table(&["case", "before ms", "now ms", "change", "verdict"]);
    for Change { name, before_ms, now_ms, verdict, doubt } in changes {
        let change = before_ms.zip(*now_ms).map(|(before, now)| 100.0 * (now / before - 1.0));
        let change = change.map_or("-".into(), |percent| format!("{percent:+.1} %"));
        let (before, now) = (number(*before_ms, 4, ""), number(*now_ms, 4, ""));
        let verdict = doubt.map_or(verdict.name().into(), |doubt| format!("{} ({doubt})", verdict.name()));
        table.add_row([name, &before, &now, &change, &verdict]);
    }
    format!(
        "{table}\nfaster, slower: the middle halves of the samples are apart, and the medians by more than {:.0} %. throttled, gaps: \
         of either run, whose times then decide nothing.\n",
        100.0 * THRESHOLD
    )
}

/// Fails where something is slower than it was, wrong or gone, or where nothing could be compared.
pub(super) fn ensure_none_worse(changes: &[Change]) -> Result<()> {
    let worse = [
        (Verdict::Slower, "are slower than they were"),
        (Verdict::Wrong, "gave wrong elements"),
        (Verdict::Gone, "are no longer there"),
    ];
    let of = |verdict| changes.iter().filter(move |change| change.verdict == verdict);
    let said: Vec<String> = worse
        .into_iter()
        .filter(|&(verdict, _)| of(verdict).next().is_some())
        .map(|(verdict, what)| {
            let names: Vec<&str> = of(verdict).map(|change| change.name.as_str()).collect();
            format!("{} of {} {what}: {}", names.len(), counted(changes.len(), "case"), names.join(", "))
        })
        .collect();
    ensure!(said.is_empty(), "{}", said.join("; "));
    ensure!(
        changes.is_empty() || of(Verdict::Undecided).count() < changes.len(),
        "none of {} could be compared; measure both runs on a GPU that is not throttled",
        counted(changes.len(), "case")
    );
    Ok(())
}
