//! PTX from files, and the names of files that hold it or CUDA C++.

use std::path::Path;

use anyhow::Result;
use warpstride::interp::MAX_TEXT_BYTES;

use super::input;

/// The text of a file.
pub(super) fn read(path: &Path) -> Result<String> {
    input::text(path, MAX_TEXT_BYTES, "PTX", "check the path, and that it is PTX as text")
}

/// Returns whether a file's name says that it holds CUDA C++.
pub(super) fn is_cuda_cpp(path: &Path) -> bool {
    ends_in(path, "cu")
}

/// Returns whether a file's name says that it holds PTX.
pub(super) fn is_ptx(path: &Path) -> bool {
    ends_in(path, "ptx")
}

fn ends_in(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}
