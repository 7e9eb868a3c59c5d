//! `warpstride report`: tables, charts and a page of a run, from its file alone.

use std::fs;
use std::path::{Path, PathBuf};

use crate::export::{csv, html, markdown, svg, text};
use crate::run::Run;
use crate::run::answer::Answer;
use crate::run::compare::Compared;
use anyhow::{Context, Result};
use serde_json::json;
use warpstride::io::Destination;

use super::output::Output;
use super::{args, destination, require, runs, terminal};

pub(super) fn run(args: &args::Report, output: &Output) -> Result<()> {
    let run = runs::read(&args.run)?;
    let before = args.compare.as_deref().map(runs::read).transpose()?;
    let compared = before.map(|before| Compared::of(before, &run)).transpose()?;
    let changes = compared.as_ref().map(|compared| &*compared.changes);
    let outputs = outputs(args, &run, compared.as_ref())?;
    let targets = targets(args, &outputs, output)?;
    for (target, (_, bytes)) in targets.iter().zip(&outputs) {
        destination::replace(target, |file| file.write_all(bytes))?;
    }
    let written: Vec<String> = outputs.iter().map(|(path, _)| path.display().to_string()).collect();
    let mut shown = if written.is_empty() && changes.is_none() { text::run(&run) } else { String::new() };
    if let Some(changes) = changes {
        shown += &(text::heading(&run) + &text::changes(changes));
    }
    shown.extend(outputs.iter().map(|(path, _)| format!("wrote {}\n", terminal::path(path))));
    output.result(&shown, json!({ "device": run.device, "date": run.date, "written": written, "changes": changes }))?;
    runs::ensure_none_worse(changes.unwrap_or(&[]))
}

/// The contents of the files that were asked for.
fn outputs(args: &args::Report, run: &Run, compared: Option<&Compared>) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut outputs = Vec::new();
    if let Some(path) = &args.html {
        outputs.push((path.clone(), html::page(run, compared)?.into_bytes()));
    }
    if let Some(path) = &args.markdown {
        outputs.push((path.clone(), markdown::markdown(run, compared).into_bytes()));
    }
    if let Some(path) = &args.csv {
        outputs.push((path.clone(), csv::csv(run)?));
    }
    if let Some(folder) = &args.svg {
        let charts = svg::charts(run, compared.map(|compared| &compared.before), Answer::of(run).as_ref())?;
        require!(
            !charts.is_empty() || !run.has_times(),
            InvalidArgument,
            "the run has no ceilings, and so no charts: measure it with bench --all, or leave --svg out"
        );
        require!(!charts.is_empty(), InvalidArgument, "the run has no times, and so no charts: leave --svg out");
        for chart in charts {
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
