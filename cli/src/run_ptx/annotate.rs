//! The source with what each of its lines did beside it.

use std::borrow::Cow;
use std::path::Path;

use serde_json::{Value, json};
use textwrap::core::display_width;
use textwrap::{Options, WordSplitter};
use warpstride::counters::Counters;
use warpstride::interp::{LineReport, Report};

use super::super::terminal::{self, BAR, bar};
use super::lines::{self, BESIDE_SOURCE, Column, LEFT_OUT, heat};
use super::source;

/// Most files that are read, beginning with the kernel's own. The PTX may name any number.
const MAX_FILES: usize = 16;
/// The columns between figures beside the source, and below it.
const GAPS: [usize; 2] = [2, 1];

/// A file with the lines that have figures.
struct Annotated {
    file: String,
    /// Its text, or a sentence that says why it is not at hand.
    source: Result<Vec<String>, String>,
    lines: Vec<LineReport>,
}

/// The kernel's own file, and the others of a launch's lines.
fn files(report: &Report, main: &str, folder: &Path) -> Vec<Annotated> {
    let mut files = vec![Annotated { file: main.into(), source: source::lines(main, folder), lines: Vec::new() }];
    for line in lines::sorted(report, Some(main)) {
        match files.last_mut() {
            Some(last) if last.file == line.file => last.lines.push(line),
            _ => {
                let source = if files.len() < MAX_FILES {
                    source::lines(&line.file, folder)
                } else {
                    Err(format!("{} is not read, because {MAX_FILES} files were", source::shown(&line.file)))
                };
                files.push(Annotated { file: line.file.clone(), source, lines: vec![line] });
            }
        }
    }
    files
}

/// The kernel's own file as a whole, and of other files the lines that have figures; `folder` is
/// where relative names begin.
pub(super) fn text(report: &Report, main: &str, folder: &Path) -> String {
    let files = files(report, main, folder);
    let page = Page::of(&files, &report.counters, terminal::width());
    let mut text = String::new();
    for file in &files {
        text += &format!("\n{}\n", source::shown(&file.file));
        text += &page.listing(file, file.file == main);
        text += &match &file.source {
            Err(why) => format!("No source is shown: {why}.\n"),
            Ok(source) if file.last_line() > source.len() => {
                "Lines lie behind the end of this file: it is not the one that the PTX was compiled from.\n".into()
            }
            Ok(_) => String::new(),
        };
    }
    let full = bar(1.0);
    text + &format!(
        "{}\nheat: the part of the launch's sectors, or of its wavefronts, that the line takes beyond the ideal; {full} is all\n\
         /ideal: against the sectors or wavefronts that lanes x bytes fill, or those taken if they are fewer\n{}",
        page.left_out(),
        if page.below.is_some() { "The figures of a line stand below it.\n" } else { "" }
    )
}

impl Annotated {
    /// The last line with figures.
    fn last_line(&self) -> usize {
        self.lines.last().map_or(0, |line| line.line as usize)
    }

    /// The source of a line with figures, if it is at hand.
    fn code(&self, line: &LineReport) -> Option<&str> {
        let place = (line.line as usize).checked_sub(1)?;
        self.source.as_ref().ok()?.get(place).map(String::as_str)
    }
}

/// The columns that all files have.
struct Page<'a> {
    columns: Vec<Column>,
    /// The characters of each, and of a line's number.
    widths: Vec<usize>,
    number: usize,
    /// The columns of the terminal, where figures stand below their line: it has no room for them
    /// beside the source.
    below: Option<usize>,
    /// The headings of columns for which the terminal has no room.
    left_out: Vec<&'static str>,
    launch: &'a Counters,
}

impl<'a> Page<'a> {
    /// Lays out the columns for a terminal of some width. Where the longest line has no room beside
    /// them, figures stand below their lines, and columns are left out until the figures fit.
    fn of(files: &[Annotated], launch: &'a Counters, terminal: Option<usize>) -> Self {
        let lines = || files.iter().flat_map(|file| &file.lines);
        let mut columns = lines::used(&BESIDE_SOURCE, lines());
        let width = |(heading, cell): &Column| {
            let figures = lines().filter_map(cell).map(|figure| figure.len());
            figures.max().unwrap_or(0).max(heading.len())
        };
        let length = |file: &Annotated| file.source.as_ref().map_or(0, Vec::len).max(file.last_line());
        let number = files.iter().map(length).max().unwrap_or(0).to_string().len().max("line".len());
        let whole = files.first().and_then(|file| file.source.as_ref().ok()).into_iter().flatten();
        let code = files.iter().flat_map(|file| file.lines.iter().filter_map(|line| file.code(line)));
        let longest = code.chain(whole.map(String::as_str)).map(display_width).max().unwrap_or(0).max("source".len());
        let figures = |columns: &[Column], gap| BAR + columns.iter().map(|column| width(column) + gap).sum::<usize>();
        let below = terminal.filter(|&terminal| figures(&columns, GAPS[0]) + number + 4 + longest > terminal);
        let mut left_out = Vec::new();
        for heading in LEFT_OUT {
            if below.is_none_or(|terminal| figures(&columns, GAPS[1]) <= terminal) {
                break;
            }
            left_out.extend(columns.extract_if(.., |column| column.0 == heading).map(|column| column.0));
        }
        let widths = columns.iter().map(width).collect();
        Self { columns, widths, number, below, left_out, launch }
    }

