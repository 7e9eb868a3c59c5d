//! Findings as SARIF 2.1.0, which code hosts and editors show at the lines of a source.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use warpstride::error::printable;

use super::Found;

/// The rules of the checkers, with what each of them is about. Rules of expectations and of
/// launches that stop have names that say it.
const RULES: [(&str, &str); 19] = [
    ("memcheck/oob", "An access outside of all memory that the kernel may use"),
    ("memcheck/misaligned", "An access at an address that is not a multiple of its size"),
    ("memcheck/read-only", "A store to memory that kernels only read"),
    ("memcheck/stack", "More local memory than a thread has"),
    ("memcheck/double-free", "Memory that the program frees twice"),
    ("memcheck/use-after-free", "A call that uses memory after its end"),
    ("memcheck/leak", "Memory of the device that the program does not free"),
    ("initcheck/global", "A read of global memory that was never written"),
    ("initcheck/shared", "A read of shared memory that was never written"),
    ("initcheck/local", "A read of local memory that was never written"),
    ("racecheck/global", "Accesses of global memory without an order between them"),
    ("racecheck/shared", "Accesses of shared memory without an order between them"),
    ("racecheck/streams", "Work of two streams on the same memory without an order between it"),
    ("synccheck/divergent", "A barrier at which a part of a warp does not arrive"),
    ("synccheck/mask", "A synchronisation with a mask that leaves out the thread itself"),
    ("synccheck/deadlock", "Warps of a block that wait at different barriers"),
    ("synccheck/barrier", "A barrier that is used in a wrong way"),
    ("access/sectors", "More sectors of global memory than were expected"),
    ("access/bank_conflicts", "More bank conflicts of shared memory than were expected"),
];
/// The description of the other rules.
const OTHER: &str = "A kernel that does not do what was expected";
/// The name and version of our fingerprints, which change if what goes into them does.
const FINGERPRINT: &str = "warpstrideFinding/v1";
const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Returns a log of one run with these findings. Paths below `folder` become relative to it.
pub(crate) fn log(found: &[Found], folder: &Path) -> Value {
    let mut rules: Vec<&str> = found.iter().map(|found| &*found.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    let mut seen = HashMap::new();
    let results: Vec<Value> = found.iter().map(|found| result(found, &rules, folder, &mut seen)).collect();
    let described = rules.iter().map(|rule| {
        let known = RULES.iter().find(|(known, _)| known == rule);
        json!({ "id": rule, "shortDescription": { "text": known.map_or(OTHER, |(_, text)| text) } })
    });
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "warpstride",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": described.collect::<Vec<_>>(),
            } },
            "columnKind": "utf16CodeUnits",
            "results": results,
        }],
    })
}

fn result(found: &Found, rules: &[&str], folder: &Path, seen: &mut HashMap<String, u32>) -> Value {
    let mut location = json!({});
    if let Some(file) = &found.file {
        location["physicalLocation"] = json!({ "artifactLocation": { "uri": uri(file, folder) } });
        if let Some(line) = found.line.filter(|&line| line > 0) {
            location["physicalLocation"]["region"] = json!({ "startLine": line });
        }
    }
    if let Some(kernel) = &found.kernel {
        location["logicalLocations"] = json!([{ "fullyQualifiedName": printable(kernel), "kind": "function" }]);
    }
    let locations = if location == json!({}) { json!([]) } else { json!([location]) };
    json!({
        "ruleId": found.rule,
        "ruleIndex": rules.binary_search(&&*found.rule).unwrap_or_default(),
        "level": if found.is_note { "note" } else { "error" },
        "message": { "text": printable(&found.text) },
        "locations": locations,
        "partialFingerprints": { FINGERPRINT: fingerprint(found, folder, seen) },
    })
}

/// Returns a number by which a host recognises a finding of an earlier run. Lines, addresses and
/// threads do not count, because they change where other things do. Findings that are alike
/// otherwise are counted.
fn fingerprint(found: &Found, folder: &Path, seen: &mut HashMap<String, u32>) -> String {
    let file = found.file.as_ref().map(|file| uri(file, folder)).unwrap_or_default();
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    let parts = [found.rule.clone(), file, part(&found.kernel), part(&found.instruction)].join("\0");
    let count = seen.entry(parts.clone()).or_default();
    *count += 1;
    let hash = Sha256::digest(format!("{parts}\0{count}"));
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the URI of a file: relative to `folder` if the file is below that.
fn uri(file: &str, folder: &Path) -> String {
    let path = Path::new(file);
    let relative = path.strip_prefix(folder).unwrap_or(path);
    let is_absolute = relative.is_absolute();
    let shown = relative.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/");
    let mut text = String::from(if is_absolute { "file://" } else { "" });
    if is_absolute && !shown.starts_with('/') {
        text.push('/');
    }
    for byte in shown.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' | b'+' => text.push(byte.into()),
            _ => text += &format!("%{byte:02X}"),
        }
    }
    text
}

#[cfg(test)]
mod tests;
