//! Programs that tests make and then start.
//!
//! Another process writes them. Were one open for writing in this process, a child that another
//! thread starts might hold it open too, until that child runs its own program; and the system
//! starts no file that is open for writing ("text file busy").

use std::fs;
use std::path::Path;
use std::process::Command;

/// Makes a script that may be started.
#[track_caller]
pub(crate) fn script(path: &Path, text: &str) {
    let draft = path.with_extension("draft");
    fs::write(&draft, text).expect("writing a script");
    copy(&draft, path);
    fs::remove_file(draft).expect("removing the draft");
}

/// Copies a file, in place of one that is there, and lets the copy be started.
#[track_caller]
pub(crate) fn copy(from: &Path, to: &Path) {
    let made = Command::new("install").args(["-m", "755"]).args([from, to]).status();
    assert!(made.expect("install starts").success(), "{} is not copied", to.display());
}
