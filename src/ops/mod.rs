//! Operations: a pure plan, then a launch.
//!
//! A plan is made from layouts and alignments alone; it can be compared, printed and kept. Launching it allocates nothing and
//! waits for nothing, but the first launch of a kernel, which loads it ([`device`](crate::device) says what that asks of you).
//! Each operation also has a raw entry point, `*_raw`, for memory and streams that others own: a `CUdeviceptr` and a `CUstream`
//! of cust, cudarc or candle are the addresses and handles that it takes.
//!
//! # Memory of others
//!
//! Open the GPU that the memory is on by its number ([`Backend::Cuda`](crate::device::Backend::Cuda)). On CUDA we use the
//! primary context of a device, as nearly everybody does, so that addresses and streams need no translation:
//!
//! | from | address | handle of the stream |
//! |---|---|---|
//! | the driver's API | the `CUdeviceptr` | the `CUstream` as a number |
//! | the runtime's API | the pointer of `cudaMalloc` as a number | the `cudaStream_t` as a number; 0 for none |
//! | cust 0.3 | `buffer.as_device_ptr().as_raw()` | `stream.as_inner() as usize as u64` |
//! | cudarc 0.19 | `interop::cudarc` does it, safely | |
//! | candle 0.10, 0.11 | as cudarc's, which they are: `examples/candle` | |
//! | torch, CuPy, Numba | `data_ptr()`, `data.ptr`, `__cuda_array_interface__` | `cuda_stream`, `ptr` |
//!
//! # The raw contract
//!
//! A raw entry point, and `launch_raw` of a plan, queues its work and returns. It checks what addresses show: that
//! they are aligned and that operands are apart. The caller promises the rest:
//!
//! - Every element of each operand's layout, from the operand's address, lies within memory that the device can
//!   access and that lives until the work has run.
//! - The stream is a live stream of the device's context. On CUDA this is a `CUstream` of the device's primary
//!   context, which the CUDA runtime, cudarc and candle use; 0 is its default stream.
//! - From the call until the work has run, no other work writes what it reads, or reads or writes what it writes,
//!   unless that work is ordered before or after it on the stream or by events.

pub mod arithmetic;
mod canonical;
pub mod conversion;
pub mod movement;
mod numbering;
mod operand;
mod plan;
pub mod probe;
mod span;
pub mod spin;
mod target;
mod tuning;
mod units;

pub use arithmetic::{elementwise, fill, reduce, rowwise};
pub use conversion::{affine, cast, normalize};
pub use movement::{gather, in_place, permute, transpose};

pub use affine::{Affine, AffinePlan, Channels, Normalization, affine, affine_into, affine_into_raw};
pub use cast::{CastPlan, cast, cast_into, cast_raw};
pub use elementwise::{
    Elementwise, ElementwisePlan, Operands, add, add_into, axpy_into, elementwise_raw, mul, mul_into, nstream_into,
    triad, triad_into,
};
pub use fill::{FillPlan, fill_into, fill_raw};
pub use gather::{Indexed, IndexedPlan, IndexedRows, gather_rows, gather_rows_raw, scatter_rows, scatter_rows_raw};
pub use in_place::{InPlacePlan, transpose_in_place, transpose_in_place_raw};
pub use normalize::{normalize, normalize_into};
#[doc(hidden)]
pub use permute::copy_into_tuned;
pub use permute::{PermutePlan, contiguous, copy_into, copy_into_raw, permute};
pub use plan::{Explanation, Limit, Plan, PlannedAxis, Quantity, Verdict, Walk};
pub use reduce::{
    DotPlan, Reduced, Reduction, ReductionPlan, Scratch, argmax, argmax_into, dot, dot_into, dot_raw, max, max_into,
    min, min_into, reduce_raw, sum, sum_into,
};
pub use rowwise::{
    MeanVariancePlan, Moments, SoftmaxPlan, mean_variance, mean_variance_into, mean_variance_raw, softmax,
    softmax_into, softmax_raw,
};
pub use span::Phase;
pub use spin::spin;
pub use target::{Align, Target};
pub use transpose::{TransposePlan, Variant, transpose, transpose_into, transpose_raw};
#[doc(hidden)]
pub use tuning::TileShape;
