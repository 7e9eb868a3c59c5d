//! The lessons that a learner has solved, and the help that they took: `progress.json`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::super::{destination, refuse, require};
use super::folder::{self, Folder};
use super::lessons::{self, Lesson};

/// In schema 1, the names of lessons began with their numbers.
const SCHEMA: u64 = 2;
/// Most bytes of the file.
const MAX_BYTES: usize = 1 << 20;
/// The most wrong answers of a lesson that it keeps, and the most characters of one.
const MAX_WRONG: usize = 32;
const MAX_TEXT: usize = 100;

/// The progress, by the names of lessons. Lessons that this version does not have stay in the file.
#[derive(Debug)]
pub(super) struct Progress {
    path: PathBuf,
    record: Record,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with a schema and lessons")]
struct Record {
    schema: u64,
    /// The name that draws the numbers and shapes of the lessons; not there for those of the book.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<String>,
    lessons: BTreeMap<String, State>,
}

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "an object with what is known of a lesson")]
pub(super) struct State {
    pub(super) solved: bool,
    /// The hints that were shown.
    pub(super) hints: u64,
    /// The checks in which a prediction or an answer was wrong.
    pub(super) tries: u64,
    /// The wrong answers at the last of them.
    pub(super) wrong: Vec<String>,
}

impl State {
    /// The wrong tries, with the one that has left `wrong`. The same again is not another try.
    pub(super) fn tries_with(&self, wrong: &[String]) -> u64 {
        let is_new = !wrong.is_empty() && kept(wrong) != self.wrong;
        self.tries.saturating_add(is_new.into())
    }

    /// Notes a try.
    pub(super) fn note(&mut self, wrong: &[String], is_solved: bool) {
        self.tries = self.tries_with(wrong);
        self.solved |= is_solved;
        if !wrong.is_empty() {
            self.wrong = kept(wrong);
        }
    }
}

/// Shortens wrong answers for the progress, so that the file stays small whatever a learner types.
fn kept(wrong: &[String]) -> Vec<String> {
    wrong.iter().take(MAX_WRONG).map(|text| text.chars().take(MAX_TEXT).collect()).collect()
}

impl Progress {
    /// Reads the file; where there is none, nothing is solved.
    pub(super) fn read(path: PathBuf) -> Result<Self> {
        let none = fs::symlink_metadata(&path)
            .is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory));
        let record =
            if none { Record { schema: SCHEMA, seed: None, lessons: BTreeMap::new() } } else { record(&path)? };
        Ok(Self { path, record })
    }

    pub(super) fn seed(&self) -> Option<&str> {
        self.record.seed.as_deref()
    }

    /// Begins the lessons of a folder with a seed, which they keep.
    pub(super) fn begin(folder: &Folder, seed: &str) -> Result<()> {
        if folder.is_begun()? {
            return Self::ensure_seed(folder, seed);
        }
        folder.make()?;
        Self::change(folder.progress(), |progress| progress.record.seed = Some(seed.to_owned())).map(|_| ())
    }

    /// Makes sure that the lessons of a folder have a seed.
    pub(super) fn ensure_seed(folder: &Folder, seed: &str) -> Result<()> {
        folder.ensure_begun()?;
        let progress = Self::read(folder.progress())?;
        let own = progress.seed().map_or("no seed".into(), |own| format!("the seed {own:?}"));
        require!(
            progress.seed() == Some(seed),
            InvalidArgument,
            "the lessons in {folder} have {own}, and keep it; leave --seed out, or name another --folder"
        );
        Ok(())
    }

    pub(super) fn of(&self, lesson: &Lesson) -> State {
        self.record.lessons.get(lesson.name).cloned().unwrap_or_default()
    }

    pub(super) fn of_mut(&mut self, lesson: &Lesson) -> &mut State {
        self.record.lessons.entry(lesson.name.to_owned()).or_default()
    }

    /// The first lesson that is not solved.
    pub(super) fn next(&self) -> Option<&'static Lesson> {
        lessons::all().iter().find(|lesson| !self.of(lesson).solved)
    }

    pub(super) fn solved(&self) -> usize {
        lessons::all().iter().filter(|lesson| self.of(lesson).solved).count()
    }

    /// Returns whether there is no file yet.
    pub(super) fn is_new(&self) -> bool {
        !self.path.exists()
    }

    /// Changes the file, and returns what it holds then. Other commands on the same folder wait
    /// meanwhile, so that none of their changes is lost.
    pub(super) fn change(path: PathBuf, change: impl FnOnce(&mut Self)) -> Result<Self> {
        let _locked = path.parent().and_then(locked);
        let mut progress = Self::read(path)?;
        change(&mut progress);
        progress.save()?;
        Ok(progress)
    }

    /// Writes the file, whole or not at all.
    fn save(&self) -> Result<()> {
        folder::ensure_no_link(&self.path)?;
        let text = serde_json::to_string_pretty(&self.record).context("cannot write the progress")? + "\n";
        destination::replace(&destination::at(&self.path)?, |file| file.write_all(text.as_bytes()))
    }
}

/// Locks a learner's folder until the file is dropped, because the file of the progress is another
/// one after each change. Some systems lock no folders; there the commands go on without.
fn locked(folder: &Path) -> Option<File> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let folder = File::open(folder).ok()?;
    folder.lock().ok()?;
    Some(folder)
}

fn record(path: &Path) -> Result<Record> {
    let text = folder::read(path, MAX_BYTES, "the progress of your lessons")?;
    let broken = |why: String| {
        format!(
            "{} is not the progress of lessons ({why}); mend it, or move it away to begin anew: the files of your \
             lessons stay as they are",
            path.display()
        )
    };
    match serde_json::from_str::<Record>(&text) {
        Ok(record) if record.schema == SCHEMA => Ok(record),
        Ok(record) => {
            refuse!(Io, "{}", broken(format!("it has schema {}, and this version reads {SCHEMA}", record.schema)))
        }
        Err(error) => refuse!(Io, "{}", broken(error.to_string())),
    }
}
