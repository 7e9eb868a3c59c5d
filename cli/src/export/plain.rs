//! A table without lines across, such as that of a check.

use textwrap::core::display_width;

use super::fit::{self, Fold};
use crate::run::table::Table;
use crate::terminal;

/// The gap between two columns.
const GAP: &str = "  ";

/// Returns a table of words as it fits the terminal: a cell that is too wide folds between words.
pub(crate) fn plain(table: &Table) -> String {
    lines(table, terminal::width())
}

fn lines(table: &Table, width: Option<usize>) -> String {
    let fitted = fit::fitted(table, width, &[Fold::Words, Fold::Names]);
    let rows: Vec<Vec<Vec<&str>>> = [&fitted.header]
        .into_iter()
        .chain(&fitted.rows)
        .map(|row| row.iter().map(|cell| cell.split('\n').collect()).collect())
        .collect();
    let columns = fitted.header.len();
    let widest = |at: usize| rows.iter().flat_map(|row| &row[at]).map(|part| display_width(part)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    let mut text = String::new();
    for row in &rows {
        let height = row.iter().map(Vec::len).max().unwrap_or(0);
        for at in 0..height {
            let parts = row.iter().zip(&widths).map(|(cell, &width)| {
                let part = cell.get(at).copied().unwrap_or_default().trim_end();
                format!("{part}{}", " ".repeat(width - display_width(part)))
            });
            text += parts.collect::<Vec<_>>().join(GAP).trim_end();
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests;
