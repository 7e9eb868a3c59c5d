//! `libcudart.so.13` and `libcudart.so.12`, NVIDIA's runtime API in C, over a `libcuda.so.1`.
//!
//! ```text
//!  a program of nvcc --> registry (its kernels and variables, by their addresses on the host)
//!                    --> functions of the runtime --> context (a thread's device) --> driver
//! ```
//!
//! The driver is found with `dlopen` at the first call. Most functions are those of the driver,
//! with the primary context of the thread's device made current before: `forward!` exports these.
//! The others are in the module of their family. The last error of a thread is kept by `export`.

#![cfg(target_os = "linux")]

// `cudart/twelve` compiles this source again, where some items are for 13 alone.
#[path = "../../cuda/src/arguments.rs"]
#[allow(dead_code, reason = "libcuda uses the rest")]
mod arguments;
mod code;
mod context;
mod device;
mod driver;
mod export;
mod function;
mod graph;
#[path = "../../cuda/src/handles.rs"]
#[allow(dead_code, reason = "libcuda uses the rest")]
mod handles;
mod launch;
mod library;
mod memory;
mod names;
mod occupancy;
mod registry;
mod stream;
mod types;
mod unsupported;
