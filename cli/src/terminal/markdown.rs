//! Markdown as text with marks of looks: a line for each paragraph, which is wrapped when it is
//! printed, and tables that fit.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::{CODE, EMPHASIS, END, PROGRAM, SECTION, STRONG, TITLE, WHOLE};
use crate::run::table::Table;

/// Returns Markdown for a terminal. `place` says where a link or a picture leads, if anywhere.
pub(crate) fn rendered(markdown: &str, place: &dyn Fn(&str) -> String) -> String {
    let mut page = Page::new(place);
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        match event {
            Event::Start(tag) => page.begin(tag),
            Event::End(tag) => page.end(tag),
            Event::Text(text) if page.program.is_some() => page.add_program(&text),
            Event::Text(text) => page.line += &text,
            Event::Code(text) if page.table.is_some() => page.line += &text,
            Event::Code(text) => page.line.extend([CODE].into_iter().chain(text.chars()).chain([END])),
            Event::SoftBreak => page.line.push(' '),
            Event::HardBreak => page.flush(),
            _ => {}
        }
    }
    page.text
}

struct Page<'a> {
    place: &'a dyn Fn(&str) -> String,
    text: String,
    /// The line that is being written.
    line: String,
    /// The marks that all lines begin with.
    before: Vec<&'static str>,
    /// The mark of a list's item, before its first line.
    mark: Option<String>,
    /// The next number of each list that is open; `None` for a list without numbers.
    numbers: Vec<Option<u64>>,
    /// True if an empty line comes before the next line.
    gap: bool,
    /// The language of the program that is being written.
    program: Option<String>,
    table: Option<Table>,
    cells: Vec<String>,
    links: Vec<String>,
}

impl<'a> Page<'a> {
    fn new(place: &'a dyn Fn(&str) -> String) -> Self {
        Self {
            place,
            text: String::new(),
            line: String::new(),
            before: Vec::new(),
            mark: None,
            numbers: Vec::new(),
            gap: false,
            program: None,
            table: None,
            cells: Vec::new(),
            links: Vec::new(),
        }
    }

    fn begin(&mut self, tag: Tag) {
        match tag {
            Tag::Heading { level, .. } => self.line.push(if level == HeadingLevel::H1 { TITLE } else { SECTION }),
            Tag::BlockQuote(_) => {
                self.end_gap();
                self.before.push("> ");
            }
            Tag::List(first) => {
                self.flush();
                self.numbers.push(first);
            }
            Tag::Item => self.mark = Some(self.next_mark()),
            Tag::CodeBlock(kind) => {
                self.flush();
                self.program = Some(match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                });
            }
            Tag::Table(alignments) => {
                let words = alignments.iter().take_while(|alignment| **alignment != Alignment::Right).count();
                self.table = Some(Table { words, ..Table::new(&[]) });
            }
            // A cell is as wide as its characters.
            Tag::Strong | Tag::Emphasis if self.table.is_some() => {}
            Tag::Strong => self.line.push(STRONG),
            Tag::Emphasis => self.line.push(EMPHASIS),
            Tag::Link { dest_url, .. } => self.links.push((self.place)(&dest_url)),
            Tag::Image { dest_url, .. } => {
                let place = (self.place)(&dest_url);
                self.line += &if place.is_empty() { "(picture)".into() } else { format!("(picture: {place})") };
                self.flush();
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::Heading(_) => self.end_block(),
            TagEnd::BlockQuote(_) => {
                self.before.pop();
            }
            TagEnd::Item => {
                self.flush();
                // An empty item has no line for it.
                self.mark = None;
            }
            TagEnd::List(_) => {
                self.numbers.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => {
                self.program = None;
                self.gap = true;
            }
            TagEnd::TableCell => self.cells.push(std::mem::take(&mut self.line)),
            TagEnd::TableHead | TagEnd::TableRow => self.end_row(tag == TagEnd::TableHead),
            TagEnd::Table => self.end_table(),
            TagEnd::Strong | TagEnd::Emphasis if self.table.is_none() => self.line.push(END),
            TagEnd::Link => {
                let place = self.links.pop().unwrap_or_default();
                if !self.line.ends_with(&place) {
                    self.line += &format!(" ({place})");
                }
            }
            _ => {}
        }
    }

    fn next_mark(&mut self) -> String {
        match self.numbers.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            _ => "- ".into(),
        }
    }

    /// Writes the empty line between two blocks.
    fn end_gap(&mut self) {
        if std::mem::take(&mut self.gap) {
            self.text += &format!("{}\n", self.before.concat().trim_end());
        }
    }

    /// Writes a line, behind what all lines begin with.
    fn write(&mut self, line: &str, is_whole: bool) {
        self.end_gap();
        self.text.extend(is_whole.then_some(WHOLE));
        self.text += &self.before.concat();
        let lists = self.numbers.len();
        match self.mark.take() {
            Some(mark) => self.text += &("  ".repeat(lists - 1) + &mark),
            None => self.text += &"  ".repeat(lists),
        }
        self.text += line;
        self.text.push('\n');
    }

    fn flush(&mut self) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.write(&line, false);
        }
    }

    fn end_block(&mut self) {
        self.flush();
        self.gap = true;
    }

    /// Writes the lines of a program. The output of programs is wrapped, as it is where they print
    /// it.
    fn add_program(&mut self, lines: &str) {
        let is_whole = self.program.as_deref() != Some("text");
        lines.lines().for_each(|line| self.write(&format!("  {PROGRAM}{line}{END}"), is_whole));
    }

    fn end_row(&mut self, is_header: bool) {
        let cells = std::mem::take(&mut self.cells);
        if let Some(table) = &mut self.table {
            if is_header {
                table.header = cells;
            } else {
                table.rows.push(cells);
            }
        }
    }

    fn end_table(&mut self) {
        if let Some(table) = self.table.take() {
            format!("{table:#}").lines().for_each(|line| self.write(line, false));
        }
        self.gap = true;
    }
}

#[cfg(test)]
mod tests;
