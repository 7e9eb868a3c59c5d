//! A check of a quiz: the learner's answers beside what the machine computes from the lesson's own
//! questions.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use warpstride::error::ErrorKind;

use super::super::Refusal;
use super::folder;
use super::quiz::{Quiz, Verdict};

/// Most bytes of a learner's file.
const MAX_BYTES: usize = 1 << 20;

/// What came of it.
pub(super) struct Answers {
    pub(super) text: String,
    pub(super) document: Value,
    pub(super) wrong: Option<anyhow::Error>,
    /// The wrong answers, without those that are missing or cannot be read.
    pub(super) tried: Vec<String>,
}

/// Holds the answers in the file `path` to the questions of `own`. Shows the truth beside wrong
/// ones if this try `tells`, by the wrong answers.
pub(super) fn check(own: &str, path: &Path, tells: impl Fn(&[String]) -> bool) -> Result<Answers> {
    let shown = path.display();
    let own = Quiz::parse(own)?;
    let typed = folder::read(path, MAX_BYTES, "a quiz")?;
    let typed = Quiz::parse(&typed).with_context(|| shown.to_string())?;
    let (mut verdicts, mut tried) = (Vec::new(), Vec::new());
    for (number, question) in (1..).zip(own.questions()) {
        let answer = typed.answer_to(question);
        let verdict = match answer {
            Some(answer) => question.verdict(answer)?,
            None => Verdict::Missing(format!("{shown} does not have this question any more; put it back")),
        };
        if let (Verdict::Wrong(_), Some(answer)) = (&verdict, answer) {
            tried.push(format!("{number}. {answer}"));
        }
        verdicts.push((number, question, verdict));
    }
    let tells = tells(&tried);
    let (mut text, mut rows, mut right) = (String::new(), Vec::new(), 0);
    for (number, question, verdict) in verdicts {
        let (mark, mut said) = match verdict {
            Verdict::Right => ("right", String::new()),
            Verdict::Missing(sentence) => ("missing", sentence),
            Verdict::Unread(sentence) => ("unread", sentence),
            Verdict::Wrong(sentence) => ("WRONG", sentence),
        };
        right += usize::from(mark == "right");
        if mark == "WRONG" && tells {
            said = format!("{said}\nThe answer is {}. {}", question.truth()?, question.reason()?);
        }
        let _ = writeln!(text, "{mark:7}  {number}. {}", question.ask());
        for line in said.lines() {
            let _ = writeln!(text, "            {line}");
        }
        rows.push(json!({ "ask": question.ask(), "verdict": mark.to_lowercase(), "said": said }));
    }
    let all = rows.len();
    let wrong = (right < all).then(|| {
        let sentence = format!("{shown}: {right} of {all} answers are right; what is printed of the others says why");
        Refusal { kind: ErrorKind::KernelFault, sentence }.into()
    });
    let document = json!({ "file": shown.to_string(), "held": wrong.is_none(), "questions": rows });
    Ok(Answers { text, document, wrong, tried })
}
