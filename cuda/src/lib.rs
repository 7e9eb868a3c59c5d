//! `libcuda.so.1`, NVIDIA's driver API in C, over the software GPU.
//!
//! ```text
//!  a program --> export (C functions) --> handles, contexts --> streams (order) --> the soft driver
//!                     |                                             |
//!                     +-- code: results as numbers                  +-- report: for `warpstride run`
//! ```
//!
//! Each module has the functions of one family of the API: [`device`], [`context`], [`memory`],
//! [`stream`], [`graph`], [`module`] and [`launch`]. [`names`] has the rest: functions that are
//! found by name, and those that this library does not support.
//!
//! A caller is not trusted: a handle is a number that is looked up, never a pointer that is
//! followed, and a panic is a result code. Only what CUDA itself cannot check is trusted: that a
//! pointer to a result or to an operand is null or valid.

#![cfg(target_os = "linux")]

mod arguments;
mod code;
mod context;
mod device;
mod export;
mod graph;
mod handles;
mod launch;
mod memory;
mod module;
mod names;
mod process;
mod report;
mod stream;
