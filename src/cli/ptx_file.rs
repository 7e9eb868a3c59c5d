//! PTX from files, as people have them: not always PTX, and not always with an end.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use warpstride::interp::MAX_TEXT_BYTES;

use super::require;

/// The text of a file. Of one that is larger than PTX can be, or has no end, no more is read than shows it.
pub(super) fn read(path: &Path) -> Result<String> {
    let (mut text, file) = (String::new(), path.display());
    let opened = File::open(path).and_then(|file| file.take(MAX_TEXT_BYTES as u64 + 1).read_to_string(&mut text));
    opened.with_context(|| format!("cannot read {file}: check the path, and that it is PTX as text"))?;
    require!(
        text.len() <= MAX_TEXT_BYTES,
        Io,
        "{file} has more than {} MiB, as no PTX has; check the path",
        MAX_TEXT_BYTES >> 20
    );
    Ok(text)
}
