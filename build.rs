//! Supplies the PTX: the committed copy if it matches the sources, else a fresh one from
//! `kernels/`.
//!
//! Nothing is silent and nothing is stale: where the PTX came from is baked into the crate, a
//! committed copy counts only while its manifest matches the sources, and the entries of either are
//! checked against what the host passes. Either is a folder with a file a family.

// The modules are shared with the crate and with its tests, which use more of them.
#![allow(dead_code, unreachable_pub, unused_imports)]

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

use abi::{Entry, EntryId, Family};
use entries::Module;
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

/// A folder of PTX that is good to use, a file a family, and where it came from.
struct Supply {
    folder: PathBuf,
    provenance: String,
}

fn supply() -> Result<(), String> {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(variable("OUT_DIR")?);
    println!("cargo::rerun-if-env-changed={CHOICE}");
    for input in SOURCES.iter().copied().chain(["src/ptx"]) {
        // cargo takes a path that is not there for one that has changed.
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
    include(&supply.folder, &out)?;
    println!("cargo::rustc-env=WARPSTRIDE_PTX_PROVENANCE={}", supply.provenance);
    println!("cargo::rustc-env=WARPSTRIDE_PTX_TARGET={GPU}");
    Ok(())
}

/// Returns the committed PTX, or how it differs from its manifest or from the sources.
fn prebuilt(root: &Path) -> Result<Supply, String> {
    let folder = root.join("src/ptx");
    let manifest = Manifest::parse(&read(&folder.join("MANIFEST"))?)?;
    if manifest.ptx != hash(&ptx(&folder)?) {
        return Err("src/ptx does not have the files that src/ptx/MANIFEST describes".to_owned());
    }
    // A published crate has no kernels: cargo does not package a package inside a package.
    if root.join("kernels").exists() {
        manifest.check(&current(root)?)?;
    }
    Ok(Supply { provenance: format!("prebuilt, {manifest}"), folder })
}

/// Compiles the PTX, and writes its manifest beside it for `scripts/bless-ptx`.
fn from_source(root: &Path, out: &Path) -> Result<Supply, String> {
    let kernels = root.join("kernels");
    if !kernels.exists() {
        return Err("a published crate has no kernel sources: fetch it again, or build from the repository".to_owned());
    }
    let toolchain = Toolchain::find()?;
    let compiled = toolchain.compile(&kernels, &out.join("kernels"))?;
    let folder = out.join("ptx");
    part(&compiled, &folder)?;
    let manifest = Manifest { ptx: hash(&ptx(&folder)?), ..current(root)? };
    write(&folder.join("MANIFEST"), manifest.render())?;
    Ok(Supply { provenance: format!("built from source, {manifest}"), folder })
}

/// Parts what the compiler wrote into a folder, a file a family: a module for the latest
/// architecture that an entry of it needs.
fn part(compiled: &Path, folder: &Path) -> Result<(), String> {
    let text = read(compiled)?;
    let at_fault = |why: String| format!("{}: {why}", compiled.display());
    let module = Module::parse(&text).map_err(at_fault)?;
    let mut entries = module.take(abi::ENTRIES).map_err(at_fault)?.into_iter();
    // Families that are gone leave nothing behind.
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    for family in Family::all() {
        let capability = family.entries().map(|id| id.entry().capability).max().unwrap_or(abi::OLDEST);
        let registers = |id: EntryId| match family {
            abi::BOXES => Some(abi::boxes_registers(id.entry().capability)),
            abi::SOFTMAX | abi::SOFTMAX_PARTS => Some(abi::SOFTMAX_REGISTERS),
            _ => None,
        };
        let texts: Vec<_> = family.entries().zip(entries.by_ref()).map(|(id, text)| (text, registers(id))).collect();
        write(&folder.join(file(family)), entries::render(module.header, capability, &texts))?;
    }
    Ok(())
}

/// Writes what `src/ptx/mod.rs` includes: the texts of all entries, one behind the other, and where
/// each of them is.
fn include(folder: &Path, out: &Path) -> Result<(), String> {
    let (mut header, mut all, mut places) = (None, String::new(), Vec::new());
    for family in Family::all() {
        let path = folder.join(file(family));
        let at_fault = |why: String| format!("{}: {why}", path.display());
        let text = read(&path)?;
        let module = Module::parse(&text).map_err(at_fault)?;
        let expected: Vec<Entry> = family.entries().map(|id| *id.entry()).collect();
        for entry in module.take(&expected).map_err(at_fault)? {
            places.push(all.len()..all.len() + entry.len());
            all += entry;
        }
        let ours = module.header.map(str::to_owned);
        if header.get_or_insert_with(|| ours.clone()) != &ours {
            return Err(at_fault("its header is another one than in the other files".to_owned()));
        }
    }
    let header = header.ok_or("src/abi has no kernels")?;
    write(&out.join("entries.ptx"), all)?;
    // `Debug` writes ranges and strings as Rust does.
    write(&out.join("places.rs"), format!("({header:?}, {places:?})"))
}

/// The file of a family.
fn file(family: Family) -> String {
    format!("{}.ptx", family.stem())
}

/// Returns the manifest of PTX from the current sources, without the hash of the PTX.
fn current(root: &Path) -> Result<Manifest, String> {
    let files = manifest::sources(root).map_err(|error| format!("cannot read the kernel sources: {error}"))?;
    Ok(Manifest::of(&files, toolchain::VERSION, &toolchain::flags()))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn write(path: &Path, text: String) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn ptx(folder: &Path) -> Result<Vec<(String, Vec<u8>)>, String> {
    manifest::ptx(folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| format!("{name}: {error}; build with cargo"))
}
