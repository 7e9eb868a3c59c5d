//! A file that is replaced whole or not at all, or a stream that a result goes into.

use std::fmt::Display;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf, is_separator};

use anyhow::{Context, Result};
use tempfile::NamedTempFile;

use super::output::{Output, unless_read_enough};
use super::{require, signals};

/// Where a result goes. Two are equal where they are one file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(unix), allow(dead_code))]
enum Kind {
    /// A file, there or not: the result is written beside it and takes its place when it is complete.
    File,
    /// A pipe or a device that takes characters: the result is written into it.
    Stream,
    /// The same of what this program writes to, under any name.
    StandardOutput,
}

impl Target {
    /// Makes sure, before any work is done, that `path` may be written and is none of `sources`, also where it is what standard
    /// output goes to.
    pub(super) fn check(path: &Path, sources: &[&Path], output: &Output) -> Result<Self> {
        let target = Self::new(path)?;
        require!(
            !sources.iter().any(|source| is_same_file(path, source)),
            InvalidArgument,
            "input and output are the same file, {}; name another output",
            path.display()
        );
        match target.kind {
            Kind::StandardOutput => output.leave_to(path)?,
            Kind::Stream => {}
            Kind::File => target.check_file(output)?,
        }
        Ok(target)
    }

    /// What `path` names.
    pub(super) fn new(path: &Path) -> Result<Self> {
        let names_a_file = path.file_name().is_some()
            && !path.as_os_str().as_encoded_bytes().last().is_some_and(|&byte| is_separator(byte.into()));
        let path = match fs::symlink_metadata(path) {
            Ok(_) => {
                let there = fs::metadata(path).with_context(|| {
                    format!(
                        "cannot write {}: it is a link that leads nowhere; remove it or name another output",
                        path.display()
                    )
                })?;
                match stream(&there) {
                    // Its many names are one.
                    Some(kind @ Kind::StandardOutput) => return Ok(Self { path: "standard output".into(), kind }),
                    Some(kind) => return Ok(Self { path: path.into(), kind }),
                    None => {}
                }
                require!(
                    there.is_file(),
                    InvalidArgument,
                    "cannot write {}: it is not a file or a pipe; name another output",
                    path.display()
                );
                require!(
                    !is_descriptor(path),
                    InvalidArgument,
                    "cannot write {}: it stands for a file that is open, which would be replaced and lose what others write to \
                     it; name that file, or redirect standard output to it and pass /dev/stdout",
                    path.display()
                );
                // Through links, so that the file is replaced and not the link.
                fs::canonicalize(path).with_context(|| format!("cannot write {}: check the path", path.display()))?
            }
            Err(error) if error.kind() == ErrorKind::NotFound && names_a_file => in_its_folder(path),
            Err(error) if error.kind() == ErrorKind::NotFound => path.into(),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot write {}: check the path", path.display()));
            }
        };
        require!(
            names_a_file,
            InvalidArgument,
            "cannot write {}: it names no file; name one in that folder",
            path.display()
        );
        Ok(Self { path, kind: Kind::File })
    }

    fn check_file(&self, output: &Output) -> Result<()> {
        let path = self.path.display();
        let old = fs::metadata(&self.path).ok();
        if let Some(old) = &old {
            let writable = OpenOptions::new().write(true).open(&self.path);
            let denied = writable.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
            require!(
                !denied && !old.permissions().readonly(),
                Io,
                "cannot write {path}: it is read-only; name another output or chmod it"
            );
        }
        // Whether a file can be made there is known only once one was. It goes again: the work may take long.
        let temporary = self.temporary()?;
        let as_before = old.as_ref().map_or(Ok(true), |old| take_over(temporary.as_file(), old));
        let is_kept = old.is_some_and(|old| is_kept(&old, self.folder(), temporary.as_file()));
        self.discard(temporary);
        require!(
            !is_kept,
            Io,
            "cannot write {path}: it belongs to another user, and in its folder only owners may replace a file; name another output"
        );
        if !as_before.with_context(|| format!("cannot write {path}: check the permissions of its folder"))? {
            output
                .note(format!("{path} is replaced, and only root may give it to those who owned it: it will be yours"));
        }
        Ok(())
    }

    /// Writes what `write` writes: to a file that then takes its place, or into the stream.
    pub(super) fn replace(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let path = self.path.display();
        let stream_failed = |error| failed(error, format_args!("into {path}"), "check what reads it");
        let into = |stream: &mut dyn Write| {
            let mut stream = BufWriter::new(stream);
            write(&mut stream).and_then(|()| stream.flush())
        };
        match self.kind {
            Kind::StandardOutput => unless_read_enough(into(&mut io::stdout().lock())).map_err(stream_failed),
            Kind::Stream => {
                let opened = OpenOptions::new().write(true).open(&self.path);
                opened.and_then(|mut stream| into(&mut stream)).map_err(stream_failed)
            }
            Kind::File => {
                let temporary = self.temporary()?;
                let filled = into(&mut temporary.as_file()).and_then(|()| self.settle(temporary.as_file()));
                match filled {
                    Ok(()) => self.persist(temporary),
                    Err(error) => {
                        self.discard(temporary);
                        Err(failed(error, path, "check the room on its disk"))
                    }
                }
            }
        }
    }

    /// Makes a complete file what the old one was, and sees it on the disk: a rename may get there before what it renames.
    fn settle(&self, file: &File) -> io::Result<()> {
        if let Ok(old) = fs::metadata(&self.path) {
            take_over(file, &old)?;
        }
        file.sync_all()
    }

    /// Makes a file beside the target, which a signal removes from now on.
    fn temporary(&self) -> Result<NamedTempFile> {
        let mut unfinished = signals::unfinished()?;
        // Opened here, and so with the permissions that any program gives a new file. In place of an old one, which may be
        // private, it is for its owner alone until it is complete and has the old one's.
        let is_new = !self.path.exists();
        let open = |path: &Path| options(is_new).write(true).create_new(true).open(path);
        let temporary = tempfile::Builder::new().prefix(".warpstride-").make_in(self.folder(), open);
        let temporary = temporary.with_context(|| {
            format!("cannot write {}: check that its folder exists and may be written", self.path.display())
        })?;
        *unfinished = Some(temporary.path().to_owned());
        Ok(temporary)
    }

    fn discard(&self, temporary: NamedTempFile) {
        let mut unfinished = signals::locked();
        // Gone before the lock is.
        drop(temporary);
        *unfinished = None;
    }

    fn persist(&self, temporary: NamedTempFile) -> Result<()> {
        let mut unfinished = signals::locked();
        let persisted = temporary.persist(&self.path).map(drop).map_err(|error| error.error);
        *unfinished = None;
        persisted.map_err(|error| failed(error, self.path.display(), "check the permissions of its folder"))?;
        #[cfg(unix)]
        {
            // The rename too. A file system that cannot has its own ways, and the file is there.
            let _ = File::open(self.folder()).and_then(|folder| folder.sync_all());
        }
        Ok(())
    }

    fn folder(&self) -> &Path {
        folder_of(&self.path)
    }
}

