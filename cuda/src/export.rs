//! The way of a call from C: its panics become codes, and its failures go into the report.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::code::{CUresult, Failure, Outcome, code};
use crate::{process, report};

/// Exports functions under their C names. A function may have further names: `as NAME`, which does
/// the same, and `per_thread NAME`, where stream 0 is the default stream of the calling thread.
///
/// ```ignore
/// export! {
///     /// Returns a number.
///     fn cuNumber as cuNumber_v2, per_thread cuNumber_ptsz (number: Out<u32>) { number.set(7) }
/// }
/// ```
macro_rules! export {
    ($(
        $(#[$doc:meta])*
        fn $name:ident $(as $alias:ident)* $(, per_thread $per_thread:ident)* ($($argument:ident: $type:ty),* $(,)?) $body:block
    )*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// - Every pointer is null, or valid for the use that CUDA's documentation names, for the
        ///   length of the call and of the
        ///   work that it queues.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, clippy::too_many_arguments)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> $crate::code::CUresult {
            $crate::export::call(stringify!($name), move || -> $crate::code::Outcome { $body })
        }
        $crate::export::aliases! { $name [$($alias)*] [$($per_thread)*] ($($argument: $type),*) }
    )*};
}
pub(crate) use export;

/// Exports a function under further names.
macro_rules! aliases {
    ($name:ident [] [] $arguments:tt) => {};
    ($name:ident [$alias:ident $($more:ident)*] $rest:tt ($($argument:ident: $type:ty),*)) => {
        /// The same function.
        ///
        /// # Safety
        ///
        /// - As for the other name.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, clippy::too_many_arguments)]
        pub(crate) unsafe extern "C" fn $alias($($argument: $type),*) -> $crate::code::CUresult {
            // SAFETY: as the caller promises.
            unsafe { $name($($argument),*) }
        }
        $crate::export::aliases! { $name [$($more)*] $rest ($($argument: $type),*) }
    };
    ($name:ident [] [$alias:ident $($more:ident)*] ($($argument:ident: $type:ty),*)) => {
        /// The same function, with the calling thread's default stream as stream 0.
        ///
        /// # Safety
        ///
        /// - As for the other name.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, clippy::too_many_arguments)]
        pub(crate) unsafe extern "C" fn $alias($($argument: $type),*) -> $crate::code::CUresult {
            // SAFETY: as the caller promises.
            $crate::export::per_thread(|| unsafe { $name($($argument),*) })
        }
        $crate::export::aliases! { $name [] [$($more)*] ($($argument: $type),*) }
    };
}
pub(crate) use aliases;

thread_local! {
    /// True during a call whose stream 0 is the thread's own.
    static PER_THREAD: Cell<bool> = const { Cell::new(false) };
    /// True while the thread runs a host function of a stream, which must not call this library.
    static WITHIN_WORK: Cell<bool> = const { Cell::new(false) };
}

/// Runs a call whose stream 0 is the thread's own.
pub(crate) fn per_thread(call: impl FnOnce() -> CUresult) -> CUresult {
    let before = PER_THREAD.replace(true);
    let result = call();
    PER_THREAD.set(before);
    result
}

/// Returns whether stream 0 is the thread's own in the current call.
pub(crate) fn is_per_thread() -> bool {
    PER_THREAD.get()
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
