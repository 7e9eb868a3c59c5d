//! Numbers in memory, and the values that arithmetic uses.

use core::arch::asm;
use core::ops::{Add, Div, Mul, Sub};

use crate::thread::quad::{Lanes, permute_bytes};
use crate::thread::{B8, B16, B32, B64, Quad, Word};

/// The type in which numbers are compared and summed.
pub trait Value: Number<Value = Self> + Copy + PartialOrd {
    /// Zero.
    const ZERO: Self;
    /// The greatest value.
    const GREATEST: Self;
    /// The least value.
    const LEAST: Self;
    /// Returns the sum of two; for integers modulo a power of two.
    fn plus(self, other: Self) -> Self;
    /// Returns whether it is not a number.
    fn is_nan(self) -> bool;
}

/// The type of arithmetic. Rust does not contract a product and a sum to one rounding, so a CPU's
/// result is the same.
pub trait Real: Value + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> {
    /// One.
    const ONE: Self;
    /// Returns the value nearest to a double.
    fn of(double: f64) -> Self;
    /// Returns `2^64` times `e` to the power of a number of at most 8: see [`exponential`].
    fn scaled_exp(self) -> Self;
    /// Returns the larger of two; if one is NaN, the other.
    fn larger(self, other: Self) -> Self;
    /// Returns `self * factor + offset`, rounded once. Rust has this in `std` only.
    fn fma(self, factor: Self, offset: Self) -> Self;
}

/// A number type.
pub trait Number {
    /// Its bits in memory.
    type Word: Word + Lanes;
    /// The type of its arithmetic.
    type Value: Value;
    /// The type of sums of many numbers, in computation and as results.
    type Sum: Value;

    /// Returns the value of these bits.
    fn value(word: Self::Word) -> Self::Value;
    /// Returns a value as a term of sums.
    fn term(value: Self::Value) -> Self::Sum;

    /// True if the sum of eight values is a value, as for narrow integers.
    const ADDS_IN_VALUES: bool = false;

    /// Returns the sum of a vector's numbers, if there is an instruction for several of them.
    #[inline(always)]
    fn sum(_: Quad) -> Option<Self::Sum> {
        None
    }

    /// Returns the greatest of a vector's numbers and its first lane, if both fit in one value.
    #[inline(always)]
    fn greatest(_: Quad) -> Option<(Self::Value, u32)> {
        None
    }

    /// Returns the bits of the nearest number, ties to even.
    fn word(value: Self::Value) -> Self::Word;

    /// Returns the vector of numbers nearest to the first of eight values.
    #[inline(always)]
    fn quad(values: [Self::Value; 8]) -> Quad {
        let mut quad = [0; 4];
        crate::unrolled!(lane < 8 => {
            if lane < Self::Word::COUNT {
                quad = Self::word(values[lane]).put(quad, lane);
            }
        });
        quad
    }
}

/// IEEE 754 half precision.
pub struct F16;
/// The upper half of an `f32`.
pub struct Bf16;

impl Number for F16 {
    type Word = B16;
    type Value = f32;
    type Sum = f32;

    #[inline(always)]
    fn term(value: f32) -> f32 {
        value
    }

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
        B16::new(u32::from(nearest_half(value)))
    }

    /// Two at a time, so that both are one instruction: as 32-bit numbers that are shifted they are
    /// three, two of them slow.
    #[inline(always)]
    fn quad([a, b, c, d, e, f, g, h]: [f32; 8]) -> Quad {
        [[a, b], [c, d], [e, f], [g, h]].map(|pair| {
            let [low, high] = pair.map(nearest_half);
            let both: u32;
            // SAFETY: moves registers.
            unsafe {
                asm!("mov.b32 {both}, {{{low}, {high}}};", both = out(reg32) both, low = in(reg16) low,
                    high = in(reg16) high, options(pure, nomem, nostack))
            };
            both
        })
    }
}