/// The failure to write a file or into a stream, with the advice that the error itself gives, or else `otherwise`.
fn failed(error: io::Error, what: impl Display, otherwise: &str) -> anyhow::Error {
    let advice = match error.kind() {
        ErrorKind::StorageFull => "no room is left there; make room, or name another output",
        ErrorKind::ResourceBusy => "the system uses it, perhaps as a mount; name another output",
        ErrorKind::PermissionDenied => "check its permissions and those of its folder",
        ErrorKind::BrokenPipe => "its reader has closed it; check why",
        _ => otherwise,
    };
    anyhow::Error::from(error).context(format!("cannot write {what}: {advice}"))
}

/// Whether two paths lead to one file. No pipe is opened: that would wait for its other end.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let is_file = |path: &Path| fs::metadata(path).is_ok_and(|there| there.is_file());
    is_file(one) && is_file(other) && same_file::is_same_file(one, other).unwrap_or(false)
}

/// Whether a path leads through the system's names of what is open here, such as `/dev/stderr`, `/dev/fd/3` or
/// `/proc/self/fd/3`. The system knows what the path leads to, and so its links have an end.
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
fn stream(there: &Metadata) -> Option<Kind> {
    use std::io::IsTerminal;
    use std::os::fd::AsFd;
    use std::os::unix::fs::{FileTypeExt, MetadataExt};

    let kind = there.file_type();
    let own = io::stdout().as_fd().try_clone_to_owned().and_then(|own| File::from(own).metadata());
    let is_own = own.is_ok_and(|own| (own.dev(), own.ino()) == (there.dev(), there.ino()));
    // Nothing mixes in /dev/null.
    if is_own && (!kind.is_char_device() || io::stdout().is_terminal()) {
        return Some(Kind::StandardOutput);
    }
    (kind.is_fifo() || kind.is_char_device()).then_some(Kind::Stream)
}

#[cfg(not(unix))]
fn stream(_: &Metadata) -> Option<Kind> {
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

/// Whether a folder lets nobody but owners replace a file in it, and who made `own` is none of them.
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

/// Gives a file the owner, the group and the mode of the one that it replaces; whether the system let it have both.
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
