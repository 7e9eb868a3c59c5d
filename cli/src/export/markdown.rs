//! A run as Markdown.

use crate::run::Run;
use crate::run::columns::CASE;
use crate::run::table::Table;
use warpstride::error::printable_line;

/// The heading of the run, and a table for each group.
pub(crate) fn markdown(run: &Run) -> String {
    let mut text = format!("{}\n", escaped(&run.heading()));
    for group in run.groups() {
        text += &format!("\n## {}\n\n{}", group.title(), table(&Table::of(CASE, run.group(group))));
    }
    if let Some(transfers) = &run.transfers {
        let tables = [transfers.table(), transfers.pinning_table(), transfers.frames_table()];
        text += &format!("\n## Transfers\n\n{}\n", transfers.link_line());
        text.extend(tables.iter().map(|of| format!("\n{}", table(of))));
    }
    if let Some(all) = &run.pipeline {
        text += &format!("\n## Pipeline\n\n{}\n\n{}", escaped(&all.heading()), table(&all.table()));
    }
    text
}

fn table(Table { words, header, rows }: &Table) -> String {
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