#[inline(always)]
fn nearest_half(value: f32) -> u16 {
    let bits: u16;
    // SAFETY: arithmetic.
    unsafe { asm!("cvt.rn.f16.f32 {}, {};", out(reg16) bits, in(reg32) value, options(pure, nomem, nostack)) };
    bits
}

impl Number for Bf16 {
    type Word = B16;
    type Value = f32;
    type Sum = f32;

    #[inline(always)]
    fn term(value: f32) -> f32 {
        value
    }

    #[inline(always)]
    fn value(word: B16) -> f32 {
        f32::from_bits(word.low() << 16)
    }

    #[inline(always)]
    fn word(value: f32) -> B16 {
        B16::new(nearest_upper_half(value) >> 16)
    }

    #[inline(always)]
    fn quad(values: [f32; 8]) -> Quad {
        let [a, b, c, d, e, f, g, h] = values.map(nearest_upper_half);
        [[a, b], [c, d], [e, f], [g, h]].map(|[low, high]| permute_bytes::<0x7632>(low, high))
    }
}

/// Returns bits whose upper half is the nearest number's. This uses integers, because the
/// instruction needs sm_80: the dropped bits add one to the rest if they are more than half of its
/// last digit, or half and it is odd.
#[inline(always)]
fn nearest_upper_half(value: f32) -> u32 {
    let bits = value.to_bits();
    // NaN must stay NaN, whichever of its bits are dropped.
    if value.is_nan() { bits | 0x40_0000 } else { bits.wrapping_add(0x7fff + (bits >> 16 & 1)) }
}

