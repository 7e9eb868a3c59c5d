//! Arithmetic at the speed of the memory: element by element, and along one axis or all.

pub mod elementwise;
pub mod reduce;
pub mod reduce_axis;
pub mod rowwise;

use crate::element::DType;

/// The type in which sums of elements are computed and returned.
const fn sum_type(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::Bf16 => DType::F32,
        other => other,
    }
}
