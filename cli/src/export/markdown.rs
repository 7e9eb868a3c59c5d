//! A run as Markdown.

use crate::run::Run;
use crate::run::about;
use crate::run::answer::{Answer, Row};
use crate::run::columns::CASE;
use crate::run::compare::Compared;
use crate::run::figures::{code, parts_of_code};
use crate::run::table::{self, Table, ceilings_line};
use warpstride::error::printable_line;

/// The heading of the run, the cases furthest from their ceilings, and a table for each group. The
/// changes since another run stand before the cases.
pub(crate) fn markdown(run: &Run, compared: Option<&Compared>) -> String {
    let lead = about::lead(run).map_or(String::new(), |lead| format!("\n{lead}\n"));
    let mut text = format!("# {}\n{lead}\n{}\n", escaped(&run.title()), escaped(&run.heading()));
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
    let foot = about::foot(run);
    if !foot.is_empty() {
        text += &format!("\n## {}\n\n", about::FOOT);
        text.extend(foot.iter().map(|(label, line)| format!("- {label}: {}\n", escaped(line))));
    }
    text
}

fn answer(answer: &Answer<'_>) -> String {
    let mut text = format!("\n## {}\n\n**{}**", answer.title(), escaped(&answer.summary()));
    text.extend(answer.coverage().map(|rest| format!(" {}", escaped(&rest))));
    text += &format!("\n\n{}\n", escaped(&answer.intro()));
    for entry in &answer.entries {
        text += &format!("\n**{}**\n\n", entry.cause());
        for case in entry.shown() {
            text += &format!("- {}, **{}**: {}\n", case.place(), escaped(&case.record.name), escaped(&case.figures()));
        }
        text.extend(entry.more().map(|more| format!("- {more}\n")));
        text.extend(entry.whose().map(|whose| format!("\n{whose}\n")));
        text.extend(entry.rows().iter().map(row));
    }
    text
}

/// A line of an entry, with the lists below it.
fn row(Row { label, text, steps, stalls, command }: &Row) -> String {
    let mut row = format!("\n{label}: {}\n", with_code(text));
    let block = |indent: &str| {
        let command = command.as_deref().map(printable_line);
        command.map_or(String::new(), |command| format!("\n{indent}```sh\n{indent}{command}\n{indent}```\n"))
    };
    if steps.is_empty() {
        row += &block("");
    }
    for (number, step) in (1..).zip(*steps) {
        let gap = if number == 1 { "\n" } else { "" };
        row += &format!("{gap}{number}. {}\n", with_code(step));
        if number == 1 {
            row += &block("   ");
        }
    }
    let indent = if steps.is_empty() { "" } else { "   " };
    row.extend((steps.is_empty() && !stalls.is_empty()).then_some('\n'));
    row.extend(stalls.iter().map(|stall| format!("{indent}- {}\n", with_code(stall))));
    row
}

/// Returns a text escaped, but for its names in code type.
fn with_code(text: &str) -> String {
    let parts = parts_of_code(text).into_iter().enumerate();
    parts.map(|(at, part)| if at % 2 == 0 { escaped(part) } else { code(&printable_line(part)) }).collect()
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
