//! How parameters name the element types of affine maps.

use super::DType;

/// Returns the number by which a parameter names an element type; `None` for a type that the
/// kernels do not support. They read all numbered types, and write all but bytes.
pub const fn affine_type(dtype: DType) -> Option<u64> {
    Some(match dtype {
        DType::U8 => AFFINE_U8,
        DType::F16 => AFFINE_F16,
        DType::Bf16 => AFFINE_BF16,
        DType::F32 => AFFINE_F32,
        DType::F64 => AFFINE_F64,
        _ => return None,
    })
}

/// The number of [`DType::U8`].
pub const AFFINE_U8: u64 = 0;
/// The number of [`DType::F16`].
pub const AFFINE_F16: u64 = 1;
/// The number of [`DType::Bf16`].
pub const AFFINE_BF16: u64 = 2;
/// The number of [`DType::F32`].
pub const AFFINE_F32: u64 = 3;
/// The number of [`DType::F64`], which maps only to itself.
pub const AFFINE_F64: u64 = 4;
