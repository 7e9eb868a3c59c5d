//! `warpstride run-cu FILE.cu`: what `run-ptx` does, with a kernel of CUDA C++.

use anyhow::Result;
use warpstride::device::Backend;

use super::output::Output;
use super::run_ptx::{self, Program};
use super::{args, cuda_cpp, open, ptx_file, require};

pub(super) fn run(args: &args::RunCu, backend: Backend, output: &Output) -> Result<()> {
    let file = args.file.display();
    require!(!ptx_file::is_ptx(&args.file), InvalidArgument, "{file} is PTX; run it with run-ptx");
    let device = open(backend, output)?;
    let architecture = args.launch.arch.unwrap_or_else(|| cuda_cpp::architecture(device.info()));
    let compiled = cuda_cpp::compile(&args.file, args.compiler, architecture)?;
    output.note(format!("{} compiles {file}", compiled.compiler));
    output.messages(&compiled.log);
    let program = Program { file: &args.file, ptx: compiled.ptx, compiler: Some(compiled.compiler) };
    run_ptx::launch(&program, &args.launch, || Ok(device), output)
}
