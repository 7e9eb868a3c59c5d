//! A check of a lesson: the learner's files held to what the lesson asks for.

use std::fs;
use std::path::Path;

use anyhow::Result;
use jiff::civil::Date;
use serde_json::{Value, json};
use warpstride::device::Backend;
use warpstride::error::ErrorKind;

use super::super::output::Output;
use super::super::{Refusal, check, error_kind, failure, message, refuse, require, terminal};
use super::badge::{self, Score};
use super::folder::{self, Folder};
use super::lessons::{Lesson, QUIZ};
use super::predictions::{self, Predictions, TRIES};
use super::program;
use super::progress::{Progress, State};
use super::quiz;

/// The learner's kernel.
const TASK: &str = "task.cu";
/// Most bytes of a check's file.
const MAX_CHECK_BYTES: usize = 1 << 20;

/// The results of a check.
#[derive(Default)]
pub(super) struct Attempt {
    /// The text that is printed before the sentence.
    pub(super) text: String,
    /// The part of the document for each file.
    pub(super) documents: Vec<Value>,
    /// The first fault; `None` if nothing fell short.
    pub(super) wrong: Option<anyhow::Error>,
    /// The predictions or answers that were wrong.
    pub(super) tried: Vec<String>,
    /// The sectors and predicted times of the launches.
    pub(super) score: Score,
    /// The kernel of a lesson that has a score.
    pub(super) kernel: Option<String>,
    /// The score that its badge shows.
    pub(super) badge: Option<u64>,
}

impl Attempt {
    /// Checks the learner's files of a lesson, which are made where they are missing.
    pub(super) fn of(lesson: &Lesson, folder: &Folder, state: &State, from: &Source) -> Result<Self> {
        folder.unpack(lesson, from.output)?;
        let path = folder.lesson(lesson);
        if lesson.has(QUIZ) {
            return quiz::check(lesson, &path, |wrong| from.tells(state, wrong));
        }
        if lesson.has("task.rs") {
            return program::run(&path, from.output);
        }
        Self::of_kernel(lesson, &path, state, from)
    }

    fn of_kernel(lesson: &Lesson, path: &Path, state: &State, from: &Source) -> Result<Self> {
        let (device, sources) = (check::device(from.backend, from.output)?, check::Sources::default());
        ensure_predicted(lesson, path)?;
        ensure_kernel(lesson, path)?;
        let kernel = badge::kernel(lesson, path)?;
        let (mut attempt, mut all) = (Self::default(), Vec::new());
        for name in lesson.checks() {
            let path = path.join(name);
            match check::check(&path, &device, &sources, from.output) {
                Ok(checked) => {
                    let predictions = Predictions::of(&lesson.text(name));
                    attempt.tried.extend(predictions.wrong(&checked.verdicts));
                    all.push((path, checked, predictions));
                }
                // The results so far are shown, too.
                Err(error) => {
                    attempt.wrong = Some(error);
                    break;
                }
            }
        }
        let tells = from.tells(state, &attempt.tried);
        let (stopped, mut short) = (attempt.wrong.take(), Vec::new());
        // The findings of several files fill more than a screen, and are read one by one. `check`
        // would tell what predictions are to find.
        let with_findings: Vec<_> =
            all.iter().filter(|(_, checked, _)| checked.has_findings()).map(|(path, ..)| path.clone()).collect();
        let is_long = with_findings.len() > 1 && all.iter().all(|(.., predictions)| predictions.0.is_empty());
        for (path, mut checked, predictions) in all {
            let hidden = if tells { None } else { predictions.hide(&mut checked.verdicts, from.withheld) };
            short.extend(checked.wrong.is_some().then_some(path.clone()));
            attempt.add(&path, checked, is_long);
            attempt.text.extend(hidden);
        }
        if is_long {
            let first = terminal::path(&with_findings[0]);
            attempt.text += &format!("\nThis shows the table and the findings of one: warpstride check {first}\n");
        }
        if let (None, [first, _, ..]) = (&stopped, &*short) {
            let (count, files, first) = (short.len(), lesson.checks().count(), terminal::path(first));
            let has_table = !(is_long && with_findings.contains(&short[0]));
            let why = if has_table { "the tables say why" } else { "`warpstride check` says why" };
            let sentence = format!("{count} of {files} files fell short, the first of them {first}; {why}");
            attempt.wrong = Some(Refusal { kind: ErrorKind::KernelFault, sentence }.into());
        }
        attempt.wrong = stopped.or(attempt.wrong);
        // The badge is for the kernel that was checked.
        require!(
            badge::kernel(lesson, path)? == kernel,
            Io,
            "the kernel in {} changed during the check; check again",
            path.display()
        );
        attempt.kernel = kernel;
        Ok(attempt)
    }

