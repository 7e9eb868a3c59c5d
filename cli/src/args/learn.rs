//! What `learn` takes.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, Subcommand};

#[derive(Args)]
pub(crate) struct Learn {
    /// The folder of your lessons, instead of the current one if it is one, or else
    /// warpstride-lessons
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Option<LearnCommand>,
}

/// Without one, the lessons are listed.
#[derive(Subcommand, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LearnCommand {
    /// List the lessons, and those that are solved
    List,
    /// Show the page of the first lesson that is not solved
    Next,
    /// Show a lesson's page
    Show {
        /// The lesson, instead of the first that is not solved
        #[arg(value_name = "N", value_parser = lesson)]
        number: Option<usize>,
    },
    /// Check a lesson's files; the exit status is 0 where it is solved
    Check {
        /// The lesson, instead of the first that is not solved
        #[arg(value_name = "N", value_parser = lesson)]
        number: Option<usize>,
    },
    /// Show a lesson's next hint, of three
    Hint {
        /// The lesson, instead of the first that is not solved
        #[arg(value_name = "N", value_parser = lesson)]
        number: Option<usize>,
    },
    /// Check the first lesson that is not solved each time that one of its files changes, and then
    /// the next lesson, until all are solved or Ctrl-C ends it
    Watch,
}

fn lesson(text: &str) -> Result<usize, String> {
    let numbers = super::super::learn::numbers();
    text.parse().map_err(|_| format!("give a number from {} to {}", numbers.start(), numbers.end()))
}

impl Learn {
    /// Whether what was typed goes together.
    pub(super) fn check(&self, json: bool) -> Result<(), (ErrorKind, String)> {
        if json && self.command == Some(LearnCommand::Watch) {
            let wrong = "--json prints one document, and watch prints at each change; use learn check --json";
            return Err((ErrorKind::ArgumentConflict, wrong.into()));
        }
        Ok(())
    }
}
