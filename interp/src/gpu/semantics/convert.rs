//! `cvt`: converts between any two types, in any rounding.

use super::float::{Format, Number, clamp, finish, shifted, unpack};
use crate::gpu::modifiers::{Modifiers, Rounding, Type};
use crate::gpu::vocabulary::OperandType;

/// The bits of an integer type and whether it is signed; `None` for a floating-point type.
fn integer(name: Type) -> Option<(u32, bool)> {
    Some(match name {
        Type::U8 => (8, false),
        Type::S8 => (8, true),
        Type::U16 => (16, false),
        Type::S16 => (16, true),
        Type::U32 => (32, false),
        Type::S32 => (32, true),
        Type::U64 => (64, false),
        Type::S64 => (64, true),
        _ => return None,
    })
}

/// The least and the greatest integer of a type.
fn range((bits, signed): (u32, bool)) -> (i128, i128) {
    if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// The value of the low bits of a register.
fn value(bits: u64, (width, signed): (u32, bool)) -> i128 {
    let unused = 64 - width;
    if signed { i128::from((bits << unused) as i64 >> unused) } else { i128::from(bits << unused >> unused) }
}

/// `cvt.TO.FROM`, between the low bits of registers. A narrow signed result is sign-extended to its
/// register.
#[inline(never)]
pub(crate) fn convert(modifiers: Modifiers, bits: u64) -> u64 {
    let (from, to) = (modifiers.from(), modifiers.to());
    match (integer(from), integer(to)) {
        (Some(from), Some(to)) => {
            let (least, greatest) = range(to);
            value(bits, from).clamp(least, greatest) as u64
        }
        (Some(from), None) => {
            let value = value(bits, from);
            let number = Number::Finite { negative: value < 0, exponent: 0, mantissa: value.unsigned_abs() };
            finish(Format::of(to), modifiers, number)
        }
        (None, Some(to)) => to_integer(modifiers, bits, to),
        (None, None) => to_float(modifiers, bits),
    }
}

/// Converts to an integer; values out of range become the end of the range.
fn to_integer(modifiers: Modifiers, bits: u64, to: (u32, bool)) -> u64 {
    let from = modifiers.from();
    let flush = modifiers.flushes() && from == Type::F32;
    let (least, greatest) = range(to);
    let beyond = |negative: bool| if negative { least } else { greatest };
    let value = match unpack(Format::of(from), bits, flush) {
        Number::Nan => return nan_as_integer(from, to),
        Number::Infinite { negative } => beyond(negative),
        Number::Finite { negative, exponent, .. } if exponent > 64 => beyond(negative),
        Number::Finite { negative, exponent, mantissa } => {
            let magnitude = shifted(modifiers.rounding(), negative, mantissa, -exponent) as i128;
            if negative { -magnitude } else { magnitude }
        }
    };
    value.clamp(least, greatest) as u64
}

/// The integer that an H100 makes from a NaN: 0, but from double precision or to 64 bits only the
/// top bit.
fn nan_as_integer(from: Type, (width, signed): (u32, bool)) -> u64 {
    match 1 << (width - 1) {
        top if width == 64 || from == Type::F64 => value(top, (width, signed)) as u64,
        _ => 0,
    }
}

fn to_float(modifiers: Modifiers, bits: u64) -> u64 {
    let (from, to) = (modifiers.from(), modifiers.to());
    let (source, target) = (Format::of(from), Format::of(to));
    // The hardware does not flush results of type `f16`.
    let modifiers = if to == Type::F16 { modifiers.without_flushing() } else { modifiers };
    if source.is_nan(bits) {
        return clamp(target, modifiers, nan_as_float(modifiers, bits));
    }
    let number = unpack(source, bits, modifiers.flushes() && from == Type::F32);
    let number = if modifiers.integral() { integral(modifiers.rounding(), number) } else { number };
    finish(target, modifiers, number)
}

/// The result of converting a NaN. If double precision takes part, the NaN keeps its sign and the
/// bits that fit, and becomes quiet. Otherwise it is the one NaN of its type.
fn nan_as_float(modifiers: Modifiers, bits: u64) -> u64 {
    let (from, to) = (modifiers.from(), modifiers.to());
    let (source, target) = (Format::of(from), Format::of(to));
    match to {
        Type::F64 if modifiers.flushes() => target.with_payload_of(source, source.nan()),
        Type::F64 => target.with_payload_of(source, bits),
        _ if from == Type::F64 => target.with_payload_of(source, bits),
        // Here, rounding away from zero truncates.
        Type::Tf32 if modifiers.rounding() == Rounding::Away => bits & !0x1fff,
        _ => target.nan(),
    }
}

/// Rounds to an integer; a zero keeps its sign.
fn integral(rounding: Rounding, number: Number) -> Number {
    match number {
        Number::Finite { negative, exponent, mantissa } if exponent < 0 => {
            Number::Finite { negative, exponent: 0, mantissa: shifted(rounding, negative, mantissa, -exponent) }
        }
        other => other,
    }
}

/// `cvt.rn.f16x2.f32` and similar: `a` goes to the upper half.
pub(crate) fn pack_floats(modifiers: Modifiers, a: f32, b: f32) -> u32 {
    let [a, b] = [a, b].map(|half| convert(modifiers, half.bits()) as u32);
    a << 16 | b
}

/// `cvt.pack.sat.u16.s32`: `a` goes to the upper half.
pub(crate) fn pack_halves(modifiers: Modifiers, a: i32, b: i32) -> u32 {
    let [a, b] = [a, b].map(|half| convert(modifiers, half as u64) as u32 & 0xffff);
    a << 16 | b
}

/// `cvt.pack.sat.u8.s32.b32`: packs `a` above `b`, and the lower half of `c` above both.
pub(crate) fn pack_bytes(modifiers: Modifiers, a: i32, b: i32, c: u32) -> u32 {
    // The last type is that of `c`. The one before it, that of `a` and `b`, is always `s32`.
    let [a, b] = [a, b].map(|byte| {
        let (least, greatest) = range(integer(modifiers.to()).unwrap_or((8, false)));
        i128::from(byte).clamp(least, greatest) as u32 & 0xff
    });
    c << 16 | a << 8 | b
}

/// Half precision as single precision, which contains all of its numbers.
#[inline(always)]
pub(super) fn widen(modifiers: Modifiers, half: u16) -> f32 {
    if modifiers.from() == Type::Bf16 { bf16_as_f32(half) } else { f16_as_f32(half) }
}

/// Moves the bits to the upper half, even for a NaN.
#[inline(always)]
pub(crate) fn bf16_as_f32(half: u16) -> f32 {
    f32::from_bits(u32::from(half) << 16)
}

/// Moves the exponent up by a product, which also converts denormals correctly.
#[inline(always)]
pub(crate) fn f16_as_f32(half: u16) -> f32 {
    let magnitude = u32::from(half & 0x7fff) << 13;
    let scaled = (f32::from_bits(magnitude) * f32::from_bits(239 << 23)).to_bits();
    let bits = if half & 0x7c00 == 0x7c00 { magnitude | 0x7f80_0000 } else { scaled };
    super::native::canonical32(f32::from_bits(bits | u32::from(half & 0x8000) << 16))
}

/// `cvt.f64.f32`
#[inline(always)]
pub(crate) fn f32_as_f64(a: f32) -> f64 {
    let nan = || Format::of(Type::F64).with_payload_of(Format::of(Type::F32), u64::from(a.to_bits()));
    if a.is_nan() { f64::from_bits(nan()) } else { f64::from(a) }
}

/// `cvt.rn.f32.f64`
#[inline(always)]
pub(crate) fn f64_as_f32(a: f64) -> f32 {
    let nan = || Format::of(Type::F32).with_payload_of(Format::of(Type::F64), a.to_bits());
    if a.is_nan() { f32::from_bits(nan() as u32) } else { a as f32 }
}
