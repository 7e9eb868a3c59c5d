//! Fits a table into the columns of a terminal. Until it fits, these happen in turn:
//!
//! 1. The gaps between columns shrink, and headings fold at spaces and behind slashes.
//! 2. Cells of words fold in the same way, and behind underscores and commas ([`Fold`]).
//! 3. Columns are left out in the order of [`LEFT_OUT`]; a line below the table names them.

use textwrap::core::{Word, display_width};
use textwrap::{Options, WordSeparator, WordSplitter};
use warpstride::error::printable_line;

use crate::run::table::Table;

/// The headings of columns that a table may do without, the first ones first.
const LEFT_OUT: [&[&str]; 13] = [
    &["p10", "p90"],
    &["of nominal"],
    &["discarded"],
    &["us/launch"],
    &["lanes"],
    &["executions"],
    &["/request"],
    &["ideal"],
    &["kernel"],
    &["loads", "stores"],
    &["bank conflicts"],
    &["load sectors/request", "store sectors/request"],
    &["load sectors/ideal", "store sectors/ideal"],
];
/// Columns of words fold down to these widths, the second one only where a table without all of
/// [`LEFT_OUT`] is still too wide, and then to their longest word.
const LEAST: [usize; 3] = [24, 12, 0];
/// The columns between two of a table that is drawn as it is, and of one that is fitted.
const GAPS: [usize; 2] = [3, 2];

/// The places where cells of words fold.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fold {
    /// Between words alone, so that a name can be copied.
    Words,
    /// In long names, too: behind underscores, commas and slashes.
    Names,
}

/// A table as it is drawn.
pub(super) struct Fitted {
    pub(super) words: usize,
    pub(super) header: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// The headings of those columns that are not drawn.
    pub(super) left_out: Vec<String>,
    /// True if the gaps are small.
    pub(super) is_narrow: bool,
}

/// The widths of a column.
struct Widths {
    /// As it is.
    natural: usize,
    /// With its heading folded, and its cells too if they hold words.
    least: usize,
    holds_words: bool,
}

/// Fits a table into `width` columns; into any number without it. Of the folds, the first one
/// counts by which the table fits.
pub(super) fn fitted(table: &Table, width: Option<usize>, folds: &[Fold]) -> Fitted {
    let rows = table.rows.iter().map(|row| row.iter().map(|cell| printable_line(cell)).collect());
    let whole = Fitted {
        words: table.words,
        header: table.header.clone(),
        rows: rows.collect(),
        left_out: Vec::new(),
        is_narrow: false,
    };
    let widths_by = |fold| (0..table.header.len()).map(|at| whole.widths(at, fold)).collect::<Vec<_>>();
    let widths = widths_by(Fold::Names);
    let natural = widths.iter().map(|column| column.natural + GAPS[0]).sum::<usize>();
    let Some(width) = width.filter(|&width| natural > width + 1) else { return whole };
    let (mut kept, mut by) = (Vec::new(), Fold::Names);
    for &fold in folds {
        let widths = widths_by(fold);
        let (fits, columns) = narrowed(table, &widths, width);
        (kept, by) = (columns, fold);
        if fits {
            break;
        }
    }
    whole.folded(&kept, by)
}

/// The places and widths of the columns that are drawn in `width` columns, and whether they fit.
fn narrowed(table: &Table, widths: &[Widths], width: usize) -> (bool, Vec<(usize, usize)>) {
    let ways = LEAST.iter().flat_map(|&least| (0..=LEFT_OUT.len()).map(move |count| (least, count)));
    let mut kept = Vec::new();
    for (least, count) in ways {
        let left_out = LEFT_OUT[..count].concat();
        // The first column says what a row is.
        let stays = |&at: &usize| at == 0 || !left_out.contains(&&*table.header[at]);
        kept = (0..widths.len()).filter(stays).map(|at| (at, widths[at].at_least(least))).collect::<Vec<_>>();
        let all = kept.iter().map(|(_, column)| column + GAPS[1]).sum::<usize>();
        if all <= width + 1 {
            grow(&mut kept, widths, width + 1 - all);
            return (true, kept);
        }
    }
    (false, kept)
}

/// Gives columns of words the room that is left, those first that lack most.
fn grow(kept: &mut [(usize, usize)], widths: &[Widths], mut room: usize) {
    let lacks = |&(at, width): &(usize, usize)| if widths[at].holds_words { widths[at].natural - width } else { 0 };
    while room > 0 {
        let Some(column) = kept.iter_mut().max_by_key(|column| lacks(column)).filter(|column| lacks(column) > 0) else {
            return;
        };
        column.1 += 1;
        room -= 1;
    }
}

impl Widths {
    fn at_least(&self, least: usize) -> usize {
        if self.holds_words { self.natural.min(self.least.max(least)) } else { self.least }
    }
}

impl Fitted {
    fn widths(&self, at: usize, fold: Fold) -> Widths {
        let holds_words = at < self.words;
        let widest = |widths: &dyn Fn(&str) -> usize| self.rows.iter().map(|row| widths(&row[at])).max().unwrap_or(0);
        let (whole, heading) = (widest(&display_width), &self.header[at]);
        let cells = if holds_words { widest(&|cell| longest(cell, fold)) } else { whole };
        Widths {
            natural: whole.max(display_width(heading)),
            least: cells.max(longest(heading, Fold::Names)),
            holds_words,
        }
    }

    /// The table of some columns by their places and widths.
    fn folded(self, kept: &[(usize, usize)], fold: Fold) -> Self {
        let line = |cells: &[String], fold| kept.iter().map(|&(at, width)| folded(&cells[at], width, fold)).collect();
        let is_kept = |at: usize| kept.iter().any(|&(kept, _)| kept == at);
        Self {
            words: (0..self.words).filter(|&at| is_kept(at)).count(),
            header: line(&self.header, Fold::Names),
            rows: self.rows.iter().map(|row| line(row, fold)).collect(),
            left_out: (0..self.header.len()).filter(|&at| !is_kept(at)).map(|at| self.header[at].clone()).collect(),
            is_narrow: true,
        }
    }
}

/// The parts between which a text folds. A unit such as `GB/s` stays whole.
fn parts(text: &str, fold: Fold) -> impl Iterator<Item = Word<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let is_end = |&(at, c): &(usize, char)| match c {
            ' ' => true,
            _ if matches!(fold, Fold::Words) => false,
            '_' | ',' => true,
            '/' if at > 0 => rest[at + 1..].chars().nth(1).is_some_and(|c| c != ' '),
            _ => false,
        };
        let end = rest.char_indices().find(is_end).map_or(rest.len(), |(at, _)| at + 1);
        let part;
        (part, rest) = rest.split_at(end);
        (!part.is_empty()).then(|| Word::from(part))
    })
}

fn longest(text: &str, fold: Fold) -> usize {
    parts(text, fold).map(|part| display_width(&part)).max().unwrap_or(0)
}

fn folded(text: &str, width: usize, fold: Fold) -> String {
    let options = Options::new(width)
        .break_words(false)
        .word_separator(WordSeparator::Custom(match fold {
            Fold::Words => |line| Box::new(parts(line, Fold::Words)),
            Fold::Names => |line| Box::new(parts(line, Fold::Names)),
        }))
        .word_splitter(WordSplitter::NoHyphenation);
    textwrap::fill(text, options)
}

#[cfg(test)]
mod tests;
