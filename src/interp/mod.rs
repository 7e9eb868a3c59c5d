//! The software GPU: runs PTX on the host and counts what the hardware counts.
//!
//! Text becomes a tree (`parse`), the tree flat code over numbered registers (`lower`, which asks the instruction table
//! `isa`), and code runs in warps of 32 lanes (`exec`) on memory (`mem`), counted by a model of the memory system
//! (`model`) and watched by checkers, where asked for (`check`). A [`Report`] says what a launch did, in all and instruction
//! by instruction, and draws single accesses ([`WarpAccess::draw`]). What stops a launch is data ([`Stop`]). The parts share
//! a few words (`vocabulary`). Nothing here knows of CUDA, of a driver or of this crate's kernels.
//!
//! ```
//! use warpstride::interp::{Args, Config, Memory, Module, run};
//! use warpstride::launch_shape::LaunchShape;
//!
//! let text = "
//!     .version 7.0
//!     .target sm_80
//!     .address_size 64
//!     .visible .entry square(.param .u64 out) {
//!         .reg .b32 %r<3>;
//!         .reg .b64 %rd<4>;
//!         ld.param.u64 %rd1, [out];
//!         mov.u32 %r1, %tid.x;
//!         mul.lo.s32 %r2, %r1, %r1;
//!         mul.wide.u32 %rd2, %r1, 4;
//!         add.s64 %rd3, %rd1, %rd2;
//!         st.global.u32 [%rd3], %r2;
//!         ret;
//!     }";
//! let module = Module::parse(text)?;
//! let kernel = module.kernel("square").expect("it is there");
//! let memory = Memory::new(1 << 20);
//! let out = memory.upload(&[0_u32; 32])?;
//! let params = Args::new(kernel).value(out)?.finish()?;
//! let shape = LaunchShape { grid: [1, 1, 1], block: [32, 1, 1], dynamic_shared: 0 };
//! let report = run(kernel, &shape, &params, &memory, &Config::default()).map_err(|stop| *stop)?;
//! assert_eq!(report.global_store.sectors, 4); // of the launch
//! let store = report.instruction("st.global").expect("it is in the text");
//! assert_eq!((store.line, store.global.sectors, store.ideal_sectors), (13, 4, 4)); // of one instruction
//! assert_eq!(memory.download::<u32>(out, 32)?[31], 31 * 31);
//! # Ok::<(), warpstride::Error>(())
//! ```
//!
//! # Limits
//!
//! Whatever the PTX, these end it. What exceeds one is refused, or stopped, with a sentence that
//! names it. Racecheck's memory for accesses has no limit of its own: [`Config::checks`] says what
//! it takes.
//!
//! | of | there may be | |
//! |---|---|---|
//! | a module's text | 16 MiB, 1,048,576 statements | [`MAX_TEXT_BYTES`] |
//! | scopes within scopes | 64 | |
//! | a kernel with the functions that it may call | 131,072 instructions, 32,768 registers of each width | |
//! | a kernel's parameters | 4,096 bytes | |
//! | the steps of finding where threads meet again | 67,108,864 | |
//! | [`coverage::survey`] | 1,048,576 instructions, functions counted for each kernel that calls them | |
//! | a block | 1,024 threads, 48 KiB of shared memory | [`MAX_BLOCK_THREADS`], [`MAX_SHARED_BYTES`] |
//! | a thread | 512 KiB of local memory, of which each call takes 16 bytes at least: so 32,768 calls within calls | |
//! | a variable in constant memory | 64 KiB | |
//! | what initialisers fill | 1 GiB | |
//! | global memory and all variables of modules | what [`Memory::new`] is given; of `Backend::Soft` 8 GiB, or half of what the host can give | |
//! | the work of a launch | 1,073,741,824 units | [`DEFAULT_WORK`], [`Config::work_limit`] |
//! | blocks that have ended before an earlier one | 65,536 | |
//! | blocks that have begun and wait for others | 512 of a host thread, 768 MiB of registers, local and shared memory in all | |
//! | what a launch prints | 1 MiB; 4,096 bytes of each string, widths and precisions of 512 | |
//! | findings of a launch | 100 are told, 4,194,304 more counted | [`check::MAX_FINDINGS`] |
//! | blocks of a launch under racecheck | 134,217,727 | |
//! | places at which threads publish what came before, that racecheck follows | 524,288 | |
//!
//! [`MAX_BLOCK_THREADS`]: crate::launch_shape::MAX_BLOCK_THREADS
//! [`MAX_SHARED_BYTES`]: crate::launch_shape::MAX_SHARED_BYTES

#![deny(unsafe_code)]

mod args;
mod cfg;
pub mod check;
pub(crate) mod clock;
mod code;
mod config;
pub mod coverage;
mod exec;
mod isa;
mod lower;
pub mod mem;
pub mod model;
mod modifiers;
mod module;
mod parse;
mod reason;
mod report;
mod semantics;
pub mod stop;
mod variables;
mod vocabulary;
mod work;

pub use args::{Args, Value};
pub use check::{Checks, Finding};
pub use code::Param;
pub use config::{Config, DEFAULT_WORK};
pub use mem::Memory;
pub use module::{Kernel, Module};
pub use parse::MAX_TEXT_BYTES;
pub use report::{InstructionReport, Report, WarpAccess};
pub use stop::Stop;

use crate::launch_shape::LaunchShape;

/// Whether [`run`] would begin: the kernel is supported, and the launch is one that a CUDA driver would accept.
///
/// # Errors
///
/// A [`Stop`] without a place where the kernel cannot run, or the launch's shape, parameters or shared memory are
/// impossible.
pub fn check_launch(kernel: &Kernel, shape: &LaunchShape, params: &[u8]) -> Result<(), Box<Stop>> {
    exec::grid::check(kernel, shape, params).map(|_| ())
}

/// Runs `kernel` with the parameter bytes `params`, and returns when every block has ended, or every one of those that run at all
/// ([`Config::most_blocks`]).
///
/// Warps of 32 lanes run to their barrier or end, one after the other and in long turns; blocks run
/// in parallel, as many as there are host threads. A block that only waits for others makes room
/// for them. `%clock` counts the warp's instructions; `%globaltimer` is the host's time,
/// or `%clock` on a host without one.
///
/// Fences, `.acquire` and `.release` order accesses to global memory between blocks. A weak access
/// of 8 bytes or more is done in words of 4: another block may see a half of it. Blocks that wait
/// for more others than may begin wait until the limit of their work.
///
/// # Errors
///
/// A [`Stop`] where [`check_launch`] gives one, and where a thread does what it must not. Then memory keeps what was written,
/// and other blocks may or may not have run.
pub fn run(
    kernel: &Kernel,
    shape: &LaunchShape,
    params: &[u8],
    memory: &Memory,
    config: &Config,
) -> Result<Report, Box<Stop>> {
    exec::grid::run(kernel, shape, params, memory, config)
}
