//! The learner's folder: a folder for each lesson, and the progress.

use std::borrow::Cow;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::super::output::Output;
use super::super::{input, require};
use super::lessons::{self, Lesson};

/// The folder where none is named.
const USUAL: &str = "warpstride-lessons";
/// The file that tells a learner's folder from others.
pub(super) const PROGRESS: &str = "progress.json";

/// A learner's folder, there or not.
pub(super) struct Folder {
    path: PathBuf,
}

impl fmt::Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.full().display().fmt(f)
    }
}

impl Folder {
    /// The folder that was named; else the current one, or the one around it, if it is a learner's;
    /// else the usual one in the current folder.
    pub(super) fn at(named: Option<&Path>) -> Self {
        let found = || ["", ".."].into_iter().find(|path| is_learners(Path::new(path))).unwrap_or(USUAL);
        Self { path: named.map_or_else(|| found().into(), Path::to_owned) }
    }

    /// Its path from the root.
    pub(super) fn full(&self) -> PathBuf {
        let full = fs::canonicalize(self.own()).or_else(|_| std::path::absolute(self.own()));
        full.unwrap_or_else(|_| self.path.clone())
    }

    /// Its path, unless it is the current folder.
    pub(super) fn elsewhere(&self) -> Option<&Path> {
        let [own, current] = [self.own(), Path::new(".")].map(|path| fs::canonicalize(path).ok());
        (own != current).then_some(&self.path)
    }

    pub(super) fn progress(&self) -> PathBuf {
        self.path.join(PROGRESS)
    }

    /// Returns whether it is there; an error where something else has its name.
    pub(super) fn is_there(&self) -> Result<bool> {
        match fs::symlink_metadata(self.own()) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            _ => ensure_folder(self.own(), true).map(|()| true),
        }
    }

    /// Makes the folder unless it is there.
    pub(super) fn make(&self) -> Result<()> {
        ensure_folder(self.own(), true)
    }

    /// Makes sure that a path leads through no link where it lies in the folder, so that what a
    /// teacher's commands write stays there.
    pub(super) fn ensure_no_link(&self, path: &Path) -> Result<()> {
        let (path, full) = (std::path::absolute(path)?, self.full());
        let bases = [std::path::absolute(self.own())?, full];
        for part in path.ancestors().filter(|part| bases.iter().any(|base| part.starts_with(base) && part != base)) {
            ensure_no_link(part)?;
        }
        Ok(())
    }

    /// Makes sure that a learner has begun there.
    pub(super) fn ensure_begun(&self) -> Result<()> {
        require!(
            self.is_begun()?,
            InvalidArgument,
            "no lessons have begun in {self}; `warpstride learn next` begins them, or name your folder by --folder"
        );
        Ok(())
    }

    /// Returns whether a learner has begun there.
    pub(super) fn is_begun(&self) -> Result<bool> {
        Ok(self.is_there()? && is_learners(self.own()))
    }

    pub(super) fn lesson(&self, lesson: &Lesson) -> PathBuf {
        self.path.join(lesson.name)
    }

    /// Writes the files of a lesson that are not there, and says which a learner misses. A file
    /// that is there stays as it is, unless it is a manifest of an earlier version.
    pub(super) fn unpack(&self, lesson: &Lesson, output: &Output) -> Result<()> {
        let written = self.write(lesson, lesson.given())?;
        let folder = self.lesson(lesson);
        if written.len() == lesson.given().count() {
            output.note(format!("lesson {} lies in {}", lesson.number, folder.display()));
        } else if !written.is_empty() {
            output.note(format!("{} was missing in {}, and is there again", written.join(", "), folder.display()));
        }
        Ok(())
    }

    /// Writes those of some files of a lesson that are not there, and names them.
    pub(super) fn write(
        &self,
        lesson: &Lesson,
        files: impl Iterator<Item = (&'static str, Cow<'static, str>)>,
    ) -> Result<Vec<&'static str>> {
        self.make()?;
        let folder = self.lesson(lesson);
        ensure_folder(&folder, false)?;
        let mut written = Vec::new();
        for (name, text) in files {
            let path = folder.join(name);
            let failed = || format!("cannot write {}: check the folder, and what may be written there", path.display());
            if lesson.is_old_manifest(&path) {
                fs::remove_file(&path).with_context(failed)?;
            }
            // Whatever has the name, also a link that leads nowhere, stays.
            let mut file = match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error).with_context(failed),
            };
            if let Err(error) = file.write_all(text.as_bytes()) {
                // Else the part of it would count as the learner's own.
                let _ = fs::remove_file(&path);
                return Err(error).with_context(failed);
            }
            written.push(name);
        }
        Ok(written)
    }

    fn own(&self) -> &Path {
        if self.path.as_os_str().is_empty() { Path::new(".") } else { &self.path }
    }
}

/// Returns whether a folder has progress, or lessons. The crate's own lessons have hints beside
/// them.
fn is_learners(path: &Path) -> bool {
    let has = |name: &str| fs::symlink_metadata(path.join(name)).is_ok();
    let of = |lesson: &Lesson, file: &str| has(&format!("{}/{file}", lesson.name));
    // Other folders have names such as `index`, too.
    let is_lesson = |lesson: &Lesson| lesson.given().all(|(file, _)| of(lesson, file)) && !of(lesson, lessons::HINTS);
    has(PROGRESS) || lessons::all().iter().any(is_lesson)
}

/// Makes sure that a path is not a link.
pub(super) fn ensure_no_link(path: &Path) -> Result<()> {
    require!(
        !fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()),
        Io,
        "{} is a link, and a lesson's files stay in your folder; remove it or rename it",
        path.display()
    );
    Ok(())
}

/// Makes a folder unless there is one.
fn ensure_folder(path: &Path, may_be_link: bool) -> Result<()> {
    let shown = path.display();
    if !may_be_link {
        ensure_no_link(path)?;
    }
    match fs::symlink_metadata(path) {
        Ok(_) => {
            let metadata = fs::metadata(path).with_context(|| format!("cannot use {shown}: check where it leads"))?;
            require!(metadata.is_dir(), Io, "{shown} is not a folder; move it away, or name another --folder");
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let made = fs::create_dir_all(path);
            made.with_context(|| format!("cannot make the folder {shown}: name another --folder"))?;
        }
        Err(error) => {
            return Err(error).with_context(|| format!("cannot use {shown}: check it, or name another --folder"));
        }
    }
    Ok(())
}

/// The text of a file of a learner's folder.
pub(super) fn read(path: &Path, most: usize, what: &str) -> Result<String> {
    input::ensure_regular(path, "remove it to get the lesson's")?;
    input::text(path, most, what, input::SAVE_AS_TEXT)
}
