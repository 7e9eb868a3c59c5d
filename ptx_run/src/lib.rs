//! A C library with one function, `ptx_run`, which runs a kernel on memory of the calling program.
//! `ptx_run.h` says what it promises. tinygrad's tests call it under this name.
//!
//! ```text
//!  ptx_run --> parsed: the text, parsed before or now
//!          --> launch: values of the parameters, ranges of the program's memory (maps), a run
//! ```

#![cfg(target_os = "linux")]

mod failure;
mod launch;
mod maps;
mod parsed;

use std::ffi::{c_char, c_int, c_void};
use std::io::Write as _;
use std::panic::catch_unwind;

use failure::{Failure, code};
use launch::Launch;

/// Runs the one kernel of a text of PTX: see `ptx_run.h`.
///
/// # Safety
///
/// - `source` is null, or the address of a text that ends with a NUL.
/// - `arguments` is null, or the address of `count` values, of which as many are read as the kernel
///   has parameters.
/// - The ranges of memory that the values lie in stay mapped until the call returns, and the kernel
///   writes nothing there that the program does not expect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptx_run(
    source: *const c_char,
    count: c_int,
    arguments: *const *mut c_void,
    block_x: c_int,
    block_y: c_int,
    block_z: c_int,
    grid_x: c_int,
    grid_y: c_int,
    grid_z: c_int,
    shared: c_int,
) -> c_int {
    let launch =
        Launch { source, count, arguments, block: [block_x, block_y, block_z], grid: [grid_x, grid_y, grid_z], shared };
    // SAFETY: the caller promises what `run` asks for.
    let outcome = catch_unwind(|| unsafe { launch.run() });
    match outcome.unwrap_or_else(|_| Err(Failure::panic())) {
        Ok(()) => code::SUCCESS,
        Err(failure) => {
            // A program may have closed standard error.
            let _ = writeln!(std::io::stderr(), "ptx_run: {}", failure.why);
            failure.code
        }
    }
}
