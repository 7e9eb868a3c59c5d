//! Whether a PTX module has the entries that the host launches, with the parameters that it passes.

use super::abi::Entry;

/// Compares the entries of `ptx` with `expected`, both ways; the error names the first entry that differs.
pub fn check(ptx: &str, expected: &[Entry]) -> Result<(), String> {
    let found = parse(ptx)?;
    for entry in expected {
        let Some((_, bytes, align)) = found.iter().find(|(name, ..)| *name == entry.name) else {
            return Err(format!("entry {} of src/abi.rs is missing from the PTX", entry.name));
        };
        if (*bytes, *align) != (entry.param_bytes, entry.param_align) {
            return Err(format!(
                "entry {} takes {bytes} bytes aligned to {align} in the PTX, but src/abi.rs passes {} aligned to {}",
                entry.name, entry.param_bytes, entry.param_align
            ));
        }
    }
    match found.iter().find(|(name, ..)| expected.iter().all(|entry| entry.name != *name)) {
        Some((name, ..)) => Err(format!("entry {name} of the PTX is not in src/abi.rs")),
        None => Ok(()),
    }
}

/// Name of each entry of a module, and size and alignment of its one parameter.
fn parse(ptx: &str) -> Result<Vec<(&str, usize, usize)>, String> {
    let mut entries = Vec::new();
    for declaration in ptx.split(".entry").skip(1) {
        let (name, rest) = declaration.split_once('(').ok_or("the PTX ends inside an entry")?;
        let (params, _) = rest.split_once(')').ok_or("the PTX ends inside an entry")?;
        let name = name.trim();
        let (bytes, align) = parameter(params)
            .ok_or(format!("entry {name} does not take one parameter by value: {:?}", params.trim()))?;
        entries.push((name, bytes, align));
    }
    Ok(entries)
}

/// Size and alignment of a list of one parameter: `.param .align 8 .b8 name[64]`, or `.param .b64 name`.
fn parameter(list: &str) -> Option<(usize, usize)> {
    let words: Vec<&str> = list.split_whitespace().collect();
    match words[..] {
        [".param", ".align", align, ".b8", name] => {
            let (_, bytes) = name.strip_suffix(']')?.split_once('[')?;
            Some((bytes.parse().ok()?, align.parse().ok()?))
        }
        [".param", kind, name] if !name.contains(',') => {
            let bits: usize = kind.strip_prefix(".b").or(kind.strip_prefix(".u"))?.parse().ok()?;
            Some((bits / 8, bits / 8))
        }
        _ => None,
    }
}
