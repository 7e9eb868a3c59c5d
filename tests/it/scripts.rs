//! Names in scripts and in the pages for developers: each path and each module is there.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that names begin with, and may begin with nothing else.
const FOLDERS: [&str; 13] = [
    ".ci/",
    "benches/",
    "book/",
    "build/",
    "cli/",
    "docs/",
    "examples/",
    "fuzz/",
    "interp/",
    "kernels/",
    "scripts/",
    "src/",
    "tests/",
];
/// Packages and folders of tests, in which the modules that scripts name lie.
const ROOTS: [&str; 7] =
    ["src", "interp/src", "interp/src/gpu", "cli/src", "tests/device", "tests/it", "interp/tests/it"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The scripts, the gate, and the pages that say where things are.
fn texts() -> Vec<(PathBuf, String)> {
    let mut files = vec![root().join("CONTRIBUTING.md"), root().join("README.md")];
    for folder in ["scripts", ".ci", "docs"] {
        let entries = fs::read_dir(root().join(folder)).expect("a folder");
        files.extend(entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file()));
    }
    let text = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("text");
        (path, text)
    };
    files.into_iter().map(text).collect()
}

/// Words of characters that `is_part` takes.
fn words<'t>(text: &'t str, is_part: impl Fn(char) -> bool + 't) -> impl Iterator<Item = &'t str> + 't {
    text.split(move |c| !is_part(c)).filter(|word| !word.is_empty())
}

#[test]
fn every_path_is_there() {
    let mut stale = Vec::new();
    let mut count = 0;
    for (file, text) in texts() {
        // A name with a placeholder or a pattern says nothing of one file.
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_-./<>{}*$,@+%\\[](".contains(c);
        for word in words(&text, is_part) {
            let name = word.trim_end_matches(['.', ',', '/', ')']);
            if FOLDERS.iter().all(|folder| !name.starts_with(folder)) || name.contains(|c| "<>{}*$@%\\[](,".contains(c))
            {
                continue;
            }
            count += 1;
            if !root().join(name).exists() {
                stale.push(format!("{}: {name}", file.display()));
            }
        }
    }
    assert!(count > 100 && stale.is_empty(), "{count} names, and these are not there:\n{}", stale.join("\n"));
}

/// Returns whether a module path leads to a module of a root, and its last names are functions, or
/// begin those of functions, in the file of that module.
fn is_there(path: &[&str]) -> bool {
    ROOTS.iter().any(|root| {
        let mut folder = self::root().join(root);
        let mut file = None;
        let mut rest = path;
        while let [first, behind @ ..] = rest {
            let next = folder.join(first);
            let found = [next.with_extension("rs"), next.join("mod.rs")].into_iter().find(|file| file.exists());
            let Some(found) = found else { break };
            (folder, file, rest) = (next, Some(found), behind);
        }
        let text = file.map(|file| fs::read_to_string(file).expect("text"));
        text.is_some_and(|text| {
            rest.iter().all(|name| text.contains(&format!("fn {name}")) || text.contains(&format!("mod {name}")))
        })
    })
}

#[test]
fn every_module_path_of_a_script_is_there() {
    let mut stale = Vec::new();
    let mut count = 0;
    for (file, text) in texts() {
        if file.extension().is_some() {
            continue;
        }
        for word in words(&text, |c| c.is_ascii_alphanumeric() || "_:$".contains(c)) {
            let path: Vec<&str> = word.split("::").filter(|name| !name.is_empty()).collect();
            // Not a variable of the shell, and not a slice of Python.
            let is_name = |name: &&str| name.starts_with(|c: char| c.is_ascii_lowercase());
            if !word.contains("::") || path.is_empty() || !path.iter().all(is_name) {
                continue;
            }
            count += 1;
            if !is_there(&path) {
                stale.push(format!("{}: {word}", file.display()));
            }
        }
    }
    assert!(count > 5 && stale.is_empty(), "{count} names, and these are not there:\n{}", stale.join("\n"));
}
