//! Runs of the whole bench as files: read, written, and kept by name.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use warpstride::roofline::report::{Run, SCHEMA};

use super::{destination, input, refuse, require};

/// Bytes of a run's document, far beyond the some hundred thousand of `bench --all`.
const MAX_RUN_BYTES: usize = 16 << 20;

/// Reads a run.
pub(super) fn read(path: &Path) -> Result<Run> {
    let text = input::read(path, MAX_RUN_BYTES, "a run")?;
    let run: Run = match serde_json::from_slice(&text) {
        Ok(run) => run,
        Err(why) => refuse!(Io, "{} does not hold a run of `warpstride --json bench --all`: {why}", path.display()),
    };
    require!(
        run.schema == SCHEMA,
        Io,
        "{} has schema {}, and this version reads {SCHEMA}; measure it anew",
        path.display(),
        run.schema
    );
    Ok(run)
}

/// The run that was kept under a name.
pub(super) fn kept(name: &str) -> Result<Run> {
    let file = file(name)?;
    require!(
        file.exists(),
        InvalidArgument,
        "no run is kept as {name}; measure one with `warpstride bench --all --save {name}`"
    );
    read(&file)
}

/// Keeps a run under a name, in place of what was kept under it before; returns the file.
pub(super) fn keep(name: &str, run: &Run) -> Result<PathBuf> {
    let file = file(name)?;
    cache(&file, run)?;
    Ok(file)
}

/// Writes a file of the cache and the folders that it lies in: whole or not at all, also where two programs measure at once.
pub(super) fn cache(file: &Path, contents: &impl Serialize) -> Result<()> {
    let folder = file.parent().context("the cache has no folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let text = serde_json::to_vec_pretty(contents)?;
    destination::replace(&destination::at(file)?, |file| file.write_all(&text))
}

/// Where it is, beside the ceilings.
fn file(name: &str) -> Result<PathBuf> {
    let folder = dirs::cache_dir().context("the system names no folder for caches, where runs are kept")?;
    Ok(folder.join("warpstride").join(format!("run-{name}.json")))
}
