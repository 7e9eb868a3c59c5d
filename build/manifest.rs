//! Reads and writes `src/ptx/MANIFEST`: `key = value` lines that tie the committed PTX to its
//! sources.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

/// The files and folders that the PTX comes from, relative to the package.
pub const SOURCES: [&str; 5] = ["kernels/Cargo.lock", "kernels/Cargo.toml", "kernels/src", "src/abi", "src/abi.rs"];

/// The identity of a PTX file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Hash of the sources, by path and content.
    pub sources: String,
    /// Hash of the PTX, by file and content; empty where there is none yet.
    pub ptx: String,
    /// Version of the compiler.
    pub rustc: String,
    /// The compiler's flags.
    pub flags: String,
}

impl Manifest {
    /// Returns the manifest of the PTX that `rustc` with `flags` makes from `files`, each a path
    /// and its content.
    pub fn of(files: &[(String, Vec<u8>)], rustc: &str, flags: &str) -> Self {
        Manifest { sources: hash(files), ptx: String::new(), rustc: rustc.to_owned(), flags: flags.to_owned() }
    }

    /// Reads a manifest. Each key must be there once, and there must be no other key.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut manifest =
            Manifest { sources: String::new(), ptx: String::new(), rustc: String::new(), flags: String::new() };
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (key, value) = line.split_once(" = ").ok_or(format!("src/ptx/MANIFEST has no key in {line:?}"))?;
            let field = match key {
                "sources" => &mut manifest.sources,
                "ptx" => &mut manifest.ptx,
                "rustc" => &mut manifest.rustc,
                "flags" => &mut manifest.flags,
                _ => return Err(format!("src/ptx/MANIFEST has a key {key:?} that this version does not know")),
            };
            if !field.is_empty() {
                return Err(format!("src/ptx/MANIFEST says {key} twice"));
            }
            value.clone_into(field);
        }
        for (key, value) in manifest.fields() {
            if value.is_empty() {
                return Err(format!("src/ptx/MANIFEST does not say {key}"));
            }
        }
        Ok(manifest)
    }

    /// Writes the text that [`parse`](Self::parse) reads.
    pub fn render(&self) -> String {
        let mut text = "# Written by scripts/bless-ptx: what the PTX was made of. Hashes are SHA-256.\n".to_owned();
        for (key, value) in self.fields() {
            text += &format!("{key} = {value}\n");
        }
        text
    }

    /// Compares this manifest with the `current` sources, compiler and flags. The error names what
    /// has changed.
    pub fn check(&self, current: &Manifest) -> Result<(), String> {
        for ((key, ours), (_, now)) in self.fields().into_iter().zip(current.fields()) {
            if key != "ptx" && ours != now {
                let what = match key {
                    "sources" => "kernels/ or src/abi".to_owned(),
                    key => format!("{key} ({ours}, now {now})"),
                };
                return Err(format!("src/ptx is stale: {what} changed since it was made"));
            }
        }
        Ok(())
    }

    fn fields(&self) -> [(&'static str, &str); 4] {
        [("sources", &self.sources), ("ptx", &self.ptx), ("rustc", &self.rustc), ("flags", &self.flags)]
    }
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = self.sources.get(..8).unwrap_or(&self.sources);
        write!(f, "rustc {}, {}, sources {short}", self.rustc, super::toolchain::GPU)
    }
}

/// SHA-256 of files, each a path and its content, in hexadecimal.
pub fn hash(files: &[(String, Vec<u8>)]) -> String {
    let mut all = Sha256::new();
    for (path, content) in files {
        // Lengths go in, so that no two lists of files run together to the same bytes.
        all.update(format!("{path} {}\n", content.len()));
        all.update(content);
    }
    all.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Every PTX file in a folder with its content, in the order of their names.
pub fn ptx(folder: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".ptx") {
            files.push((name, fs::read(entry.path())?));
        }
    }
    files.sort();
    Ok(files)
}

/// Reads every file of [`SOURCES`] under `root`, in the order of the paths, which use `/`. In a
/// folder only Rust files count, so an editor's files change nothing.
pub fn sources(root: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    let mut open: Vec<String> = SOURCES.map(str::to_owned).into();
    while let Some(path) = open.pop() {
        let at = root.join(&path);
        if at.is_dir() {
            for entry in fs::read_dir(at)? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if entry.file_type()?.is_dir() || name.ends_with(".rs") {
                    open.push(format!("{path}/{name}"));
                }
            }
        } else {
            files.push((path, fs::read(at)?));
        }
    }
    files.sort();
    Ok(files)
}
