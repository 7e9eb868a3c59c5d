//! Draws an access as text, in a form for 120 columns and one for 80.

use std::fmt::{self, Write};
use std::ops::Range;

use super::WarpAccess;
use super::rows::{Group, ROW_BYTES, Row, SECTOR_WORDS, WORDS};
use crate::gpu::vocabulary::{Space, lanes_of};

const GLOBAL_KEY: &str =
    "a cell is a word of 4 bytes: the lane that touches it (+ and others), or · where it comes along unused";
const GLOBAL_UPDATE_KEY: &str =
    "a cell is a word of 4 bytes: the lane that updates it (+ and others in turn), or · where it comes along unused";
const SHARED_KEY: &str = "a cell is a word of 4 bytes: the lane that touches it (+ and others)";

/// The columns of a drawing in its wide form, which has 128 bytes in a row. A narrow one has 64,
/// and at most 80 columns.
const WIDE: usize = 120;

impl WarpAccess {
    /// Draws the 32 addresses as text, at most 120 columns wide.
    ///
    /// Global memory appears as the touched lines of 128 bytes, divided into sectors of 32. Shared
    /// memory appears in rows, with a word for each of the 32 banks. Below them stands the number
    /// of words that each bank has to serve; for most atomics, whose lanes take turns even at one
    /// word, it is the number of lanes.
    pub fn draw(&self) -> String {
        self.draw_within(WIDE)
    }

    /// Draws them in a form for a number of columns, from 80 on. The last line, which explains the
    /// cells, may be longer.
    #[doc(hidden)]
    pub fn draw_within(&self, columns: usize) -> String {
        let mut text = String::new();
        let parts = if columns < WIDE { 2 } else { 1 };
        // Writing to a string cannot fail.
        let _ = match self.space {
            Space::Shared => self.draw_banks(&mut text, parts),
            _ => self.draw_sectors(&mut text, parts),
        };
        text
    }

    /// Draws each line of 128 bytes in `parts` rows, in the order of the addresses.
    fn draw_sectors(&self, text: &mut String, parts: usize) -> fmt::Result {
        let (sectors, bytes) = (WORDS / SECTOR_WORDS / parts, ROW_BYTES / parts as u64);
        let is_touched = |words: &[u32]| words.iter().any(|&lanes| lanes != 0);
        let rows = self.rows(u32::MAX);
        let part = |row: &Row, at: usize| {
            let words = &row.words[at * sectors * SECTOR_WORDS..][..sectors * SECTOR_WORDS];
            is_touched(words).then(|| (row.start + at as u64 * bytes, words.to_vec()))
        };
        let parts: Vec<_> = rows.iter().flat_map(|row| (0..parts).filter_map(move |at| part(row, at))).collect();
        let labels = labels(parts.iter().map(|part| part.0));
        let width = labels.iter().map(|label| label.len()).max().unwrap_or(0);
        write!(text, "{}\n{}\n{:width$} ", self.heading(), self.cost(), "")?;
        for sector in 0..sectors {
            // A row of less than a line holds other sectors of it than the next one.
            let heading = if sectors < WORDS / SECTOR_WORDS {
                format!("sector at +{}", sector * SECTOR_WORDS * 4)
            } else {
                format!("sector {sector}")
            };
            write!(text, "│{heading:^24}")?;
        }
        writeln!(text, "│")?;
        for ((_, words), label) in parts.iter().zip(&labels) {
            write!(text, "{label:>width$} ")?;
            for sector in words.chunks(SECTOR_WORDS) {
                let untouched = if is_touched(sector) { " · " } else { "   " };
                let cells: String = sector.iter().map(|&lanes| cell(lanes, untouched)).collect();
                write!(text, "│{cells}")?;
            }
            writeln!(text, "│")?;
        }
        writeln!(text, "{}", if self.kind.is_update() { GLOBAL_UPDATE_KEY } else { GLOBAL_KEY })
    }

    /// Draws the banks in `parts`, one below the other.
    fn draw_banks(&self, text: &mut String, parts: usize) -> fmt::Result {
        let groups = self.groups();
        let width = groups.iter().flat_map(|group| group.labels()).map(|label| label.len()).max().unwrap_or(0);
        let width = width.max("words".len());
        writeln!(text, "{}\n{}", self.heading(), self.cost())?;
        for group in &groups {
            if groups.len() > 1 {
                writeln!(text, "{}", group.heading())?;
            }
            for part in 0..parts {
                let banks = part * WORDS / parts..(part + 1) * WORDS / parts;
                if banks.clone().any(|bank| group.in_bank[bank] > 0) {
                    draw_group(text, group, width, banks)?;
                } else {
                    writeln!(text, "no lane touches banks {} to {}", banks.start, banks.end - 1)?;
                }
            }
        }
        writeln!(text, "{SHARED_KEY}; `{}` counts those of a bank, which take turns", counted_in(&groups))
    }
}

/// Draws some banks of a group, with the rows that have words there.
fn draw_group(text: &mut String, group: &Group, width: usize, banks: Range<usize>) -> fmt::Result {
    write!(text, "{:>width$} │", "bank")?;
    banks.clone().try_for_each(|bank| write!(text, "{bank:>2} "))?;
    writeln!(text, "│")?;
    for (row, label) in group.rows.iter().zip(group.labels()) {
        let words = &row.words[banks.clone()];
        if words.iter().all(|&lanes| lanes == 0) {
            continue;
        }
        write!(text, "{label:>width$} │")?;
        words.iter().try_for_each(|&lanes| text.write_str(&cell(lanes, "   ")))?;
        writeln!(text, "│")?;
    }
    write!(text, "{:>width$} │", group.counted())?;
    for &count in &group.in_bank[banks] {
        if count == 0 { write!(text, "   ") } else { write!(text, "{count:>2} ") }?;
    }
    writeln!(text, "│")
}

/// The three columns of a word that `lanes` touch; `untouched` if no lane does.
fn cell(lanes: u32, untouched: &str) -> String {
    match (lanes_of(lanes).next(), lanes.count_ones()) {
        (None, _) => untouched.to_owned(),
        (Some(lane), 1) => format!("{lane:>2} "),
        (Some(lane), _) => format!("{lane:>2}+"),
    }
}

/// The sentence that says what takes turns in shared memory.
pub(super) fn shared_turns(groups: &[Group]) -> String {
    format!("{} in one bank take turns", counted_in(groups))
}

fn counted_in(groups: &[Group]) -> &'static str {
    groups.first().map_or("words", Group::counted)
}

/// The label of each row by the addresses where they start: the first address, and the distance in
/// bytes of the others from it.
pub(super) fn labels(starts: impl Iterator<Item = u64> + Clone) -> Vec<String> {
    let first = starts.clone().next().unwrap_or(0);
    let label = |(index, start): (usize, u64)| match index {
        0 => format!("{first:#x}"),
        _ => format!("+{}", start - first),
    };
    starts.enumerate().map(label).collect()
}

impl Group {
    pub(super) fn labels(&self) -> Vec<String> {
        labels(self.rows.iter().map(|row| row.start))
    }
}
