//! `warpstride learn watch`: a check at each change of the current lesson's files, on a screen of
//! its own, with keys for hints, the page and the next lesson.

use std::borrow::Cow;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use serde_json::Value;
use warpstride::error::counted;

use super::super::terminal::{Busy, DOWN, END_OF_INPUT, Keys, Scroll, UP};
use super::super::{message, signals, terminal};
use super::Checked;
use super::attempt::Source;
use super::folder::Folder;
use super::lessons::{self, Lesson};
use super::next_hint;
use super::progress::Progress;

/// The time between two looks at the files.
const PAUSE: Duration = Duration::from_millis(500);
/// The keys while a lesson is not solved, behind a solved one, and after a change that makes a
/// solved one fall short.
const KEYS: &str = "keys: h shows a hint, p the page, a its answers, c the check, q ends; a saved file is checked";
const SOLVED_KEYS: &str = "keys: n shows the next lesson, s a solution, c the check, q ends; a saved file is checked";
const AGAIN_KEYS: &str = "keys: n shows the next lesson, h a hint, p the page, a its answers, c the check, q ends";
/// In place of the keys during a check, below which notes have some rows.
const CHECKING: &str = "the check runs; q ends";
const NOTES: usize = 4;

/// An event that ends a pause.
enum Event {
    /// A file of the lesson has changed.
    Changed,
    Key(u8),
}

/// The step that keys or a change ask for behind a check.
enum Then {
    Check,
    NextLesson,
    End,
}

/// A lesson that is watched.
struct Watched<'a> {
    lesson: &'a Lesson,
    folder: &'a Folder,
    from: &'a Source<'a>,
    /// `None` without a keyboard: then the next lesson follows a solved one at once.
    keys: Option<&'a Keys>,
    /// The text on the screen, where the terminal has one.
    shown: Option<Scroll>,
    /// The sentence and the tables of the last check, and what kernels printed in it.
    found: String,
    /// True once a check has found the lesson solved.
    was_solved: bool,
}

/// Checks the first lesson that is not solved until it is, then the next one. Ends when all are
/// solved, by the key q, or by Ctrl-C.
pub(super) fn run(folder: &Folder, from: &Source) -> Result<()> {
    signals::watch().context("cannot handle signals; try again")?;
    let keys = Keys::of_terminal(signals::end);
    loop {
        let progress = Progress::read(folder.progress())?;
        let Some(lesson) = progress.next() else { break };
        let lesson = &lesson.seeded(progress.seed());
        let shown = (keys.is_some() && terminal::has_screen()).then(|| Scroll::new(""));
        let (keys, found) = (keys.as_ref(), String::new());
        let mut watched = Watched { lesson, folder, from, keys, shown, found, was_solved: false };
        if !watched.until_solved()? {
            return Ok(());
        }
    }
    from.output.result("All lessons are solved.\n", Value::Null)
}

