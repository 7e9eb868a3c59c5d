//! A check of a lesson: the learner's files held to what the lesson asks for.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};
use warpstride::device::Backend;
use warpstride::error::ErrorKind;

use super::super::output::Output;
use super::super::{Refusal, check, error_kind, failure, message};
use super::answers::{self, Answers};
use super::folder::{self, Folder};
use super::lessons::{Kind, Lesson, QUIZ};
use super::predictions::{Predictions, TRIES};
use super::program;
use super::progress::{Progress, State};

/// What came of a check.
#[derive(Default)]
pub(super) struct Attempt {
    /// What is printed before the sentence.
    pub(super) text: String,
    /// What a document has of each file.
    documents: Vec<Value>,
    /// What fell short; `None` if nothing did.
    pub(super) wrong: Option<anyhow::Error>,
    /// Whether a prediction or an answer was wrong.
    is_wrong_try: bool,
}

impl Attempt {
    /// Checks the learner's files of a lesson, which are made where they are missing.
    pub(super) fn of(lesson: &Lesson, folder: &Folder, state: &State, from: &Source) -> Result<Self> {
        folder.unpack(lesson, from.output)?;
        let path = folder.lesson(lesson);
        match lesson.kind() {
            Kind::Kernel => Self::of_kernel(lesson, &path, state, from),
            Kind::Quiz => {
                let tells = state.tries >= TRIES - 1;
                let answers = answers::check(lesson.text(QUIZ), &path.join(QUIZ), tells)?;
                let Answers { text, document, wrong, is_wrong_try } = answers;
                Ok(Self { text, documents: vec![document], wrong, is_wrong_try })
            }
            Kind::Program => {
                let (text, document, wrong) = program::run(&path, from.output)?;
                Ok(Self { text, documents: vec![document], wrong, is_wrong_try: false })
            }
        }
    }

    fn of_kernel(lesson: &Lesson, path: &Path, state: &State, from: &Source) -> Result<Self> {
        let device = check::device(from.backend, from.output)?;
        let mut attempt = Self::default();
        for name in lesson.checks() {
            let path = path.join(name);
            let checked = folder::ensure_regular(&path).and_then(|()| check::check(&path, &device, from.output));
            let mut checked = match checked {
                Ok(checked) => checked,
                // What was checked before is to be seen, too.
                Err(error) => {
                    attempt.wrong = Some(error);
                    return Ok(attempt);
                }
            };
            let predictions = Predictions::of(lesson.text(name));
            attempt.is_wrong_try |= predictions.any_wrong(&checked.verdicts);
            if state.tries < TRIES - 1 {
                predictions.hide(&mut checked.verdicts);
            }
            attempt.add(&path, checked);
        }
        Ok(attempt)
    }

    fn add(&mut self, path: &Path, mut checked: check::Checked) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text += &checked.text();
        // The counters would give predictions away.
        let mut document = json!({ "file": path.display().to_string(), "held": checked.wrong.is_none() });
        document["expectations"] = json!(checked.verdicts);
        document["findings"] = checked.document["findings"].take();
        document["error"] = json!(checked.wrong.as_ref().map(failure));
        self.documents.push(document);
        // The first that fell short is what the sentence names.
        self.wrong = self.wrong.take().or(checked.wrong);
    }

    /// Notes in the progress what came of it.
    pub(super) fn note(&self, lesson: &Lesson, folder: &Folder, progress: &mut Progress) -> Result<()> {
        let state = progress.of_mut(lesson);
        state.solved |= self.wrong.is_none();
        state.tries = state.tries.saturating_add(self.is_wrong_try.into());
        progress.save()?;
        if self.wrong.is_none() { folder.unpack_solution(lesson) } else { Ok(()) }
    }

    /// The sentence at its end: `Err` where the lesson is not solved.
    pub(super) fn sentence(self, lesson: &Lesson, progress: &Progress) -> Result<String> {
        let number = lesson.number;
        let Some(error) = self.wrong else {
            return Ok(match progress.next() {
                Some(next) => {
                    let (next, title) = (next.number, next.title());
                    format!("Lesson {number} is solved. Lesson {next} is next, {title}: warpstride learn next\n")
                }
                None => format!("Lesson {number} is solved, and so are all lessons.\n"),
            });
        };
        let tries = TRIES.saturating_sub(progress.of(lesson).tries);
        let shown = match tries {
            0 => "",
            _ if !self.is_wrong_try => "",
            1 => "; the next wrong try shows what is right",
            _ => "; the third wrong try shows what is right",
        };
        // What stops a launch or falls short is the learner's to find out; other errors say what to
        // do.
        if error_kind(&error) != Some(ErrorKind::KernelFault) {
            return Err(error);
        }
        let sentence = format!(
            "lesson {number} is not solved: {}{shown}; `warpstride learn hint {number}` helps",
            message(&error)
        );
        Err(Refusal { kind: ErrorKind::KernelFault, sentence }.into())
    }

    /// As a document has it.
    pub(super) fn json(&self, lesson: &Lesson, progress: &Progress) -> Value {
        let next = progress.next().map(Lesson::json);
        let error = self.wrong.as_ref().map(failure);
        json!({
            "lesson": lesson.json(),
            "solved": self.wrong.is_none(),
            "files": self.documents,
            "next": next,
            "error": error,
        })
    }
}

/// Where kernels run, and who hears of it.
pub(super) struct Source<'a> {
    pub(super) backend: Backend,
    pub(super) output: &'a Output,
}
