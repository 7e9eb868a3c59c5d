//! Finds the kernel toolchain, one exact rustc with its library source, and compiles the kernels.
//!
//! `-Zbuild-std` and the features of device code are unstable, so the version is pinned and
//! `RUSTC_BOOTSTRAP` opens them.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of rustc that compiles the kernels.
pub const VERSION: &str = "1.96.0";
/// The oldest GPU that the PTX runs on; the driver compiles it for all later ones.
pub const GPU: &str = "sm_75";
/// The version of PTX, which has loads that bring whole lines into the L2 cache. Drivers from R470
/// (2021) on know it.
const ISA: &str = "ptx74";

const TARGET: &str = "nvptx64-nvidia-cuda";
const CARGO: [&str; 7] = ["rustc", "--release", "--locked", "--target", TARGET, "-Zbuild-std=core", "--"];
const RUSTC: [&str; 1] = ["--emit=asm"];

/// Returns rustc's flags. The linker is `true`: fat link-time optimisation runs without one, and
/// its assembly is the PTX.
fn rustflags() -> [String; 3] {
    ["-Clinker=true".to_owned(), format!("-Ctarget-cpu={GPU}"), format!("-Ctarget-feature=+{ISA}")]
}

/// Returns the whole command line for the manifest, because a change of any flag may change the
/// PTX.
pub fn flags() -> String {
    format!("{} {} {}", rustflags().join(" "), CARGO.join(" "), RUSTC.join(" "))
}

/// A rustc and a cargo of [`VERSION`], by path.
#[derive(Debug)]
pub struct Toolchain {
    bin: PathBuf,
}

impl Toolchain {
    /// Finds the pinned version with its source, in `PATH`, `/usr/bin` (Debian's `rustc-web`) and
    /// rustup, in this order.
    pub fn find() -> Result<Self, String> {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = env::split_paths(&path).chain([PathBuf::from("/usr/bin")]).chain(rustup());
        Self::among(folders)
    }

    /// Finds the first of `folders` whose rustc is the pinned one.
    pub fn among(folders: impl IntoIterator<Item = PathBuf>) -> Result<Self, String> {
        let mut sourceless = None;
        for folder in folders {
            // A rustup proxy answers for a toolchain elsewhere, and the sysroot names its folder.
            let Some(sysroot) = pinned_sysroot(&tool(&folder, "rustc")) else { continue };
            let bin = sysroot.join("bin");
            if sysroot.join("lib/rustlib/src/rust/library/core/src/lib.rs").exists() && tool(&bin, "cargo").exists() {
                return Ok(Toolchain { bin });
            }
            sourceless.get_or_insert(bin);
        }
        let found = match sourceless {
            Some(bin) => format!("rustc {VERSION} in {} lacks its library source or its cargo", bin.display()),
            None => format!("rustc {VERSION}, which compiles the kernels, was not found"),
        };
        Err(format!("{found}: run scripts/kernel-toolchain to install it"))
    }

    /// Compiles the package in `kernels`, with `target` for intermediate files, and returns the
    /// path of the PTX.
    pub fn compile(&self, kernels: &Path, target: &Path) -> Result<PathBuf, String> {
        let path = tool(&self.bin, "cargo");
        let mut cargo = Command::new(&path);
        // The outer build's settings are for the host. This build inherits only the folder of
        // cargo's registry.
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy();
            if (name.starts_with("CARGO") && name != "CARGO_HOME") || name.starts_with("RUST") {
                cargo.env_remove(&*name);
            }
        }
        cargo
            .current_dir(kernels)
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTC", tool(&self.bin, "rustc"))
            .env("RUSTC_WRAPPER", "")
            .env("RUSTC_WORKSPACE_WRAPPER", "")
            .env("CARGO_ENCODED_RUSTFLAGS", rustflags().join("\x1f"))
            .env("CARGO_TARGET_DIR", target)
            .args(CARGO)
            .args(RUSTC);
        let output = cargo.output().map_err(|error| format!("cannot run {}: {error}", path.display()))?;
        if !output.status.success() {
            // cargo shows one line of an error, so the compiler's errors come before it as
            // warnings.
            for line in String::from_utf8_lossy(&output.stderr).lines() {
                println!("cargo::warning={line}");
            }
            return Err(format!("the kernels do not compile ({}): see above", output.status));
        }
        Ok(target.join(TARGET).join("release/deps/warpstride_kernels.s"))
    }
}

fn tool(bin: &Path, name: &str) -> PathBuf {
    bin.join(format!("{name}{}", env::consts::EXE_SUFFIX))
}

/// Returns the sysroot of `rustc`, if it runs and is [`VERSION`].
fn pinned_sysroot(rustc: &Path) -> Option<PathBuf> {
    let ask = |question: &[&str]| {
        let output = Command::new(rustc).args(question).env_remove("RUSTUP_TOOLCHAIN").output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let release = format!("release: {VERSION}");
    let version = ask(&["--version", "--verbose"])?;
    version.lines().any(|line| line == release).then_some(())?;
    Some(PathBuf::from(ask(&["--print", "sysroot"])?.trim_end()))
}

/// Lists the `bin` folders of rustup's toolchains of [`VERSION`].
fn rustup() -> Vec<PathBuf> {
    let home = env::var_os("RUSTUP_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(env::home_dir()?.join(".rustup")))
        .unwrap_or_default();
    let Ok(toolchains) = home.join("toolchains").read_dir() else { return Vec::new() };
    let mut bins: Vec<PathBuf> = toolchains
        .flatten()
        .filter(|toolchain| {
            let name = toolchain.file_name();
            name.to_string_lossy().split('-').next() == Some(VERSION)
        })
        .map(|toolchain| toolchain.path().join("bin"))
        .collect();
    bins.sort();
    bins
}
