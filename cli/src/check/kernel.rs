//! Where the text of a kernel comes from.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use warpstride::driver::DeviceInfo;

use super::super::cuda_cpp::{self, Taken};
use super::super::{ptx_file, require};

/// The PTX of the kernels in a file.
pub(super) struct Text {
    pub(super) ptx: String,
    /// The compiler, where the file is CUDA C++.
    pub(super) compiler: Option<Taken>,
}

/// Reads the PTX in a file, or compiles the CUDA C++ in it, by its name.
pub(super) fn text(path: &Path, device: &DeviceInfo) -> Result<Text> {
    let file = path.display();
    // Before opening: opening a pipe would wait for its writer.
    let metadata = fs::metadata(path).with_context(|| format!("cannot read {file}: check the path"))?;
    require!(metadata.is_file(), Io, "cannot read {file}: it is not a regular file; name a file with a kernel");
    if ptx_file::is_cuda_cpp(path) {
        let compiled = cuda_cpp::compile(path, None, cuda_cpp::architecture(device))?;
        return Ok(Text { ptx: compiled.ptx, compiler: Some(compiled.compiler) });
    }
    Ok(Text { ptx: ptx_file::read(path)?, compiler: None })
}