    /// Adds a file's results, and to the text the heading alone of a file with findings where those
    /// of all would be too long.
    fn add(&mut self, path: &Path, mut checked: check::Checked, is_long: bool) {
        if is_long && checked.has_findings() {
            self.text += &format!("{}\n", checked.heading);
        } else {
            let space = if self.text.is_empty() { "" } else { "\n" };
            self.text += &format!("{space}{}", without_limit(&checked.text()));
        }
        // The counters would give predictions away.
        let mut document = json!({ "file": path.display().to_string(), "held": checked.wrong.is_none() });
        document["expectations"] = json!(checked.verdicts);
        document["findings"] = checked.document["findings"].take();
        document["error"] = json!(checked.wrong.as_ref().map(failure));
        self.score.add(&checked.document);
        self.documents.push(document);
        // The first that fell short is what the sentence names.
        self.wrong = self.wrong.take().or(checked.wrong);
    }

    /// Notes in the progress what came of it, and returns the progress. It is read again, because
    /// another process may have changed it during the check. A lesson counts as solved once the
    /// files of a solved one lie there.
    pub(super) fn note(&mut self, lesson: &Lesson, folder: &Folder, from: &Source) -> Result<Progress> {
        if self.wrong.is_none() {
            if let Some(kernel) = &self.kernel {
                self.badge = Some(self.score.award(lesson, folder, kernel)?);
            }
            if from.withheld.is_none() {
                folder.write(lesson, lesson.solution())?;
            }
        }
        Progress::change(folder.progress(), |progress| {
            progress.of_mut(lesson).note(&self.tried, self.wrong.is_none());
        })
    }

    /// The sentence at its end: `Err` where the lesson is not solved.
    pub(super) fn sentence(self, lesson: &Lesson, progress: &Progress, from: &Source) -> Result<String> {
        let number = lesson.number;
        let Some(error) = self.wrong else {
            let solutions: Vec<&str> = lesson.solution().map(|(name, _)| name).collect();
            let beside = match solutions.len() {
                0 => String::new(),
                _ if from.withheld.is_some() => from.answers_come(),
                1 => format!(" {} is beside your files now.", solutions[0]),
                _ => format!(" {} are beside your files now.", solutions.join(", ")),
            };
            let beside = match (self.score.of(lesson), self.badge) {
                (Some(score), Some(best)) if best > score => {
                    format!("{beside}\nThe score is {score} of 100. The badge keeps the better one, {best}.")
                }
                (Some(score), _) => {
                    format!("{beside}\nThe score is {score} of 100, as badge.svg and badge.json show.")
                }
                (None, _) => beside,
            };
            return Ok(match progress.next() {
                Some(next) => {
                    let (next, title) = (next.number, next.title());
                    format!("Lesson {number} is solved.{beside}\nNext: lesson {next}, {title}: warpstride learn next\n")
                }
                None => format!("Lesson {number} is solved, and so are all lessons.{beside}\n"),
            });
        };
        let tries = TRIES.saturating_sub(progress.of(lesson).tries);
        let shown = match tries {
            _ if self.tried.is_empty() || from.withheld.is_some() => "",
            0 => "",
            1 => "; the next wrong try shows what is right",
            _ => "; the third different wrong try shows what is right",
        };
        // The learner is to find out why a launch stops or falls short; other errors say what to
        // do.
        if error_kind(&error) != Some(ErrorKind::KernelFault) {
            return Err(error);
        }
        let is = if progress.of(lesson).solved { "does not pass now; it was solved before" } else { "is not solved" };
        let error = without_limit(&message(&error));
        let sentence = format!("lesson {number} {is}: {error}{shown}; `warpstride learn hint {}` helps", lesson.name);
        Err(Refusal { kind: ErrorKind::KernelFault, sentence }.into())
    }

