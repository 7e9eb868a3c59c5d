//! Lists the places where NVRTC may be.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::iter;
use std::path::{Path, PathBuf};

use super::super::process;

/// The variable that names NVRTC's file.
pub(super) const VARIABLE: &str = "WARPSTRIDE_NVRTC";

/// Names for the system's loader, the newest first after the one without a version.
const NAMES: &[&str] = if cfg!(windows) {
    &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64_112_0.dll"]
} else {
    &["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"]
};

/// Folders of the library in NVIDIA's packages on PyPI, below `site-packages`: of CUDA 13, then of
/// CUDA 12 and 11.
const PACKAGES: &[&str] = if cfg!(windows) {
    &["nvidia/cu13/bin/x86_64", "nvidia/cu13/bin", "nvidia/cuda_nvrtc/bin"]
} else {
    &["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"]
};

/// The names under which the system's loader may find the library with its files in the Python
/// environments at hand, and then those in the folders of `python3`, which is asked last, since its
/// start takes time.
pub(super) fn libraries() -> impl Iterator<Item = Vec<PathBuf>> {
    let in_folders = |folders: Vec<PathBuf>| {
        let packages = folders.into_iter().flat_map(|folder| PACKAGES.iter().map(move |package| folder.join(package)));
        packages.flat_map(|package| entries(&package, is_library))
    };
    let at_hand = move || NAMES.iter().map(PathBuf::from).chain(in_folders(environments())).collect();
    iter::once_with(at_hand).chain(iter::once_with(move || in_folders(path_of_python()).collect()))
}

/// The folders of packages of the Python environments at hand.
pub(super) fn environments() -> Vec<PathBuf> {
    let active = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(env::var_os).map(PathBuf::from);
    // A program that is installed as a Python package lies in the environment's `bin`.
    let own = env::current_exe().ok().and_then(|program| Some(program.parent()?.parent()?.to_owned()));
    active.chain(own).flat_map(|prefix| site_packages(&prefix)).collect()
}

/// An environment's folders of packages, and Conda's of libraries.
fn site_packages(prefix: &Path) -> Vec<PathBuf> {
    if cfg!(windows) {
        return vec![prefix.join("Lib").join("site-packages")];
    }
    let pythons = entries(&prefix.join("lib"), |name| name.starts_with("python3"));
    pythons.into_iter().map(|python| python.join("site-packages")).collect()
}

/// The folders in which `python3` looks for packages; none without it.
fn path_of_python() -> Vec<PathBuf> {
    let mut command = process::command(if cfg!(windows) { "python" } else { "python3" });
    command.args(["-c", "import sys; print('\\n'.join(sys.path))"]);
    let text = process::output(command).ok().and_then(Result::ok).unwrap_or_default();
    // An empty line stands for the folder at hand, which holds no packages.
    text.lines().filter(|line| !line.is_empty()).map(PathBuf::from).collect()
}

fn is_library(name: &str) -> bool {
    if cfg!(windows) {
        name.starts_with("nvrtc64_") && name.ends_with("_0.dll")
    } else {
        name.starts_with("libnvrtc.so")
    }
}

/// The paths in a folder whose names are wanted, in order.
fn entries(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_wanted = |path: &PathBuf| path.file_name().and_then(OsStr::to_str).is_some_and(&wanted);
    let mut paths: Vec<PathBuf> = entries.filter(is_wanted).collect();
    paths.sort();
    paths
}

/// The folders of CUDA's headers for a version of NVRTC: those beside the library, those of
/// NVIDIA's packages on PyPI in the Python environments at hand, and those of a toolkit.
pub(super) fn include_folders(library: &Path, version: &str) -> Vec<PathBuf> {
    let packages: &[&str] = match version.split_once('.') {
        Some(("13", _)) => &["cu13"],
        // Packages of the version before have names of their own.
        _ => &["cuda_runtime", "cuda_cccl", "cuda_nvcc", "curand"],
    };
    // The package of a library, and the folder of packages: `site-packages/nvidia/cu13/lib/...`.
    let (own, beside) = (library.ancestors().nth(2), library.ancestors().nth(4));
    let folders = beside.map(Path::to_owned).into_iter().chain(environments());
    let packages = folders.flat_map(|folder| packages.iter().map(move |package| folder.join("nvidia").join(package)));
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(env::var_os).map(PathBuf::from);
    // A library that the loader found by its name has no folder, and most toolkits are there.
    let roots = own.map(Path::to_owned).into_iter().chain(packages).chain(toolkits);
    let roots = roots.chain([PathBuf::from("/usr/local/cuda")]);
    let mut folders = Vec::new();
    // From CUDA 13 on, those of CCCL have a folder of their own.
    for folder in roots.flat_map(|root| [root.join("include"), root.join("include").join("cccl")]) {
        if folder.is_absolute() && folder.is_dir() && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

#[cfg(test)]
mod tests;
