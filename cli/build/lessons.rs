//! Lists the lessons, as the command line embeds them: a folder each, with its files.

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Returns the list as an expression of Rust. The file `order.txt` names the folders in the order
/// of the lessons, a line each. Folders within them and hidden files do not belong to a lesson.
/// Programs share `Cargo.toml.in`, because cargo leaves a folder with a `Cargo.toml` out of the
/// package around it.
pub(crate) fn list(root: &Path) -> Result<String, String> {
    let order = root.join("order.txt");
    let order = fs::read_to_string(&order).map_err(|error| format!("cannot read {}: {error}", order.display()))?;
    let mut list = String::from("&[\n");
    for (number, name) in order.lines().enumerate() {
        let folder = root.join(name);
        let _ = writeln!(list, "Lesson {{ number: {number}, name: {name:?}, seed: None, files: &[");
        let is_program = folder.join("task.rs").is_file();
        let manifest = is_program.then(|| ("Cargo.toml".to_owned(), root.join("Cargo.toml.in")));
        let own = names(&folder)?.into_iter().map(|file| (file.clone(), folder.join(file)));
        for (file, path) in manifest.into_iter().chain(own.filter(|(_, path)| path.is_file())) {
            let _ = writeln!(list, "({file:?}, include_str!({:?})),", path.display().to_string());
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
