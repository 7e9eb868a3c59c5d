//! clang, run as a program, with our own header in place of CUDA's.

use std::env;
use std::path::PathBuf;

use anyhow::Result;

use super::super::args::Compiler;
use super::super::process;
use super::{Compiled, Job, Taken, Workplace, headers, not_started};

/// The oldest version that has what our header uses.
const OLDEST: u32 = 14;
/// The newest version that is looked for under its own name.
const NEWEST: u32 = 30;

/// Looks for `clang`, then for the newest `clang-N`, in the folders of `PATH`. The inner error says
/// why the first program of these names is not taken, if there is one.
pub(super) fn find() -> Result<Result<Taken, Option<String>>> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    let versions = (OLDEST..=NEWEST).rev().map(|version| format!("clang-{version}"));
    let names = ["clang".to_owned()].into_iter().chain(versions);
    let in_folders = |name: String| {
        let name = format!("{name}{}", env::consts::EXE_SUFFIX);
        folders.iter().map(|folder| folder.join(&name)).find(|file| file.is_file())
    };
    let mut first = None;
    for path in names.filter_map(in_folders) {
        match at(path)? {
            Ok(taken) => return Ok(Ok(taken)),
            Err(why) => first = first.or(Some(why)),
        }
    }
    Ok(Err(first))
}

/// The program, if it is clang and new enough.
fn at(path: PathBuf) -> Result<Result<Taken, String>> {
    let mut command = process::command(&path);
    command.arg("-dumpversion");
    let version = match process::output(command) {
        Ok(Ok(version)) => version.trim().to_owned(),
        Ok(Err(why)) => return Ok(Err(format!("{} {why}", path.display()))),
        Err(error) => return not_started(&error),
    };
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    Ok(match major {
        Some(OLDEST..) => Ok(Taken { kind: Compiler::Clang, version, path }),
        _ => Err(format!("{} answers that it is version {version:?}", path.display())),
    })
}

/// Compiles to PTX. Headers and source are in a folder of ours: clang reads the source that was
/// read already, also where it came through a pipe. It finds our headers and those beside the
/// source, and none of the host, so that a file compiles alike on every machine.
pub(super) fn compile(clang: Taken, job: &Job) -> Result<Compiled> {
    let workplace = Workplace::new(job, clang)?;
    for (name, text) in headers::for_clang() {
        workplace.write(name, text)?;
    }
    // Messages and line numbers name the user's file.
    let text = format!("#line 1 {:?}\n{}", job.file.display().to_string(), job.source);
    let source = workplace.write("source.cu", &text)?;
    let folder = workplace.folder.path();
    let mut command = process::bounded_in(folder, &workplace.compiler.path);
    command.args(["-x", "cuda", "--cuda-device-only", &format!("--cuda-gpu-arch=sm_{}", job.architecture)]);
    // Without CUDA's folder, clang takes a version of PTX that has no shuffles. These are the first
    // with the architectures.
    let version = match (job.architecture.number, job.architecture.letter) {
        (..=80, _) => "+ptx70",
        (81..=90, None) => "+ptx78",
        (81..=90, _) => "+ptx80",
        (_, Some('f')) => "+ptx88",
        _ => "+ptx87",
    };
    command.args(["-Xclang", "-target-feature", "-Xclang", version]);
    command.args(["-nocudainc", "-nocudalib", "-nostdlibinc", "-nostdinc++", "-std=c++17"]);
    command.args(["-O2", "-gline-tables-only", "-fno-color-diagnostics", "-S"]);
    command.arg("-isystem").arg(folder).arg("-include").arg(folder.join(headers::SHIM));
    command.arg("-iquote").arg(job.folder()).args(["-o", "-"]).arg(source);
    workplace.compile(command)
}
