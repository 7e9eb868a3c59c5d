//! Operations on arrays: a plan, then a launch.
//!
//! | I want to | function |
//! |---|---|
//! | put the axes in another order | [`permute()`], [`transpose()`] |
//! | make a C-order array from a view | [`contiguous`] |
//! | copy from any layout into any layout of the same shape | [`copy_into`] |
//! | transpose by a kernel that I choose, to compare | [`transpose_into`] with a [`Variant`] |
//! | transpose in the same memory | [`transpose_in_place`] |
//! | take or put rows by their indices | [`gather_rows`], [`scatter_rows`] |
//! | add, subtract, multiply, divide floats: arrays, views, numbers | [`add`], [`sub`], [`mul`], [`div`] |
//! | scale and combine contiguous floats | [`scale`], [`triad`], [`nstream_into`], [`axpy_into`] |
//! | fill | [`fill_into`] |
//! | compute with a chosen number of operations a byte | [`iterate_into`] |
//! | reduce floats or integers along axes or all | [`sum`], [`min`], [`max`], [`argmax`]; floats: [`mean`] |
//! | multiply and sum floats | [`dot`] |
//! | normalise rows of floats | [`softmax`], [`mean_variance`] |
//! | change the element type | [`cast()`] |
//! | scale, shift and convert, whatever the layout | [`affine()`] |
//! | normalise images of bytes into planes | [`normalize()`] |
//! | see how it would run, and why | a plan's [`explain`](Plan::explain) |
//!
//! A bare verb allocates its result, a [`DeviceArray`](crate::DeviceArray), and runs on the default
//! stream. A verb with `_into` writes into a destination, the last argument before the stream. It
//! allocates nothing and waits for nothing; only the first launch of a kernel loads it
//! ([`device`](crate::device) says how to prepare for that). A verb with `_raw` takes layouts and
//! addresses; for other operations on addresses, a plan has `launch_raw`.
//! Operands are `&array`, `&mut array` or views.
//!
//! # Plans
//!
//! Each operation has a plan: [`PermutePlan`], [`TransposePlan`], [`InPlacePlan`], [`IndexedPlan`],
//! [`BinaryPlan`], [`ElementwisePlan`], [`FillPlan`], [`ReductionPlan`], [`DotPlan`],
//! [`SoftmaxPlan`], [`MeanVariancePlan`], [`CastPlan`] and [`AffinePlan`]. A plan is pure: layouts,
//! element types, alignments and the architecture decide it, without a device. A program can
//! compare, print and keep it, and launch it as often as it likes: safely over views, or over
//! addresses by `launch_raw`.
//!
//! ```
//! use warpstride::ops::{Align, PermutePlan, Target};
//! use warpstride::{Layout, Plan};
//!
//! let source = Layout::row_major(&[1024, 3])?.t();
//! let result = Layout::row_major(&[3, 1024])?;
//! let target = Target::new((9, 0));
//! let plan = PermutePlan::new(&source, Align::ALLOCATION, &result, Align::ALLOCATION, 4, target)?;
//! println!("{}", plan.explain()); // the kernel, the reason, and the verdicts of other strategies
//! # Ok::<(), warpstride::Error>(())
//! ```
//!
//! # Memory of others
//!
//! Open the GPU that has the memory by its number
//! ([`Backend::Cuda`](crate::device::Backend::Cuda)). On CUDA we use the primary context of a
//! device, as most libraries do, so addresses and streams need no translation:
//!
//! | from | address | handle of the stream |
//! |---|---|---|
//! | the driver's API | the `CUdeviceptr` | the `CUstream` as a number |
//! | the runtime's API | the pointer of `cudaMalloc` as a number | the `cudaStream_t` as a number; 0 for none |
//! | cust 0.3 | `buffer.as_device_ptr().as_raw()` | `stream.as_inner() as usize as u64` |
//! | cudarc 0.19 | `interop::cudarc` does it, safely | |
//! | candle 0.10, 0.11 | as for cudarc, on which candle builds: `examples/candle` | |
//! | torch, CuPy, Numba | `data_ptr()`, `data.ptr`, `__cuda_array_interface__` | `cuda_stream`, `ptr` |
//!
//! # The raw contract
//!
//! A raw entry point, or `launch_raw` of a plan, queues its work and returns. It checks that
//! addresses are aligned and, where its errors say so, that operands do not overlap. The caller
//! promises the rest:
//!
//! - Every element of each operand's layout, from the operand's address, lies within memory that
//!   the device can access and that lives until the work has run. So do the bytes between the
//!   elements of a source, which kernels may read and ignore.
//! - The stream is a live stream of the device's context. On CUDA this is a `CUstream` of the
//!   device's primary context, which the CUDA runtime, cudarc and candle use; 0 is its default
//!   stream.
//! - From the call until the work has run, no other work writes the elements that it reads or the
//!   bytes between them, or reads or writes those that it writes, unless that work is ordered
//!   before or after it on the stream or by events.

mod arithmetic;
mod choose;
mod conversion;
mod movement;
mod numbering;
mod operand;
mod plan;
#[doc(hidden)]
pub mod probe;
mod sectors;
mod span;
#[doc(hidden)]
pub mod spin;
mod target;
mod tuning;
pub(crate) mod units;

use arithmetic::{binary, elementwise, fill, iterate, reduce, rowwise};
#[doc(hidden)]
pub use choose::Costs;
use conversion::{affine, cast, normalize};
use movement::{gather, in_place, permute, transpose};

pub use affine::{Affine, AffinePlan, Channels, Normalization, affine, affine_into, affine_into_raw};
pub use binary::{Binary, BinaryPlan, Term, add, add_into, div, div_into, mul, mul_into, sub, sub_into};
pub use cast::{CastPlan, cast, cast_into};
pub use elementwise::{Elementwise, ElementwisePlan, axpy_into, nstream_into, scale, scale_into, triad, triad_into};
pub use fill::{FillPlan, fill_into};
pub use gather::{Indexed, IndexedPlan, gather_rows, scatter_rows};
pub use in_place::{InPlacePlan, transpose_in_place, transpose_in_place_raw};
#[doc(hidden)]
pub use iterate::IteratePlan;
pub use iterate::iterate_into;
pub use normalize::{normalize, normalize_into};
#[cfg(feature = "distributed")]
pub(crate) use operand::check_width;
#[cfg(feature = "distributed")]
pub(crate) use permute::PairsPlan;
#[cfg(feature = "interp")]
pub use permute::Requested;
#[doc(hidden)]
pub use permute::copy_into_tuned;
pub use permute::{PermutePlan, contiguous, copy_into, copy_into_raw, permute};
pub use plan::{Explanation, Limit, Plan, PlannedAxis, Quantity, Verdict, Walk};
pub use reduce::{
    Along, DotPlan, Reduction, ReductionPlan, Scratch, argmax, argmax_into, dot, dot_into, max, max_into, mean,
    mean_into, min, min_into, sum, sum_into,
};
pub use rowwise::{MeanVariancePlan, SoftmaxPlan, mean_variance, mean_variance_into, softmax, softmax_into};
pub use span::Phase;
#[doc(hidden)]
pub use spin::spin;
pub use target::{Align, Target};
pub use transpose::{TransposePlan, Variant, transpose, transpose_into, transpose_raw};
pub use tuning::Policy;
#[doc(hidden)]
pub use tuning::TileShape;
pub use units::SECTOR;
