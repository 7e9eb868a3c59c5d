//! The one way of text to standard output and standard error. Text of others, such as names and
//! messages, acts on no terminal: it is made visible here, and our own colours come after.

mod keys;
mod markdown;
mod scroll;
mod wrap;

use std::env;
#[cfg(unix)]
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::Stdio;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use serde_json::Value;
use terminal_size::{Height, Width, terminal_size_of};
use warpstride::error::{is_hidden, printable, printable_line};
use warpstride::io::write_standard_output;

#[cfg(unix)]
pub(super) use keys::resume;
pub(super) use keys::{Busy, DOWN, END_OF_INPUT, Keys, UP, restore};
pub(super) use markdown::rendered;
pub(super) use scroll::{Scroll, has_screen};

/// Characters of a bar.
pub(super) const BAR: usize = 8;
// Marks of looks in text, which are characters of no script. Cells of bars become blocks in
// colours.
const WARM: char = '\u{fdd0}';
const HOT: char = '\u{fdd1}';
/// It begins words with a look, up to [`END`].
const STRONG: char = '\u{fdd2}';
const EMPHASIS: char = '\u{fdd3}';
const CODE: char = '\u{fdd4}';
/// A line of a program, or of what a program prints.
const PROGRAM: char = '\u{fdd5}';
const TITLE: char = '\u{fdd6}';
const SECTION: char = '\u{fdd7}';
const END: char = '\u{fdd8}';
/// It begins a line that is not wrapped, such as one of a program.
const WHOLE: char = '\u{fdd9}';

/// Returns text as standard output shows it, with its lines wrapped.
fn on_screen(text: &str) -> String {
    on_screen_of(text, width())
}

/// The same for a terminal of other columns.
fn on_screen_of(text: &str, columns: Option<usize>) -> String {
    shown(text, Looks::of(&io::stdout()), columns)
}

/// Writes a result of any number of lines to standard output. Lines that are longer than the
/// terminal is wide are wrapped.
pub(super) fn print(text: &str) -> io::Result<()> {
    write(&on_screen(text))
}

/// Writes a page to standard output, as [`print`] does, and for a pager, too.
pub(super) fn print_page(text: &str) -> io::Result<()> {
    write(&shown(text, Looks::of(&io::stdout()), page_width()))
}

/// Writes text that programs read to standard output, with the lines that it has.
pub(super) fn print_as_it_is(text: &str) -> io::Result<()> {
    write(&shown(text, Looks::of(&io::stdout()), None))
}

fn write(shown: &str) -> io::Result<()> {
    write_standard_output(|out| out.write_all(shown.as_bytes()))
}

/// Clears a terminal. The lines that have scrolled away stay.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

/// Clears the terminal of standard output, if it is one that can be cleared.
pub(super) fn clear() -> io::Result<()> {
    if can_be_cleared() { write(CLEAR) } else { Ok(()) }
}

fn can_be_cleared() -> bool {
    let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
    !is_dumb && io::stdout().is_terminal()
}

/// The columns of standard output: the number that `COLUMNS` names, or else the width of the
/// terminal. `None` in a file or a pipe, which have no width: there a sentence stays on one line,
/// where `grep` finds it, and a table has all of its columns.
pub(super) fn width() -> Option<usize> {
    named_width().or_else(|| terminal_size_of(io::stdout()).map(|(Width(columns), _)| columns.into()))
}

/// The rows of the terminal of standard output, where it tells them.
fn height() -> Option<usize> {
    terminal_size_of(io::stdout()).map(|(_, Height(rows))| rows.into()).filter(|&rows| rows > 0)
}

/// The columns of a page: in a pipe, where a pager may read it, those of the terminal on which
/// standard error is.
pub(super) fn page_width() -> Option<usize> {
    width().or_else(|| width_of_errors().filter(|_| is_pipe()))
}

#[cfg(unix)]
fn is_pipe() -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileTypeExt;

    let copy = io::stdout().as_fd().try_clone_to_owned();
    copy.and_then(|copy| File::from(copy).metadata()).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_pipe() -> bool {
    false
}

