//! `docs/semantics.md`: that it holds what NumPy and PyTorch gave, and that its lines can be read.
//! `semantics` of the device tests holds this crate to its lines, a case a line.

#[path = "../semantics/mod.rs"]
mod page;

use std::collections::HashSet;

use serde_json::Value;

/// The record that `scripts/semantics-oracle` wrote.
const RECORD: &str = include_str!("../data/semantics.json");

#[test]
fn the_page_holds_what_numpy_and_pytorch_gave() {
    let record: Value = serde_json::from_str(RECORD).expect("a record that was not edited");
    let answers = record["answers"].as_object().expect("answers by name");
    let lines = page::lines();
    assert_eq!(answers.len(), lines.len(), "run scripts/semantics-oracle");
    for line in lines {
        let answer = &answers[line.name];
        for (cell, written) in [("expression", line.expression), ("numpy", line.numpy), ("pytorch", line.pytorch)] {
            assert_eq!(answer[cell], written, "{cell} of {}: run scripts/semantics-oracle", line.name);
        }
    }
    for version in ["numpy", "pytorch"] {
        let version = record[version].as_str().expect("a version");
        assert!(page::PAGE.contains(version.split('+').next().expect("a part")), "the page does not say {version}");
    }
}

#[test]
fn lines_have_names_of_their_own_and_expressions_that_can_be_read() {
    let mut names = HashSet::new();
    for line in page::lines() {
        assert!(names.insert(line.name), "two lines are called {}", line.name);
        assert!(!page::parse(line.expression).arguments.is_empty(), "{}", line.expression);
    }
    let rows = page::PAGE.lines().filter(|line| line.starts_with('|')).count();
    let heads = page::PAGE.lines().filter(|line| line.starts_with("|---")).count();
    assert_eq!(names.len(), rows - 2 * heads, "a line of a table has no test");
}

#[test]
fn expressions_are_read_as_they_are_written() {
    let expression = page::parse("f(f16[[1.0, 65520.0], [-0.0, 0x7c01]], i8[-1; 3], f32[[1.0]; 0], 2.5, u8)");
    let array = expression.array(0);
    assert_eq!((array.shape.as_slice(), array.bits.as_slice()), (&[2, 2][..], &[0x3c00, 0x7c00, 0x8000, 0x7c01][..]));
    assert_eq!(expression.array(1).bits, [255; 3]);
    assert_eq!(expression.array(2).shape, [0, 1]);
    assert_eq!((expression.number(3), expression.dtype(4).name()), (2.5, "u8"));
    assert_eq!((expression.function, expression.arguments.len()), ("f", 5));
}
