//! Elements as numbers, and as text.

use half::{bf16, f16};
use warpstride::element::DType;

/// Whether elements are floats; the parts of complex numbers are another type's.
pub(super) fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::Bf16 | DType::F32 | DType::F64)
}

/// The type of an element's parts: of complex numbers that of both, else the type itself.
pub(super) fn part(dtype: DType) -> DType {
    match dtype {
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        dtype => dtype,
    }
}

/// The value of an integer with these bytes.
pub(super) fn integer(dtype: DType, bytes: &[u8]) -> i128 {
    let is_negative = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64)
        && bytes.last().is_some_and(|last| last >> 7 == 1);
    let mut all = [if is_negative { 0xff } else { 0 }; 16];
    all[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(all)
}

/// The value of a number with these bytes, which are not those of a complex one.
pub(super) fn float(dtype: DType, bytes: &[u8]) -> f64 {
    let bits = integer(DType::U64, bytes) as u64;
    match dtype {
        DType::F16 => f16::from_bits(bits as u16).into(),
        DType::Bf16 => bf16::from_bits(bits as u16).into(),
        DType::F32 => f32::from_bits(bits as u32).into(),
        DType::F64 => f64::from_bits(bits),
        integer_type => integer(integer_type, bytes) as f64,
    }
}

/// Writes a float of one of the types of [`is_float`].
pub(super) fn write_float(dtype: DType, value: f64, bytes: &mut [u8]) {
    let bits = match dtype {
        DType::F16 => f16::from_f64(value).to_bits().into(),
        DType::Bf16 => bf16::from_f64(value).to_bits().into(),
        DType::F32 => (value as f32).to_bits().into(),
        _ => value.to_bits(),
    };
    bytes.copy_from_slice(&bits.to_le_bytes()[..bytes.len()]);
}

/// An element for the reader.
pub(super) fn text(dtype: DType, bytes: &[u8]) -> String {
    match dtype {
        DType::C64 | DType::C128 => {
            let (real, imaginary) = bytes.split_at(bytes.len() / 2);
            format!("{} + {}i", text(part(dtype), real), text(part(dtype), imaginary))
        }
        DType::F32 => (float(dtype, bytes) as f32).to_string(),
        dtype if is_float(dtype) => float(dtype, bytes).to_string(),
        dtype => integer(dtype, bytes).to_string(),
    }
}
