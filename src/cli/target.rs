//! A file that is replaced whole or not at all.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf, is_separator};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, ensure};
use tempfile::NamedTempFile;

/// The temporary file that is there now, if any. Whoever makes, renames or removes it holds the lock meanwhile.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

fn unfinished() -> MutexGuard<'static, Option<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a result goes. It is written beside what it replaces, and takes its place when it is complete. Two are equal where
/// they are one file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    path: PathBuf,
}

impl Target {
    /// Makes sure, before any work is done, that `path` may be written and is not `source`.
    pub(super) fn check(path: &Path, source: &Path) -> Result<Self> {
        let names_a_file = path.file_name().is_some()
            && !path.as_os_str().as_encoded_bytes().last().is_some_and(|&byte| is_separator(byte.into()));
        let path = match fs::symlink_metadata(path) {
            // Through links, so that the file is replaced and not the link.
            Ok(_) => fs::canonicalize(path).with_context(|| {
                format!(
                    "cannot write {}: it is a link that leads nowhere; remove it or name another output",
                    path.display()
                )
            })?,
            Err(error) if error.kind() == ErrorKind::NotFound && names_a_file => in_its_folder(path),
            Err(error) if error.kind() == ErrorKind::NotFound => path.into(),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot write {}: check the path", path.display()));
            }
        };
        if let Ok(old) = fs::metadata(&path) {
            ensure!(old.is_file(), "cannot write {}: it is not a regular file; name another output", path.display());
            ensure!(
                !same_file::is_same_file(&path, source)?,
                "input and output are the same file, {}; name another output",
                path.display()
            );
            ensure!(
                !old.permissions().readonly(),
                "cannot write {}: it is read-only; name another output or chmod it",
                path.display()
            );
        }
        ensure!(names_a_file, "cannot write {}: it names no file; name one in that folder", path.display());
        let target = Self { path };
        // Whether a file can be made there is known only once one was. It goes again: the work may take long.
        let _locked = unfinished();
        drop(target.temporary()?);
        Ok(target)
    }

    /// Makes the file of what `write` writes, and puts it in its place.
    pub(super) fn replace(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let temporary = {
            let mut unfinished = unfinished();
            remove_when_interrupted()?;
            let temporary = self.temporary()?;
            *unfinished = Some(temporary.path().to_owned());
            temporary
        };
        let written = self.fill(&temporary, write);
        let mut unfinished = unfinished();
        *unfinished = None;
        // Either way the temporary file is gone before the lock is.
        written.and_then(|()| {
            temporary.persist(&self.path).map_err(|error| error.error).with_context(|| {
                format!("cannot write {}: check the permissions of its folder", self.path.display())
            })?;
            Ok(())
        })
    }

    fn fill(&self, temporary: &NamedTempFile, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let failed = || format!("cannot write {}: check the room on its disk", self.path.display());
        let mut file = BufWriter::new(temporary.as_file());
        write(&mut file).and_then(|()| file.flush()).with_context(failed)?;
        drop(file);
        if let Ok(old) = fs::metadata(&self.path) {
            temporary.as_file().set_permissions(old.permissions()).with_context(failed)?;
        }
        Ok(())
    }

    fn temporary(&self) -> Result<NamedTempFile> {
        let folder = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        // Opened here, and so with the permissions that any program gives; the crate's own are for secrets.
        let open = |path: &Path| OpenOptions::new().write(true).create_new(true).open(path);
        tempfile::Builder::new().prefix(".warpstride-").make_in(folder, open).with_context(|| {
            format!("cannot write {}: check that its folder exists and may be written", self.path.display())
        })
    }
}

/// The path of a file that is not there yet, the same for every way to write it.
fn in_its_folder(path: &Path) -> PathBuf {
    let folder = path.parent().map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    match (folder.map(fs::canonicalize), path.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        // Opening it will fail, and say so of the path as it was written.
        _ => path.into(),
    }
}

/// From now on a signal that ends the program removes the unfinished file first, and a file that grows over the limit that
/// `ulimit -f` sets is an error and no death.
#[cfg(unix)]
fn remove_when_interrupted() -> Result<()> {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    use signal_hook::iterator::Signals;

    let failed = "cannot handle signals; try again";
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))).context(failed)?;
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).context(failed)?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            // Held to the end: no other file is made, and this one does not move.
            let unfinished = unfinished();
            if let Some(path) = &*unfinished {
                let _ = fs::remove_file(path);
            }
            // Dies of the signal, as whoever waits for this program expects: 130 to a shell, or 143.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
    Ok(())
}

/// Elsewhere nothing tells in time.
#[cfg(not(unix))]
fn remove_when_interrupted() -> Result<()> {
    Ok(())
}