    /// The line that names the columns without room.
    fn left_out(&self) -> String {
        if self.left_out.is_empty() {
            return String::new();
        }
        format!("\nThe terminal has no room for these columns: {}.\n", self.left_out.join(", "))
    }

    /// The lines of a file: all of them, or those with figures.
    fn listing(&self, file: &Annotated, is_whole: bool) -> String {
        let source = file.source.as_deref().unwrap_or_default();
        let mut text = self.headings();
        let mut counted = file.lines.iter().peekable();
        for (line, code) in (1..).zip(source) {
            let report = counted.next_if(|report| report.line == line);
            if is_whole || report.is_some() {
                text += &self.line(line, report, code);
            }
        }
        // Those behind the end of the file, or all if it is not there.
        for report in counted {
            text += &self.line(report.line, Some(report), "");
        }
        text
    }

    fn headings(&self) -> String {
        let cells: Vec<&str> = self.columns.iter().map(|(heading, _)| *heading).collect();
        self.row(&self.figures(&format!("{:BAR$}", "heat"), &cells), &self.source("line", "source"))
    }

    fn line(&self, line: u32, report: Option<&LineReport>, code: &str) -> String {
        let source = self.source(&line.to_string(), code);
        let Some(report) = report else {
            return self.row(&self.figures(&" ".repeat(BAR), &vec![""; self.columns.len()]), &source);
        };
        let cells: Vec<String> = self.columns.iter().map(|(_, cell)| cell(report).unwrap_or("-".into())).collect();
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        self.row(&self.figures(&bar(heat(report, self.launch)), &cells), &source)
    }

    /// Figures beside the source, or below it.
    fn row(&self, figures: &str, source: &str) -> String {
        match (self.below, figures.trim_end()) {
            (None, _) => format!("{figures}  {source}"),
            (Some(_), "") => source.into(),
            (Some(_), figures) => format!("{source}{figures}\n"),
        }
    }

    fn figures(&self, heat: &str, cells: &[&str]) -> String {
        let gap = " ".repeat(if self.below.is_some() { GAPS[1] } else { GAPS[0] });
        let cells = cells.iter().zip(&self.widths).map(|(cell, width)| format!("{gap}{cell:>width$}"));
        heat.to_owned() + &cells.collect::<String>()
    }

    /// A line of the source behind its number. The rest of a line that is too long stands below it,
    /// further in.
    fn source(&self, line: &str, code: &str) -> String {
        let beside = format!("{line:>number$}  ", number = self.number);
        let room = self.below.map(|terminal| terminal.saturating_sub(beside.len()));
        let Some(room) = room.filter(|&room| room < display_width(code)) else {
            return format!("{}\n", format!("{beside}{code}").trim_end());
        };
        let indent = code.len() - code.trim_start().len() + 4;
        let [first, rest] = ["", &" ".repeat(indent)];
        let options = Options::new(room).initial_indent(first).subsequent_indent(rest).break_words(false);
        let folded = textwrap::wrap(code, options.word_splitter(WordSplitter::NoHyphenation));
        let empty = " ".repeat(beside.len());
        let line = |(at, part): (usize, &Cow<str>)| {
            format!("{}\n", terminal::whole(&format!("{}{part}", if at == 0 { &beside } else { &empty })))
        };
        folded.iter().enumerate().map(line).collect()
    }
}

/// Returns the document's part on the files: their lines, or why they are missing.
pub(super) fn json(report: &Report, main: &str, folder: &Path) -> Value {
    let files = files(report, main, folder);
    let source = |file: &Annotated| {
        let source = file.source.as_ref();
        json!({ "file": file.file, "text": source.ok(), "missing": source.err() })
    };
    files.iter().map(source).collect()
}

#[cfg(test)]
mod tests;
