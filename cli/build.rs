//! Lists the lessons, which `warpstride learn` includes.

#[path = "build/lessons.rs"]
mod lessons;

use std::env;
use std::fs;
use std::path::PathBuf;

fn main() {
    // cargo prints this one sentence; a panic would bury it under a backtrace.
    if let Err(message) = list() {
        println!("cargo::error={message}");
    }
}

fn list() -> Result<(), String> {
    println!("cargo::rerun-if-changed=lessons");
    let variable = |name| env::var(name).map_err(|error| format!("{name}: {error}; build this crate with cargo"));
    let file = PathBuf::from(variable("OUT_DIR")?).join("lessons.rs");
    let list = lessons::list(&PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("lessons"))?;
    fs::write(&file, list).map_err(|error| format!("cannot write {}: {error}", file.display()))
}
