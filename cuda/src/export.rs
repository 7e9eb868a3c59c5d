//! The way of a call from C: its panics become codes, and its failures go into the report.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::code::{CUresult, Failure, Outcome, code};
use crate::{process, report};

mod shared;

pub(crate) use shared::*;

thread_local! {
    /// True while the thread runs a host function of a stream, which must not call this library.
    static WITHIN_WORK: Cell<bool> = const { Cell::new(false) };
}

/// Runs a host function of a stream.
pub(crate) fn within_work<T>(function: impl FnOnce() -> T) -> T {
    let before = WITHIN_WORK.replace(true);
    let result = function();
    WITHIN_WORK.set(before);
    result
}

/// Runs the body of an exported function.
pub(crate) fn call(name: &'static str, body: impl FnOnce() -> Outcome) -> CUresult {
    let refused = if WITHIN_WORK.get() {
        Some(Failure::new(code::NOT_PERMITTED, "a host function of a stream must not call CUDA"))
    } else {
        process::forked()
    };
    let outcome = match refused {
        Some(failure) => Err(failure),
        None => catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
            Err(Failure::new(code::UNKNOWN, "the software GPU panicked; please report this as a bug"))
        }),
    };
    match outcome {
        Ok(()) => {
            report::succeeded(name);
            code::SUCCESS
        }
        Err(failure) => {
            report::failed(name, &failure);
            failure.code
        }
    }
}
