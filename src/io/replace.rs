//! A file that is replaced whole or not at all, or a stream that a result goes into.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf, is_separator};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempPath;

use crate::error::{Error, ErrorKind, Result};

/// The temporary files that are there now. A thread that makes, renames or removes one holds the
/// lock meanwhile.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// Whether this thread holds the lock for [`remove_unfinished_and`], and so cannot wait for it.
    static ENDS: Cell<bool> = const { Cell::new(false) };
}

/// Removes the temporary file of every replacement that is under way, and calls `end` before
/// another one can begin.
///
/// A program calls this on a thread that receives the signals that end it, and exits in `end`; it
/// is no signal handler, because it takes a lock. Where `end` returns, those replacements fail.
/// `end` itself can replace no file: [`Destination::replace`] fails there.
///
/// ```
/// use warpstride::io::{Destination, remove_unfinished_and};
///
/// let folder = tempfile::tempdir()?;
/// let destination = Destination::new(&folder.path().join("result.txt"))?;
/// let replaced = destination.replace(|file| {
///     file.write_all(b"half of it")?;
///     remove_unfinished_and(|| ()); // as the thread does that receives a signal
///     Ok(())
/// });
/// assert!(replaced.is_err() && std::fs::read_dir(folder.path())?.next().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn remove_unfinished_and(end: impl FnOnce()) {
    /// Ends the end, also where it panics.
    struct Ends;
    impl Drop for Ends {
        fn drop(&mut self) {
            ENDS.set(false);
        }
    }

    if ENDS.get() {
        // Within `end`: the files are removed.
        return end();
    }
    let unfinished = unfinished();
    ENDS.set(true);
    let _ends = Ends;
    for path in &*unfinished {
        let _ = fs::remove_file(path);
    }
    end();
}

/// A temporary file, which the list of unfinished ones has until it is renamed or removed. It is
/// removed where nobody renames it, also by a panic.
struct Temporary {
    file: File,
    path: Option<TempPath>,
}

impl Temporary {
    /// Gives the file its place.
    fn persist(mut self, place: &Path) -> io::Result<()> {
        let mut unfinished = unfinished();
        let Some(path) = self.path.take() else { return Ok(()) };
        unfinished.remove::<Path>(&path);
        path.persist(place).map_err(|error| error.error)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let Some(path) = self.path.take() else { return };
        let mut unfinished = unfinished();
        unfinished.remove::<Path>(&path);
        // Gone before the lock is.
        drop(path);
    }
}

/// Writes to standard output. A reader that closes it has read enough, which is not an error.
///
/// # Errors
///
/// Those of standard output and of `write`.
pub fn write_standard_output(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Where a result goes. Two are equal where they are one file.
///
/// A file is written beside its place under a temporary name, synchronised and renamed, so that
/// readers find the old file or the new one and never a part; it keeps the mode, the owner and the
/// group of the file that it replaces, as far as the system allows.
///
/// ```
/// use warpstride::io::Destination;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("result.txt");
/// Destination::new(&path)?.replace(|file| file.write_all(b"whole"))?;
/// assert_eq!(std::fs::read(&path)?, b"whole");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Destination {
    path: PathBuf,
    kind: DestinationKind,
}

/// How a result gets to a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(unix), allow(dead_code))]
pub enum DestinationKind {
    /// A file, there or not: the result is written beside it and takes its place when it is
    /// complete.
    File,
    /// A pipe or a device that takes characters: the result is written into it.
    Stream,
    /// The stream or file that is this program's standard output, under any name.
    StandardOutput,
}

/// Whether a new file keeps the owner and the group of the one that it replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The owner and the group of the old file; where there is none, those of any file that this
    /// program makes.
    Kept,
    /// The user who runs this program: only root may give the file to the old one's owner and
    /// group.
    Changed,
}

fn refused<T>(kind: ErrorKind, sentence: String) -> Result<T> {
    Err(Error::new(kind, sentence))
}

fn io_error(context: impl Display, error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{context}: {error}"))
}

