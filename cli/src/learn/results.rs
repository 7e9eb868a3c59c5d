//! `warpstride learn check --all`: all lessons of a folder at once, for the person who teaches.

use std::fmt::Write;
use std::path::Path;

use anyhow::Result;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use serde_json::{Value, json};
use warpstride::error::counted;

use super::super::ci::junit;
use super::super::{destination, failure, message, require};
use super::attempt::{Attempt, Source};
use super::folder::Folder;
use super::lessons::{self, Lesson};
use super::progress::{Progress, State};

/// The result of a lesson.
struct Row {
    lesson: Lesson,
    /// `None` if the learner has not begun it.
    outcome: Option<Result<()>>,
    state: State,
    score: Option<u64>,
}

/// Checks the lessons that a learner has begun, and writes the results, also into a file of JUnit.
pub(super) fn run(folder: &Folder, junit: Option<&Path>, from: &Source) -> Result<()> {
    if let Some(junit) = junit {
        folder.ensure_no_link(junit)?;
    }
    let junit = junit.map(|path| destination::checked(path, &[], from.output)).transpose()?;
    let bar = from.output.progress(lessons::all().len());
    let mut rows = Vec::new();
    for lesson in lessons::all() {
        bar.doing(lesson.name.to_owned());
        rows.push(row(lesson, folder, from)?);
        bar.step();
    }
    drop(bar);
    let solved = rows.iter().filter(|row| matches!(row.outcome, Some(Ok(())))).count();
    let seed = Progress::read(folder.progress())?.seed().map(str::to_owned);
    let document = json!({
        "folder": folder.to_string(), "seed": seed, "solved": solved,
        "lessons": rows.iter().map(Row::json).collect::<Vec<_>>(),
    });
    from.output.result(&rows.iter().map(Row::text).collect::<String>(), document)?;
    if let Some(junit) = junit {
        let text = report(folder, &rows);
        destination::replace(&junit, |file| file.write_all(text.as_bytes()))?;
    }
    let are = if solved == 1 { "is" } else { "are" };
    require!(
        solved == rows.len(),
        KernelFault,
        "{solved} of {} {are} solved in {folder}; `warpstride learn check LESSON` says what one of the others lacks",
        counted(rows.len(), "lesson")
    );
    Ok(())
}

fn row(lesson: &Lesson, folder: &Folder, from: &Source) -> Result<Row> {
    let progress = Progress::read(folder.progress())?;
    let lesson = lesson.seeded(progress.seed());
    if !folder.lesson(&lesson).exists() {
        return Ok(Row { lesson, outcome: None, state: State::default(), score: None });
    }
    let noted = Attempt::of(&lesson, folder, &progress.of(&lesson), from)
        .and_then(|mut attempt| attempt.note(&lesson, folder, from).map(|progress| (attempt, progress)));
    // One lesson that cannot be checked or noted keeps no others from it.
    let (state, score, outcome) = match noted {
        Ok((attempt, progress)) => {
            let score = attempt.score.of(&lesson).filter(|_| attempt.wrong.is_none());
            (progress.of(&lesson), score, attempt.wrong.map_or(Ok(()), Err))
        }
        Err(error) => (progress.of(&lesson), None, Err(error)),
    };
    Ok(Row { lesson, outcome: Some(outcome), state, score })
}

impl Row {
    fn text(&self) -> String {
        let Self { lesson, outcome, .. } = self;
        let (mark, why) = match outcome {
            None => ("not begun", String::new()),
            Some(Ok(())) => ("solved", String::new()),
            Some(Err(error)) => ("open", format!("                {}\n", message(error))),
        };
        let mut text = String::new();
        let _ = writeln!(text, "{:>3}  {mark:9}  {:15}  {}", lesson.number, lesson.name, lesson.title());
        text + &why
    }

    fn json(&self) -> Value {
        let mut row = self.lesson.json();
        row["begun"] = self.outcome.is_some().into();
        row["solved"] = matches!(self.outcome, Some(Ok(()))).into();
        row["score"] = self.score.into();
        row["hints"] = self.state.hints.into();
        row["tries"] = self.state.tries.into();
        row["error"] = json!(self.outcome.as_ref().and_then(|outcome| outcome.as_ref().err()).map(failure));
        row
    }

    fn case(&self) -> TestCase {
        let status = match &self.outcome {
            None => {
                let mut status = TestCaseStatus::skipped();
                status.set_message("not begun");
                status
            }
            Some(Ok(())) => TestCaseStatus::success(),
            Some(Err(error)) => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(message(error));
                status
            }
        };
        let mut case = TestCase::new(self.lesson.name, status);
        case.set_classname("warpstride.learn");
        case
    }
}

/// The results as JUnit has them: a suite with the name of the folder, and a case for each lesson.
fn report(folder: &Folder, rows: &[Row]) -> String {
    let full = folder.full();
    let mut suite = TestSuite::new(full.file_name().unwrap_or(full.as_os_str()).to_string_lossy());
    suite.add_test_cases(rows.iter().map(Row::case));
    junit("warpstride learn", [suite])
}
