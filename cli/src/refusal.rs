//! The errors that the command line adds to the library's.

use std::fmt;

use warpstride::error::{Error, ErrorKind};

/// Ends a function with an error of a kind, in a sentence.
macro_rules! refuse {
    ($kind:ident, $($sentence:tt)+) => {
        return Err($crate::Refusal { kind: warpstride::error::ErrorKind::$kind, sentence: format!($($sentence)+) }.into())
    };
}
pub(crate) use refuse;

/// Does so where a condition does not hold.
macro_rules! require {
    ($condition:expr, $kind:ident, $($sentence:tt)+) => {
        if !$condition {
            $crate::refuse!($kind, $($sentence)+);
        }
    };
}
pub(crate) use require;

/// A sentence that the command line refuses something with. The library's own are an `Error`, in
/// other words.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) kind: ErrorKind,
    pub(crate) sentence: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Refusal {}

impl Refusal {
    /// The library's refusal of a file, whose path stays as it is, whatever `typed` would make of
    /// its name.
    pub(crate) fn of_file(error: Error) -> Self {
        Self { kind: error.kind(), sentence: error.to_string() }
    }
}
