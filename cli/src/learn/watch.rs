//! `warpstride learn watch`: a check at each change of the current lesson's files.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use serde_json::Value;

use super::super::{message, signals};
use super::attempt::{Attempt, Source};
use super::folder::Folder;
use super::lessons::Lesson;
use super::progress::Progress;

/// The time between two looks at the files.
const PAUSE: Duration = Duration::from_millis(500);

/// Checks the first lesson that is not solved until it is, then the next one. Ends when all are
/// solved, or by Ctrl-C.
pub(super) fn run(folder: &Folder, from: &Source) -> Result<()> {
    signals::watch().context("cannot handle signals; try again")?;
    while let Some(lesson) = Progress::read(folder.progress())?.next() {
        let (number, title, path) = (lesson.number, lesson.title(), folder.lesson(lesson));
        let page = path.join("README.md");
        from.output.result(&format!("Lesson {number}, {title}: {}\n\n", page.display()), Value::Null)?;
        loop {
            folder.unpack(lesson, from.output)?;
            // A change during the check is one, too.
            let before = seen(lesson, &path);
            if checked(lesson, folder, from)? {
                break;
            }
            from.output.note(format!("watching {}; Ctrl-C ends", path.display()));
            wait(lesson, &path, &before);
        }
    }
    from.output.result("All lessons are solved.\n", Value::Null)
}

/// Whether a lesson is solved. What is wrong with the learner's files is printed, and no end.
fn checked(lesson: &Lesson, folder: &Folder, from: &Source) -> Result<bool> {
    let state = Progress::read(folder.progress())?.of(lesson);
    let attempt = match Attempt::of(lesson, folder, &state, from) {
        Ok(attempt) => attempt,
        Err(error) => {
            say(&error);
            return Ok(false);
        }
    };
    let progress = attempt.note(lesson, folder)?;
    let text = attempt.text.clone();
    match attempt.sentence(lesson, &progress) {
        Ok(sentence) => {
            from.output.result(&format!("{text}\n{sentence}\n"), Value::Null)?;
            Ok(true)
        }
        Err(error) => {
            from.output.result(&text, Value::Null)?;
            say(&error);
            Ok(false)
        }
    }
}

fn say(error: &anyhow::Error) {
    // A closed stream has no reader.
    let _ = writeln!(io::stderr(), "error: {}", message(error));
}

/// Waits until the files of a lesson are others than `before`, and then until an editor has written
/// all of them.
fn wait(lesson: &Lesson, path: &Path, before: &Seen) {
    let mut last = seen(lesson, path);
    loop {
        thread::sleep(PAUSE);
        let now = seen(lesson, path);
        if now != *before && now == last {
            return;
        }
        last = now;
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