    /// As a document has it.
    pub(super) fn json(&self, lesson: &Lesson, progress: &Progress) -> Value {
        let next = progress.next().map(Lesson::json);
        let error = self.wrong.as_ref().map(failure);
        json!({
            "lesson": lesson.json(),
            "solved": self.wrong.is_none(),
            "score": self.score.of(lesson).filter(|_| self.wrong.is_none()),
            "files": self.documents,
            "next": next,
            "error": error,
        })
    }
}

/// Text without the advice that a check gives about its limit of work, which a lesson's check
/// keeps.
fn without_limit(text: &str) -> String {
    text.replace(", or raise `limit`", "")
}

/// Makes sure that the learner's checks ask what the lesson asks, and that a number stands in place
/// of every `?`.
fn ensure_predicted(lesson: &Lesson, path: &Path) -> Result<()> {
    let mut open = Vec::new();
    for name in lesson.checks() {
        let path = path.join(name);
        let text = folder::read(&path, MAX_CHECK_BYTES, "a check's file")?;
        if let Some(word) = predictions::word(&lesson.text(name), &text) {
            let path = path.display();
            refuse!(InvalidArgument, "`{word}` in {path} is not a number; type a number in place of each `?`");
        }
        if let Some(key) = predictions::other_key(&lesson.text(name), &text) {
            let is_open = !Predictions::of(&lesson.text(name)).0.is_empty();
            let (path, number, name) = (path.display(), lesson.number, lesson.name);
            let change = if is_open {
                ", which is to be changed at each `?` alone"
            } else {
                "; this file is not to be changed in this lesson; change task.cu"
            };
            refuse!(
                InvalidArgument,
                "`{key}` of {path} is not what lesson {number} asks{change}; move the file away, and `warpstride learn \
                 check {name}` brings the lesson's back"
            );
        }
        open.extend(Predictions::of(&text).0.iter().map(|open| format!("`{open}` in {}", path.display())));
    }
    require!(
        open.is_empty(),
        InvalidArgument,
        "type your prediction, a number, in place of each `?`: {}",
        open.join(", ")
    );
    Ok(())
}

/// Makes sure that the learner's file may have a kernel: an empty one has none.
fn ensure_kernel(lesson: &Lesson, path: &Path) -> Result<()> {
    const KERNEL: &str = "__global__";
    let (path, given) = (path.join(TASK), lesson.text(TASK));
    // A file that cannot be read has an error of its own later. Another one may include a kernel,
    // or make one by a macro.
    let text = fs::read_to_string(&path).unwrap_or_else(|_| KERNEL.into());
    let is_directive = |line: &str| line.trim_start().starts_with('#');
    if text.contains(KERNEL) || text.lines().any(is_directive) {
        return Ok(());
    }
    let begun = given.lines().filter(|line| line.starts_with(KERNEL)).map(|line| format!("`{line} ... }}`"));
    let (path, name) = (path.display(), lesson.name);
    refuse!(
        InvalidArgument,
        "{path} has no kernel; write {} there, or move the file away, and `warpstride learn check {name}` brings the \
         lesson's back",
        begun.collect::<Vec<_>>().join(" and ")
    );
}

/// The device on which kernels run, the output for their notes, and the rule of a class.
pub(super) struct Source<'a> {
    pub(super) backend: Backend,
    pub(super) output: &'a Output,
    /// The day from which on the answers are shown, if it has not come.
    pub(super) withheld: Option<Date>,
}

impl Source<'_> {
    /// Returns whether the right numbers are shown beside wrong ones.
    fn tells(&self, state: &State, wrong: &[String]) -> bool {
        self.withheld.is_none() && state.tries_with(wrong) >= TRIES
    }

    /// The sentence that says when a solution comes; empty if it comes at once.
    fn answers_come(&self) -> String {
        self.withheld.map_or(String::new(), |day| format!(" A check from {day} on brings the solution."))
    }
}
