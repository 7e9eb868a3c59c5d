//! Products of rows and columns as tensor cores compute them.
//!
//! Products of small floats are exact. All terms of an instruction are aligned to the greatest
//! exponent among them, cut off two bits below the last bit of single precision, and added exactly.
//! The sum is cut off to single precision, or rounded to half precision. An H200 gives these bits
//! (`interp/tests/data/products`). The form of the model, a block of terms that are cut off at a
//! few extra bits, comes from Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA
//! tensor cores" (2021).

use super::float::{Format, Number, finish};
use crate::gpu::modifiers::{Modifiers, Type};

/// The bits below the last one of single precision that terms keep.
const EXTRA: i32 = 2;
/// The bits of a term below the one of the greatest exponent.
const KEPT: i32 = 23 + EXTRA;
const NAN: u32 = 0x7fff_ffff;
const INFINITY: u32 = 0x7f80_0000;
/// The exponent of the least normal number of single precision.
const LEAST: i32 = -126;

/// A floating-point format of at most 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Small {
    /// The bits of the exponent.
    exponent: u32,
    /// The bits of the fraction.
    fraction: u32,
    /// Bits below the fraction, which count for nothing.
    padding: u32,
    /// True if it has infinities.
    infinite: bool,
}

impl Small {
    pub(crate) const F16: Self = Self { exponent: 5, fraction: 10, padding: 0, infinite: true };
    pub(crate) const BF16: Self = Self { exponent: 8, fraction: 7, padding: 0, infinite: true };
    pub(crate) const TF32: Self = Self { exponent: 8, fraction: 10, padding: 13, infinite: true };
    pub(crate) const E4M3: Self = Self { exponent: 4, fraction: 3, padding: 0, infinite: false };
    pub(crate) const E5M2: Self = Self { exponent: 5, fraction: 2, padding: 0, infinite: true };
    pub(crate) const F32: Self = Self { exponent: 8, fraction: 23, padding: 0, infinite: true };

