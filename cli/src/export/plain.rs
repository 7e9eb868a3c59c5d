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
mod tests {
    use super::*;

    #[test]
    fn cells_fold_between_words_and_stay_in_their_columns() {
        let mut table = Table::new(&["", "expectation", "found"]);
        table.words = 3;
        table.add_row(["held", "checkers find nothing", "0 faults"]);
        table.add_row(["FELL SHORT", "argument 0 is copy:1", "3 equal; [3] = 1"]);
        let wide = "            expectation            found\n\
                    held        checkers find nothing  0 faults\n\
                    FELL SHORT  argument 0 is copy:1   3 equal; [3] = 1\n";
        assert_eq!(lines(&table, None), wide);
        assert_eq!(lines(&table, Some(60)), wide);
        let narrow = "            expectation   found\n\
                      held        checkers      0 faults\n\
                      \x20           find nothing\n\
                      FELL SHORT  argument 0    3 equal; [3]\n\
                      \x20           is copy:1     = 1\n";
        assert_eq!(lines(&table, Some(39)), narrow);
    }
}
