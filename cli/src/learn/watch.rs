//! `warpstride learn watch`: a check at each change of the current lesson's files, on a screen of
//! its own, with keys for hints, the page and the next lesson.

use std::borrow::Cow;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use serde_json::Value;

use super::super::terminal::{END_OF_INPUT, Keys};
use super::super::{message, signals, terminal};
use super::attempt::Source;
use super::folder::Folder;
use super::lessons::{self, Lesson};
use super::progress::Progress;

/// The time between two looks at the files.
const PAUSE: Duration = Duration::from_millis(500);
/// The keys while a lesson is not solved, and behind a solved one.
const KEYS: &str = "keys: h shows a hint, p the page again, q ends; a saved file is checked at once";
const SOLVED_KEYS: &str = "keys: n shows the next lesson, s a solution, q ends";

/// An event that ends a pause.
enum Event {
    /// A file of the lesson has changed.
    Changed,
    Key(u8),
}

/// A lesson that is watched.
struct Watched<'a> {
    lesson: &'a Lesson,
    folder: &'a Folder,
    from: &'a Source<'a>,
    /// `None` without a keyboard: then the next lesson follows a solved one at once.
    keys: Option<&'a Keys>,
}

/// Checks the first lesson that is not solved until it is, then the next one. Ends when all are
/// solved, by the key q, or by Ctrl-C.
pub(super) fn run(folder: &Folder, from: &Source) -> Result<()> {
    signals::watch().context("cannot handle signals; try again")?;
    let keys = Keys::of_terminal();
    loop {
        let progress = Progress::read(folder.progress())?;
        let Some(lesson) = progress.next() else { break };
        let lesson = &lesson.seeded(progress.seed());
        let watched = Watched { lesson, folder, from, keys: keys.as_ref() };
        if !watched.until_solved()? {
            return Ok(());
        }
    }
    from.output.result("All lessons are solved.\n", Value::Null)
}

impl Watched<'_> {
    /// Shows the page, and the check at each change. Returns whether the next lesson is wanted.
    fn until_solved(&self) -> Result<bool> {
        let path = self.folder.lesson(self.lesson);
        let (output, mut page) = (self.from.output, self.page());
        loop {
            self.clear(&page)?;
            page = String::new();
            self.folder.unpack(self.lesson, output)?;
            // A change during the check is one, too.
            let before = seen(self.lesson, &path);
            match super::check(self.lesson, self.folder, &Progress::read(self.folder.progress())?, self.from)? {
                Ok(()) => return self.is_next_wanted(),
                Err(error) => terminal::say(&format!("\nerror: {}\n", message(&error))),
            }
            if !self.until_changed(&path, &before)? {
                return Ok(false);
            }
        }
    }

    /// Clears the terminal, and says where the learner stands.
    fn clear(&self, page: &str) -> Result<()> {
        let progress = Progress::read(self.folder.progress())?;
        let (solved, all) = (progress.solved(), lessons::all().len());
        let (number, title) = (self.lesson.number, self.lesson.title());
        let file = terminal::path(&self.folder.lesson(self.lesson).join("README.md"));
        terminal::clear().context("cannot clear the terminal; check where standard output goes")?;
        self.from.output.page(
            &format!("{solved} of {all} lessons are solved. Lesson {number}, {title}: {file}\n\n{page}"),
            Value::Null,
        )
    }

    fn page(&self) -> String {
        super::page(self.lesson, &self.folder.lesson(self.lesson), false) + "\n"
    }

    /// Does what keys ask for until a file changes. Returns whether one has; otherwise the learner
    /// ends it.
    fn until_changed(&self, path: &Path, before: &Seen) -> Result<bool> {
        self.note(KEYS);
        loop {
            match self.wait(path, before) {
                Event::Changed => return Ok(true),
                Event::Key(b'h') => {
                    let progress = Progress::read(self.folder.progress())?;
                    super::hint(self.lesson, self.folder, &progress, self.from.output)?;
                }
                Event::Key(b'p') => self.clear(&self.page())?,
                Event::Key(b'q' | END_OF_INPUT) => return Ok(false),
                Event::Key(_) => continue,
            }
            self.note(KEYS);
        }
    }

    /// Shows the solution where it is wanted. Returns whether the next lesson is; otherwise the
    /// learner ends it.
    fn is_next_wanted(&self) -> Result<bool> {
        let Some(keys) = self.keys else { return Ok(true) };
        self.note(SOLVED_KEYS);
        loop {
            match keys.within(PAUSE) {
                Some(b'n') => return Ok(true),
                Some(b's') => self.from.output.result(&self.solution(), Value::Null)?,
                Some(b'q' | END_OF_INPUT) => return Ok(false),
                _ => continue,
            }
            self.note(SOLVED_KEYS);
        }
    }

    /// The files of the lesson's solution, which lie beside the learner's.
    fn solution(&self) -> String {
        let folder = self.folder.lesson(self.lesson);
        let file = |(name, text): (&str, Cow<str>)| {
            let lines: String = text.lines().map(|line| terminal::whole(line) + "\n").collect();
            format!("\n{}:\n\n{lines}", terminal::path(&folder.join(name)))
        };
        let files: String = self.lesson.solution().map(file).collect();
        if files.is_empty() { "\nThe answers that you gave are the solution.\n".into() } else { files }
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

type Seen = Vec<Option<(SystemTime, u64)>>;

/// When the files of a lesson were changed, and their sizes.
fn seen(lesson: &Lesson, path: &Path) -> Seen {
    let of = |name: &str| {
        let metadata = fs::metadata(path.join(name)).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    lesson.given().map(|(name, _)| of(name)).collect()
}
