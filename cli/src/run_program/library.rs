//! Finds the software GPU as a library, and gives it the names by which programs load it.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::super::refusal::{refuse, require};

/// The variable with the path of the library.
const VARIABLE: &str = "WARPSTRIDE_LIBCUDA";
/// The name that cargo gives the library.
const NAME: &str = "libwarpstride_cuda.so";
/// The names by which programs load NVIDIA's driver.
const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];
/// The libraries beside it that stand for NVIDIA's runtime, with the names by which programs of
/// nvcc's `-cudart shared` load it.
const RUNTIMES: [(&str, &str); 2] =
    [("libwarpstride_cudart.so", "libcudart.so.13"), ("libwarpstride_cudart_12.so", "libcudart.so.12")];
/// The folders in which a system keeps libraries, as seen from the folder of the executable. cargo
/// has it in the same folder, and below that while only tests have been built.
const FOLDERS: [&str; 4] = ["", "../lib", "../lib/warpstride", "deps"];

/// Returns the path of the library.
pub(super) fn find() -> Result<PathBuf> {
    if let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        require!(
            path.is_file(),
            Unavailable,
            "{VARIABLE}={} is not a file; name {NAME}, or unset the variable",
            path.display()
        );
        return absolute(&path);
    }
    let executable = env::current_exe().context("cannot find this program's own folder")?;
    let folder = executable.parent().unwrap_or(Path::new(""));
    let Some(found) = FOLDERS.iter().map(|below| folder.join(below).join(NAME)).find(|path| path.is_file()) else {
        refuse!(
            Unavailable,
            "there is no {NAME} beside {}; build it by `cargo build --release -p warpstride-cuda`, or set {VARIABLE} to its path",
            executable.display()
        )
    };
    absolute(&found)
}

fn absolute(path: &Path) -> Result<PathBuf> {
    path.canonicalize().with_context(|| format!("cannot resolve {}", path.display()))
}

/// Makes links to the library in a folder, one for each of its names, and to the runtimes that lie
/// beside it.
#[cfg(unix)]
pub(super) fn link(library: &Path, folder: &Path) -> Result<()> {
    let beside = RUNTIMES.map(|(file, name)| (library.with_file_name(file), name));
    let runtimes = beside.iter().filter(|(file, _)| file.is_file()).map(|(file, name)| (file.as_path(), *name));
    for (file, name) in NAMES.map(|name| (library, name)).into_iter().chain(runtimes) {
        let link = folder.join(name);
        std::os::unix::fs::symlink(file, &link).with_context(|| format!("cannot make {}", link.display()))?;
    }
    Ok(())
}

/// Elsewhere the library has other names, and `run` has refused before.
#[cfg(not(unix))]
pub(super) fn link(_: &Path, _: &Path) -> Result<()> {
    Ok(())
}
