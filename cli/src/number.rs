//! Elements as numbers, and as text.

use half::{bf16, f16};
use warpstride::element::DType;

/// Returns whether elements are floats; the parts of complex numbers are another type's.
pub(crate) fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::Bf16 | DType::F32 | DType::F64)
}

/// The type of an element's parts: of complex numbers that of both, else the type itself.
pub(crate) fn part(dtype: DType) -> DType {
    match dtype {
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        dtype => dtype,
    }
}

/// The value of an integer with these bytes.
pub(crate) fn integer(dtype: DType, bytes: &[u8]) -> i128 {
    let is_negative = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64)
        && bytes.last().is_some_and(|last| last >> 7 == 1);
    let mut all = [if is_negative { 0xff } else { 0 }; 16];
    all[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(all)
}

/// The value of a number with these bytes, which are not those of a complex one.
pub(crate) fn float(dtype: DType, bytes: &[u8]) -> f64 {
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
pub(crate) fn write_float(dtype: DType, value: f64, bytes: &mut [u8]) {
    let bits = match dtype {
        DType::F16 => f16::from_f32(odd(value)).to_bits().into(),
        DType::Bf16 => bf16::from_f32(odd(value)).to_bits().into(),
        DType::F32 => (value as f32).to_bits().into(),
        _ => value.to_bits(),
    };
    bytes.copy_from_slice(&bits.to_le_bytes()[..bytes.len()]);
}

/// The sum in 53 bits, rounded to odd: the last bit tells whether any were lost, so that a later
/// rounding to half of the bits is the only one (Boldo and Melquiond, "Emulation of a FMA and
/// correctly rounded sums", 2008). The error is that of Knuth's two-sum.
pub(crate) fn odd_sum(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let of_b = sum - a;
    let lost = (a - (sum - of_b)) + (b - of_b);
    f64::from_bits(to_odd(sum.to_bits(), lost, sum.is_sign_negative()))
}

/// The value in 24 bits, rounded to odd. `half` rounds its conversions from `f64` twice on some
/// processors.
pub(crate) fn odd(value: f64) -> f32 {
    let near = value as f32;
    let lost = value - f64::from(near);
    f32::from_bits(to_odd(near.to_bits().into(), lost, near.is_sign_negative()) as u32)
}

/// The bits of the odd one of the two neighbours of a value, of which `near` is the nearer one and
/// `lost` the distance from it.
fn to_odd(near: u64, lost: f64, is_negative: bool) -> u64 {
    if near & 1 == 1 || lost == 0.0 || lost.is_nan() {
        return near;
    }
    // The bits grow away from zero.
    if (lost > 0.0) == is_negative { near - 1 } else { near + 1 }
}

/// An element for the reader.
pub(crate) fn text(dtype: DType, bytes: &[u8]) -> String {
    match dtype {
        DType::C64 | DType::C128 => {
            let (real, imaginary) = bytes.split_at(bytes.len() / 2);
            format!("{} + {}i", text(part(dtype), real), text(part(dtype), imaginary))
        }
        DType::F32 => without_fraction(format!("{:?}", float(dtype, bytes) as f32)),
        dtype if is_float(dtype) => without_fraction(format!("{:?}", float(dtype, bytes))),
        dtype => integer(dtype, bytes).to_string(),
    }
}

/// Takes the fraction from a whole number as `Debug` writes it. Tiny and huge numbers have an
/// exponent there.
fn without_fraction(text: String) -> String {
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests;
