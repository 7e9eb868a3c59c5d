//! A file that is replaced whole or not at all, or a stream that a result goes into.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf, is_separator};
use std::sync::{Mutex, MutexGuard, PoisonError};

use same_file::Handle;
use tempfile::TempPath;

use crate::error::{Error, ErrorKind, Result};

/// The temporary files that are there now. A thread that makes, renames or removes one holds the
/// lock meanwhile.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the temporary file of every replacement that is under way, and calls `end` before
/// another one can begin.
///
/// A program calls this on a thread that receives the signals that end it, and exits in `end`. It
/// must not be called in a signal handler, because it takes a lock. If `end` returns, those
/// replacements fail. `end` must not replace a file: it would wait for itself.
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
    let unfinished = unfinished();
    for path in &*unfinished {
        let _ = fs::remove_file(path);
    }
    end();
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

/// The destination of a result. Two are equal if they are one file.
///
/// A file is written beside its place under a temporary name, synchronised and renamed, so that
/// readers find the old file or the new one and never a part; it keeps the mode of the file that it
/// replaces, and the owner and the group where the system lets it.
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

pub(super) fn io_error(context: impl Display, error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{context}: {error}"))
}

impl Destination {
    /// Returns what `path` names, and makes sure that a file can be replaced: a program calls this
    /// before long work, whose result it could not keep otherwise. Nothing is written yet.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is a folder, or a name of the system's for a file that is open here
    /// (`/dev/fd/3`) and would be replaced under its writers; `Io` if it is a link that leads
    /// nowhere, or cannot be looked at, if the file or its folder may not be written, or if the
    /// folder lets only owners replace a file.
    pub fn new(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |advice| move |error| io_error(format_args!("cannot write {}: {advice}", path.display()), error);
        let refused = |kind, why| Err(Error::new(kind, format!("cannot write {}: {why}", path.display())));
        let is_folder = path.as_os_str().as_encoded_bytes().last().is_some_and(|&byte| is_separator(byte.into()));
        let there = match fs::symlink_metadata(path) {
            Ok(_) => Some(
                fs::metadata(path)
                    .map_err(failed("it is a link that leads nowhere; remove it or name another output"))?,
            ),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed("check the path")(error)),
        };
        match there.as_ref().and_then(stream) {
            // Its many names are one.
            Some(kind @ DestinationKind::StandardOutput) => return Ok(Self { path: "standard output".into(), kind }),
            Some(kind) => return Ok(Self { path: path.into(), kind }),
            None => {}
        }
        let place = if let Some(there) = &there {
            if !there.is_file() {
                return refused(ErrorKind::InvalidArgument, "it is not a file or a pipe; name another output");
            }
            if is_descriptor(path) {
                let why = "it stands for a file that is open, which would be replaced and lose what others write to it; \
                           name that file, or redirect standard output to it and pass /dev/stdout";
                return refused(ErrorKind::InvalidArgument, why);
            }
            // Through links, so that the file is replaced and not the link.
            let place = fs::canonicalize(path).map_err(failed("check the path"))?;
            let opened = OpenOptions::new().write(true).open(&place);
            let is_denied = opened.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
            if is_denied || there.permissions().readonly() {
                return refused(ErrorKind::Io, "it is read-only; name another output or chmod it");
            }
            place
        } else {
            let Some(name) = path.file_name().filter(|_| !is_folder) else {
                return refused(ErrorKind::InvalidArgument, "it names no file; name one in that folder");
            };
            fs::canonicalize(folder_of(path)).map_err(failed(NO_FOLDER))?.join(name)
        };
        // A folder proves that a file can be made there only by one that was.
        let own = tempfile::tempfile_in(folder_of(&place)).map_err(failed(NO_FOLDER))?;
        if there.is_some_and(|there| is_kept(&there, folder_of(&place), &own)) {
            let why =
                "it belongs to another user, and in its folder only owners may replace a file; name another output";
            return refused(ErrorKind::Io, why);
        }
        Ok(Self { path: place, kind: DestinationKind::File })
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

