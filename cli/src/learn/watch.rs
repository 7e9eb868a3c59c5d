//! `warpstride learn watch`: a check at each change of the current lesson's files.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use serde_json::Value;

use super::super::{message, signals, terminal};
use super::attempt::Source;
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
        from.output.result(&format!("Lesson {number}, {title}: {}\n\n", terminal::path(&page)), Value::Null)?;
        loop {
            folder.unpack(lesson, from.output)?;
            // A change during the check is one, too.
            let before = seen(lesson, &path);
            match super::check(lesson, folder, &Progress::read(folder.progress())?, from)? {
                Ok(()) => break,
                Err(error) => terminal::say(&format!("error: {}\n", message(&error))),
            }
            from.output.note(format!("watching {}; Ctrl-C ends", path.display()));
            wait(lesson, &path, &before);
        }
    }
    from.output.result("All lessons are solved.\n", Value::Null)
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
