//! The macros that export functions, and the calls whose stream 0 is the thread's own. The runtime
//! library, `cudart/`, exports its functions by them, too.

use std::cell::Cell;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::code::{CUresult, Failure};
use crate::export::call;

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
        ///   length of the call and of the work that it queues.
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

/// Exports functions that refuse every call. They take no parameters: where the caller cleans up,
/// as in the C ABI of all systems with CUDA, a function may ignore those that it is passed.
macro_rules! unsupported {
    ($($name:ident)*) => {$(
        /// Refuses the call.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        extern "C" fn $name() -> $crate::code::CUresult {
            static TOLD: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
            $crate::export::refuse(stringify!($name), &TOLD)
        }
    )*};
}
pub(crate) use unsupported;

thread_local! {
    /// True during a call whose stream 0 is the thread's own.
    static PER_THREAD: Cell<bool> = const { Cell::new(false) };
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

/// Refuses a call, and says so on standard error the first time.
pub(crate) fn refuse(name: &'static str, told: &AtomicBool) -> CUresult {
    call(name, || {
        if !told.swap(true, Ordering::Relaxed) {
            // A program without standard error gets the code.
            let _ = writeln!(
                std::io::stderr(),
                "warpstride: the program called {name}, which the software GPU does not support"
            );
        }
        Err(Failure::unsupported(format!("the software GPU does not support {name}")))
    })
}
