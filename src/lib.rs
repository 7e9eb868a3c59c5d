//! Transposes, permutes and copies on NVIDIA GPUs at the speed of the memory, and on a software
//! GPU, which runs the same PTX where there is no GPU.
//!
//! ```
//! # #[cfg(feature = "interp")] {
//! use warpstride::{Backend, Device, ops};
//!
//! let device = Device::open(Backend::Soft)?; // `Backend::Auto` takes a GPU where there is one
//! let bytes = [0_u8, 51, 102, 153, 204, 255, 0, 51, 102, 153, 204, 255];
//! let images = device.array(&[1, 2, 2, 3], &bytes)?;
//! let planes = ops::permute(&images, "n h w c -> n c h w")?; // a kernel moves the elements
//! let numbers = ops::cast::<f32, _>(&planes)?;
//! let sums = ops::sum(&numbers, 3)?;
//! assert_eq!(sums.shape(), [1, 3, 2]);
//! assert_eq!(sums.to_vec()?, [153.0, 153.0, 255.0, 255.0, 357.0, 357.0]);
//!
//! let view = planes.view().t(); // another way to look at it: nothing moves
//! assert_eq!(view.shape(), [2, 2, 3, 1]);
//! # }
//! # Ok::<(), warpstride::Error>(())
//! ```
//!
//! # The way of an array
//!
//! ```text
//!  host memory -- transfer --> array -- view: strides --> ops: plan -- abi: entry, parameters --+
//!                                                                                              |
//!   NVIDIA's driver <---+                                                                      v
//!                       +-- driver <-- stream, memory: order of uses <-- device: launch <------+
//!  the software GPU <---+
//! ```
//!
//! [`pipeline`] and [`out_of_core`] send many arrays this way at once, [`distributed`] spreads one
//! over several GPUs, and [`roofline`] measures them.
//!
//! # The layers
//!
//! Each layer rests on those below it and knows nothing of those above.
//!
//! | layer | modules | what it knows |
//! |---|---|---|
//! | arrays over several GPUs | [`distributed`] | which rank has which part, and the copies from one division to another |
//! | measuring | [`roofline`] | how long an operation takes, and the limits to compare that with |
//! | arrays larger than a device | [`out_of_core`] | which tiles go through a pipeline, from memory or files |
//! | pipelines | [`pipeline`] | batches from the host through the device and back, several in flight |
//! | memory of other crates | [`interop`] | their types, and the order of their uses |
//! | operations | [`mod@array`], [`view`], [`transfer`], [`ops`] | which elements go where: a plan from layouts alone, then a launch |
//! | the safe side of a device | [`device`], [`memory`], [`stream`] | ownership, and which use waits for which |
//! | files | [`io`] | NumPy's files, and outputs that replace others whole |
//! | the seam | [`driver`] | one trait in five parts, about the size of CUDA's driver API; NVIDIA's driver and the software GPU implement it |
//! | ground | [`error`], [`element`], [`layout`] | numbers and text; no device |
//! | below the crate | [`counters`], [`launch_shape`], [`interp`] | the package `warpstride-interp`: PTX, parsed, executed warp by warp, counted |
//!
//! # A phrase book
//!
//! | on a CPU | on a GPU | here |
//! |---|---|---|
//! | heap | device memory, behind a bus | [`DeviceBuffer`], [`DeviceArray`] |
//! | `memcpy` | copies host to device (H2D) and back (D2H) | [`Device::array`], [`DeviceArray::to_vec`] |
//! | slice | address and strides | [`View`], [`ViewMut`] over a [`Layout`] |
//! | loop | kernel, launched over a grid of blocks of threads | [`ops`] |
//! | core | multiprocessor, which runs blocks | [`multiprocessors`](driver::DeviceInfo::multiprocessors) |
//! | SIMD instruction | instruction of a warp: 32 threads in step, its lanes | [`instructions`](counters::GlobalCounters::instructions) |
//! | cache line of 64 bytes | sector of 32 | [`sectors`](counters::GlobalCounters::sectors) |
//! | scratch in the L1 cache | shared memory of a block, in 32 banks | [`bank_conflicts`](counters::Counters::bank_conflicts) |
//! | queue of a thread pool | stream: queued work runs in order, and later | [`Stream`] |
//! | condition variable | event | [`Event`] |
//! | batch of requests, sent at once | graph: captured work that one call launches | [`Graph`] |
//!
//! # Where to read on
//!
//! Read the programs in [`examples/`] in order, then the modules from the ground up. [`ops`] lists
//! every operation, and [`View`] every way to look at memory. The [README] lists the features.
//!
//! [`examples/`]: https://docs.rs/crate/warpstride/latest/source/examples/
//! [README]: https://docs.rs/crate/warpstride/latest/source/README.md
// A module that this build lacks is a link to the documentation of all features.
#![cfg_attr(
    not(feature = "pipeline"),
    doc = "[`io`]: https://docs.rs/warpstride/latest/warpstride/io/",
    doc = "[`out_of_core`]: https://docs.rs/warpstride/latest/warpstride/out_of_core/",
    doc = "[`pipeline`]: https://docs.rs/warpstride/latest/warpstride/pipeline/"
)]
#![cfg_attr(
    not(feature = "distributed"),
    doc = "[`distributed`]: https://docs.rs/warpstride/latest/warpstride/distributed/"
)]
#![cfg_attr(not(feature = "cudarc"), doc = "[`interop`]: https://docs.rs/warpstride/latest/warpstride/interop/")]
#![cfg_attr(not(feature = "interp"), doc = "[`interp`]: https://docs.rs/warpstride-interp")]
#![cfg_attr(docsrs, feature(doc_cfg))]

// In dependency order, by levels: a module imports from its own level and those above
// (`tests/it/architecture.rs` has the levels, and checks). Hidden modules are for this package's
// own binary, tests and benches; they change in any version.
mod names;
pub mod error;
// Private for documentation: `scripts/public-api` lists the public items from rustdoc's JSON, which
// leaves out the items of a hidden module, and `element` re-exports `DType` from this one.
#[cfg(docsrs)]
mod abi;
#[cfg(not(docsrs))]
#[doc(hidden)]
pub mod abi;
pub mod element;
pub mod layout;
#[doc(hidden)]
pub mod ptx;
#[doc(hidden)]
pub mod random;
mod sync;
pub mod driver;
pub mod alloc;
mod host;
mod tuning_file;
mod context;
pub mod device;
pub mod stream;
#[cfg(feature = "pipeline")]
pub mod io;
pub mod memory;
pub mod view;
pub mod array;
pub mod transfer;
pub mod ops;
#[cfg(feature = "cudarc")]
pub mod interop;
#[cfg(feature = "pipeline")]
pub mod pipeline;
#[cfg(feature = "pipeline")]
pub mod out_of_core;
pub mod roofline;
#[cfg(feature = "distributed")]
pub mod distributed;

pub use array::DeviceArray;
pub use device::{Backend, Device};
pub use element::DType;
pub use error::{Error, ErrorKind, Result};
pub use layout::Layout;
pub use memory::{DeviceBuffer, PinnedBuffer};
pub use ops::Plan;
pub use stream::{Event, Graph, Stream};
pub use view::{View, ViewMut};
#[cfg(feature = "interp")]
pub use warpstride_interp::{self as interp, assert_access};
pub use warpstride_interp::{counters, launch_shape};

/// The README's code is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
