//! Draws accesses as SVG: the rows of the text drawing, in colours.
//!
//! Each drawing brings its own background, light or dark as the reader's system asks, so that it is
//! legible on any page. It says in words what it shows, for readers who do not see it.

use std::fmt::{self, Write};

use super::draw::{labels, shared_turns};
use super::rows::{Group, ROW_BYTES, Row, SECTOR_WORDS, WORDS};
use super::{InstructionReport, Report, WarpAccess};
use crate::error::{counted, printable_line};
use crate::gpu::vocabulary::{Space, lanes_of};

/// In pixels: the margin, the distance from it to the first byte, a byte, the gap between sectors,
/// a cell, the distance between rows, the distance between lines of text, and the width of the
/// drawing.
const MARGIN: f64 = 20.0;
const LABELS: f64 = 140.0;
const BYTE: f64 = 6.5;
const GAP: f64 = 6.0;
const CELL: f64 = 20.0;
const ROW: f64 = 24.0;
const LINE_HEIGHT: f64 = 20.0;
const WIDTH: f64 = MARGIN + LABELS + ROW_BYTES as f64 * BYTE + 3.0 * GAP + MARGIN;

/// Colours are written out for light and dark alike, because few renderers except browsers support
/// CSS variables.
const STYLE: &str = "\
.ws text{font:12px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1f2733}.ws .title{font-weight:bold}\
.ws .mid{text-anchor:middle}.ws .end{text-anchor:end}\
.ws .page{fill:#fff}.ws .faint{fill:#667085}.ws .bad{fill:#b42318}.ws .row{fill:none;stroke:#dfe4ec}\
.ws .moved{fill:#cfd7e3}.ws .crowd{fill:#fbe3e0}\
@media(prefers-color-scheme:dark){.ws text{fill:#e8ecf2}.ws .page{fill:#14181f}.ws .faint{fill:#98a3b3}.ws .bad{fill:#ff9c8f}\
.ws .row{stroke:#2b3340}.ws .moved{fill:#465266}.ws .crowd{fill:#4b2421}}\
.ws .lane{fill:#fff;font-size:11px}.ws .half{font-size:8px}";

/// The subject that every drawing shows.
const SUBJECT: &str = "Memory accesses of a warp";

/// An unfinished drawing.
struct Canvas {
    /// Its elements so far.
    body: String,
    /// Sentences that say what they show.
    words: Vec<String>,
    /// The height at which the next one goes.
    y: f64,
}

impl Report {
    /// Draws the worst accesses of all instructions, in the order of the PTX: accesses to global
    /// memory as lines and sectors, accesses to shared memory as banks.
    pub fn to_svg(&self) -> String {
        let mut canvas = Canvas::new();
        for instruction in &self.instructions {
            for access in [&instruction.worst_global, &instruction.worst_shared].into_iter().flatten() {
                // Writing to a string cannot fail.
                let _ = canvas.instruction(instruction).and_then(|()| canvas.access(access));
                canvas.y += ROW;
            }
        }
        canvas.finish()
    }
}

impl WarpAccess {
    /// Draws the 32 addresses as a self-contained SVG image. It shows the content of
    /// [`WarpAccess::draw`] byte by byte.
    pub fn to_svg(&self) -> String {
        let mut canvas = Canvas::new();
        // Writing to a string cannot fail.
        let _ = canvas.access(self);
        canvas.finish()
    }
}

impl Canvas {
    fn new() -> Self {
        Self { body: String::new(), words: Vec::new(), y: 10.0 }
    }

