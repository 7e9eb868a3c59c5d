//! The lines of `docs/semantics.md`: each an expression, and what it comes to here and elsewhere.
//!
//! Two test binaries share this folder, and neither uses all of it.

#![allow(dead_code, unused_imports)]

mod expression;

pub(crate) use expression::{Argument, Array, Expression, bits, parse, shown};

/// The page.
pub(crate) const PAGE: &str = include_str!("../../docs/semantics.md");

/// A line of one of its tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    /// Its test is `semantics::NAME`.
    pub(crate) name: &'static str,
    pub(crate) expression: &'static str,
    /// The result here.
    pub(crate) ours: &'static str,
    pub(crate) numpy: &'static str,
    pub(crate) pytorch: &'static str,
}

/// The lines that are expressions, in order.
pub(crate) fn lines() -> Vec<Line> {
    let cells = |line: &'static str| line.trim_matches('|').split(" | ").map(|cell| cell.trim().trim_matches('`'));
    PAGE.lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let Ok([name, expression, ours, numpy, pytorch]) = <[_; 5]>::try_from(cells(line).collect::<Vec<_>>())
            else {
                panic!("a line of docs/semantics.md has five cells, and this one has not: {line}")
            };
            Line { name, expression, ours, numpy, pytorch }
        })
        .collect()
}
