//! Comparisons that take the relation as data: the opcode lists the relations that make them true.

use super::convert::widen;
use super::native::flush;
use crate::gpu::modifiers::{EQUAL, GREATER, LESS, Modifiers, Type, UNORDERED};

/// Returns whether the relation of `a` to `b` makes the comparison true.
#[inline(always)]
pub(crate) fn floats(modifiers: Modifiers, a: f32, b: f32) -> bool {
    let holds = |is: bool, relation| is & modifiers.holds(relation);
    holds(a < b, LESS) | holds(a == b, EQUAL) | holds(a > b, GREATER) | holds(a.is_nan() | b.is_nan(), UNORDERED)
}

/// The same, with denormals flushed to zero.
#[inline(always)]
pub(crate) fn flushed(modifiers: Modifiers, a: f32, b: f32) -> bool {
    floats(modifiers, flush(a), flush(b))
}

/// The same in half precision, of either kind.
#[inline(always)]
pub(crate) fn halves(modifiers: Modifiers, a: u16, b: u16) -> bool {
    // In single precision no half is a denormal, so halves are flushed first.
    let [a, b] = [a, b].map(|half| if modifiers.flushes() && half & 0x7c00 == 0 { half & 0x8000 } else { half });
    floats(modifiers, widen(modifiers, a), widen(modifiers, b))
}

/// `set` of two halves: each result is 1.0 or 0, or for integers all ones or 0.
#[inline(always)]
pub(crate) fn set_halves(modifiers: Modifiers, a: u32, b: u32) -> u32 {
    let yes = match modifiers.to() {
        Type::F16 => 0x3c00,
        Type::Bf16 => 0x3f80,
        _ => 0xffff,
    };
    let half = |a: u32, b: u32| if halves(modifiers, a as u16, b as u16) { yes } else { 0 };
    half(a >> 16, b >> 16) << 16 | half(a, b)
}

/// The condition of `slct` on its last operand, an integer or a float.
#[inline(always)]
pub(crate) fn not_below_zero(modifiers: Modifiers, bits: u32) -> bool {
    let value = f32::from_bits(bits);
    match modifiers.from() {
        Type::F32 => (if modifiers.flushes() { flush(value) } else { value }) >= 0.0,
        _ => bits as i32 >= 0,
    }
}
