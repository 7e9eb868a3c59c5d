//! Compares the entries of a PTX module with those that the host launches, and finds each in the
//! text.

use std::ops::Range;

use super::abi::Entry;

/// Compares the entries of `ptx` with `expected`, both ways. The error names the first entry that
/// differs.
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

/// Positions in a module: the header before and after the architecture, and each entry. Both parts
/// of the header with an architecture between them, and one entry, make a module too.
pub type Places = ([Range<usize>; 2], Vec<Range<usize>>);

/// Finds the header of `ptx` and each entry of `expected`. The error names anything else that the
/// PTX declares, because a module of one entry would miss it. It also names the first entry whose
/// capability does not fit its eviction policies.
pub fn places(ptx: &str, expected: &[Entry]) -> Result<Places, String> {
    const ENTRY: &str = ".visible .entry ";
    let find = |what: &str, from: usize| ptx[from..].find(what).map(|at| from + at);
    let header = 0..find(ENTRY, 0).ok_or("the PTX has no entry")?;
    only(&[".version ", TARGET, ".address_size ", ".extern .shared "], &ptx[header.clone()])?;
    let target = architecture(ptx).ok_or("the PTX does not say its architecture")?;
    let mut entries = Vec::new();
    let mut end = header.end;
    while let Some(start) = find(ENTRY, end) {
        only(&[], &ptx[end..start])?;
        // The entry ends at the first brace at the start of a line, because braces inside a body
        // are indented. An unindented one would leave text that `only` reports.
        end = find("\n}", start).ok_or("the PTX ends inside an entry")? + "\n}".len();
        entries.push(start..end);
    }
    only(&[], &ptx[end..])?;
    let place = |entry: &Entry| {
        let named = |at: &&Range<usize>| ptx[at.start + ENTRY.len()..].starts_with(&format!("{}(", entry.name));
        entries.iter().find(named).cloned().ok_or(format!("entry {} is missing from the PTX", entry.name))
    };
    let entries: Vec<_> = expected.iter().map(place).collect::<Result<_, _>>()?;
    for (entry, place) in expected.iter().zip(&entries) {
        let policies = ["createpolicy", "cache_hint"].iter().any(|word| ptx[place.clone()].contains(word));
        if policies != (entry.capability >= POLICIES) {
            let ((major, minor), has) = (entry.capability, if policies { "eviction" } else { "no eviction" });
            return Err(format!(
                "entry {} is for {major}.{minor} in src/abi.rs and has {has} policies, which need 8.0",
                entry.name
            ));
        }
    }
    Ok(([0..target.start, target.end..header.end], entries))
}

/// The first compute capability with eviction policies in PTX. An entry may need nothing else
/// beyond the oldest architecture.
const POLICIES: (u32, u32) = (8, 0);

const TARGET: &str = ".target ";

/// Finds the architecture that a module names.
pub fn architecture(ptx: &str) -> Option<Range<usize>> {
    let start = ptx.find(&format!("\n{TARGET}"))? + "\n".len() + TARGET.len();
    let name = ptx[start..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
    Some(start..start + name)
}

/// Checks that `text` has only blank lines, comments and `directives`.
fn only(directives: &[&str], text: &str) -> Result<(), String> {
    let known = |line: &str| {
        line.is_empty() || line.starts_with("//") || directives.iter().any(|directive| line.starts_with(directive))
    };
    match text.lines().map(str::trim).find(|line| !known(line)) {
        Some(line) => Err(format!("the PTX has more than entries: {line:?}; each must be a module of its own")),
        None => Ok(()),
    }
}

/// Returns the name of each entry of a module, and the size and alignment of its one parameter.
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

/// Reads the size and alignment of one parameter: `.param .align 8 .b8 name[64]`, or
/// `.param .b64 name`.
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
