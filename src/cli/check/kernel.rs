//! Where the text of a kernel comes from.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::super::{ptx_file, refuse, require};

/// The PTX of the kernels in a file, by its name.
pub(super) fn ptx(path: &Path) -> Result<String> {
    let file = path.display();
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("cu")) {
        refuse!(
            Unavailable,
            "{file} is CUDA C++, and this build has none of the compilers of run-cu; compile it with nvcc -ptx, and name \
             the .ptx file"
        );
    }
    // Before opening: opening a pipe would wait for its writer.
    let metadata = fs::metadata(path).with_context(|| format!("cannot read {file}: check the path"))?;
    require!(metadata.is_file(), Io, "cannot read {file}: it is not a regular file; name a file with PTX");
    ptx_file::read(path)
}
