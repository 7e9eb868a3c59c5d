//! Kernels that compute with the elements they load.

mod binary;
mod elementwise;
mod greatest_bytes;
mod reduce;
mod reduce_axis;
mod row;
mod row_parts;
mod rowwise;

pub use binary::binary;
pub use elementwise::{Axpy, Mul, NStream, Triad, elementwise, fill, iterate};
pub use reduce::{Dot, Max, Min, Sum, reduce};
pub use reduce_axis::{ArgMax, column_lanes, reduce_columns, reduce_rows};
pub use row_parts::{join_moments, moments_of_parts, softmax_parts};
pub use rowwise::{mean_variance, softmax};
