//! The software GPU. The crate's documentation says how its parts work together.

#![deny(unsafe_code)]

mod args;
mod cfg;
pub mod check;
mod code;
mod config;
// Hidden: what `ptx-forms` prints, and the tests check form by form.
#[doc(hidden)]
pub mod coverage;
mod exec;
pub mod expect;
mod isa;
mod lower;
mod mem;
mod model;
mod modifiers;
mod module;
mod parse;
mod reason;
mod reduce;
mod report;
mod semantics;
mod spelling;
pub mod stop;
#[doc(hidden)]
pub mod tensor_map;
mod variables;
mod vocabulary;
mod work;

pub use args::{Args, Value};
pub use check::{Checks, Finding};
pub use code::Param;
pub use config::{Config, DEFAULT_WORK};
#[doc(hidden)]
pub use exec::MAX_BEGUN;
#[doc(hidden)]
pub use mem::Touched;
pub use mem::{Memory, Unread};
pub use module::{Kernel, Module};
pub use parse::MAX_TEXT_BYTES;
pub use report::{Footprint, InstructionReport, LineReport, Report, WarpAccess};
pub use stop::Stop;

use crate::error::{Error, ErrorKind};
use crate::launch_shape::LaunchShape;

/// Returns an error of kind `InvalidArgument`.
fn invalid(context: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidArgument, context)
}

/// Checks whether [`run`] would begin: this crate supports the kernel, and a CUDA driver would
/// accept the launch.
///
/// # Errors
///
/// Returns a [`Stop`] without a place if the kernel cannot run, or if the launch's shape,
/// parameters or shared memory are impossible.
pub fn check_launch(kernel: &Kernel, shape: &LaunchShape, params: &[u8]) -> Result<(), Box<Stop>> {
    exec::grid::check(kernel, shape, params).map(|_| ())
}

/// Runs `kernel` with the parameter bytes `params`, and returns when every block that runs has
/// ended. [`Config::most_blocks`] may select a part of the grid.
///
/// Warps of 32 lanes run one after the other; each runs to its barrier, to its end, or for a long
/// turn. Blocks run in parallel, one on each host thread. A block that only waits for other blocks
/// makes room for them. `%clock` counts the warp's instructions; `%globaltimer` is the host's time,
/// or `%clock` on a host without a clock.
///
/// Fences, `.acquire` and `.release` order accesses to global memory between blocks. A weak access
/// of 8 bytes or more consists of accesses to 4-byte words, so another block may see half of it. If
/// blocks wait for more blocks than can begin at once, they wait until the work limit stops them.
///
/// # Errors
///
/// Returns a [`Stop`] where [`check_launch`] does, and when a thread does something illegal. Memory
/// then keeps everything written so far, and other blocks may or may not have run.
pub fn run(
    kernel: &Kernel,
    shape: &LaunchShape,
    params: &[u8],
    memory: &Memory,
    config: &Config,
) -> Result<Report, Box<Stop>> {
    exec::grid::run(exec::Engine::detect(), kernel, shape, params, memory, config)
}