impl Destination {
    /// What `path` names. Nothing is written yet.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is a folder, or stands for a file that is open here (`/dev/fd/3`)
    /// and would be replaced under its writers; `Io` if it is a link that leads nowhere, or
    /// cannot be looked at.
    pub fn new(path: &Path) -> Result<Self> {
        let (shown, unchecked) =
            (path.display(), |error| io_error(format_args!("cannot write {}: check the path", path.display()), error));
        let names_a_file = path.file_name().is_some()
            && !path.as_os_str().as_encoded_bytes().last().is_some_and(|&byte| is_separator(byte.into()));
        let path = match fs::symlink_metadata(path) {
            Ok(_) => {
                let there = fs::metadata(path).map_err(|error| {
                    let advice = "it is a link that leads nowhere; remove it or name another output";
                    io_error(format_args!("cannot write {shown}: {advice}"), error)
                })?;
                match stream(&there) {
                    // Its many names are one.
                    Some(kind @ DestinationKind::StandardOutput) => {
                        return Ok(Self { path: "standard output".into(), kind });
                    }
                    Some(kind) => return Ok(Self { path: path.into(), kind }),
                    None => {}
                }
                if !there.is_file() {
                    let sentence = format!("cannot write {shown}: it is not a file or a pipe; name another output");
                    return refused(ErrorKind::InvalidArgument, sentence);
                }
                if is_descriptor(path) {
                    let sentence = format!(
                        "cannot write {shown}: it stands for a file that is open, which would be replaced and lose what others write \
                         to it; name that file, or redirect standard output to it and pass /dev/stdout"
                    );
                    return refused(ErrorKind::InvalidArgument, sentence);
                }
                // Through links, so that the file is replaced and not the link.
                fs::canonicalize(path).map_err(unchecked)?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && names_a_file => in_its_folder(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.into(),
            Err(error) => return Err(unchecked(error)),
        };
        if !names_a_file {
            let sentence = format!("cannot write {shown}: it names no file; name one in that folder");
            return refused(ErrorKind::InvalidArgument, sentence);
        }
        Ok(Self { path, kind: DestinationKind::File })
    }

    /// How a result gets there.
    #[doc(hidden)]
    pub fn kind(&self) -> DestinationKind {
        self.kind
    }

    /// The path of the file, links followed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that the file may be replaced, by making a temporary file beside it and removing that
    /// again, and gives the owner of the new file. A program calls this before long work, whose
    /// result it could not keep otherwise. For a pipe or a device there is nothing to check, and
    /// the owner is kept.
    ///
    /// # Errors
    ///
    /// `Io` if the file or its folder may not be written, or the folder lets only owners replace
    /// a file.
    pub fn check(&self) -> Result<Owner> {
        if self.kind != DestinationKind::File {
            return Ok(Owner::Kept);
        }
        let path = self.path.display();
        let old = fs::metadata(&self.path).ok();
        if let Some(old) = &old {
            let writable = OpenOptions::new().write(true).open(&self.path);
            let is_denied = writable.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
            if is_denied || old.permissions().readonly() {
                let sentence = format!("cannot write {path}: it is read-only; name another output or chmod it");
                return refused(ErrorKind::Io, sentence);
            }
        }
        // Whether a file can be made there is known only once one was. It goes again: the work may
        // take long.
        let temporary = self.temporary()?;
        let is_as_before = old.as_ref().map_or(Ok(true), |old| take_over(&temporary.file, old));
        let is_kept = old.is_some_and(|old| is_kept(&old, self.folder(), &temporary.file));
        drop(temporary);
        if is_kept {
            let sentence = format!(
                "cannot write {path}: it belongs to another user, and in its folder only owners may replace a file; name another \
                 output"
            );
            return refused(ErrorKind::Io, sentence);
        }
        let is_as_before = is_as_before.map_err(|error| {
            io_error(format_args!("cannot write {path}: check the permissions of its folder"), error)
        })?;
        Ok(if is_as_before { Owner::Kept } else { Owner::Changed })
    }

    /// Writes what `write` writes: to a file that then takes its place, or into the stream.
    ///
    /// # Errors
    ///
    /// `Io` if `write` or the system fails, or the program ends ([`remove_unfinished_and`]); the
    /// file is then what it was.
    pub fn replace(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let path = self.path.display();
        let stream_failed = |error| failed(error, format_args!("into {path}"), "check what reads it");
        let into = |stream: &mut dyn Write| {
            let mut stream = BufWriter::new(stream);
            write(&mut stream).and_then(|()| stream.flush())
        };
        match self.kind {
            DestinationKind::StandardOutput => write_standard_output(into).map_err(stream_failed),
            DestinationKind::Stream => {
                let opened = OpenOptions::new().write(true).open(&self.path);
                opened.and_then(|mut stream| into(&mut stream)).map_err(stream_failed)
            }
            DestinationKind::File => {
                let temporary = self.temporary()?;
                into(&mut &temporary.file)
                    .and_then(|()| self.settle(&temporary.file))
                    .map_err(|error| failed(error, path, "check the room on its disk"))?;
                self.persist(temporary)
            }
        }
    }

    /// Makes a complete file what the old one was, and sees it on the disk: a rename may get there
    /// before what it renames.
    fn settle(&self, file: &File) -> io::Result<()> {
        if let Ok(old) = fs::metadata(&self.path) {
            take_over(file, &old)?;
        }
        file.sync_all()
    }

    /// Makes a file beside the destination, which [`remove_unfinished_and`] removes from now on.
    fn temporary(&self) -> Result<Temporary> {
        if ENDS.get() {
            let path = self.path.display();
            return refused(ErrorKind::Io, format!("cannot write {path}: the program ends; write it before"));
        }
        let mut unfinished = unfinished();
        // Opened here, and so with the permissions that any program gives a new file. In place of
        // an old one, which may be private, it is for its owner alone until it is complete and has
        // the old one's.
        let is_new = !self.path.exists();
        let open = |path: &Path| options(is_new).write(true).create_new(true).open(path);
        let temporary =
            tempfile::Builder::new().prefix(".warpstride-").make_in(self.folder(), open).map_err(|error| {
                let path = self.path.display();
                io_error(format_args!("cannot write {path}: check that its folder exists and may be written"), error)
            })?;
        let (file, path) = temporary.into_parts();
        unfinished.insert(path.to_path_buf());
        Ok(Temporary { file, path: Some(path) })
    }

    fn persist(&self, temporary: Temporary) -> Result<()> {
        temporary
            .persist(&self.path)
            .map_err(|error| failed(error, self.path.display(), "check the permissions of its folder"))?;
        // The rename too.
        self.sync_folder();
        Ok(())
    }

    /// Makes a file beside the destination that outlives this program. Nothing may be there, not
    /// even a link. As in [`Destination::replace`], the file has the permissions of a new one only
    /// where it replaces none.
    #[cfg(feature = "pipeline")]
    pub(crate) fn make_beside(&self, path: &Path) -> io::Result<File> {
        options(!self.path.exists()).read(true).write(true).create_new(true).open(path)
    }

    /// Gives a complete file beside the destination its place, as [`Destination::replace`]. Fails
    /// if another file has taken the place beside the destination.
    #[cfg(feature = "pipeline")]
    pub(crate) fn take(&self, file: &File, path: &Path) -> Result<()> {
        let cannot = |advice| move |error| failed(error, self.path.display(), advice);
        self.settle(file).map_err(cannot("check the room on its disk"))?;
        // Last, because a rename takes whatever has the name.
        check_is_at(file, path)?;
        fs::rename(path, &self.path).map_err(cannot("check the permissions of its folder"))?;
        self.sync_folder();
        Ok(())
    }

    /// Sees the names in the folder on the disk. A file system that cannot has its own ways.
    pub(crate) fn sync_folder(&self) {
        #[cfg(unix)]
        let _ = File::open(self.folder()).and_then(|folder| folder.sync_all());
    }

    fn folder(&self) -> &Path {
        folder_of(&self.path)
    }
}

/// The failure to write a file or into a stream, with the advice that the error itself gives, or
/// else `otherwise`.
fn failed(error: io::Error, what: impl Display, otherwise: &str) -> Error {
    let advice = match error.kind() {
        io::ErrorKind::StorageFull => "no room is left there; make room, or name another output",
        io::ErrorKind::ResourceBusy => "the system uses it, perhaps as a mount; name another output",
        io::ErrorKind::PermissionDenied => "check its permissions and those of its folder",
        io::ErrorKind::BrokenPipe => "its reader has closed it; check why",
        _ => otherwise,
    };
    io_error(format_args!("cannot write {what}: {advice}"), error)
}

/// Whether two paths lead to one regular file. No pipe is opened: that would wait for its other
/// end.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    let is_file = |path: &Path| fs::metadata(path).is_ok_and(|there| there.is_file());
    is_file(one) && is_file(other) && same_file::is_same_file(one, other).unwrap_or(false)
}

/// Fails unless an open file still has a name.
#[cfg(feature = "pipeline")]
pub(crate) fn check_is_at(file: &File, path: &Path) -> Result<()> {
    if has_name(file, path).unwrap_or(false) {
        return Ok(());
    }
    let sentence =
        format!("another program has removed, replaced or renamed {}, which this run wrote; try again", path.display());
    refused(ErrorKind::Io, sentence)
}

/// Whether a name is that of an open file, and not of a link to it.
#[cfg(all(feature = "pipeline", unix))]
fn has_name(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;

    let (own, there) = (file.metadata()?, fs::symlink_metadata(path)?);
    Ok((own.dev(), own.ino()) == (there.dev(), there.ino()))
}

/// Whether a name is that of an open file, and not of a link to it.
#[cfg(all(feature = "pipeline", not(unix)))]
fn has_name(file: &File, path: &Path) -> io::Result<bool> {
    use same_file::Handle;

    Ok(fs::symlink_metadata(path)?.is_file() && Handle::from_file(file.try_clone()?)? == Handle::from_path(path)?)
}

/// Whether a path leads through the system's names of what is open here, such as `/dev/stderr`,
/// `/dev/fd/3` or `/proc/self/fd/3`. The system knows what the path leads to, and so its links have
/// an end.
fn is_descriptor(path: &Path) -> bool {
    let of_open_files = |folder: PathBuf| {
        folder == Path::new("/dev/fd")
            || (folder.starts_with("/proc") && folder.file_name().is_some_and(|name| name == "fd"))
    };
    fs::canonicalize(folder_of(path)).is_ok_and(of_open_files)
        || fs::read_link(path).is_ok_and(|link| is_descriptor(&folder_of(path).join(link)))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The path of a file that is not there yet, the same for every way to write it.
fn in_its_folder(path: &Path) -> PathBuf {
    match (fs::canonicalize(folder_of(path)), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        // Opening it will fail, and say so of the path as it was written.
        _ => path.into(),
    }
}

/// What is written into as it is: a pipe, a device of characters, and whatever standard output is.
#[cfg(unix)]
fn stream(there: &Metadata) -> Option<DestinationKind> {
    use std::io::IsTerminal;
    use std::os::fd::AsFd;
    use std::os::unix::fs::{FileTypeExt, MetadataExt};

    let kind = there.file_type();
    let own = io::stdout().as_fd().try_clone_to_owned().and_then(|own| File::from(own).metadata());
    let is_own = own.is_ok_and(|own| (own.dev(), own.ino()) == (there.dev(), there.ino()));
    // Nothing mixes in /dev/null.
    if is_own && (!kind.is_char_device() || io::stdout().is_terminal()) {
        return Some(DestinationKind::StandardOutput);
    }
    (kind.is_fifo() || kind.is_char_device()).then_some(DestinationKind::Stream)
}

#[cfg(not(unix))]
fn stream(_: &Metadata) -> Option<DestinationKind> {
    None
}

/// How a file is made: readable by whom any program lets read it, or by its owner alone.
fn options(is_new: bool) -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    if !is_new {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = is_new;
    options
}

/// Whether a folder lets nobody but owners replace a file in it, and who made `own` is none of
/// them.
#[cfg(unix)]
fn is_kept(old: &Metadata, folder: &Path, own: &File) -> bool {
    use std::os::unix::fs::MetadataExt;

    const STICKY: u32 = 0o1000;
    let (Ok(folder), Ok(own)) = (fs::metadata(folder), own.metadata()) else { return false };
    folder.mode() & STICKY != 0 && ![0, old.uid(), folder.uid()].contains(&own.uid())
}

#[cfg(not(unix))]
fn is_kept(_: &Metadata, _: &Path, _: &File) -> bool {
    false
}

/// Gives a file the owner, the group and the mode of the one that it replaces; whether the system
/// let it have both.
#[cfg(unix)]
fn take_over(file: &File, old: &Metadata) -> io::Result<bool> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

    let new = file.metadata()?;
    let owner = new.uid() == old.uid() || fchown(file, Some(old.uid()), None).is_ok();
    let group = new.gid() == old.gid() || fchown(file, None, Some(old.gid())).is_ok();
    let mut mode = old.mode() & 0o7777;
    // What runs as its owner or its group is not to run as another.
    if !owner {
        mode &= !0o4000;
    }
    if !group {
        mode &= !0o2000;
    }
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    Ok(owner && group)
}

#[cfg(not(unix))]
fn take_over(file: &File, old: &Metadata) -> io::Result<bool> {
    file.set_permissions(old.permissions())?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Held by each test that writes: [`remove_unfinished_and`] removes the temporary files of all.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn a_writer_that_panics_leaves_nothing_behind() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        let destination = Destination::new(&folder.path().join("result")).unwrap();
        let (mut temporary, mut was_listed) = (PathBuf::new(), false);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            destination.replace(|_| {
                temporary = fs::read_dir(folder.path())?.next().expect("the temporary file")?.path();
                was_listed = unfinished().iter().any(|path| path.file_name() == temporary.file_name());
                panic!("as a writer may")
            })
        }));
        let payload = outcome.unwrap_err();
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"as a writer may"));
        assert!(was_listed && !temporary.exists() && !destination.path().exists());
        // Another program may make a file of that name.
        assert!(unfinished().iter().all(|path| path.file_name() != temporary.file_name()));
    }

    #[test]
    fn what_ends_a_program_replaces_no_file() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        let destination = Destination::new(&folder.path().join("result")).unwrap();
        let mut outcome = Ok(());
        remove_unfinished_and(|| {
            remove_unfinished_and(|| outcome = destination.replace(|file| file.write_all(b"late")));
        });
        let error = outcome.unwrap_err();
        assert!(error.kind() == ErrorKind::Io && error.to_string().contains("the program ends"), "{error}");
        destination.replace(|file| file.write_all(b"after it")).unwrap();
        assert_eq!(fs::read(destination.path()).unwrap(), b"after it");
    }
}
