//! Draws an access as text, in a form for 120 columns and one for 80.

use std::fmt::{self, Write};
use std::ops::Range;

use super::WarpAccess;
use super::rows::{Group, Row, SECTOR_WORDS, WORDS};
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

    /// Draws each line of 128 bytes in `parts` rows.
    fn draw_sectors(&self, text: &mut String, parts: usize) -> fmt::Result {
        let rows = self.rows(u32::MAX);
        let labels = labels(&rows);
        let width = labels.iter().map(|label| label.len()).max().unwrap_or(0);
        writeln!(text, "{}\n{}", self.heading(), self.cost())?;
        for part in 0..parts {
            let sectors = part * WORDS / SECTOR_WORDS / parts..(part + 1) * WORDS / SECTOR_WORDS / parts;
            let is_touched = |row: &Row| sectors.clone().any(|sector| row.touches(sector));
            if !rows.iter().any(is_touched) {
                continue;
            }
            write!(text, "{:width$} ", "")?;
            for sector in sectors.clone() {
                write!(text, "│{:^24}", format!("sector {sector}"))?;
            }
            writeln!(text, "│")?;
            // In the wide form a row without a touched sector would be no row.
            for (row, label) in rows.iter().zip(&labels).filter(|(row, _)| is_touched(row)) {
                write!(text, "{label:>width$} ")?;
                for word in sectors.start * SECTOR_WORDS..sectors.end * SECTOR_WORDS {
                    let border = if word % SECTOR_WORDS == 0 { "│" } else { "" };
                    let untouched = if row.touches(word / SECTOR_WORDS) { " · " } else { "   " };
                    write!(text, "{border}{}", cell(row.words[word], untouched))?;
                }
                writeln!(text, "│")?;
            }
        }
        writeln!(text, "{}", if self.kind.is_update() { GLOBAL_UPDATE_KEY } else { GLOBAL_KEY })
    }

    /// Draws the banks in `parts`, one below the other.
    fn draw_banks(&self, text: &mut String, parts: usize) -> fmt::Result {
        let groups = self.groups();
        let width = groups.iter().flat_map(|group| labels(&group.rows)).map(|label| label.len()).max().unwrap_or(0);
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
                }
            }
        }
        writeln!(text, "{SHARED_KEY}; {}", shared_turns(&groups))
    }
}

/// Draws some banks of a group, with the rows that have words there.
fn draw_group(text: &mut String, group: &Group, width: usize, banks: Range<usize>) -> fmt::Result {
    write!(text, "{:>width$} │", "bank")?;
    banks.clone().try_for_each(|bank| write!(text, "{bank:>2} "))?;
    writeln!(text, "│")?;
    for (row, label) in group.rows.iter().zip(labels(&group.rows)) {
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
    format!("{} in one bank take turns", groups.first().map_or("words", Group::counted))
}

/// The label of each row: the address of the first, and the distance in bytes of the others from
/// it.
pub(super) fn labels(rows: &[Row]) -> Vec<String> {
    let first = rows.first().map_or(0, |row| row.start);
    let label = |(index, row): (usize, &Row)| match index {
        0 => format!("{first:#x}"),
        _ => format!("+{}", row.start - first),
    };
    rows.iter().enumerate().map(label).collect()
}
