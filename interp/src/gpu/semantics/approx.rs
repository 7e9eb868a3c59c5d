//! Operations that the ISA defines only up to an error: opcodes with `.approx` and `.full`. The
//! result here is that of the host's double precision, rounded to the type. It is closer to the
//! exact value than the hardware's result, and its bits differ.

use super::float::{Float, Format, finish, pack, unpack};
use crate::gpu::modifiers::{Modifiers, Rounding, Type};
use crate::gpu::vocabulary::OperandType;

/// A function of one operand, such as `ex2.approx`.
#[inline(always)]
pub(crate) fn unary<T: Float>(modifiers: Modifiers, a: T, function: fn(f64) -> f64) -> T {
    let format = T::format(modifiers);
    T::of_bits(narrow(modifiers, format, function(wide(modifiers, format, a.bits()))))
}

/// `div.full`
#[inline(always)]
pub(crate) fn div(modifiers: Modifiers, a: f32, b: f32) -> f32 {
    let format = f32::format(modifiers);
    let [a, b] = [a, b].map(|operand| wide(modifiers, format, operand.bits()));
    f32::of_bits(narrow(modifiers, format, a / b))
}

/// `div.approx`: the reciprocal of a divisor beyond 2^126 is a denormal, which counts as zero.
#[inline(always)]
pub(crate) fn fast_div(modifiers: Modifiers, a: f32, b: f32) -> f32 {
    let beyond = b.abs() > f32::from_bits(0x7e80_0000);
    div(modifiers, a, if beyond { f32::INFINITY.copysign(b) } else { b })
}

/// `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`: they ignore the lower halves of operand and
/// result, and the upper half of a NaN is that of single precision.
#[inline(always)]
pub(crate) fn upper_half(modifiers: Modifiers, a: f64, function: fn(f64) -> f64) -> f64 {
    const UPPER: u64 = !0 << 32;
    let result = unary(modifiers, f64::from_bits(a.to_bits() & UPPER), function);
    f64::from_bits(if result.is_nan() { 0x7fff_ffff << 32 } else { result.to_bits() & UPPER })
}

/// `sin.approx` and `cos.approx`: as in the hardware, the angle is first converted to turns, in
/// single precision and rounded towards zero. That causes most of the error of large angles.
#[inline(always)]
pub(crate) fn of_turns(modifiers: Modifiers, angle: f32, function: fn(f64) -> f64) -> f32 {
    unary(modifiers, turns(modifiers, angle), function)
}

#[inline(never)]
fn turns(modifiers: Modifiers, angle: f32) -> f32 {
    const PER_RADIAN: f32 = 0.5 * std::f32::consts::FRAC_1_PI;
    super::float::mul(modifiers.towards_zero(), angle, PER_RADIAN)
}

/// The sine of an angle in turns.
pub(crate) fn sin(turns: f64) -> f64 {
    (turns.fract() * std::f64::consts::TAU).sin()
}

/// The cosine of an angle in turns.
pub(crate) fn cos(turns: f64) -> f64 {
    (turns.fract() * std::f64::consts::TAU).cos()
}

#[inline(never)]
fn wide(modifiers: Modifiers, format: &Format, bits: u64) -> f64 {
    f64::from_bits(pack(Format::of(Type::F64), Rounding::Nearest, unpack(format, bits, modifiers.flushes())))
}

#[inline(never)]
fn narrow(modifiers: Modifiers, format: &Format, value: f64) -> u64 {
    finish(format, modifiers, unpack(Format::of(Type::F64), value.to_bits(), false))
}

pub(crate) fn rsqrt(a: f64) -> f64 {
    1.0 / a.sqrt()
}
