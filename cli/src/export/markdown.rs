//! A run as Markdown.

use crate::run::Run;
use crate::run::answer::Answer;
use crate::run::columns::CASE;
use crate::run::compare::Compared;
use crate::run::table::{self, Table, ceilings_line};
use warpstride::error::printable_line;

/// The heading of the run, the cases furthest from their ceilings, and a table for each group. The
/// changes since another run stand before the cases.
pub(crate) fn markdown(run: &Run, compared: Option<&Compared>) -> String {
    let mut text = format!("# {}\n\n{}\n", escaped(&run.title()), escaped(&run.heading()));
    if let Some(peaks) = &run.peaks {
        text += &format!("\n{}\n", ceilings_line(peaks));
    }
    if let Some(compared) = compared {
        let (changes, words) = table::changes(&compared.changes);
        text += &format!(
            "\n## What changed\n\nBefore: {}\n\n{}\n{words}\n",
            escaped(&compared.before.heading()),
            drawn(&changes)
        );
    }
    text += &Answer::of(run).map_or(String::new(), |found| answer(&found));
    for group in run.groups() {
        text += &format!("\n## {}\n\n{}", group.title(), drawn(&Table::of(CASE, run.group(group))));
    }
    if let Some(transfers) = &run.transfers {
        let tables = [transfers.table(), transfers.pinning_table(), transfers.frames_table()];
        text += &format!("\n## Transfers\n\n{}\n", transfers.link_line());
        text.extend(tables.iter().map(|of| format!("\n{}", drawn(of))));
    }
    if let Some(all) = &run.pipeline {
        text += &format!("\n## Pipeline\n\n{}\n\n{}", escaped(&all.heading()), drawn(&all.table()));
    }
    text
}

fn answer(answer: &Answer<'_>) -> String {
    let mut text = format!("\n## {}\n\n{}\n\n", answer.title(), answer.intro());
    for (number, finding) in (1..).zip(&answer.findings) {
        text += &format!("{number}. **{}**: {}\n", escaped(&finding.record.name), escaped(&finding.line()));
        text.extend(finding.rows().iter().map(|(label, row)| format!("   - {label}: {}\n", escaped(row))));
    }
    text + &format!("\n{}\n", answer.summary())
}

fn drawn(Table { words, header, rows }: &Table) -> String {
    let line = |cells: &mut dyn Iterator<Item = String>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
    let mut text = line(&mut header.iter().map(|cell| escaped(cell)));
    text += &line(&mut (0..header.len()).map(|at| if at < *words { "---".into() } else { "---:".into() }));
    for cells in rows {
        text += &line(&mut cells.iter().map(|cell| escaped(cell)));
    }
    text
}

/// Returns a cell's text with the characters escaped that begin HTML, links, code or a new cell.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable_line(text).chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '\\' | '|' | '`' | '[' | ']' | '*' => escaped.extend(['\\', c]),
            _ => escaped.push(c),
        }
    }
    escaped
}
