//! Seeds: each learner of a class gets other shapes and numbers, by the name that seeds them.

use serde::Deserialize;
use sha2::{Digest, Sha256};

/// The file of what a seed changes, which a learner does not get.
pub(super) const SEEDS: &str = "seeds.toml";

/// A lesson's `seeds.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Seeds {
    groups: Vec<Group>,
}

/// Texts that change together. A text of `from` stands in the lesson's files, and one of the rows
/// of `to` takes its place.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    from: Vec<String>,
    to: Vec<Vec<String>>,
}

/// Returns the text of a lesson's file as a seed has it, by the lesson's `seeds.toml`.
pub(super) fn seeded(text: &str, seeds: &str, lesson: &str, seed: &str) -> String {
    let Seeds { groups } = toml::from_str(seeds).expect("a test reads all of these files");
    let mut text = text.to_owned();
    for (number, Group { from, to }) in groups.iter().enumerate() {
        // The lesson's own texts are one of the choices.
        let chosen = drawn(&format!("{lesson} {number} {seed}"), to.len() + 1);
        for (from, to) in from.iter().zip(to.get(chosen).unwrap_or(from)) {
            text = text.replace(from, to);
        }
    }
    text
}

/// A number below `choices` that looks drawn, and is the same on every machine.
fn drawn(words: &str, choices: usize) -> usize {
    let digest = Sha256::digest(words.as_bytes());
    let number = digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
    (number % choices as u64) as usize
}

#[cfg(test)]
mod tests;
