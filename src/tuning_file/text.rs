//! The sections of a tuning file as text, whatever they say.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crate::error::counted;

/// Most sections of a file, up to three for each GPU.
pub(super) const MAX_SECTIONS: usize = 128;

/// Most bytes of a file, far more than those of so many sections.
pub(super) const MAX_BYTES: usize = 4 << 20;

/// Returns a file's bytes; `None` if there is no file.
pub(super) fn contents(path: &Path) -> std::result::Result<Option<Vec<u8>>, String> {
    // Before it is opened, which would wait for the writer of a pipe.
    match fs::metadata(path) {
        Ok(there) if there.is_file() => {}
        Ok(_) => return Err("it is a folder, a pipe or a device".into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    }
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES as u64 + 1).read_to_end(&mut text));
    read.map(|_| Some(text)).map_err(|error| error.to_string())
}

/// The parts of a file.
pub(super) struct Parts<'a> {
    /// The text above the first section.
    pub(super) comment: &'a str,
    pub(super) sections: Vec<Section<'a>>,
}

impl<'a> Parts<'a> {
    /// Returns the section of a name.
    pub(super) fn section(&self, name: &str) -> Option<&Section<'a>> {
        self.sections.iter().find(|section| section.name == name)
    }
}

/// A section, with its lines in order.
pub(super) struct Section<'a> {
    pub(super) name: &'a str,
    pub(super) lines: Vec<(&'a str, &'a str)>,
    /// All of it, with the comments above it.
    pub(super) text: &'a str,
    /// Bytes of these comments.
    pub(super) above: usize,
}

/// Reads every section of a text.
pub(super) fn read(text: &[u8]) -> std::result::Result<Parts<'_>, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("it has more than {}", counted(MAX_BYTES, "byte")));
    }
    let text = std::str::from_utf8(text).map_err(|_| "it is not UTF-8")?;
    let mut sections: Vec<Section<'_>> = Vec::new();
    // The start of the line, and the start and end of the last section.
    let (mut at, mut begin, mut end) = (0, text.len(), 0);
    let mut comment = text;
    for (number, whole) in (1..).zip(text.split_inclusive('\n')) {
        let (start, line) = (at, whole.trim());
        at += whole.len();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            if sections.iter().any(|section| section.name == name) {
                return Err(format!("line {number} begins a second section [{}]", name.escape_debug()));
            }
            if sections.len() == MAX_SECTIONS {
                return Err(format!("it has more than {}", counted(MAX_SECTIONS, "section")));
            }
            match sections.last_mut() {
                Some(last) => (last.text, begin) = (&text[begin..end], end),
                None => (comment, begin) = (&text[..start], start),
            }
            sections.push(Section { name, lines: Vec::new(), text: "", above: start - begin });
        } else {
            let (Some((key, value)), Some(section)) = (line.split_once('='), sections.last_mut()) else {
                return Err(format!("line {number} is neither `key = value` nor `[name]`"));
            };
            section.lines.push((key.trim(), value.trim()));
        }
        end = at;
    }
    if let Some(last) = sections.last_mut() {
        last.text = &text[begin..];
    }
    Ok(Parts { comment, sections })
}
