//! Numbers as they lie in memory, and as they are computed with.

use core::arch::asm;
use core::ops::{Add, Mul};

use crate::quad::Lanes;
use crate::thread::{B16, B32, B64, Word};

/// What arithmetic is done in. Rust contracts no product and sum to one rounding, so that a CPU's result is the same.
pub trait Value: Number<Value = Self> + Copy + Add<Output = Self> + Mul<Output = Self> + PartialOrd {
    /// Zero.
    const ZERO: Self;
    /// What no number is above.
    const INFINITY: Self;
    /// What no number is below.
    const NEGATIVE_INFINITY: Self;
    /// The nearest of a double.
    fn of(double: f64) -> Self;
    /// Whether it is none.
    fn is_nan(self) -> bool;
    /// `self * factor + offset`, rounded once. Rust has the word, but in `std`.
    fn fma(self, factor: Self, offset: Self) -> Self;
}

/// A number type.
pub trait Number {
    /// Its bits in memory.
    type Word: Word + Lanes;
    /// What it is computed in.
    type Value: Value;

    /// The value of these bits.
    fn value(word: Self::Word) -> Self::Value;
    /// The bits of the nearest number, ties to even.
    fn word(value: Self::Value) -> Self::Word;
}

/// IEEE 754 half precision.
pub struct F16;
/// The upper half of an `f32`.
pub struct Bf16;

impl Number for F16 {
    type Word = B16;
    type Value = f32;

    #[inline(always)]
    fn value(word: B16) -> f32 {
        let value: f32;
        // SAFETY: arithmetic.
        unsafe {
            asm!("cvt.f32.f16 {}, {};", out(reg32) value, in(reg16) word.low() as u16, options(pure, nomem, nostack))
        };
        value
    }

    #[inline(always)]
    fn word(value: f32) -> B16 {
        let bits: u16;
        // SAFETY: arithmetic.
        unsafe { asm!("cvt.rn.f16.f32 {}, {};", out(reg16) bits, in(reg32) value, options(pure, nomem, nostack)) };
        B16::new(u32::from(bits))
    }
}

impl Number for Bf16 {
    type Word = B16;
    type Value = f32;

    #[inline(always)]
    fn value(word: B16) -> f32 {
        f32::from_bits(word.low() << 16)
    }

    /// By integers, because the instruction wants sm_80: the bits that go make the rest one more where they are more than half of
    /// its last place, or half and it is odd.
    #[inline(always)]
    fn word(value: f32) -> B16 {
        let bits = value.to_bits();
        let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
        // What is no number has to stay none, whichever of its bits go.
        B16::new(if value.is_nan() { bits >> 16 | 0x40 } else { rounded })
    }
}

macro_rules! same {
    ($($value:ident $word:ident $fma:literal $class:ident),*) => {$(
        impl Number for $value {
            type Word = $word;
            type Value = $value;

            #[inline(always)]
            fn value(word: $word) -> $value {
                $value::from_bits(word.low())
            }

            #[inline(always)]
            fn word(value: $value) -> $word {
                $word::new(value.to_bits())
            }
        }

        impl Value for $value {
            const ZERO: Self = 0.0;
            const INFINITY: Self = $value::INFINITY;
            const NEGATIVE_INFINITY: Self = $value::NEG_INFINITY;

            #[inline(always)]
            fn of(double: f64) -> Self {
                double as $value
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                self != self
            }

            #[inline(always)]
            fn fma(self, factor: Self, offset: Self) -> Self {
                let sum: Self;
                // SAFETY: arithmetic.
                unsafe {
                    asm!(concat!($fma, " {}, {}, {}, {};"), out($class) sum, in($class) self, in($class) factor,
                        in($class) offset, options(pure, nomem, nostack))
                };
                sum
            }
        }
    )*};
}

same! { f32 B32 "fma.rn.f32" reg32, f64 B64 "fma.rn.f64" reg64 }
