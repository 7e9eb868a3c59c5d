//! Runs kernels on the caller's thread, without the feature `parallel`.

use crate::error::Result;

/// Returns the number of threads.
pub(super) fn threads() -> usize {
    1
}

/// Runs `work`. With a pool this may fail.
#[expect(clippy::unnecessary_wraps, reason = "the pool's does too")]
pub(super) fn install<T>(work: impl FnOnce() -> T) -> Result<T> {
    Ok(work())
}