    /// Writes what `write` writes: to a file that then takes its place, or into the stream.
    ///
    /// # Errors
    ///
    /// `Io` if `write` or the system fails, or the program ends ([`remove_unfinished_and`]); the
    /// file is then what it was.
    pub fn replace(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let into = |stream: &mut dyn Write| {
            let mut stream = BufWriter::new(stream);
            write(&mut stream).and_then(|()| stream.flush())
        };
        let written = match self.kind {
            DestinationKind::StandardOutput => write_standard_output(into),
            DestinationKind::Stream => self.open_stream().and_then(|mut stream| into(&mut stream)),
            DestinationKind::File => {
                let fill = |mut file: &File| {
                    into(&mut file).map_err(|error| failed(error, self.path.display(), NO_ROOM))?;
                    self.settle(file)
                };
                return put(&self.path, self.is_private(), true, fill).map(drop);
            }
        };
        written.map_err(|error| failed(error, format_args!("into {}", self.path.display()), "check what reads it"))
    }

    /// Opens the stream, unless a file or a link to one has taken its name.
    fn open_stream(&self) -> io::Result<File> {
        let opened = OpenOptions::new().write(true).open(&self.path)?;
        if stream(&opened.metadata()?).is_none() {
            return Err(io::Error::other("another program has replaced it by a file"));
        }
        Ok(opened)
    }

    /// Says whether a new file is for its owner alone until it is complete: it replaces one, which
    /// may be private. Else it has the permissions that any program gives a new file.
    pub(crate) fn is_private(&self) -> bool {
        self.path.exists()
    }

    /// Makes a complete file what the old one was, and sees it on the disk: a rename may get there
    /// before what it renames.
    pub(crate) fn settle(&self, file: &File) -> Result<()> {
        // A link that has taken the name is replaced, and does not lend the mode of its target.
        let old = fs::symlink_metadata(&self.path).ok().filter(Metadata::is_file);
        let as_before = old.map_or(Ok(()), |old| take_over(file, &old));
        as_before.and_then(|()| file.sync_all()).map_err(|error| failed(error, self.path.display(), NO_ROOM))
    }

    /// Gives a complete file beside the destination its place.
    pub(crate) fn take(&self, path: &Path) -> Result<()> {
        fs::rename(path, &self.path).map_err(|error| failed(error, self.path.display(), NO_RENAME))?;
        sync_folder(&self.path);
        Ok(())
    }
}

const NO_FOLDER: &str = "check that its folder exists and may be written";
const NO_RENAME: &str = "check the permissions of its folder";
const NO_ROOM: &str = "check the room on its disk";

/// The path of a temporary file, which the list of unfinished ones has until it is renamed or
/// removed. Where it is dropped, also in a panic, it is removed.
struct Listed(Option<TempPath>);

impl Listed {
    /// Takes the path off the list, and has `end` rename or remove the file before another thread
    /// gets the lock.
    fn end(&mut self, end: impl FnOnce(TempPath) -> io::Result<()>) -> io::Result<()> {
        let mut list = unfinished();
        let Some(path) = self.0.take() else { return Ok(()) };
        list.remove::<Path>(&path);
        end(path)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let _ = self.end(TempPath::close);
    }
}

/// Has `fill` write a file beside `place`, which [`remove_unfinished_and`] removes meanwhile, and
/// renames it. Nothing else may have the name then, not even a link, unless it `replaces` that.
pub(crate) fn put(
    place: &Path,
    is_private: bool,
    replaces: bool,
    fill: impl FnOnce(&File) -> Result<()>,
) -> Result<File> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    if !is_private {
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    #[cfg(not(unix))]
    let _ = is_private;
    let mut list = unfinished();
    let temporary = builder
        .prefix(".warpstride-")
        .tempfile_in(folder_of(place))
        .map_err(|error| failed(error, place.display(), NO_FOLDER))?;
    let (file, path) = temporary.into_parts();
    list.insert(path.to_path_buf());
    drop(list);
    let mut listed = Listed(Some(path));
    fill(&file)?;
    let named = listed.end(|path| {
        let named = if replaces { path.persist(place) } else { path.persist_noclobber(place) };
        Ok(named?)
    });
    named.map_err(|error| failed(error, place.display(), NO_RENAME))?;
    sync_folder(place);
    Ok(file)
}

