//! The arguments of `learn`.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::error::ErrorKind;
use clap::{Args, Command, Subcommand};

#[derive(Args)]
pub(crate) struct Learn {
    /// The folder of your lessons, instead of the current one if it is one, or else
    /// warpstride-lessons
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// With next, show or watch: begin the folder with shapes and numbers that this name draws,
    /// which it keeps. With check: refuse a folder that was begun with another name
    #[arg(long, global = true, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) seed: Option<String>,
    /// Show the page of this lesson, as show does
    pub(crate) lesson: Option<String>,
    /// Unfold the answers of that page, too
    #[arg(long)]
    pub(crate) answer: bool,
    #[command(subcommand)]
    pub(crate) command: Option<LearnCommand>,
}

/// Without one, and without a lesson, the lessons are listed.
#[derive(Subcommand, Clone, PartialEq, Eq)]
pub(crate) enum LearnCommand {
    /// List the lessons, and those that are solved
    List,
    /// Show the page of the first lesson that is not solved
    Next,
    /// Show a lesson's page
    Show {
        /// The lesson by its number, its name or title, or a part of them, instead of the first
        /// that is not solved
        lesson: Option<String>,
        /// Unfold the answers of the page, too
        #[arg(long)]
        answer: bool,
    },
    /// Check a lesson's files; the exit status is 0 if it is solved
    Check {
        /// The lesson by its number, its name or title, or a part of them, instead of the first
        /// that is not solved
        lesson: Option<String>,
        /// Check all lessons that have been begun; the exit status is 0 if every lesson is solved
        #[arg(long, conflicts_with = "lesson")]
        all: bool,
        /// Write the results as JUnit, too, with a case for each lesson
        #[arg(long, value_name = "FILE", requires = "all", conflicts_with = "lesson")]
        junit: Option<PathBuf>,
    },
    /// Show a lesson's next hint, of three
    Hint {
        /// The lesson by its number, its name or title, or a part of them, instead of the first
        /// that is not solved
        lesson: Option<String>,
    },
    /// Check the first lesson that is not solved each time that one of its files changes, and then
    /// the next lesson, until all are solved or Ctrl-C ends it
    Watch,
}

impl LearnCommand {
    /// The command that a word is most like, if a few letters make it that command.
    pub(crate) fn nearest(typed: &str) -> Option<String> {
        // A longer word is not a slip of a command.
        if typed.chars().count() > 8 {
            return None;
        }
        let all = Self::augment_subcommands(Command::new("learn"));
        let letters = |name: &str| strsim::levenshtein(&typed.to_ascii_lowercase(), name);
        let nearest = all.get_subcommands().map(Command::get_name).min_by_key(|name| letters(name))?;
        (letters(nearest) <= 2).then(|| nearest.to_owned())
    }

    fn name(&self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Next => "next",
            Self::Show { .. } => "show",
            Self::Check { .. } => "check",
            Self::Hint { .. } => "hint",
            Self::Watch => "watch",
        }
    }

    /// Returns whether the command makes the folder of lessons if it is missing.
    fn may_begin(&self) -> bool {
        matches!(self, Self::Next | Self::Show { .. } | Self::Watch)
    }
}

impl Learn {
    /// Checks the options against each other.
    pub(super) fn check(&self, json: bool) -> Result<(), (ErrorKind, String)> {
        if json && self.command == Some(LearnCommand::Watch) {
            let wrong = "--json prints one document, and watch prints at each change; use learn check --json";
            return Err((ErrorKind::ArgumentConflict, wrong.into()));
        }
        if let (Some(lesson), Some(command)) = (&self.lesson, self.command.as_ref().map(LearnCommand::name)) {
            let wrong = format!("the lesson comes behind the command: learn {command} {lesson}");
            return Err((ErrorKind::ArgumentConflict, wrong));
        }
        if self.answer && self.lesson.is_none() {
            let wrong = "--answer is for the page of a lesson: learn show --answer";
            return Err((ErrorKind::ArgumentConflict, wrong.into()));
        }
        let takes_seed = |command: &LearnCommand| command.may_begin() || matches!(command, LearnCommand::Check { .. });
        if self.seed.is_some() && self.lesson.is_none() && !self.command.as_ref().is_some_and(takes_seed) {
            let wrong = "--seed is for next, show and watch, which begin a folder, and for check, which compares it";
            return Err((ErrorKind::ArgumentConflict, wrong.into()));
        }
        Ok(())
    }
}
