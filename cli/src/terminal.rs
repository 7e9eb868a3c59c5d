//! The one way of text to standard output and standard error. Text of others, such as names and
//! messages, acts on no terminal: it is made visible here, and our own colours come after.

use std::io::{self, Write};
use std::path::Path;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::AnsiColor;
use serde_json::Value;
use warpstride::error::{is_hidden, printable, printable_line};
use warpstride::io::write_standard_output;

/// Characters of a bar.
pub(super) const BAR: usize = 8;
/// Cells of bars, as text holds them. They are characters of no script, and become blocks in
/// colours.
const WARM: char = '\u{fdd0}';
const HOT: char = '\u{fdd1}';

/// Writes a result of any number of lines to standard output.
pub(super) fn print(text: &str) -> io::Result<()> {
    let shown = shown(text, Looks::of(&io::stdout()));
    write_standard_output(|out| out.write_all(shown.as_bytes()))
}

/// Writes a document to standard output. It stays the same document: what JSON does not escape
/// becomes an escape of JSON.
pub(super) fn print_document(document: &Value) -> io::Result<()> {
    let text = escaped(&format!("{document:#}\n"));
    write_standard_output(|out| out.write_all(text.as_bytes()))
}

/// Writes text to standard error as it is, with the line ends that it has.
pub(super) fn say(text: &str) {
    // A closed stream has no reader.
    let _ = io::stderr().write_all(shown(text, Looks::of(&io::stderr())).as_bytes());
}

/// Returns a path as a text of several lines shows it: on its own line.
pub(super) fn path(path: &Path) -> String {
    printable_line(&path.display().to_string())
}

/// Returns a bar for a part of 1, as wide as [`BAR`].
pub(super) fn bar(part: f64) -> String {
    let cells = ((part * BAR as f64).ceil() as usize).min(BAR);
    let cell = if 2 * cells < BAR { WARM } else { HOT };
    String::from(cell).repeat(cells) + &" ".repeat(BAR - cells)
}

/// Looks of bars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looks {
    Plain,
    Blocks,
    Colours,
}

impl Looks {
    /// Those that suit a stream, and the variables `NO_COLOR` and `CLICOLOR_FORCE`.
    fn of<S: RawStream>(stream: &S) -> Self {
        match AutoStream::choice(stream) {
            ColorChoice::Never if stream.is_terminal() => Self::Blocks,
            ColorChoice::Never => Self::Plain,
            _ => Self::Colours,
        }
    }

    fn cells(self, cell: char, count: usize) -> String {
        let cells = if self == Self::Plain { "#" } else { "█" }.repeat(count);
        if self != Self::Colours {
            return cells;
        }
        let colour = if cell == WARM { AnsiColor::Yellow } else { AnsiColor::Red }.on_default();
        format!("{colour}{cells}{colour:#}")
    }
}

fn shown(text: &str, looks: Looks) -> String {
    let text = printable(text);
    let (mut shown, mut rest) = (String::with_capacity(text.len()), &*text);
    while let Some((begin, cell)) = rest.char_indices().find(|(_, c)| matches!(*c, WARM | HOT)) {
        let (before, cells) = rest.split_at(begin);
        let end = cells.find(|c| c != cell).unwrap_or(cells.len());
        shown += before;
        shown += &looks.cells(cell, end / cell.len_utf8());
        rest = &cells[end..];
    }
    shown + rest
}

/// Returns JSON with its hidden characters, which only strings hold, as escapes.
fn escaped(document: &str) -> String {
    let mut text = String::with_capacity(document.len());
    for c in document.chars() {
        if is_hidden(c) && c != '\n' {
            text.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bars_are_as_wide_as_their_column() {
        let bar = |looks, part| shown(&bar(part), looks);
        assert_eq!(bar(Looks::Plain, 0.0), "        ");
        assert_eq!(bar(Looks::Plain, 0.001), "#       ");
        assert_eq!(bar(Looks::Plain, 0.5), "####    ");
        assert_eq!(bar(Looks::Blocks, 1.0), "████████");
        assert_eq!(bar(Looks::Colours, 0.2), "\u{1b}[33m██\u{1b}[0m      ");
        assert_eq!(bar(Looks::Colours, 0.6), "\u{1b}[31m█████\u{1b}[0m   ");
        assert_eq!(bar(Looks::Colours, 0.0), "        ");
    }

    #[test]
    fn a_document_stays_the_same_and_has_no_hidden_characters() {
        let document = json!({ "name": "a\u{1b}\u{9b}\u{7f}\u{202e}\"\\é" });
        let text = escaped(&format!("{document:#}"));
        assert!(!text.contains(|c| is_hidden(c) && c != '\n'), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), document);
    }
}