/// Sees the name of a file on the disk. A file system that cannot has its own ways.
fn sync_folder(path: &Path) {
    #[cfg(unix)]
    let _ = File::open(folder_of(path)).and_then(|folder| folder.sync_all());
    #[cfg(not(unix))]
    let _ = path;
}

/// The failure to write a file or into a stream, with the advice that the error itself gives, or
/// else `otherwise`.
fn failed(error: io::Error, what: impl Display, otherwise: &str) -> Error {
    let advice = match error.kind() {
        io::ErrorKind::StorageFull => "no room is left there; make room, or name another output",
        io::ErrorKind::ResourceBusy => "the system uses it, perhaps as a mount; name another output",
        io::ErrorKind::PermissionDenied => "check its permissions and those of its folder",
        io::ErrorKind::BrokenPipe => "its reader has closed it; check why",
        io::ErrorKind::AlreadyExists => "another run writes it; wait for it, or name another output",
        _ => otherwise,
    };
    io_error(format_args!("cannot write {what}: {advice}"), error)
}

/// Returns whether two paths lead to one regular file. No pipe is opened: that would wait for its
/// other end.
pub fn is_same_file(one: impl AsRef<Path>, other: impl AsRef<Path>) -> bool {
    let (one, other) = (one.as_ref(), other.as_ref());
    let is_file = |path: &Path| fs::metadata(path).is_ok_and(|there| there.is_file());
    is_file(one) && is_file(other) && same_file::is_same_file(one, other).unwrap_or(false)
}

/// Fails unless an open file still has a name itself, and not through a link.
pub(crate) fn check_is_at(file: &File, path: &Path) -> Result<()> {
    let is_named = || {
        let is_file = fs::symlink_metadata(path)?.is_file();
        io::Result::Ok(is_file && Handle::from_file(file.try_clone()?)? == Handle::from_path(path)?)
    };
    if is_named().unwrap_or(false) { Ok(()) } else { Err(replaced(path)) }
}

/// The error of a run whose file has lost its name.
pub(crate) fn replaced(path: &Path) -> Error {
    let path = path.display();
    let sentence = format!("another program has removed, replaced or renamed {path}, which this run wrote; try again");
    Error::new(ErrorKind::Io, sentence)
}

/// Says whether a path leads through the system's names of what is open here, such as
/// `/dev/stderr`, `/dev/fd/3` or `/proc/self/fd/3`. The path leads to a file, and so its links have
/// an end.
fn is_descriptor(path: &Path) -> bool {
    let of_open_files = |folder: PathBuf| {
        folder == Path::new("/dev/fd") || (folder.starts_with("/proc") && folder.file_name() == Some("fd".as_ref()))
    };
    fs::canonicalize(folder_of(path)).is_ok_and(of_open_files)
        || fs::read_link(path).is_ok_and(|link| is_descriptor(&folder_of(path).join(link)))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the kind of a file that is written in place: a pipe, a device of characters, or the file
/// behind standard output.
#[cfg(unix)]
fn stream(there: &Metadata) -> Option<DestinationKind> {
    use std::io::IsTerminal;
    use std::os::unix::fs::{FileTypeExt, MetadataExt};

    let kind = there.file_type();
    let is_own = Handle::stdout().is_ok_and(|own| (own.dev(), own.ino()) == (there.dev(), there.ino()));
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

/// Says whether a folder is sticky and the user that made `own` is neither root nor an owner, and
/// so may not replace the file.
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

/// Gives a file the mode of the one that it replaces, and its owner and group where the system lets
/// it.
#[cfg(unix)]
fn take_over(file: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

    let _ = fchown(file, Some(old.uid()), None);
    let _ = fchown(file, None, Some(old.gid()));
    // Nothing that runs as its owner or its group is to run as another.
    file.set_permissions(PermissionsExt::from_mode(old.mode() & 0o777))
}

#[cfg(not(unix))]
fn take_over(file: &File, old: &Metadata) -> io::Result<()> {
    file.set_permissions(old.permissions())
}

#[cfg(test)]
mod tests;
