//! The way of a call from C: its panics become codes, and its failures the thread's last error.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::code::{CUresult, Failure, Outcome, STICKY, code};

#[path = "../../cuda/src/export/shared.rs"]
mod shared;

pub(crate) use shared::*;

/// The variable with which every call that fails says so on standard error.
const LOG: &str = "WARPSTRIDE_RUN_LOG";

thread_local! {
    static LAST: Cell<CUresult> = const { Cell::new(code::SUCCESS) };
}

/// Returns the code of the last failed call of the thread.
pub(crate) fn last() -> CUresult {
    LAST.get()
}

/// Returns that code and forgets it, unless the device has failed for good.
pub(crate) fn take_last() -> CUresult {
    let last = LAST.get();
    if !STICKY.contains(&last) {
        LAST.set(code::SUCCESS);
    }
    last
}

/// Forgets the thread's last error, when its device begins anew.
pub(crate) fn forget() {
    LAST.set(code::SUCCESS);
}

/// Runs the body of an exported function, and keeps its failure as the thread's last error.
pub(crate) fn call(name: &'static str, body: impl FnOnce() -> Outcome) -> CUresult {
    let outcome = catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|_| Err(Failure::new(code::UNKNOWN, "the runtime panicked; please report this as a bug")));
    match outcome {
        Ok(()) => code::SUCCESS,
        Err(failure) => {
            if std::env::var_os(LOG).is_some() {
                eprintln!("warpstride: {name} returned {}: {}", failure.code, failure.why);
            }
            LAST.set(failure.code);
            failure.code
        }
    }
}
