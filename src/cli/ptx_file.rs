//! PTX from files.

use std::path::Path;

use anyhow::{Context, Result};
use warpstride::interp::MAX_TEXT_BYTES;

use super::input;

/// The text of a file.
pub(super) fn read(path: &Path) -> Result<String> {
    let bytes = input::read(path, MAX_TEXT_BYTES, "PTX")?;
    String::from_utf8(bytes)
        .with_context(|| format!("cannot read {}: check the path, and that it is PTX as text", path.display()))
}
