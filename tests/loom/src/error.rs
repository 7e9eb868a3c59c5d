//! The names that the files under test import from the crate's `error`: here nothing fails.

pub(crate) type Result<T> = std::result::Result<T, std::convert::Infallible>;

/// The first error of a run.
#[derive(Debug)]
pub(crate) struct Error;
