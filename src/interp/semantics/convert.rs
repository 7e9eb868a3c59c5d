//! Conversions in any rounding, between any two types: `cvt`.

use super::float::{Float, Format, Number, clamp, finish, shifted, unpack};
use crate::interp::modifiers::{Modifiers, Rounding, Type};

/// Bits of an integer type and whether it is signed; `None` of a floating one.
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

/// The value that the low bits of a register have.
fn value(bits: u64, (width, signed): (u32, bool)) -> i128 {
    let unused = 64 - width;
    if signed { i128::from((bits << unused) as i64 >> unused) } else { i128::from(bits << unused >> unused) }
}

/// `cvt.TO.FROM`, from and to the low bits of registers; a narrow signed result fills its register with its sign.
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

/// Out of range is the end of the range.
fn to_integer(modifiers: Modifiers, bits: u64, to: (u32, bool)) -> u64 {
    let from = modifiers.from();
    let flush = modifiers.flushes() && from == Type::F32;
    let (least, greatest) = range(to);
    let value = match unpack(Format::of(from), bits, flush) {
        Number::Nan => return nan_as_integer(from, to),
        Number::Infinite { negative } => {
            if negative {
                least
            } else {
                greatest
            }
        }
        Number::Finite { negative, exponent, .. } if exponent > 64 => {
            if negative {
                least
            } else {
                greatest
            }
        }
        Number::Finite { negative, exponent, mantissa } => {
            let magnitude = shifted(modifiers.rounding(), negative, mantissa, -exponent) as i128;
            if negative { -magnitude } else { magnitude }
        }
    };
    value.clamp(least, greatest) as u64
}

/// What an H100 makes of no number: 0, but from double precision or to 64 bits the top bit alone.
fn nan_as_integer(from: Type, (width, signed): (u32, bool)) -> u64 {
    match 1 << (width - 1) {
        top if width == 64 || from == Type::F64 => value(top, (width, signed)) as u64,
        _ => 0,
    }
}

fn to_float(modifiers: Modifiers, bits: u64) -> u64 {
    let (from, to) = (modifiers.from(), modifiers.to());
    let (source, target) = (Format::of(from), Format::of(to));
    // To `f16` the hardware flushes nothing.
    let modifiers = if to == Type::F16 { modifiers.without_flushing() } else { modifiers };
    if source.is_nan(bits) {
        return clamp(target, modifiers, nan_as_float(modifiers, bits));
    }
    let number = unpack(source, bits, modifiers.flushes() && from == Type::F32);
    let number = if modifiers.integral() { integral(modifiers.rounding(), number) } else { number };
    finish(target, modifiers, number)
}

/// What is no number stays what it is where double precision takes part, but for bits that the result has not, and quiet.
/// Otherwise it is the one NaN of its type.
fn nan_as_float(modifiers: Modifiers, bits: u64) -> u64 {
    let (from, to) = (modifiers.from(), modifiers.to());
    let (source, target) = (Format::of(from), Format::of(to));
    match to {
        Type::F64 if modifiers.flushes() => target.with_payload_of(source, source.nan()),
        Type::F64 => target.with_payload_of(source, bits),
        _ if from == Type::F64 => target.with_payload_of(source, bits),
        // Rounded away from zero means cut off here.
        Type::Tf32 if modifiers.rounding() == Rounding::Away => bits & !0x1fff,
        _ => target.nan(),
    }
}

/// Rounded to an integer; a zero keeps its sign.
fn integral(rounding: Rounding, number: Number) -> Number {
    match number {
        Number::Finite { negative, exponent, mantissa } if exponent < 0 => {
            Number::Finite { negative, exponent: 0, mantissa: shifted(rounding, negative, mantissa, -exponent) }
        }
        other => other,
    }
}

/// `cvt.rn.f16x2.f32` and its like: `a` goes to the upper half.
pub(crate) fn pack_floats(modifiers: Modifiers, a: f32, b: f32) -> u32 {
    let [a, b] = [a, b].map(|half| convert(modifiers, half.bits()) as u32);
    a << 16 | b
}

/// `cvt.pack.sat.u16.s32`: `a` goes to the upper half.
pub(crate) fn pack_halves(modifiers: Modifiers, a: i32, b: i32) -> u32 {
    let [a, b] = [a, b].map(|half| convert(modifiers, half as u64) as u32 & 0xffff);
    a << 16 | b
}

/// `cvt.pack.sat.u8.s32.b32`: `a` above `b`, and above both the lower half of `c`.
pub(crate) fn pack_bytes(modifiers: Modifiers, a: i32, b: i32, c: u32) -> u32 {
    // The last type is that of `c`; the one before, that of `a` and `b`, is always `s32`.
    let [a, b] = [a, b].map(|byte| {
        let (least, greatest) = range(integer(modifiers.to()).unwrap_or((8, false)));
        i128::from(byte).clamp(least, greatest) as u32 & 0xff
    });
    c << 16 | a << 8 | b
}

/// Half precision as single, which has all of its numbers.
#[inline(always)]
pub(super) fn widen(modifiers: Modifiers, half: u16) -> f32 {
    if modifiers.from() == Type::Bf16 { bf16_as_f32(half) } else { f16_as_f32(half) }
}

/// The upper half of the bits is all there is, also of a NaN.
#[inline(always)]
pub(crate) fn bf16_as_f32(half: u16) -> f32 {
    f32::from_bits(u32::from(half) << 16)
}

/// The exponent is moved up by a product, which makes denormals right too.
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
