//! Floats of eight bits: `e4m3`, which has no infinity, and `e5m2`.
//!
//! The rounding is to the nearest, ties to even, and numbers beyond the greatest become that. An
//! H200 gives the same for every pair of bytes and of halves (`interp/tests/data/bytes-h200.bin`).

use super::tensor::{Part, Small};
use crate::gpu::modifiers::Modifiers;

/// The sign of a byte, and the byte of a NaN.
const SIGN: u32 = 0x80;
const NAN: u32 = 0x7f;

/// A format of eight bits, with the byte of its greatest number.
#[derive(Clone, Copy)]
pub(crate) struct Byte(Small, u32);

impl Byte {
    pub(crate) const E4M3: Self = Self(Small::E4M3, 0x7e);
    pub(crate) const E5M2: Self = Self(Small::E5M2, 0x7b);

    /// Rounds a number; `relu` makes negative ones 0.
    fn of(self, number: Part, relu: bool) -> u32 {
        let Self(format, greatest) = self;
        match number.rounded(format, greatest) {
            None => NAN,
            Some(_) if relu && number.is_negative() => 0,
            Some(bits) if number.is_negative() => SIGN | bits,
            Some(bits) => bits,
        }
    }

    /// The half of a byte, which has room for all its numbers.
    fn half(self, byte: u32, relu: bool) -> u32 {
        let number = self.0.part(byte);
        match number.rounded(Small::F16, 0x7bff) {
            None => 0x7fff,
            Some(_) if relu && number.is_negative() => 0,
            Some(bits) => byte >> 7 << 15 | if number.is_infinite() { 0x7c00 } else { bits },
        }
    }

    /// `cvt.rn.satfinite.TYPEx2.f32`: `a` goes to the upper byte.
    pub(crate) fn of_floats(self, modifiers: Modifiers, a: u32, b: u32) -> u32 {
        let [a, b] = [a, b].map(|bits| self.of(Small::F32.part(bits), modifiers.relu()));
        a << 8 | b
    }

    /// `cvt.rn.satfinite.TYPEx2.f16x2`
    pub(crate) fn of_halves(self, modifiers: Modifiers, halves: u32) -> u32 {
        let [a, b] = [halves >> 16, halves & 0xffff].map(|bits| self.of(Small::F16.part(bits), modifiers.relu()));
        a << 8 | b
    }

    /// `cvt.rn.f16x2.TYPEx2`
    pub(crate) fn to_halves(self, modifiers: Modifiers, bytes: u16) -> u32 {
        let [a, b] = [bytes >> 8, bytes & 0xff].map(|byte| self.half(byte.into(), modifiers.relu()));
        a << 16 | b
    }
}
