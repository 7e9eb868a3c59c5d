//! Lists the lessons, as the command line embeds them: a folder each, with its files.

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Names that stand for others in the repository: cargo leaves a folder with a `Cargo.toml` out of
/// the package around it.
const RENAMED: [(&str, &str); 1] = [("Cargo.toml.in", "Cargo.toml")];

/// Returns the list as an expression of Rust, in the order of the lessons. A folder's name begins
/// with the lesson's number; folders within it, hidden files and what cargo writes are no part of
/// it.
pub(crate) fn list(root: &Path) -> Result<String, String> {
    let mut list = String::from("&[\n");
    for name in names(root)? {
        let folder = root.join(&name);
        if !folder.is_dir() {
            continue;
        }
        let number = name.get(..2).and_then(|number| number.parse::<usize>().ok());
        let number = number.filter(|_| name.get(2..3) == Some("-"));
        let number = number.ok_or_else(|| format!("{}: name a lesson as 02-sectors", folder.display()))?;
        let _ = writeln!(list, "Lesson {{ number: {number}, name: {name:?}, files: &[");
        for file in names(&folder)?.into_iter().filter(|file| file != "Cargo.lock" && folder.join(file).is_file()) {
            let known = RENAMED.iter().find(|(stored, _)| *stored == file).map_or(&*file, |(_, known)| known);
            let path = folder.join(&file);
            let _ = writeln!(list, "({known:?}, include_str!({:?})),", path.display().to_string());
        }
        list += "] },\n";
    }
    list += "]\n";
    Ok(list)
}

/// The names in a folder that are not hidden, in order.
fn names(folder: &Path) -> Result<Vec<String>, String> {
    let at_fault = |error| format!("cannot list {}: {error}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(at_fault)? {
        let name = entry.map_err(at_fault)?.file_name();
        let name = name.into_string().map_err(|name| format!("{}: {name:?} is not text", folder.display()))?;
        if !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
