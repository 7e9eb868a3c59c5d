//! What the ISA defines but for an error: opcodes with `.approx` and `.full`. Here the result is that of the host's double
//! precision, rounded to the type: nearer to the truth than the hardware's, and not its bits.

use super::float::{Float, Format, finish, pack, unpack};
use crate::interp::modifiers::{Modifiers, Rounding, Type};

/// A function of one operand, such as `ex2.approx`.
#[inline(always)]
pub(crate) fn unary<T: Float>(modifiers: Modifiers, a: T, function: fn(f64) -> f64) -> T {
    let format = T::format(modifiers);
    T::of_bits(narrow(modifiers, format, function(wide(modifiers, format, a.bits()))))
}

/// `div.approx` and `div.full`
#[inline(always)]
pub(crate) fn div(modifiers: Modifiers, a: f32, b: f32) -> f32 {
    let format = f32::format(modifiers);
    let [a, b] = [a, b].map(|operand| wide(modifiers, format, operand.bits()));
    f32::of_bits(narrow(modifiers, format, a / b))
}

/// `rcp.approx.ftz.f64` and `rsqrt.approx.f64`: the lower halves of operand and result count for nothing.
#[inline(always)]
pub(crate) fn upper_half(modifiers: Modifiers, a: f64, function: fn(f64) -> f64) -> f64 {
    const UPPER: u64 = !0 << 32;
    let a = if a.is_nan() { a } else { f64::from_bits(a.to_bits() & UPPER) };
    f64::from_bits(unary(modifiers, a, function).to_bits() & UPPER)
}

#[inline(never)]
fn wide(modifiers: Modifiers, format: &Format, bits: u64) -> f64 {
    f64::from_bits(pack(Format::of(Type::F64), Rounding::Nearest, unpack(format, bits, modifiers.flushes())))
}

#[inline(never)]
fn narrow(modifiers: Modifiers, format: &Format, value: f64) -> u64 {
    finish(format, modifiers, unpack(Format::of(Type::F64), value.to_bits(), false))
}

pub(crate) fn rcp(a: f64) -> f64 {
    1.0 / a
}

pub(crate) fn rsqrt(a: f64) -> f64 {
    1.0 / a.sqrt()
}
