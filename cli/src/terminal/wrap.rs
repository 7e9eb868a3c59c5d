//! Wraps lines that are longer than the terminal is wide.

use std::borrow::Cow;

use textwrap::core::display_width;
use textwrap::{Options, WordSeparator, WordSplitter};

/// Longer lines are hard to read, however wide the terminal is.
const READABLE: usize = 100;
/// Columns from one stop of tabs to the next.
const TAB: usize = 8;

/// Wraps a line between words. A word that is longer than the line stays whole, so that a path can
/// be copied. The line may hold escapes of colours.
pub(super) fn wrapped(line: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return line.to_owned() };
    let line = &*expanded(line);
    if display_width(line) <= width {
        return line.to_owned();
    }
    let width = width.min(READABLE);
    let filled = |indent: &str| {
        let options = Options::new(width)
            .subsequent_indent(indent)
            .break_words(false)
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation);
        textwrap::fill(line, options)
    };
    let fits = |lines: &String| lines.lines().all(|line| display_width(line) <= width);
    let below = filled(&indent(line, width));
    // A long word may have room further to the left.
    if fits(&below) { below } else { Some(filled("    ")).filter(fits).unwrap_or(below) }
}

/// Returns a line with spaces in place of its tabs, as a terminal shows it: a tab has no width of
/// its own.
fn expanded(line: &str) -> Cow<'_, str> {
    if !line.contains('\t') {
        return line.into();
    }
    let mut text = String::with_capacity(line.len() + TAB);
    for part in line.split_inclusive('\t') {
        text += part.trim_end_matches('\t');
        if part.ends_with('\t') {
            text += &" ".repeat(TAB - display_width(&text) % TAB);
        }
    }
    text.into()
}

/// Returns the beginning of the further lines of a wrapped one: the marks of its quotation, and as
/// many spaces as its text is indented, or stands behind the mark of a list or a first column.
fn indent(line: &str, width: usize) -> String {
    let text = line.trim_start_matches([' ', '>']);
    let before = &line[..line.len() - text.len()];
    let mark = text.split_inclusive(' ').next().unwrap_or_default();
    let number = mark.trim_end().strip_suffix('.');
    let is_list = mark == "- " || number.is_some_and(|number| number.parse::<u32>().is_ok());
    // Two spaces or more end a column.
    let column = text.find("  ").map(|end| text.len() - text[end..].trim_start().len());
    let column = column.map(|begin| display_width(&text[..begin])).filter(|column| 3 * column <= width);
    let behind = if is_list { mark.len() } else { column.unwrap_or(0) };
    before.to_owned() + &" ".repeat(behind)
}

#[cfg(test)]
mod tests;