    /// Takes a number apart.
    pub(crate) fn part(self, bits: u32) -> Part {
        let bits = bits >> self.padding;
        let negative = bits >> (self.exponent + self.fraction) & 1 == 1;
        let all = (1 << self.exponent) - 1;
        let (exponent, fraction) = (bits >> self.fraction & all, bits & ((1 << self.fraction) - 1));
        let special = match (exponent == all, self.infinite) {
            (true, true) if fraction == 0 => Special::Infinite,
            (true, true) => Special::Nan,
            (true, false) if fraction == (1 << self.fraction) - 1 => Special::Nan,
            _ => Special::No,
        };
        let hidden = if exponent == 0 { 0 } else { 1 << self.fraction };
        let magnitude = i64::from(fraction | hidden);
        let bias = (1 << (self.exponent - 1)) - 1;
        Part {
            special,
            value: if negative { -magnitude } else { magnitude },
            negative,
            exponent: exponent.max(1) as i32 - bias,
            fraction: self.fraction as i32,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Special {
    No,
    Infinite,
    Nan,
}

/// A number: `value * 2^(exponent - fraction)`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    special: Special,
    value: i64,
    negative: bool,
    exponent: i32,
    fraction: i32,
}

impl Part {
    pub(crate) const ZERO: Self =
        Self { special: Special::No, value: 0, negative: false, exponent: LEAST, fraction: 23 };

    pub(crate) fn is_negative(self) -> bool {
        self.negative
    }

    pub(crate) fn is_infinite(self) -> bool {
        self.special == Special::Infinite
    }

    /// The magnitude in a format, rounded to the nearest, ties to even; beyond the `greatest` that.
    /// `None` for NaN.
    pub(crate) fn rounded(self, format: Small, greatest: u32) -> Option<u32> {
        let magnitude = self.value.unsigned_abs();
        match self.special {
            Special::Nan => return None,
            Special::Infinite => return Some(greatest),
            Special::No if magnitude == 0 => return Some(0),
            Special::No => {}
        }
        let (fraction, bias) = (format.fraction as i32, (1 << (format.exponent - 1)) - 1);
        let unit = self.exponent - self.fraction;
        let place = (unit + magnitude.ilog2() as i32).max(1 - bias);
        let right = place - fraction - unit;
        let kept = match right {
            ..=0 => magnitude << -right,
            1..64 => {
                let (kept, rest, half) = (magnitude >> right, magnitude & ((1 << right) - 1), 1 << (right - 1));
                kept + u64::from(rest > half || (rest == half && kept & 1 == 1))
            }
            _ => 0,
        };
        // A carry into the next place, and from the denormal numbers, is that of the bits.
        let above = ((place + bias - 1) as u64) << fraction;
        Some(u32::try_from(above + kept).unwrap_or(u32::MAX).min(greatest))
    }

    fn times(self, other: Self) -> Self {
        let special = match (self.special, other.special) {
            (Special::No, Special::No) => Special::No,
            (Special::Nan, _) | (_, Special::Nan) => Special::Nan,
            (Special::Infinite, _) if other.value == 0 => Special::Nan,
            (_, Special::Infinite) if self.value == 0 => Special::Nan,
            _ => Special::Infinite,
        };
        Self {
            special,
            value: self.value * other.value,
            negative: self.negative != other.negative,
            exponent: self.exponent + other.exponent,
            fraction: self.fraction + other.fraction,
        }
    }

    /// The value in units of the last kept bit below the exponent `top`, cut off.
    fn aligned(self, top: i32) -> i64 {
        // A zero has an exponent of its own, which the greatest one may be far below.
        if self.value == 0 {
            return 0;
        }
        let left = KEPT - self.fraction - (top - self.exponent);
        let magnitude = self.value.unsigned_abs();
        let shifted = if left >= 0 { magnitude << left } else { magnitude >> (-left).min(63) } as i64;
        if self.value < 0 { -shifted } else { shifted }
    }
}

/// A sum of terms.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Total {
    Nan,
    Infinite {
        negative: bool,
    },
    /// `value * 2^exponent`.
    Finite {
        value: i64,
        exponent: i32,
    },
}

/// Returns the sum of a number and of the products of pairs.
pub(crate) fn sum(first: Part, pairs: impl Iterator<Item = (Part, Part)> + Clone) -> Total {
    let terms = || std::iter::once(first).chain(pairs.clone().map(|(a, b)| a.times(b)));
    let mut infinite = [false; 2];
    let mut top = i32::MIN;
    for term in terms() {
        match term.special {
            Special::Nan => return Total::Nan,
            Special::Infinite => infinite[usize::from(term.negative)] = true,
            Special::No if term.value != 0 => top = top.max(term.exponent),
            Special::No => {}
        }
    }
    match infinite {
        [true, true] => return Total::Nan,
        [false, false] => {}
        [_, negative] => return Total::Infinite { negative },
    }
    match top {
        i32::MIN => Total::Finite { value: 0, exponent: 0 },
        top => Total::Finite { value: terms().map(|term| term.aligned(top)).sum(), exponent: top - KEPT },
    }
}

impl Total {
    /// In single precision, cut off.
    pub(crate) fn single(self) -> u32 {
        match self {
            Self::Nan => NAN,
            Self::Infinite { negative } => u32::from(negative) << 31 | INFINITY,
            Self::Finite { value, exponent } => cut_off(value, exponent),
        }
    }

    /// In half precision, rounded to the nearest.
    pub(crate) fn half(self) -> u32 {
        let number = match self {
            Self::Nan => Number::Nan,
            Self::Infinite { negative } => Number::Infinite { negative },
            Self::Finite { value, exponent } => {
                Number::Finite { negative: value < 0, exponent, mantissa: value.unsigned_abs().into() }
            }
        };
        finish(Format::of(Type::F16), Modifiers::of("cvt.rn.f16.f32"), number) as u32
    }
}

/// `value * 2^exponent` in single precision, cut off.
fn cut_off(value: i64, exponent: i32) -> u32 {
    let magnitude = value.unsigned_abs();
    if magnitude == 0 {
        return 0;
    }
    let sign = u32::from(value < 0) << 31;
    let leading = exponent + magnitude.ilog2() as i32;
    let normal = leading.max(LEAST);
    let right = normal - 23 - exponent;
    let bits = if right >= 0 { magnitude >> right.min(63) } else { magnitude << -right } as u32;
    match leading {
        128.. => sign | INFINITY,
        LEAST.. => sign | ((normal + 127) as u32) << 23 | bits & 0x7f_ffff,
        _ => sign | bits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_far_above_a_small_number_leaves_it_as_it_is() {
        let [tiny, one, zero] = [1e-30_f32, 1.0, 0.0].map(|number| Small::F32.part(number.to_bits()));
        let Total::Finite { value, exponent } = sum(tiny, [(zero, one), (one, zero)].into_iter()) else {
            panic!("the sum is finite")
        };
        assert_eq!(value as f64 * f64::from(exponent).exp2(), f64::from(1e-30_f32));
    }
}
