//! Options that stand before the command or the operation that has them.
//!
//! clap takes an option behind the name of its command only, unless every command has it.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command};

/// The same words with such options moved behind that name. `command` is built, so that its
/// subcommands have the options of all.
pub(super) fn ordered(command: &Command, mut words: Vec<OsString>) -> Vec<OsString> {
    if !command.has_subcommands() {
        return words;
    }
    let (mut own, mut of_others) = (Vec::new(), Vec::new());
    while let Some(word) = words.first() {
        if let Some(subcommand) = command.find_subcommand(word) {
            own.push(words.remove(0));
            of_others.append(&mut words);
            own.extend(ordered(subcommand, of_others));
            return own;
        }
        let Some(name) = option(word) else { break };
        let is_named = |argument: &&Arg| argument.get_long() == Some(name);
        let known = |command: &Command| command.get_arguments().find(is_named).map(takes_value);
        let of_command = known(command);
        let Some(takes_value) = of_command.or_else(|| descendants(command).find_map(known)) else { break };
        let is_whole = !takes_value || word.to_string_lossy().contains('=');
        let count = if is_whole { 1 } else { 2 };
        let list = if of_command.is_some() { &mut own } else { &mut of_others };
        list.extend(words.drain(..count.min(words.len())));
    }
    // No subcommand follows: clap says so.
    own.append(&mut of_others);
    own.append(&mut words);
    own
}

/// The name of a long option, without its value.
fn option(word: &OsStr) -> Option<&str> {
    let name = word.to_str()?.strip_prefix("--")?;
    let name = name.split_once('=').map_or(name, |(name, _)| name);
    (!name.is_empty()).then_some(name)
}

fn takes_value(argument: &Arg) -> bool {
    argument.get_action().takes_values()
}

/// The subcommands of a command, theirs, and so on.
fn descendants(command: &Command) -> impl Iterator<Item = &Command> {
    let mut waiting: Vec<&Command> = command.get_subcommands().collect();
    std::iter::from_fn(move || {
        let next = waiting.pop()?;
        waiting.extend(next.get_subcommands());
        Some(next)
    })
}

#[cfg(test)]
mod tests;
