//! The lessons' answers are those that the library computes, and a learner may type them in several
//! forms.

use warpstride::element::DType;
use warpstride::layout::Layout;
use warpstride::ops::Variant;
use warpstride::roofline::model::{Bound, DeviceModel, Prediction};
use warpstride::roofline::record::{Group, Subject};

use super::super::lessons;
use super::*;
use crate::compare::Kernel;

fn answers(lesson: &str) -> Result<Vec<Answer>> {
    let lesson = lessons::find(lesson)?;
    let (quiz, answers) =
        (toml::from_str::<Quiz>(&lesson.text(QUIZ))?, toml::from_str::<Answers>(&lesson.text(ANSWERS))?);
    assert_eq!(quiz.questions.len(), answers.answers.len());
    assert!(quiz.questions.iter().all(|question| question.answer == "?"));
    Ok(answers.answers)
}

fn assert_right(lesson: &str, computed: &[String]) -> Result<()> {
    let answers = answers(lesson)?;
    assert_eq!(answers.iter().map(|answer| &*answer.right).collect::<Vec<_>>(), computed);
    for answer in &answers {
        assert_eq!(answer.verdict(1, &answer.right), ("right", String::new()), "{}", answer.right);
        assert_eq!(answer.verdict(1, "?").0, "missing");
    }
    Ok(())
}

#[test]
fn views_have_these_layouts() -> Result<()> {
    let (matrix, row) = (Layout::row_major(&[4, 6])?, Layout::row_major(&[6])?);
    let planes = Layout::row_major(&[2, 4, 5, 3])?.permuted_axes(&[0, 3, 1, 2])?;
    let columns = matrix.slice(1, 1..6, 2)?;
    let computed = [
        format!("{:?}", matrix.t().strides()),
        matrix.t().offset_of(&[2, 3]).context("a place")?.to_string(),
        format!("{:?}", planes.strides()),
        matrix.reverse(0)?.offset().to_string(),
        if columns.is_contiguous() { "yes" } else { "no" }.to_owned(),
        format!("{:?}", row.broadcast(&[4, 6])?.strides()),
    ];
    assert_right("views", &computed)
}

/// Predicts a transpose of 4096 x 4096 floats on an H100, as the lesson does: by the longest of
/// three limits, without the time that blocks wait.
fn predicted(variant: Variant) -> Result<Prediction> {
    let subject = Subject::new(Group::Transpose, "transpose", DType::F32, &[4096, 4096], [1 << 26; 2]);
    let (work, launches) = Kernel::Transpose(variant).work(&subject)?.context("a launch")?;
    let model = DeviceModel::H100;
    if launches > 1 {
        return Ok(model.predict(&work, launches)?);
    }
    let of_page = [Bound::Memory, Bound::L2, Bound::Shared];
    let limits = model.estimate(&work)?.limits.into_iter().filter(|(bound, _)| of_page.contains(bound));
    let (bound, ms) = limits.max_by(|a, b| a.1.total_cmp(&b.1)).context("a limit")?;
    Ok(Prediction { ms: ms + model.ramp_us / 1e3, bound })
}

#[test]
fn the_model_predicts_these_times() -> Result<()> {
    let gbps = |prediction: Prediction| f64::from(1 << 27) / prediction.ms / 1e6;
    let padded = predicted(Variant::Padded)?;
    let computed = [
        (1 << 27).to_string(),
        format!("{:.5} ms", padded.ms),
        format!("{:.0} %", 100.0 * gbps(padded) / DeviceModel::H100.memory.copy),
        predicted(Variant::Tiled)?.bound.name().to_owned(),
        format!("{:.4} ms", predicted(Variant::Naive)?.ms),
        format!("{:.2} GB/s", gbps(predicted(Variant::ColumnLoop)?)),
    ];
    assert_right("how-far", &computed)
}

#[test]
fn answers_are_read_as_people_type_them() -> Result<()> {
    for (lesson, question, verdict, typed) in [
        ("views", 1, "right", &["[1, 6]", "1,6", "1 6", "(1, 6)"][..]),
        ("views", 1, "wrong", &["[6, 1]", "[1, 4]", "1", "[1, 6, 0]"]),
        ("views", 1, "unread", &["one", "[1; 6]", "\u{1b}[31m"]),
        ("views", 5, "right", &["no", "No"]),
        ("views", 5, "wrong", &["YES"]),
        ("views", 5, "unread", &["0", "maybe"]),
        ("how-far", 1, "right", &["134_217_728"]),
        ("how-far", 1, "wrong", &["134217727"]),
        ("how-far", 3, "right", &["89", "89 %", "89.3%"]),
        ("how-far", 3, "wrong", &["50 %", "0.89"]),
        ("how-far", 3, "unread", &["nan", "inf", "89 percent"]),
        ("how-far", 4, "right", &["Shared"]),
        ("how-far", 5, "right", &["0.29", "0.289 ms"]),
        ("how-far", 5, "unread", &["0.28 s"]),
        ("how-far", 6, "right", &["13.65", "13.6 GB/s"]),
    ] {
        let answer = &answers(lesson)?[question - 1];
        for typed in typed {
            let (found, said) = answer.verdict(question, typed);
            assert_eq!(found, verdict, "{lesson} {question} {typed}");
            // A sentence names the question, and the form or the hint; a terminal can show it.
            let help = if verdict == "wrong" { &answer.hint } else { &answer.form };
            assert!(verdict == "right" || said.contains(&format!("question {question}")) && said.ends_with(help));
            assert!(!said.contains('\u{1b}'), "{said}");
        }
    }
    Ok(())
}
