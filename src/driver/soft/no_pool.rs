//! Without the feature `parallel` the caller's thread runs kernels.

use crate::error::Result;

/// How many threads there are.
pub(super) fn threads() -> usize {
    1
}

/// Runs `work`; what a pool would do may fail.
#[expect(clippy::unnecessary_wraps, reason = "as the pool's does")]
pub(super) fn install<T>(work: impl FnOnce() -> T) -> Result<T> {
    Ok(work())
}