impl Watched<'_> {
    /// Shows the page, and the check at each change. Returns whether the next lesson is wanted.
    fn until_solved(&mut self) -> Result<bool> {
        let path = self.folder.lesson(self.lesson);
        let mut page = self.page(false);
        loop {
            let busy = self.keys.map(Keys::busy);
            self.begin(&page)?;
            self.folder.unpack(self.lesson, self.from.output)?;
            // A change during the check is one, too.
            let before = seen(self.lesson, &path);
            let is_solved = self.check(!page.is_empty(), busy)?;
            let then =
                if is_solved && self.keys.is_none() { Then::NextLesson } else { self.then(is_solved, &path, &before)? };
            match then {
                Then::Check => page.clear(),
                Then::NextLesson => return Ok(true),
                Then::End => return Ok(false),
            }
        }
    }

    /// Says where the learner stands, before a check. The text on the screen stays there, unless
    /// there is another text.
    fn begin(&mut self, text: &str) -> Result<()> {
        if self.shown.is_some() {
            if !text.is_empty() {
                self.shown = Some(Scroll::new(text));
            }
            return self.draw(CHECKING, NOTES);
        }
        terminal::clear().context("cannot clear the terminal; check where standard output goes")?;
        self.from.output.page(&format!("{}\n\n{text}", self.standing()?), Value::Null)
    }

    /// Checks the lesson, and shows what came of it; of a new lesson, whose page is to stay on the
    /// screen, in a line. Returns whether it is solved.
    fn check(&mut self, is_new: bool, busy: Option<Busy>) -> Result<bool> {
        let progress = Progress::read(self.folder.progress())?;
        let check = || super::checked(self.lesson, self.folder, &progress, self.from);
        let has_screen = self.shown.is_some();
        // The next screen would hide it.
        let (checked, printed) = if has_screen { self.from.output.keeping(check) } else { (check(), String::new()) };
        let checked = checked?;
        drop(busy);
        let is_solved = checked.sentence.is_ok();
        self.was_solved |= is_solved;
        let sentence =
            checked.sentence.as_ref().map_or_else(|error| format!("error: {}\n", message(error)), Clone::clone);
        self.found = format!("{sentence}\n{}{}", checked.text, of_kernels(&printed)).trim_end().to_owned();
        if self.shown.is_some() {
            if is_new && !is_solved {
                self.draw(&format!("{}; c shows the check\n{KEYS}", short(&checked)), 0)?;
            } else {
                self.show_found(is_solved)?;
            }
            return Ok(is_solved);
        }
        if let Err(error) = checked.print(self.from.output)? {
            terminal::say(&format!("\nerror: {}\n", message(&error)));
        }
        if !is_solved || self.keys.is_some() {
            self.note(self.keys_at(is_solved));
        }
        Ok(is_solved)
    }

    /// Shows what the last check found, and the page below it if the lesson is not solved.
    fn show_found(&mut self, is_solved: bool) -> Result<()> {
        let page = if is_solved { String::new() } else { format!("\n\n{}", self.page(false)) };
        self.show(&format!("{}{page}", self.found), self.keys_at(is_solved))
    }

    fn keys_at(&self, is_solved: bool) -> &'static str {
        match (is_solved, self.was_solved) {
            (true, _) => SOLVED_KEYS,
            (false, true) => AGAIN_KEYS,
            (false, false) => KEYS,
        }
    }

    /// The sentences at the top.
    fn standing(&self) -> Result<String> {
        let progress = Progress::read(self.folder.progress())?;
        let (solved, all) = (progress.solved(), lessons::all().len());
        let (number, title) = (self.lesson.number, self.lesson.title());
        let file = terminal::path(&self.folder.lesson(self.lesson).join("README.md"));
        Ok(format!("{solved} of {all} lessons are solved. Lesson {number}, {title}: {file}"))
    }

    fn page(&self, answers: bool) -> String {
        super::page(self.lesson, Some(&self.folder.lesson(self.lesson)), answers) + "\n"
    }

    /// Shows a text, and the keys below it.
    fn show(&mut self, text: &str, keys: &str) -> Result<()> {
        if self.shown.is_some() {
            self.shown = Some(Scroll::new(text));
            return self.draw(keys, 0);
        }
        self.from.output.page(text, Value::Null)?;
        self.note(keys);
        Ok(())
    }

    /// Draws the screen, if there is one, with the last lines below the text.
    fn draw(&mut self, below: &str, free: usize) -> Result<()> {
        let above = self.standing()? + "\n";
        let Some(shown) = &mut self.shown else { return Ok(()) };
        shown.draw(&above, below, free).context("cannot draw the screen; check where standard output goes")
    }

    /// Moves in the text by a key that is the same before and behind a solution, or says that it is
    /// not a key.
    fn press(&mut self, key: u8, keys: &str) -> Result<()> {
        let mut said = String::new();
        match (key, &mut self.shown) {
            (b' ' | b'\r' | b'\n' | DOWN, Some(shown)) => shown.forward(),
            (b'b' | UP, Some(shown)) => shown.back(),
            _ if key.is_ascii_graphic() => said = format!("{} is not a key here\n", char::from(key)),
            _ => said = "that is not a key here\n".into(),
        }
        if self.shown.is_some() {
            return self.draw(&format!("{said}{keys}"), 0);
        }
        self.from.output.messages(said.trim_end());
        self.note(keys);
        Ok(())
    }

    /// Does what keys ask for until a file changes, or the learner ends it or goes on.
    fn then(&mut self, is_solved: bool, path: &Path, before: &Seen) -> Result<Then> {
        let keys = self.keys_at(is_solved);
        loop {
            match self.wait(path, before) {
                Event::Changed => return Ok(Then::Check),
                Event::Key(b'q' | END_OF_INPUT) => return Ok(Then::End),
                Event::Key(b'n') if self.was_solved => return Ok(Then::NextLesson),
                Event::Key(b'c') => self.show_found(is_solved)?,
                Event::Key(b's') if is_solved => self.show(&self.solution(), keys)?,
                Event::Key(b'h') if !is_solved => {
                    let progress = Progress::read(self.folder.progress())?;
                    let (hint, _) = next_hint(self.lesson, self.folder, &progress, self.from.output)?;
                    self.show(&hint, keys)?;
                }
                Event::Key(b'p') if !is_solved => self.show(&self.page(false), keys)?,
                Event::Key(b'a') if !is_solved => self.show(&self.page(true), keys)?,
                Event::Key(key) => self.press(key, keys)?,
            }
        }
    }

    /// The files of the lesson's solution, which lie beside the learner's.
    fn solution(&self) -> String {
        let folder = self.folder.lesson(self.lesson);
        let file = |(name, text): (&str, Cow<str>)| {
            let lines: String = text.lines().map(|line| terminal::whole(line) + "\n").collect();
            format!("{}:\n\n{lines}\n", terminal::path(&folder.join(name)))
        };
        let files: String = self.lesson.solution().map(file).collect();
        if files.is_empty() { "The answers that you gave are the solution.\n".into() } else { files }
    }

    /// Names the keys, where there are any.
    fn note(&self, keys: &str) {
        let path = self.folder.lesson(self.lesson);
        let watching = format!("watching {}; Ctrl-C ends", path.display());
        self.from.output.note(if self.keys.is_some() { keys } else { &watching });
    }

    /// Waits for a key, or until the files are others than `before` and an editor has written all
    /// of them.
    fn wait(&self, path: &Path, before: &Seen) -> Event {
        let mut last = seen(self.lesson, path);
        loop {
            match self.keys {
                None => thread::sleep(PAUSE),
                Some(keys) => {
                    if let Some(key) = keys.within(PAUSE) {
                        return Event::Key(key);
                    }
                }
            }
            let now = seen(self.lesson, path);
            if now != *before && now == last {
                return Event::Changed;
            }
            last = now;
        }
    }
}

/// Shows what kernels have printed, with the lines that it has.
fn of_kernels(printed: &str) -> String {
    if printed.is_empty() {
        return String::new();
    }
    let lines: String = printed.lines().map(|line| terminal::whole(line) + "\n").collect();
    format!("\nThe kernel printed:\n\n{lines}")
}

/// Says how many rows of a check fall short.
fn short(checked: &Checked) -> String {
    let files = checked.document["files"].as_array().into_iter().flatten();
    let rows = files.flat_map(|file| file["expectations"].as_array().into_iter().flatten());
    match rows.filter(|row| row["held"] == false).count() {
        0 => "as the files are, the lesson is not solved".into(),
        1 => "as the files are, 1 row falls short".into(),
        rows => format!("as the files are, {} fall short", counted(rows, "row")),
    }
}

type Seen = Vec<Option<(SystemTime, u64)>>;

/// When the files of a lesson were changed, and their sizes.
fn seen(lesson: &Lesson, path: &Path) -> Seen {
    let of = |name: &str| {
        let metadata = fs::metadata(path.join(name)).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    lesson.given().map(|(name, _)| of(name)).collect()
}
