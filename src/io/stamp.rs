//! Files that change while a program reads them.

use std::fs::Metadata;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::{ArrayFile, io_error};
use crate::error::{Error, ErrorKind, Result};

/// A file at one time: two stamps differ if the file was changed or replaced in between.
///
/// A program can restore the time of a file's last change, as `cp -p`, `tar` and `rsync` do. On
/// Unix no program can set the time of the last change of the file's own record. Numbers of devices
/// are left out, because some change when a machine starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stamp {
    pub(crate) bytes: u64,
    /// When the contents were last changed: seconds and nanoseconds since 1970; 0 where a file
    /// system has no times.
    pub(crate) modified: (u64, u32),
    /// On Unix, when the file's record was last changed; 0 elsewhere.
    pub(crate) changed: (i64, i64),
    /// On Unix, the number of the file in its file system; 0 elsewhere.
    pub(crate) inode: u64,
}

impl Stamp {
    pub(crate) fn of(file: &Metadata) -> Self {
        let modified = file.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = modified.map_or((0, 0), |since| (since.as_secs(), since.subsec_nanos()));
        #[cfg(unix)]
        let (changed, inode) = {
            use std::os::unix::fs::MetadataExt;

            ((file.ctime(), file.ctime_nsec()), file.ino())
        };
        #[cfg(not(unix))]
        let (changed, inode) = ((0, 0), 0);
        Self { bytes: file.len(), modified, changed, inode }
    }
}

/// Returns whether an array's file was changed since it was opened, so that what was read of it may
/// be a mixture. Fails where the system does not say.
pub(crate) fn is_changed(array: &dyn ArrayFile) -> Result<bool> {
    let now = array.data().0.metadata();
    let failed = |error| io_error(format_args!("cannot read {}: check its disk", array.path().display()), error);
    Ok(Stamp::of(&now.map_err(failed)?) != Stamp::of(array.opened()))
}

/// Returns the error of an array whose file was changed.
pub(crate) fn changed(array: &dyn ArrayFile) -> Error {
    let path = array.path().display();
    Error::new(ErrorKind::Io, format!("{path} was changed while it was read; try again when nothing writes it"))
}

/// Fails if an array's file was changed since it was opened, or the system does not say.
pub(crate) fn check_unchanged(array: &dyn ArrayFile) -> Result<()> {
    if is_changed(array)? { Err(changed(array)) } else { Ok(()) }
}
