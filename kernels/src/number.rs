//! Numbers as they lie in memory, and as they are computed with.

use core::arch::asm;
use core::ops::{Add, Div, Mul, Sub};

use crate::quad::Lanes;
use crate::thread::{B16, B32, B64, Word};

/// What arithmetic is done in. Rust contracts no product and sum to one rounding, so that a CPU's result is the same.
pub trait Value:
    Number<Value = Self>
    + Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + PartialOrd
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// What no number is above.
    const INFINITY: Self;
    /// What no number is below.
    const NEGATIVE_INFINITY: Self;
    /// The nearest of a double.
    fn of(double: f64) -> Self;
    /// Whether it is none.
    fn is_nan(self) -> bool;
    /// `e` to the power of a number that is not above 8: see [`exponential`].
    fn exp(self) -> Self;
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
    ($($value:ident $word:ident $exp:ident $fma:literal $class:ident),*) => {$(
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
            const ONE: Self = 1.0;
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
            fn exp(self) -> Self {
                $exp(self)
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

same! { f32 B32 exp32 "fma.rn.f32" reg32, f64 B64 exp64 "fma.rn.f64" reg64 }

/// `e^x` of an `x` not above 8, by operations that every device rounds alike: to within 2 units in the last place.
///
/// As Cody and Waite (1980) do it: `x = n ln 2 + r`, the polynomial of `e^r` for `r` within half of `ln 2`, and then `2^n` as the
/// bits of a number; in two factors, so that what is less than the least normal number comes out as well. `n` is rounded by a sum
/// in whose last place ones lie.
macro_rules! exponential {
    ($name:ident: $float:ident $bits:ident, least $least:literal, ones at $magic:literal, $mantissa:literal bits,
        bias $bias:literal, ln 2 $high:literal + $low:literal, $last:literal $($coefficient:literal)*) => {
        #[inline(always)]
        fn $name(x: $float) -> $float {
            // Below, there is nothing but zero; what is no number passes.
            let x = if x < $least { $least } else { x };
            let shifted = x.fma(core::$float::consts::LOG2_E, $magic);
            let n = shifted - $magic;
            let power = shifted.to_bits().wrapping_sub($float::to_bits($magic)) as $bits;
            let r = n.fma(-$low, n.fma(-$high, x));
            let mut sum = $last;
            $(sum = Value::fma(sum, r, $coefficient);)*
            let two_to = |power: $bits| $float::from_bits((power.wrapping_add($bias) << $mantissa) as _);
            let half = power >> 1;
            sum * two_to(half) * two_to(power.wrapping_sub(half))
        }
    };
}

exponential! {
    exp32: f32 i32, least -105.0, ones at 12582912.0, 23 bits, bias 127,
    ln 2 0.693_147_2 + -1.904_654_3e-9,
    1.984_127e-4 1.388_888_9e-3 8.333_333e-3 4.166_666_8e-2 0.166_666_67 0.5 1.0 1.0
}
exponential! {
    exp64: f64 i64, least -746.0, ones at 6755399441055744.0, 52 bits, bias 1023,
    ln 2 0.693_147_180_559_945_3 + 2.319_046_813_846_299_6e-17,
    1.605_904_383_682_161_3e-10 2.087_675_698_786_81e-9 2.505_210_838_544_172e-8 2.755_731_922_398_589_3e-7
    2.755_731_922_398_589e-6 2.480_158_730_158_73e-5 1.984_126_984_126_984e-4 1.388_888_888_888_889e-3
    8.333_333_333_333_333e-3 4.166_666_666_666_666_4e-2 0.166_666_666_666_666_66 0.5 1.0 1.0
}