macro_rules! same {
    ($($value:ident $word:ident $exp:ident $fma:literal $class:ident),*) => {$(
        impl Number for $value {
            type Word = $word;
            type Value = $value;
            type Sum = $value;

            #[inline(always)]
            fn value(word: $word) -> $value {
                $value::from_bits(word.low())
            }

            #[inline(always)]
            fn term(value: $value) -> $value {
                value
            }

            #[inline(always)]
            fn word(value: $value) -> $word {
                $word::new(value.to_bits())
            }
        }

        impl Value for $value {
            const ZERO: Self = 0.0;
            const GREATEST: Self = $value::INFINITY;
            const LEAST: Self = $value::NEG_INFINITY;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                self != self
            }
        }

        impl Real for $value {
            const ONE: Self = 1.0;

            #[inline(always)]
            fn of(double: f64) -> Self {
                double as $value
            }

            #[inline(always)]
            fn scaled_exp(self) -> Self {
                $exp(self)
            }

            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                self.max(other)
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

/// Integers. Those of 8 and 16 bits are computed in 32 bits, and one instruction adds all numbers
/// of a register: it multiplies them by ones first.
macro_rules! integers {
    ($($type:ident $word:ident $value:ident $sum:ident $($add:literal of $ones:literal)?;)*) => {$(
        impl Number for $type {
            type Word = $word;
            type Value = $value;
            type Sum = $sum;

            #[inline(always)]
            fn value(word: $word) -> $value {
                word.low() as $type as $value
            }

            #[inline(always)]
            fn term(value: $value) -> $sum {
                value as $sum
            }

            #[inline(always)]
            fn word(value: $value) -> $word {
                $word::new(value as _)
            }

            $(
                const ADDS_IN_VALUES: bool = true;

                #[inline(always)]
                fn sum([a, b, c, d]: Quad) -> Option<$sum> {
                    let add = |sum: $value, word: u32| {
                        let added: $value;
                        // SAFETY: arithmetic.
                        unsafe {
                            asm!(concat!($add, " {}, {}, {}, {};"), out(reg32) added, in(reg32) word,
                                in(reg32) $ones, in(reg32) sum, options(pure, nomem, nostack))
                        };
                        added
                    };
                    Some(add(add(add(add(0, a), b), c), d) as $sum)
                }

                #[inline(always)]
                fn greatest(quad: Quad) -> Option<($value, u32)> {
                    // Four bits below each number are greater for a lower lane, so the first of
                    // equal numbers is the greatest.
                    let mut greatest = $value::MIN;
                    crate::unrolled!(lane < 16 => {
                        if lane < $word::COUNT {
                            let both = Self::value($word::get(quad, lane)) << 4 | (15 - lane) as $value;
                            greatest = if both > greatest { both } else { greatest };
                        }
                    });
                    Some((greatest >> 4, 15 - (greatest & 15) as u32))
                }
            )?
        }
    )*};
}

integers! {
    u8 B8 u32 u64 "dp4a.u32.u32" of 0x0101_0101_u32;
    i8 B8 i32 i64 "dp4a.s32.s32" of 0x0101_0101_u32;
    u16 B16 u32 u64 "dp2a.lo.u32.u32" of 0x0101_u32;
    i16 B16 i32 i64 "dp2a.lo.s32.s32" of 0x0101_u32;
    u32 B32 u32 u64;
    i32 B32 i32 i64;
    u64 B64 u64 u64;
    i64 B64 i64 i64;
}

macro_rules! integer_values {
    ($($value:ident)*) => {$(
        impl Value for $value {
            const ZERO: Self = 0;
            const GREATEST: Self = $value::MAX;
            const LEAST: Self = $value::MIN;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }
        }
    )*};
}

integer_values! { u32 i32 u64 i64 }

/// The power of two that scales exponentials.
const EXP_SHIFT: u32 = 64;
/// The scale of exponentials.
pub const EXP_SCALE: f64 = (1_u128 << EXP_SHIFT) as f64;

/// Computes `2^64 e^x` for `x` of at most 8, by operations that every device rounds alike: to
/// within 2 units in the last place, and in single precision a twentieth of a unit more for each
/// unit of `x` from zero.
///
/// The method is that of Cody and Waite (1980): `x = n ln 2 + r`, a polynomial for `e^r`, and `2^n`
/// as the bits of a number. Adding and subtracting a large number rounds to `n`; `ln 2` in single
/// precision is so accurate that it needs no second part. The polynomial has the least relative
/// error for `r` within half of `ln 2`, of those that start with `1 + r` (Remez's exchange finds
/// it). With the scale, no value that must differ from zero is less than the least normal number.
macro_rules! exponential {
    ($name:ident: $float:ident $bits:ident, least $least:literal, ones at $magic:literal, $mantissa:literal bits,
        bias $bias:literal, ln 2 $($part:literal) and +, $last:literal $($coefficient:literal)*) => {
        #[inline(always)]
        fn $name(x: $float) -> $float {
            // Smaller numbers only give zero; NaN passes.
            let x = if x < $least { $least } else { x };
            let shifted = x.fma(core::$float::consts::LOG2_E, $magic);
            let n = shifted - $magic;
            let mut r = x;
            $(r = n.fma(-$part, r);)*
            let mut sum = $last;
            $(sum = Real::fma(sum, r, $coefficient);)*
            let scale = ($bias + EXP_SHIFT as $bits) << $mantissa;
            sum * $float::from_bits((shifted.to_bits() << $mantissa).wrapping_add(scale))
        }
    };
}

exponential! {
    exp32: f32 u32, least -105.0, ones at 12582912.0, 23 bits, bias 127,
    ln 2 0.693_147_2,
    1.381_459_8e-3 8.368_717e-3 4.166_838_8e-2 0.166_665_2 0.499_999_93 1.0 1.0
}
exponential! {
    exp64: f64 u64, least -746.0, ones at 6755399441055744.0, 52 bits, bias 1023,
    ln 2 0.693_147_180_559_945_3 and 2.319_046_813_846_299_6e-17,
    2.510_767_066_587_668_6e-8 2.763_241_255_426_461e-7 2.755_724_931_758_526_7e-6 2.480_148_803_805_083e-5
    1.984_126_987_952_276_5e-4 1.388_888_894_710_121_3e-3 8.333_333_333_325_034e-3 4.166_666_666_652_486e-2
    0.166_666_666_666_666_71 0.500_000_000_000_001 1.0 1.0
}
