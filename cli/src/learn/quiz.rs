//! Quizzes: a learner types answers into `quiz.toml`, and the lesson's `answers.toml` has the right
//! ones.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use warpstride::error::ErrorKind;

use super::super::{Refusal, refuse};
use super::attempt::Attempt;
use super::folder;
use super::lessons::{ANSWERS, Lesson, QUIZ};

/// Most bytes of a learner's file.
const MAX_BYTES: usize = 1 << 20;

/// A `quiz.toml`, the lesson's own or the learner's.
#[derive(Deserialize)]
struct Quiz {
    questions: Vec<Question>,
}

#[derive(Deserialize)]
struct Question {
    ask: String,
    /// Text, or the number or list that a learner types without quotes.
    answer: Value,
}

/// An `answers.toml`: an answer for each question, in their order.
#[derive(Deserialize)]
struct Answers {
    answers: Vec<Answer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    /// The right answer as a learner types it: a number, a list of numbers, or one of the `words`.
    right: String,
    /// The words to choose from; none where the answer is a number or a list.
    #[serde(default)]
    words: Vec<String>,
    /// A learner may type it behind the number.
    #[serde(default)]
    unit: String,
    /// The part by which a number may be off.
    #[serde(default)]
    within: f64,
    /// Says how to type an answer.
    form: String,
    /// Helps a learner whose answer is wrong.
    hint: String,
}

/// Compares the answers in the learner's folder of a lesson with the right ones. Shows the right
/// ones beside those that are wrong if this try `tells`, by the wrong answers.
pub(super) fn check(lesson: &Lesson, folder: &Path, tells: impl Fn(&[String]) -> bool) -> Result<Attempt> {
    let path = folder.join(QUIZ);
    let shown = path.display();
    let own: Quiz = toml::from_str(&lesson.text(QUIZ)).context("cannot read the lesson's own quiz")?;
    let Answers { answers } = toml::from_str(&lesson.text(ANSWERS)).context("cannot read the lesson's answers")?;
    let text = folder::read(&path, MAX_BYTES, "a quiz")?;
    let typed: Quiz = match toml::from_str(&text) {
        Ok(typed) => typed,
        Err(error) => {
            let before = text.bytes().take(error.span().map_or(0, |span| span.start));
            let line = 1 + before.filter(|&byte| byte == b'\n').count();
            refuse!(
                InvalidArgument,
                "cannot read line {line} of {shown}; type each answer between the quotes of `answer = \"?\"`, and \
                 leave the rest as it was"
            )
        }
    };
    let mut verdicts = Vec::new();
    for (number, (Question { ask, .. }, answer)) in (1..).zip(own.questions.iter().zip(&answers)) {
        let verdict = match typed.questions.iter().find(|typed| typed.ask == *ask) {
            Some(Question { answer: Value::String(typed), .. }) => answer.verdict(number, typed.trim()),
            Some(typed) => answer.verdict(number, &typed.answer.to_string()),
            None => ("missing", format!("{shown} does not have question {number} any more; put it back")),
        };
        verdicts.push((number, ask, answer, verdict));
    }
    let wrong = verdicts.iter().filter(|(.., (verdict, _))| *verdict == "wrong");
    let tried: Vec<String> = wrong.map(|(.., (_, said))| said.clone()).collect();
    let tells = tells(&tried);
    let (mut text, mut rows, mut right) = (String::new(), Vec::new(), 0);
    for (number, ask, answer, (verdict, mut said)) in verdicts {
        right += usize::from(verdict == "right");
        if verdict == "wrong" && tells {
            said += &format!(" The answer is {}.", answer.right);
        }
        let mark = if verdict == "wrong" { "WRONG" } else { verdict };
        text += &format!("{mark:7}  {number}. {ask}\n");
        if !said.is_empty() {
            text += &format!("            {said}\n");
        }
        rows.push(json!({ "ask": ask, "verdict": verdict, "said": said }));
    }
    let all = rows.len();
    let wrong = (right < all).then(|| {
        let sentence = format!("{shown}: {right} of {all} answers are right; what is printed of the others says why");
        Refusal { kind: ErrorKind::KernelFault, sentence }.into()
    });
    let document = json!({ "file": shown.to_string(), "held": wrong.is_none(), "questions": rows });
    Ok(Attempt { text, documents: vec![document], wrong, tried, ..Attempt::default() })
}

impl Answer {
    /// Judges what was typed for a question: the verdict, and the sentence that explains it.
    fn verdict(&self, number: usize, typed: &str) -> (&'static str, String) {
        if ["", "?"].contains(&typed) {
            return ("missing", format!("there is no answer yet; in place of the `?`, type {}", self.form));
        }
        match self.is_right(typed) {
            Some(true) => ("right", String::new()),
            Some(false) => ("wrong", format!("{typed:?} is not the answer to question {number}. {}", self.hint)),
            None => {
                ("unread", format!("{typed:?} cannot be read as an answer to question {number}; type {}", self.form))
            }
        }
    }

    /// Says whether an answer is right; `None` if it cannot be read.
    fn is_right(&self, typed: &str) -> Option<bool> {
        if !self.words.is_empty() {
            let word = self.words.iter().find(|word| word.eq_ignore_ascii_case(typed))?;
            return Some(*word == self.right);
        }
        let (typed, right) = (self.numbers(typed)?, self.numbers(&self.right)?);
        let is_near = |(typed, right): (&f64, &f64)| (typed - right).abs() <= self.within * right.abs();
        Some(typed.len() == right.len() && typed.iter().zip(&right).all(is_near))
    }

    /// The numbers of an answer, which may stand in brackets, or before the unit.
    fn numbers(&self, text: &str) -> Option<Vec<f64>> {
        let text = text.strip_suffix(&self.unit).unwrap_or(text).replace('_', "");
        let words = text.trim().trim_matches(['[', ']', '(', ')']).split([',', ' ']);
        let number = |word: &str| word.parse().ok().filter(|number: &f64| number.is_finite());
        words.filter(|word| !word.is_empty()).map(number).collect()
    }
}

#[cfg(test)]
mod tests;
