use std::collections::BTreeMap;

use clap::CommandFactory;

use super::super::Cli;
use super::*;

fn built() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

/// `options_of_one_command_stand_before_its_name` in `tests/it/options.rs` moves options.
#[test]
fn options_of_a_command_itself_stay_and_so_does_what_is_no_usage() {
    let words = |line: &str| line.split_whitespace().map(OsString::from).collect::<Vec<_>>();
    for line in [
        "bench --all --save copy copy --elements 4",
        "--help bench copy",
        "--quiet --elements 9",
        "--typo 5 bench copy",
        "bench --samples",
        "bench nothing --samples 5",
        "-- bench copy",
        "--samples 5",
    ] {
        assert_eq!(ordered(&built(), words(line)), words(line), "{line}");
    }
}

/// Else a word behind one would be a value for one command and a name for another.
#[test]
fn an_option_takes_a_value_wherever_it_is() {
    let built = built();
    let mut known = BTreeMap::new();
    for command in descendants(&built).filter(|command| !command.has_subcommands()) {
        for argument in command.get_arguments().filter(|argument| argument.get_long().is_some()) {
            let before = known.insert(argument.get_long(), takes_value(argument));
            assert!(before.is_none_or(|before| before == takes_value(argument)), "{:?}", argument.get_long());
        }
    }
}
