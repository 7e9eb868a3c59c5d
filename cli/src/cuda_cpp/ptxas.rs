//! The registers of a kernel by `ptxas`, NVIDIA's assembler, where it is installed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::process;
use super::locate;

/// The time after which an assembly counts as one that never ends.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// The most bytes of what it prints, a few lines for each kernel.
const MOST: u64 = 4 << 20;

/// Returns the registers of a thread of the kernel `entry`, on an architecture such as 90. `None`
/// without ptxas, or where it does not assemble the module.
pub(crate) fn registers(ptx: &str, entry: &str, architecture: u32) -> Option<u32> {
    let folder = tempfile::tempdir().ok()?;
    let file = folder.path().join("module.ptx");
    fs::write(&file, ptx).ok()?;
    candidates().find_map(|ptxas| {
        let mut command = process::bounded_in(folder.path(), ptxas);
        command.arg("-v").arg(format!("-arch=sm_{architecture}")).arg(&file).arg("-o");
        command.arg(folder.path().join("module.cubin"));
        let ended = process::run(command, TIME_LIMIT, MOST).ok()?;
        of_entry(&(ended.stdout + &ended.stderr), entry)
    })
}

/// The places where ptxas may be.
fn candidates() -> impl Iterator<Item = PathBuf> {
    let name = if cfg!(windows) { "ptxas.exe" } else { "ptxas" };
    let on_path = env::var_os("PATH").map(|path| env::split_paths(&path).collect::<Vec<_>>()).unwrap_or_default();
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(env::var_os);
    let toolkits = toolkits.map(|toolkit| Path::new(&toolkit).join("bin"));
    let packages = ["nvidia/cu13/bin", "nvidia/cuda_nvcc/bin"];
    let environments = locate::environments().into_iter();
    let environments = environments.flat_map(move |folder| packages.map(|package| folder.join(package)));
    let folders = on_path.into_iter().chain(toolkits).chain(environments);
    folders.map(move |folder| folder.join(name)).filter(|path| path.is_absolute() && path.is_file())
}

/// Finds the registers of a kernel in what `ptxas -v` prints: a line that names the kernel, and a
/// later one that says `Used 32 registers`.
fn of_entry(printed: &str, entry: &str) -> Option<u32> {
    let named = format!("entry function '{entry}'");
    let lines = printed.lines().skip_while(|line| !line.contains(&named)).skip(1);
    let used = lines.take_while(|line| !line.contains("entry function")).find_map(|line| line.split_once("Used "))?.1;
    used.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registers_of_a_kernel_follow_its_name() {
        let printed = "ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'one' for 'sm_90'
ptxas info    : Function properties for one
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 20 registers, used 0 barriers
ptxas info    : Compiling entry function 'two' for 'sm_90'
ptxas info    : Function properties for two
ptxas info    : Used 33 registers, used 1 barriers, 4096 bytes smem
";
        assert_eq!(of_entry(printed, "one"), Some(20));
        assert_eq!(of_entry(printed, "two"), Some(33));
        assert_eq!(of_entry(printed, "tw"), None);
        assert_eq!(of_entry("", "one"), None);
    }
}
