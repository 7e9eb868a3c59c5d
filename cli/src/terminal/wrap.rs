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
mod tests {
    use super::*;

    #[track_caller]
    fn is_wrapped(line: &str, width: usize, expected: &[&str]) {
        assert_eq!(wrapped(line, Some(width)).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn lines_are_wrapped_below_their_text() {
        is_wrapped("one two three", 13, &["one two three"]);
        is_wrapped("one two three", 12, &["one two", "three"]);
        is_wrapped("  one two three", 9, &["  one two", "  three"]);
        is_wrapped("> one two", 6, &["> one", "> two"]);
        is_wrapped("- one two", 6, &["- one", "  two"]);
        is_wrapped("10. one two", 9, &["10. one", "    two"]);
        is_wrapped("- [x] --one-two", 10, &["- [x]", "  --one-two"]);
        is_wrapped("a  what a is, and more", 16, &["a  what a is,", "   and more"]);
        is_wrapped("\u{1b}[1mone\u{1b}[0m two", 7, &["\u{1b}[1mone\u{1b}[0m two"]);
        is_wrapped("全角 全角", 8, &["全角", "全角"]);
        is_wrapped("a\tb\t\tc", 25, &["a       b               c"]);
        is_wrapped("全角\tone two", 14, &["全角    one", "two"]);
    }

    #[test]
    fn a_path_stays_whole() {
        is_wrapped("a name  a-very-long-word-x", 24, &["a name", "    a-very-long-word-x"]);
        is_wrapped("see /a/very/long-path now", 10, &["see", "/a/very/long-path", "now"]);
        assert_eq!(wrapped("one two three", None), "one two three");
    }
}
