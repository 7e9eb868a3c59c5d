//! Supplies the PTX: the committed copy if it matches the sources, else a fresh one from
//! `kernels/`.
//!
//! The PTX is never stale, and the crate keeps where it came from. A committed copy counts only
//! while its manifest matches the sources. The build compares the entries of either copy with the
//! host's parameters. It also writes the position of each entry in the text, so that the host can
//! load one.

// The modules are shared with the crate and with its tests, which use more of them.
#![allow(dead_code, unreachable_pub)]

#[path = "src/abi.rs"]
mod abi;
#[path = "build/entries.rs"]
mod entries;
#[path = "build/manifest.rs"]
mod manifest;
#[path = "build/toolchain.rs"]
mod toolchain;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use manifest::{Manifest, SOURCES, hash};
use toolchain::{GPU, Toolchain};

/// Forces one supply. If it is unset, the build takes the committed copy while that is current.
const CHOICE: &str = "WARPSTRIDE_KERNELS";

fn main() {
    // cargo prints this one sentence; a panic would bury it under a backtrace.
    if let Err(message) = supply() {
        println!("cargo::error={message}");
    }
}

/// PTX that is right to use, and where it came from.
struct Supply {
    ptx: PathBuf,
    provenance: String,
}

fn supply() -> Result<(), String> {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(variable("OUT_DIR")?);
    println!("cargo::rerun-if-env-changed={CHOICE}");
    for input in SOURCES.iter().copied().chain(["src/ptx/warpstride.ptx", "src/ptx/MANIFEST"]) {
        // cargo treats a missing path as a changed one.
        if root.join(input).exists() {
            println!("cargo::rerun-if-changed={input}");
        }
    }
    // An empty variable counts as unset, because a shell clears a variable so for one command.
    let choice = env::var_os(CHOICE).filter(|choice| !choice.is_empty());
    let supply = match choice.as_ref().map(|choice| choice.to_str()) {
        None => prebuilt(&root).or_else(|stale| {
            let supply = from_source(&root, &out).map_err(|why| format!("{stale}, and {why}"))?;
            println!(
                "cargo::warning={stale}: the kernels were built from source; commit what scripts/bless-ptx writes"
            );
            Ok(supply)
        }),
        Some(Some("prebuilt")) => prebuilt(&root)
            .map_err(|stale| format!("{stale}: unset {CHOICE}, or run scripts/bless-ptx to bring it up to date")),
        Some(Some("source")) => from_source(&root, &out),
        Some(_) => {
            Err(format!("{CHOICE} is {:?}: set it to source or prebuilt, or unset it", choice.unwrap_or_default()))
        }
    }?;
    let text = read(&supply.ptx)?;
    let at_fault = |why: String| format!("{}: {why}", supply.ptx.display());
    entries::check(&text, abi::ENTRIES).map_err(at_fault)?;
    let (header, entries) = entries::places(&text, abi::ENTRIES).map_err(at_fault)?;
    // `Debug` writes ranges in Rust's syntax, and `src/ptx/mod.rs` includes them.
    let table = out.join("places.rs");
    fs::write(&table, format!("({header:?}, {entries:?})"))
        .map_err(|error| format!("cannot write {}: {error}", table.display()))?;
    println!("cargo::rustc-env=WARPSTRIDE_PTX={}", supply.ptx.display());
    println!("cargo::rustc-env=WARPSTRIDE_PTX_PROVENANCE={}", supply.provenance);
    println!("cargo::rustc-env=WARPSTRIDE_PTX_TARGET={GPU}");
    println!("cargo::rustc-env=WARPSTRIDE_OPT_LEVEL={}", variable("OPT_LEVEL")?);
    Ok(())
}

/// Returns the committed PTX, or how it differs from its manifest or from the sources.
fn prebuilt(root: &Path) -> Result<Supply, String> {
    let ptx = root.join("src/ptx/warpstride.ptx");
    let manifest = Manifest::parse(&read(&root.join("src/ptx/MANIFEST"))?)?;
    if manifest.ptx != hash(read(&ptx)?.as_bytes()) {
        return Err("src/ptx/warpstride.ptx is not the file that src/ptx/MANIFEST describes".to_owned());
    }
    // A published crate has no kernels: cargo does not package a package inside a package.
    if root.join("kernels").exists() {
        manifest.check(&current(root)?)?;
    }
    Ok(Supply { provenance: format!("prebuilt, {manifest}"), ptx })
}

/// Compiles the PTX, and writes its manifest beside it for `scripts/bless-ptx`.
fn from_source(root: &Path, out: &Path) -> Result<Supply, String> {
    let kernels = root.join("kernels");
    if !kernels.exists() {
        return Err("a published crate has no kernel sources: fetch it again, or build from the repository".to_owned());
    }
    let toolchain = Toolchain::find()?;
    let ptx = out.join("warpstride.ptx");
    let compiled = toolchain.compile(&kernels, &out.join("kernels"))?;
    fs::write(&ptx, headed(read(&compiled)?)?).map_err(|error| format!("cannot write {}: {error}", ptx.display()))?;
    let manifest = Manifest { ptx: hash(read(&ptx)?.as_bytes()), ..current(root)? };
    let beside = out.join("MANIFEST");
    fs::write(&beside, manifest.render()).map_err(|error| format!("cannot write {}: {error}", beside.display()))?;
    Ok(Supply { provenance: format!("built from source, {manifest}"), ptx })
}

/// Puts the architecture that all entries need together into the header; the text was compiled for
/// the oldest one.
fn headed(mut text: String) -> Result<String, String> {
    let (major, minor) = abi::ENTRIES.iter().map(|entry| entry.capability).max().ok_or("src/abi.rs has no entries")?;
    let place = entries::architecture(&text).ok_or("the PTX does not say its architecture")?;
    text.replace_range(place, &format!("sm_{major}{minor}"));
    Ok(text)
}

/// Returns the manifest of PTX from the current sources, without the hash of the PTX.
fn current(root: &Path) -> Result<Manifest, String> {
    let files = manifest::sources(root).map_err(|error| format!("cannot read the kernel sources: {error}"))?;
    Ok(Manifest::of(&files, toolchain::VERSION, &toolchain::flags()))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| format!("{name}: {error}; build with cargo"))
}
