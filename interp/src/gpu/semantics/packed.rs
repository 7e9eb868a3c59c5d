//! Operations on several narrow values in one register.

use crate::gpu::modifiers::{Modifiers, Type};

/// Applies a function of halves to both halves of a register.
#[inline(always)]
pub(crate) fn both<const N: usize>(sources: [u32; N], function: impl Fn([u16; N]) -> u16) -> u32 {
    let half = |shift: u32| u32::from(function(sources.map(|source| (source >> shift) as u16)));
    half(16) << 16 | half(0)
}

/// Joins four 16-bit parts, the first the lowest.
#[inline(always)]
pub(crate) fn quarters(parts: [u16; 4]) -> u64 {
    parts.iter().rev().fold(0, |word, part| word << 16 | u64::from(*part))
}

/// `min` or `max` of two halves, by the function for unsigned or the one for signed halves.
#[inline(always)]
pub(crate) fn choice(
    modifiers: Modifiers,
    [a, b]: [u16; 2],
    unsigned: impl Fn(u16, u16) -> u16,
    signed: impl Fn(i16, i16) -> i16,
) -> u16 {
    if modifiers.to() != Type::S16 {
        return unsigned(a, b);
    }
    let value = signed(a as i16, b as i16);
    (if modifiers.relu() { value.max(0) } else { value }) as u16
}

/// The byte at `index`, sign-extended if `signed`, else zero-extended.
fn byte(word: u32, index: u32, signed: bool) -> i32 {
    let byte = (word >> (8 * index)) as u8;
    if signed { i32::from(byte as i8) } else { i32::from(byte) }
}

/// `dp4a.ATYPE.BTYPE`: the sum of four products of bytes, and `c`.
#[inline(never)]
pub(crate) fn dp4a(modifiers: Modifiers, a: u32, b: u32, c: u32) -> u32 {
    let (a_signed, b_signed) = (modifiers.to() == Type::S32, modifiers.from() == Type::S32);
    (0..4)
        .fold(c, |sum, index| sum.wrapping_add_signed(byte(a, index, a_signed).wrapping_mul(byte(b, index, b_signed))))
}

/// `dp2a`: the sum of the products of `a`'s halves with two bytes of `b`, from `first` on, and `c`.
#[inline(never)]
pub(crate) fn dp2a(modifiers: Modifiers, a: u32, b: u32, c: u32, first: u32) -> u32 {
    let (a_signed, b_signed) = (modifiers.to() == Type::S32, modifiers.from() == Type::S32);
    (0..2).fold(c, |sum, index| {
        let half = (a >> (16 * index)) as u16;
        let half = if a_signed { i32::from(half as i16) } else { i32::from(half) };
        sum.wrapping_add_signed(half.wrapping_mul(byte(b, first + index, b_signed)))
    })
}

/// `vabsdiff4`: the absolute differences of four bytes, each in its position.
#[inline(never)]
pub(crate) fn distances(a: u32, b: u32) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|index| a.to_le_bytes()[index].abs_diff(b.to_le_bytes()[index])))
}

/// `vabsdiff4.add`: the sum of these differences, and `c`.
#[inline(never)]
pub(crate) fn sum_of_distances(a: u32, b: u32, c: u32) -> u32 {
    distances(a, b).to_le_bytes().iter().fold(c, |sum, distance| sum.wrapping_add(u32::from(*distance)))
}
