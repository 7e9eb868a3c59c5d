//! Transposes, permutes and copies on NVIDIA GPUs at the speed of the memory, and a software GPU that runs the same PTX
//! where there is none.
//!
//! ```
//! # #[cfg(feature = "interp")] {
//! use warpstride::device::{Backend, Device};
//! use warpstride::ops;
//!
//! let device = Device::open(Backend::Soft)?; // `Backend::Auto` takes a GPU where there is one
//! let buffer = device.upload(&[0, 1, 2, 3, 4, 5])?;
//! let matrix = buffer.view(&[2, 3])?; // 0 1 2 / 3 4 5
//! assert_eq!(matrix.t().shape(), [3, 2]); // another way to look at it: nothing moved
//!
//! let moved = ops::transpose(matrix)?; // a kernel: its result lies in memory row by row
//! assert_eq!(moved.to_vec()?, [0, 3, 1, 4, 2, 5]);
//!
//! let counters = device.counters()?.expect("the software GPU counts");
//! assert_eq!(counters.bank_conflicts(), 0);
//! # }
//! # Ok::<(), warpstride::Error>(())
//! ```
//!
//! # The layers
//!
//! Each rests on those below it and knows nothing of those above.
//!
//! | layer | modules | what it knows |
//! |---|---|---|
//! | measuring | [`roofline`] | how long an operation takes, and what to hold that against |
//! | memory of other crates | `interop` | their types, and what keeps their uses in order |
//! | operations | [`view`], [`ops`] | which elements go where; a plan from layouts alone, then a launch |
//! | files | `io` | NumPy's arrays, and outputs that are replaced whole |
//! | the safe side of a device | [`device`], [`memory`], [`stream`] | who owns what, and which use waits for which |
//! | the seam | [`driver`] | one trait, about the size of CUDA's driver API; NVIDIA's driver and the software GPU implement it |
//! | the software GPU | `interp` | PTX: parsed, executed warp by warp, counted |
//! | ground | [`error`], [`abi`], [`counters`], [`element`], [`launch_shape`], [`layout`], [`ptx`] | numbers and text; no device |
//!
//! # A phrase book
//!
//! | on a CPU | on a GPU | here |
//! |---|---|---|
//! | heap | device memory, behind a bus | [`DeviceBuffer`](memory::DeviceBuffer) |
//! | `memcpy` | copies host to device (H2D) and back (D2H) | [`upload`](device::Device::upload), [`download`](memory::DeviceBuffer::download) |
//! | slice | address and strides | [`View`](view::View), [`ViewMut`](view::ViewMut) over a [`Layout`](layout::Layout) |
//! | loop | kernel, launched over a grid of blocks of threads | [`ops`] |
//! | core | multiprocessor, which runs blocks | [`multiprocessors`](driver::DeviceInfo::multiprocessors) |
//! | SIMD instruction | instruction of a warp: 32 threads in step, its lanes | [`instructions`](counters::GlobalCounters::instructions) |
//! | cache line of 64 bytes | sector of 32 | [`sectors`](counters::GlobalCounters::sectors) |
//! | scratch in the L1 cache | shared memory of a block, in 32 banks | [`bank_conflicts`](counters::Counters::bank_conflicts) |
//! | queue of a thread pool | stream: what is queued runs in order, and later | [`Stream`](stream::Stream) |
//! | condition variable | event | [`Event`](stream::Event) |
//!
//! # Where to read on
//!
//! The lessons in `examples/`, in order; then the modules, in the order of the layers from the ground up. Every operation is
//! in [`ops`], every way to look at memory on [`View`](view::View). Features are in the README.

#![cfg_attr(docsrs, feature(doc_cfg))]

// In dependency order, by levels: a module imports from its own level and those above (`tests/it/architecture.rs` has the
// levels, and checks).
pub mod error;
pub mod abi;
pub mod counters;
pub mod element;
pub mod launch_shape;
pub mod layout;
pub mod ptx;
#[cfg(feature = "interp")]
pub mod interp;
pub mod driver;
pub mod device;
pub mod stream;
#[cfg(feature = "io")]
pub mod io;
pub mod memory;
pub mod array;
pub mod view;
pub mod ops;
#[cfg(feature = "cudarc")]
pub mod interop;
pub mod roofline;

pub use array::DeviceArray;
pub use device::{Backend, Device};
pub use error::{Error, ErrorKind, Result};

/// The README's code is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
