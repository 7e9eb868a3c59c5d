//! Draws an access as text, at most 120 columns wide.

use std::fmt::{self, Write};

use super::WarpAccess;
use super::rows::{Group, Row, SECTOR_WORDS, WORDS};
use crate::gpu::vocabulary::{Space, lanes_of};

const GLOBAL_KEY: &str =
    "a cell is a word of 4 bytes: the lane that touches it (+ and others), or · where it comes along unused";
const GLOBAL_UPDATE_KEY: &str =
    "a cell is a word of 4 bytes: the lane that updates it (+ and others in turn), or · where it comes along unused";
const SHARED_KEY: &str = "a cell is a word of 4 bytes: the lane that touches it (+ and others)";

impl WarpAccess {
    /// Draws the 32 addresses as text, at most 120 columns wide.
    ///
    /// Global memory appears as the touched lines of 128 bytes, divided into sectors of 32. Shared
    /// memory appears in rows, with a word for each of the 32 banks. Below them stands the number
    /// of words that each bank has to serve; for most atomics, whose lanes take turns even at one
    /// word, it is the number of lanes.
    pub fn draw(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = match self.space {
            Space::Shared => self.draw_banks(&mut text),
            _ => self.draw_sectors(&mut text),
        };
        text
    }

    fn draw_sectors(&self, text: &mut String) -> fmt::Result {
        let rows = self.rows(u32::MAX);
        let labels = labels(&rows);
        let width = labels.iter().map(|label| label.len()).max().unwrap_or(0);
        writeln!(text, "{}\n{}", self.heading(), self.cost())?;
        write!(text, "{:width$} ", "")?;
        for sector in 0..WORDS / SECTOR_WORDS {
            write!(text, "│{:^24}", format!("sector {sector}"))?;
        }
        writeln!(text, "│")?;
        for (row, label) in rows.iter().zip(labels) {
            write!(text, "{label:>width$} ")?;
            for (word, &lanes) in row.words.iter().enumerate() {
                let border = if word % SECTOR_WORDS == 0 { "│" } else { "" };
                write!(text, "{border}{}", cell(lanes, if row.touches(word / SECTOR_WORDS) { " · " } else { "   " }))?;
            }
            writeln!(text, "│")?;
        }
        writeln!(text, "{}", if self.kind.is_update() { GLOBAL_UPDATE_KEY } else { GLOBAL_KEY })
    }

    fn draw_banks(&self, text: &mut String) -> fmt::Result {
        let groups = self.groups();
        let width = groups.iter().flat_map(|group| labels(&group.rows)).map(|label| label.len()).max().unwrap_or(0);
        let width = width.max("words".len());
        writeln!(text, "{}\n{}", self.heading(), self.cost())?;
        for group in &groups {
            draw_group(text, group, width, groups.len() > 1)?;
        }
        writeln!(text, "{SHARED_KEY}; {}", shared_turns(&groups))
    }
}

fn draw_group(text: &mut String, group: &Group, width: usize, one_of_several: bool) -> fmt::Result {
    if one_of_several {
        writeln!(text, "{}", group.heading())?;
    }
    write!(text, "{:>width$} │", "bank")?;
    (0..WORDS).try_for_each(|bank| write!(text, "{bank:>2} "))?;
    writeln!(text, "│")?;
    for (row, label) in group.rows.iter().zip(labels(&group.rows)) {
        write!(text, "{label:>width$} │")?;
        row.words.iter().try_for_each(|&lanes| text.write_str(&cell(lanes, "   ")))?;
        writeln!(text, "│")?;
    }
    write!(text, "{:>width$} │", group.counted())?;
    for count in group.in_bank {
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
