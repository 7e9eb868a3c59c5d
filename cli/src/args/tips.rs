//! Tips for words that belong to the value of an option before them, and for an option in place of
//! another command.

use std::ffi::OsString;

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Adds a tip where a refused word follows the value of an option that takes one word: numbers with
/// commas between them, or one argument of a kernel. `learn watch` takes no lesson.
pub(super) fn with_tip(mut refused: Error, words: &[OsString]) -> Error {
    if refused.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(word)) = refused.get(ContextKind::InvalidArg)
        && let Some(tip) = tip(word, words)
    {
        refused.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    refused
}

fn tip(word: &str, words: &[OsString]) -> Option<String> {
    if word == "--lesson" && words.iter().any(|given| given == "watch") {
        return Some("watch takes the first lesson that is not solved; learn check LESSON checks another".into());
    }
    let at = words.iter().position(|given| given == word)?;
    let is_option = |at: &usize| words[*at].to_string_lossy().starts_with("--");
    let option = (0..at).rev().find(is_option)?;
    let values: Vec<_> = words[option + 1..=at].iter().map(|word| word.to_string_lossy()).collect();
    match &*words[option].to_string_lossy() {
        // The option has its one value.
        _ if values.len() < 2 => None,
        option @ ("--grid" | "--block") => Some(format!("write {option} {}", values.join(","))),
        "--arg" => Some(format!("repeat the option for each argument: --arg {}", values.join(" --arg "))),
        _ => None,
    }
}