    fn finish(self) -> String {
        let Self { body, words, y } = self;
        let (words, height) = (escaped(&words.join(" ")), y + MARGIN);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"ws\" role=\"img\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\">\n<title>{SUBJECT}</title>\n<desc>{words}</desc>\n\
             <style>{STYLE}</style>\n\
             <rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\" rx=\"8\"/>\n{body}</svg>\n"
        )
    }

    /// Writes a line of text from the left margin.
    fn line(&mut self, class: &str, text: &str) -> fmt::Result {
        self.y += LINE_HEIGHT;
        writeln!(self.body, "<text class=\"{class}\" x=\"{MARGIN}\" y=\"{}\">{}</text>", self.y, escaped(text))
    }

    fn instruction(&mut self, instruction: &InstructionReport) -> fmt::Result {
        let title = title(instruction);
        self.words.push(format!("{title}."));
        self.line("title", &title)
    }

    fn access(&mut self, access: &WarpAccess) -> fmt::Result {
        self.words.extend([access.heading(), access.cost()].map(|words| format!("{words}.")));
        self.line("", &access.heading())?;
        self.line("", &access.cost())?;
        match access.space {
            Space::Shared => self.banks(access),
            _ => self.sectors(access),
        }
    }

    fn sectors(&mut self, access: &WarpAccess) -> fmt::Result {
        let rows = access.rows(u32::MAX);
        self.y += LINE_HEIGHT;
        for sector in 0..WORDS / SECTOR_WORDS {
            let middle = sector_x(sector) + 16.0 * BYTE;
            self.label("mid faint", middle, &format!("sector {sector}"))?;
        }
        for (row, label) in rows.iter().zip(labels(rows.iter().map(|row| row.start))) {
            self.y += ROW;
            self.label("end faint", MARGIN + LABELS - 10.0, &label)?;
            for sector in 0..WORDS / SECTOR_WORDS {
                let class = if row.touches(sector) { "moved" } else { "row" };
                self.rect(class, sector_x(sector), 32.0 * BYTE)?;
            }
            self.pieces(access, u32::MAX, row, |byte| sector_x(byte / 32) + (byte % 32) as f64 * BYTE)?;
        }
        let turns = if access.kind.is_update() { ", which take turns at one address" } else { "" };
        self.line(
            "faint",
            &format!("numbers are lanes{turns}; grey bytes are moved with their sector but not requested"),
        )
    }

    fn banks(&mut self, access: &WarpAccess) -> fmt::Result {
        let groups = access.groups();
        for group in &groups {
            if groups.len() > 1 {
                self.line("", &group.heading())?;
            }
            self.group(access, group)?;
        }
        self.line("faint", &format!("numbers are lanes; {}", shared_turns(&groups)))
    }

    fn group(&mut self, access: &WarpAccess, group: &Group) -> fmt::Result {
        self.y += LINE_HEIGHT;
        let height = (group.rows.len() + 1) as f64 * ROW + 19.0;
        self.label("end faint", MARGIN + LABELS - 10.0, "bank")?;
        for (bank, &count) in group.in_bank.iter().enumerate() {
            if count > 1 {
                let (x, y, width) = (bank_x(bank), self.y - 14.0, 4.0 * BYTE);
                let rect = format!("x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"");
                writeln!(self.body, "<rect class=\"crowd\" {rect}/>")?;
            }
            let class = if count > 1 { "mid bad" } else { "mid faint" };
            self.label(class, bank_x(bank) + 2.0 * BYTE, &bank.to_string())?;
        }
        for (row, label) in group.rows.iter().zip(group.labels()) {
            self.y += ROW;
            self.label("end faint", MARGIN + LABELS - 10.0, &label)?;
            self.rect("row", bank_x(0), ROW_BYTES as f64 * BYTE)?;
            self.pieces(access, group.lanes, row, |byte| bank_x(0) + byte as f64 * BYTE)?;
        }
        self.y += ROW;
        self.label("end faint", MARGIN + LABELS - 10.0, group.counted())?;
        for (bank, &count) in group.in_bank.iter().enumerate().filter(|(_, count)| **count > 0) {
            let class = if count > 1 { "mid bad" } else { "mid" };
            self.label(class, bank_x(bank) + 2.0 * BYTE, &count.to_string())?;
        }
        Ok(())
    }

    /// Draws the parts of a row that `lanes` touch; `x` gives the position of each of its 128
    /// bytes.
    fn pieces(&mut self, access: &WarpAccess, lanes: u32, row: &Row, x: impl Fn(usize) -> f64) -> fmt::Result {
        let bytes = u64::from(access.width());
        for (address, lanes) in access.pieces(lanes).range(row.start..=row.start.saturating_add(ROW_BYTES - 1)) {
            let (x, y, width) = (x((address - row.start) as usize), self.y - CELL + 5.0, bytes as f64 * BYTE);
            let names: Vec<String> = lanes_of(*lanes).map(|lane| lane.to_string()).collect();
            let first = lanes.trailing_zeros();
            let (colour, all) = (colour(first), names.join(", "));
            writeln!(
                self.body,
                "<g><title>lane {all}: {bytes} at {address:#x}</title><rect x=\"{}\" y=\"{y}\" width=\"{}\" \
                 height=\"{CELL}\" rx=\"2\" fill=\"{colour}\"/>",
                x + 0.5,
                width - 1.0,
                bytes = counted(bytes, "byte")
            )?;
            let more = if names.len() > 1 && bytes >= 4 { "+" } else { "" };
            if bytes > 1 {
                let class = if bytes < 4 { "mid lane half" } else { "mid lane" };
                self.label(class, x + width / 2.0, &format!("{first}{more}"))?;
            }
            writeln!(self.body, "</g>")?;
        }
        Ok(())
    }

    fn rect(&mut self, class: &str, x: f64, width: f64) -> fmt::Result {
        let y = self.y - CELL + 5.0;
        writeln!(
            self.body,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{CELL}\" rx=\"3\"/>"
        )
    }

    /// Writes text that needs no escaping, on the bottom line of the current row.
    fn label(&mut self, class: &str, x: f64, text: &str) -> fmt::Result {
        writeln!(self.body, "<text class=\"{class}\" x=\"{x}\" y=\"{}\">{text}</text>", self.y)
    }
}

/// The title with the source's name alone: the reader of an image may be on another machine, which
/// does not have its folders.
fn title(instruction: &InstructionReport) -> String {
    let title = instruction.title();
    let folders = instruction.source.as_ref().and_then(|source| source.rfind(['/', '\\'])).map_or(0, |end| end + 1);
    title[folders..].into()
}

fn sector_x(sector: usize) -> f64 {
    MARGIN + LABELS + sector as f64 * (32.0 * BYTE + GAP)
}

fn bank_x(bank: usize) -> f64 {
    MARGIN + LABELS + bank as f64 * 4.0 * BYTE
}

/// Gives each lane a colour from blue through violet to red. The colours show the order of the
/// lanes, and white text is legible on all of them.
fn colour(lane: u32) -> String {
    let stops = [[37.0, 84.0, 168.0], [122.0, 48.0, 150.0], [190.0, 58.0, 20.0]];
    let position = f64::from(lane.min(31)) / 31.0 * 2.0;
    let from = if position < 1.0 { 0 } else { 1 };
    let part = position - from as f64;
    let [red, green, blue] = [0, 1, 2].map(|channel| {
        let (a, b): (f64, f64) = (stops[from][channel], stops[from + 1][channel]);
        (a + (b - a) * part).round() as u8
    });
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Escapes text for XML, which takes no control characters, not even as references.
fn escaped(text: &str) -> String {
    let text = printable_line(text).replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
