//! The source that a kernel was compiled from: the file that the PTX names, if it is one that a
//! person would have written. The name is the PTX's, so it may be anything.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use warpstride::error::printable_line;

/// Most bytes of a source.
const MAX_BYTES: u64 = 1 << 20;
/// Most lines of a source.
const MAX_LINES: usize = 1 << 16;
/// Most characters of a line that are kept.
const MAX_LINE: usize = 240;
/// The ends of the names of sources in the languages that compile to PTX.
const ENDINGS: &[&str] =
    &["cu", "cuh", "h", "hh", "hpp", "hxx", "inl", "c", "cc", "cpp", "cxx", "py", "rs", "jl", "f90", "cuf"];
/// Columns of a tab.
const TAB: usize = 4;

/// The lines of the file that a `.file` names, or a sentence that says why there are none. A path
/// that is not absolute begins at `folder`, where the PTX is, or else at the current folder. Last,
/// a file of that name may lie beside the PTX: compilers write paths of the machine that they ran
/// on.
///
/// Nothing but a regular file is opened: a device or a pipe could block, or do something. Its name
/// ends as a source's does, because PTX and `#line` may name any file of the user, and the report
/// may go to a log that others read.
pub(super) fn lines(name: &str, folder: &Path) -> Result<Vec<String>, String> {
    let ending = Path::new(name).extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    if !ending.is_some_and(|ending| ENDINGS.contains(&&*ending)) {
        return Err(format!("{} is not named as a source, such as kernel.cu, so it is not read", shown(name)));
    }
    let mut places = vec![folder.join(name), PathBuf::from(name)];
    places.extend(Path::new(name).file_name().map(|name| folder.join(name)));
    places.dedup();
    for place in places {
        match read(&place) {
            Ok(bytes) => return parsed(&bytes).map_err(|why| format!("{} {why}", shown(name))),
            Err(Refused::Absent) => {}
            Err(Refused::Because(why)) => return Err(format!("{} {why}", shown(name))),
        }
    }
    Err(format!("{} is not there; put it beside the PTX, or run this where it was compiled", shown(name)))
}

/// A line or a name as a terminal may show it, on one line with tabs as spaces.
pub(super) fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (count, character) in text.chars().enumerate() {
        if count == MAX_LINE {
            shown.push('…');
            break;
        }
        if character == '\t' {
            let column = shown.chars().count();
            shown.extend(std::iter::repeat_n(' ', TAB - column % TAB));
        } else {
            shown.push(character);
        }
    }
    printable_line(&shown)
}

enum Refused {
    Absent,
    /// The end of a sentence that begins with the file.
    Because(String),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Absent,
            _ => Self::Because(format!("cannot be read: {error}")),
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Refused> {
    // Before it is opened, and, for it may have been replaced meanwhile, afterwards.
    checked(&fs::metadata(path)?)?;
    let file = opened(path)?;
    let bytes = checked(&file.metadata()?)?;
    let mut text = Vec::new();
    // Files of the system that have no length, as in /proc, may have no end.
    file.take(bytes).read_to_end(&mut text)?;
    Ok(text)
}

/// The length of a file, if it may be read.
fn checked(metadata: &fs::Metadata) -> Result<u64, Refused> {
    if !metadata.is_file() {
        return Err(Refused::Because("is not a regular file, so it is not read".into()));
    }
    match metadata.len() {
        0 => Err(Refused::Because("is empty".into())),
        bytes if bytes > MAX_BYTES => {
            Err(Refused::Because(format!("has more than {} MiB, so it is not read", MAX_BYTES >> 20)))
        }
        bytes => Ok(bytes),
    }
}

#[cfg(unix)]
fn opened(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    // A pipe that has taken the file's place does not block.
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
}

#[cfg(not(unix))]
fn opened(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).open(path)
}

fn parsed(bytes: &[u8]) -> Result<Vec<String>, String> {
    if bytes.contains(&0) {
        return Err("is not text".into());
    }
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<String> = text.lines().take(MAX_LINES + 1).map(shown).collect();
    if lines.len() > MAX_LINES {
        return Err(format!("has more than {MAX_LINES} lines, so it is not shown"));
    }
    Ok(lines)
}
