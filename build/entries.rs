//! PTX modules taken apart: their header, their entries, and whether these are what the host
//! launches.

use super::abi::Entry;

/// A module: entries under a header.
pub struct Module<'a> {
    /// The text before and behind the architecture at the module's head. Both parts with an
    /// architecture between, and an entry, are a module too.
    pub header: [&'a str; 2],
    /// The texts of the entries.
    pub entries: Vec<&'a str>,
}

const ENTRY: &str = ".visible .entry ";
const TARGET: &str = ".target ";

impl<'a> Module<'a> {
    /// Takes a text apart. The error names what else it declares, which a module of one entry would
    /// miss.
    pub fn parse(ptx: &'a str) -> Result<Self, String> {
        let find = |what: &str, from: usize| ptx[from..].find(what).map(|at| from + at);
        let mut end = find(ENTRY, 0).ok_or("the PTX has no entry")?;
        let header = without_comments_behind(&ptx[..end]);
        only(&[".version ", TARGET, ".address_size ", ".extern .shared "], header)?;
        let header = around_architecture(header).ok_or("the PTX does not say its architecture")?;
        let mut entries = Vec::new();
        while let Some(start) = find(ENTRY, end) {
            only(&[], &ptx[end..start])?;
            // The first brace at the start of a line: those of a body are indented, or what is
            // behind them would be seen.
            end = find("\n}", start).ok_or("the PTX ends inside an entry")? + "\n}".len();
            entries.push(&ptx[start..end]);
        }
        only(&[], &ptx[end..])?;
        Ok(Self { header, entries })
    }

    /// The entries, which must be the expected ones, in their order. The error names the first that
    /// differs.
    pub fn take(&self, expected: &[Entry]) -> Result<Vec<&'a str>, String> {
        let extra = self.entries.iter().map(|text| name(text)).find(|&name| expected.iter().all(|of| of.name != name));
        if let Some(name) = extra {
            return Err(format!("entry {name} of the PTX is not in src/abi"));
        }
        let checked = |entry: &Entry| {
            let found = self.entries.iter().find(|text| name(text) == entry.name);
            let text = found.ok_or_else(|| format!("entry {} of src/abi is missing from the PTX", entry.name))?;
            check(text, entry).map(|()| *text)
        };
        expected.iter().map(checked).collect()
    }
}

/// A module of these entries for an architecture, each with the most registers of its threads.
pub fn render(header: [&str; 2], capability: (u32, u32), entries: &[(&str, Option<u32>)]) -> String {
    let mut text = format!("{}sm_{}{}{}", header[0], capability.0, capability.1, header[1]);
    for (entry, registers) in entries {
        let limit = registers.map_or(String::new(), |most| format!(".maxnreg {most}\n"));
        text += &match entry.split_once("\n{") {
            Some((head, body)) => format!("\n{head}\n{limit}{{{body}\n"),
            None => format!("\n{entry}\n"),
        };
    }
    text
}

/// The header's text without the comment that LLVM writes about the first entry.
fn without_comments_behind(mut header: &str) -> &str {
    while let Some((before, last)) = header.trim_end().rsplit_once('\n')
        && last.trim_start().starts_with("//")
    {
        header = before;
    }
    // One line break ends the last line.
    let end = header.trim_end().len();
    &header[..header.len().min(end + 1)]
}

/// Returns the text before and behind the architecture in a header.
fn around_architecture(header: &str) -> Option<[&str; 2]> {
    let start = header.find(&format!("\n{TARGET}"))? + "\n".len() + TARGET.len();
    let end = header[start..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
    Some([&header[..start], &header[start + end..]])
}

/// An entry's name.
fn name(entry: &str) -> &str {
    entry.strip_prefix(ENTRY).and_then(|rest| rest.split_once('(')).map_or("", |(name, _)| name.trim())
}

/// Checks that an entry takes the parameter that the host passes, and needs the architecture that
/// the host thinks it needs.
fn check(text: &str, expected: &Entry) -> Result<(), String> {
    let Entry { name, param_bytes, param_align, capability } = *expected;
    let list = text.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(list, _)| list);
    let list = list.ok_or("the PTX ends inside an entry")?;
    let (bytes, align) = parameter(list)
        .ok_or_else(|| format!("entry {name} does not take one parameter by value: {:?}", list.trim()))?;
    if (bytes, align) != (param_bytes, param_align) {
        return Err(format!(
            "entry {name} takes {bytes} bytes aligned to {align} in the PTX, but src/abi passes {param_bytes} aligned to \
             {param_align}"
        ));
    }
    let policies = ["createpolicy", "cache_hint"].iter().any(|word| text.contains(word));
    if policies != (capability >= POLICIES) {
        let ((major, minor), has) = (capability, if policies { "eviction" } else { "no eviction" });
        return Err(format!("entry {name} is for {major}.{minor} in src/abi and has {has} policies, which need 8.0"));
    }
    Ok(())
}

/// The first compute capability with eviction policies in PTX. An entry may need nothing else
/// beyond the oldest architecture.
const POLICIES: (u32, u32) = (8, 0);

/// Checks that `text` is nothing but blank lines, comments and `directives`.
fn only(directives: &[&str], text: &str) -> Result<(), String> {
    let known = |line: &str| {
        line.is_empty() || line.starts_with("//") || directives.iter().any(|directive| line.starts_with(directive))
    };
    match text.lines().map(str::trim).find(|line| !known(line)) {
        Some(line) => Err(format!("the PTX has more than entries: {line:?}; each must be a module of its own")),
        None => Ok(()),
    }
}

/// Size and alignment of a list of one parameter: `.param .align 8 .b8 name[64]`, or
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
