//! Checks the destinations of results before any work, and leaves them to their readers.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use warpstride::io::{Destination, DestinationKind, is_same_file};

use super::output::Output;
use super::{Refusal, require, signals};

/// The destination that `path` names. From now on a signal leaves no part of a file behind.
pub(super) fn at(path: &Path) -> Result<Destination> {
    signals::watch().context("cannot handle signals; try again")?;
    Ok(Destination::new(path).map_err(Refusal::of_file)?)
}

/// Makes sure, before any work is done, that `path` may be written and is not one of `sources`,
/// even if standard output goes to it.
pub(super) fn checked(path: &Path, sources: &[&Path], output: &Output) -> Result<Destination> {
    let destination = at(path)?;
    spared(path, sources)?;
    if destination.kind() == DestinationKind::StandardOutput {
        output.leave_to(path)?;
    }
    Ok(destination)
}

/// Makes sure that an output is not one of `sources`.
pub(super) fn spared(path: &Path, sources: &[impl AsRef<Path>]) -> Result<()> {
    require!(
        !sources.iter().any(|source| is_same_file(path, source.as_ref())),
        InvalidArgument,
        "input and output are the same file, {}; name another output",
        path.display()
    );
    Ok(())
}

/// Writes what `write` writes, whole or not at all.
pub(super) fn replace(destination: &Destination, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    Ok(destination.replace(write).map_err(Refusal::of_file)?)
}
