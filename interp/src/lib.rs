//! The software GPU: runs PTX on the host and counts what the hardware counts.
//!
//! ```text
//!  PTX -- parse --> tree -- lower, by isa --> code -- exec, on mem --> values, or a Stop
//!                                                       |
//!                                                       +-- model --> counters --+--> Report
//!                                       at each access  +-- check --> findings --+      |
//!                                                                                     expect
//! ```
//!
//! `parse` turns text into a tree. `lower` turns the tree into flat code over numbered registers,
//! with the help of the instruction table (`isa`). `exec` runs that code in warps of 32 lanes on
//! memory (`mem`). A model of the memory system (`model`) counts the accesses, and optional
//! checkers (`check`) watch them. A [`Report`] lists the counters of a launch, of each instruction
//! and of each line of the source ([`Report::lines`]), and draws single accesses
//! ([`WarpAccess::draw`]). A failed launch returns its reason as data ([`Stop`]). `vocabulary`
//! holds the few words that these parts share. All of them are in `gpu`. This crate knows no CUDA
//! and no driver.
//!
//! ```
//! use warpstride_interp::{Args, Config, Memory, Module, run};
//! use warpstride_interp::launch_shape::LaunchShape;
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
//! # Ok::<(), warpstride_interp::Error>(())
//! ```
//!
//! # Limits
//!
//! These limits hold for any PTX. A module or launch beyond one of them is refused or stopped, with
//! a sentence that names the limit. Racecheck has no limit on the memory it uses to record
//! accesses; [`Config::checks`] says how much it takes.
//!
//! | what | limit | see |
//! |---|---|---|
//! | a module's text | 16 MiB, 1,048,576 statements | [`MAX_TEXT_BYTES`] |
//! | nested scopes | 64 | |
//! | a kernel with the functions that it may call | 131,072 instructions, 32,768 registers of each width | |
//! | a kernel's parameters | 32,764 bytes | |
//! | the steps of the search for reconvergence points | 67,108,864 | |
//! | the survey of `ptx-forms` | 1,048,576 instructions; a function counts once for each kernel that calls it | |
//! | a block | 1,024 threads, 48 KiB of static shared memory; with dynamic shared memory, the limit of the architecture, 48 to 227 KiB | [`Kernel::shared_limit`] |
//! | a cluster | 16 blocks; 4,096 copies in bulk under way, which take 4 MiB of the host | |
//! | a thread | 512 KiB of local memory; each call takes at least 16 bytes, so calls nest at most 32,768 deep | |
//! | a variable in constant memory | 64 KiB | |
//! | the data of all initialisers | 1 GiB | |
//! | global memory and all variables of modules | the size given to [`Memory::new`]; for `Backend::Soft` 8 GiB, or half of the host's available memory if that is less | |
//! | the work of a launch | 1,073,741,824 units | [`DEFAULT_WORK`], [`Config::work_limit`] |
//! | blocks that have ended before an earlier one | 65,536 | |
//! | blocks that have begun and wait for others | 8,192 on each host thread; 768 MiB of registers, local and shared memory in all | |
//! | text that a launch prints | 1 MiB; 4,096 bytes of each string; widths and precisions of 512 | |
//! | findings of a launch | 100 in full; 4,194,304 more are counted | [`check::MAX_FINDINGS`] |
//! | blocks of a launch under racecheck | 134,217,727 | |
//! | places where threads publish earlier accesses, as racecheck follows them | 524,288 | |
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `gpu` | yes | the software GPU; without it there are only the words of a launch: counters, shapes and errors |
//! | `parallel` | yes | launches run on all threads of the host; without it the results are the same, on the caller's thread |
//! | `serde` | no | `Serialize` on counters, reports and findings; `Deserialize` on counters |

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod counters;
pub mod error;
#[cfg(feature = "gpu")]
mod gpu;
pub mod launch_shape;

pub use error::{Error, ErrorKind, Result};
#[cfg(feature = "gpu")]
pub use gpu::*;

/// The level at which cargo optimised this crate: the software GPU is slow at `0`.
#[doc(hidden)]
pub const OPT_LEVEL: &str = env!("WARPSTRIDE_OPT_LEVEL");

/// The README's code is a test.
#[cfg(all(doctest, feature = "gpu"))]
#[doc = include_str!("../README.md")]
struct Readme;