/// The columns of standard error, in the same way.
fn width_of_errors() -> Option<usize> {
    named_width().or_else(|| terminal_size_of(io::stderr()).map(|(Width(columns), _)| columns.into()))
}

fn named_width() -> Option<usize> {
    env::var("COLUMNS").ok()?.parse().ok().filter(|&columns| columns > 0)
}

/// Returns a line that is not wrapped.
pub(super) fn whole(line: &str) -> String {
    format!("{WHOLE}{line}")
}

/// Writes a document to standard output. It stays the same document: what JSON does not escape
/// becomes an escape of JSON.
pub(super) fn print_document(document: &Value) -> io::Result<()> {
    let text = escaped(&format!("{document:#}\n"));
    write_standard_output(|out| out.write_all(text.as_bytes()))
}

/// Writes bytes of a program that the person runs to standard output, at once and as they are.
pub(super) fn pass_output(bytes: &[u8]) {
    // A closed stream has no reader, and the program goes on.
    let _ = write_standard_output(|out| out.write_all(bytes));
}

/// Does so on standard error.
pub(super) fn pass_errors(bytes: &[u8]) {
    let _ = io::stderr().lock().write_all(bytes);
}

/// Returns standard error, for a program whose standard output would stand in a document.
pub(super) fn errors_for_program() -> Stdio {
    Stdio::from(io::stderr())
}

/// Writes text to standard error, wrapped as on standard output, and with the line ends that it
/// has.
pub(super) fn say(text: &str) {
    // A closed stream has no reader.
    let _ = io::stderr().write_all(shown(text, Looks::of(&io::stderr()), width_of_errors()).as_bytes());
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

/// Looks of bars and words.
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

    /// Begins words with a look. Without colours they have the marks of Markdown.
    fn begun(self, mark: char) -> String {
        let style = Style::new();
        let (style, plain) = match mark {
            STRONG => (style.bold(), "**"),
            EMPHASIS => (style.italic(), "*"),
            CODE => (AnsiColor::Cyan.on_default(), "`"),
            PROGRAM => (AnsiColor::Cyan.on_default(), ""),
            TITLE => (style.bold().underline(), "# "),
            SECTION => (style.bold(), "## "),
            _ => (style, ""),
        };
        if self == Self::Colours { style.to_string() } else { plain.into() }
    }

    /// Ends the last of the looks that are open; those around it go on.
    fn ended(self, open: &mut Vec<char>) -> String {
        let Some(ended) = open.pop() else { return String::new() };
        if self == Self::Colours {
            return "\u{1b}[0m".to_owned() + &open.iter().map(|&mark| self.begun(mark)).collect::<String>();
        }
        if matches!(ended, STRONG | EMPHASIS | CODE) { self.begun(ended) } else { String::new() }
    }
}

/// Returns text with its looks, and with its lines wrapped where they are longer than `width`.
fn shown(text: &str, looks: Looks, width: Option<usize>) -> String {
    let text = printable(text);
    let line = |line: &str| match line.strip_prefix(WHOLE) {
        Some(line) => looked(line, looks),
        None => wrap::wrapped(&looked(line, looks), width),
    };
    let lines: Vec<String> = text.split('\n').map(line).collect();
    lines.join("\n")
}

/// Returns a line with looks in place of its marks.
fn looked(line: &str, looks: Looks) -> String {
    let (mut shown, mut open) = (String::with_capacity(line.len()), Vec::new());
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            WARM | HOT => {
                let more = std::iter::from_fn(|| characters.next_if_eq(&c)).count();
                shown += &looks.cells(c, 1 + more);
            }
            STRONG..=SECTION => {
                open.push(c);
                shown += &looks.begun(c);
            }
            END => shown += &looks.ended(&mut open),
            WHOLE => {}
            _ => shown.push(c),
        }
    }
    while !open.is_empty() {
        shown += &looks.ended(&mut open);
    }
    shown
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
mod tests;
