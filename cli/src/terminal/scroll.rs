//! Text on a screen of its own, of which as much is shown as fits. Keys show the rest.

use std::io;

use textwrap::core::display_width;

use super::{CLEAR, can_be_cleared, height, on_screen, on_screen_of, width, write};

/// The row in which the cursor waits, an empty one, and the one that says which lines are shown.
const TAKEN: usize = 3;

/// Returns whether standard output is a terminal whose rows are known and that can be cleared.
pub(crate) fn has_screen() -> bool {
    can_be_cleared() && height().is_some()
}

/// A text, and the part of it that is shown.
pub(crate) struct Scroll {
    text: String,
    /// The first line of each part up to the one that is shown.
    begins: Vec<usize>,
    /// The first line behind that part, if there is one.
    next: Option<usize>,
    /// The columns of the terminal by which these lines are counted; `None` before the first
    /// drawing.
    columns: Option<usize>,
}

impl Scroll {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), begins: vec![0], next: None, columns: None }
    }

    /// Moves to the next part, if there is one.
    pub(crate) fn forward(&mut self) {
        self.begins.extend(self.next.take());
    }

    /// Moves to the part before, if there is one.
    pub(crate) fn back(&mut self) {
        self.begins.truncate(self.begins.len().saturating_sub(1).max(1));
    }

    /// Counts the lines by other columns, so that a part still begins in the paragraph in which it
    /// began.
    fn resize(&mut self, columns: usize) {
        let Some(before) = self.columns.replace(columns).filter(|&before| before != columns) else { return };
        let [old, new] = [before, columns].map(|columns| heights(self.text.trim_end(), columns));
        let moved = |line: usize| {
            let (mut from, mut to) = (0, 0);
            for (old, new) in old.iter().zip(&new) {
                if line < from + old {
                    return to + (line - from) * new / old;
                }
                (from, to) = (from + old, to + new);
            }
            to
        };
        self.begins.iter_mut().chain(&mut self.next).for_each(|line| *line = moved(*line));
        self.begins.dedup();
    }

    /// Clears the terminal, and shows the part between the lines above and below it. So many rows
    /// stay free for notes.
    pub(crate) fn draw(&mut self, above: &str, below: &str, free: usize) -> io::Result<()> {
        let columns = width().unwrap_or(usize::MAX);
        self.resize(columns);
        let [above, lines, below] = [above, self.text.trim_end(), below].map(lines);
        let rows = |lines: &[String]| lines.iter().map(|line| rows(line, columns)).sum::<usize>();
        let taken = rows(&above) + rows(&below) + free + TAKEN;
        let room = height().unwrap_or(usize::MAX).saturating_sub(taken);
        let first = self.begins.last().map_or(0, |&first| first.min(lines.len() - 1));
        let fits = (first + 1..=lines.len()).take_while(|&end| rows(&lines[first..end]) <= room).last();
        let end = fits.unwrap_or(first + 1);
        // A part does not begin with an empty line.
        self.next = (end..lines.len()).find(|&at| !lines[at].is_empty());
        let place = place(first, end, lines.len(), self.next.is_some());
        let between: Vec<String> = [String::new()].into_iter().chain(place).collect();
        let all = [&above[..], &lines[first..end], &between, &below].concat();
        // A part may end within words that have a look.
        let reset = |line: &String| if line.contains('\u{1b}') { "\u{1b}[0m\n" } else { "\n" };
        write(&all.iter().fold(CLEAR.to_owned(), |screen, line| screen + line + reset(line)))
    }
}

/// Says which lines are shown, and which keys show others; `None` if all are.
fn place(first: usize, end: usize, all: usize, has_more: bool) -> Option<String> {
    let keys = match (has_more, first > 0) {
        (false, false) => return None,
        (true, false) => "more: space, Enter, Down, PgDn",
        (true, true) => "more: space, Enter, Down, PgDn; back: b, Up, PgUp",
        (false, true) => "back: b, Up, PgUp",
    };
    Some(format!("lines {} to {end} of {all}; {keys}", first + 1))
}

/// Text as the terminal shows it, with its lines wrapped.
fn lines(text: &str) -> Vec<String> {
    on_screen(text).split('\n').map(str::to_owned).collect()
}

/// The lines of each paragraph of a text.
fn heights(text: &str, columns: usize) -> Vec<usize> {
    text.split('\n').map(|line| on_screen_of(line, Some(columns)).split('\n').count()).collect()
}

/// The rows of a line: a line of a program may be longer than the terminal is wide.
fn rows(line: &str, columns: usize) -> usize {
    display_width(line).div_ceil(columns.max(1)).max(1)
}

#[cfg(test)]
mod tests;
