//! Floating point in any format and rounding, through integers. Operands are taken apart, the
//! operation is exact or leaves a sticky bit, and the result is rounded once. This serves the cases
//! for which the host has no arithmetic: half precision, directed rounding and flushed denormals.
//! `native` handles the rest, faster.

use crate::gpu::modifiers::{Modifiers, Rounding, Type};
use crate::gpu::vocabulary::OperandType;

/// A floating-point format in the style of IEEE 754.
#[derive(Debug)]
pub(crate) struct Format {
    /// The total bits.
    width: u32,
    /// The bits of the significand, with the hidden one.
    precision: u32,
    /// The exponent of the largest numbers, which is also the bias.
    bias: i32,
    /// Low bits that exist but are always zero.
    padding: u32,
    /// The NaN that the hardware makes, whatever the operands. In double precision it applies only
    /// if no operand is a NaN.
    nan: u64,
}

const F16: Format = Format { width: 16, precision: 11, bias: 15, padding: 0, nan: 0x7fff };
const BF16: Format = Format { width: 16, precision: 8, bias: 127, padding: 0, nan: 0x7fff };
const TF32: Format = Format { width: 32, precision: 11, bias: 127, padding: 13, nan: 0x7fff_e000 };
const F32: Format = Format { width: 32, precision: 24, bias: 127, padding: 0, nan: 0x7fff_ffff };
const F64: Format = Format { width: 64, precision: 53, bias: 1023, padding: 0, nan: 0xfff8 << 48 };

impl Format {
    /// The format of a type. Integer types have none, and no caller asks for one.
    #[inline(always)]
    pub(super) fn of(name: Type) -> &'static Format {
        match name {
            Type::F16 => &F16,
            Type::Bf16 => &BF16,
            Type::Tf32 => &TF32,
            Type::F64 => &F64,
            _ => &F32,
        }
    }

    #[inline(always)]
    pub(super) fn sign(&self) -> u64 {
        1 << (self.width - 1)
    }

    /// The bits of infinity; a magnitude above is a NaN.
    #[inline(always)]
    pub(super) fn infinity(&self) -> u64 {
        (2 * self.bias as u64 + 1) << (self.precision - 1 + self.padding)
    }

    #[inline(always)]
    pub(super) fn one(&self) -> u64 {
        (self.bias as u64) << (self.precision - 1 + self.padding)
    }

    #[inline(always)]
    pub(super) fn is_nan(&self, bits: u64) -> bool {
        bits & (self.sign() - 1) > self.infinity()
    }

    #[inline(always)]
    pub(super) fn nan(&self) -> u64 {
        self.nan
    }

    /// A NaN of another format, made quiet, with its sign and the part of its fraction that fits.
    pub(super) fn with_payload_of(&self, other: &Format, bits: u64) -> u64 {
        let sign = if bits & other.sign() != 0 { self.sign() } else { 0 };
        // Shifts to the left end of 64 bits and back.
        let fraction = bits << (65 - other.precision) >> (65 - self.precision);
        sign | self.infinity() | self.quiet() | fraction
    }

    /// The bit that makes a NaN quiet.
    #[inline(always)]
    pub(super) fn quiet(&self) -> u64 {
        1 << (self.precision - 2 + self.padding)
    }

    /// The result of an operation if some operand is a NaN: in double precision the first such
    /// operand, made quiet.
    fn nan_among<const N: usize>(&self, operands: [u64; N]) -> Option<u64> {
        let nan = operands.into_iter().find(|bits| self.is_nan(*bits))?;
        Some(if self.width == 64 { nan | self.quiet() } else { self.nan })
    }

    /// Flushes a denormal to the zero of its sign; other numbers stay the same.
    #[inline(always)]
    pub(super) fn flush(&self, bits: u64) -> u64 {
        if bits & self.infinity() == 0 { bits & self.sign() } else { bits }
    }
}

/// A type that holds numbers of some format: a float of the host, or 16 bits whose meaning the
/// opcode gives.
pub(crate) trait Float: OperandType {
    /// The format that an opcode specifies.
    fn format(modifiers: Modifiers) -> &'static Format;
}

macro_rules! floats {
    ($($type:ty: $format:expr;)*) => {$(
        impl Float for $type {
            #[inline(always)]
            fn format(modifiers: Modifiers) -> &'static Format {
                $format(modifiers)
            }
        }
    )*};
}

floats! {
    u16: |modifiers: Modifiers| if modifiers.to() == Type::Bf16 { &BF16 } else { &F16 };
    f32: |_| &F32;
    f64: |_| &F64;
}

/// A number in parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    /// Not a number.
    Nan,
    /// An infinity.
    Infinite { negative: bool },
    /// `mantissa * 2^exponent`. The mantissa is below 2^127, and its lowest bit may stand for
    /// everything below it.
    Finite { negative: bool, exponent: i32, mantissa: u128 },
}
use Number::{Finite, Infinite, Nan};

impl Number {
    pub(super) fn negative(self) -> bool {
        matches!(self, Infinite { negative: true } | Finite { negative: true, .. })
    }

    pub(super) fn is_zero(self) -> bool {
        matches!(self, Finite { mantissa: 0, .. })
    }

    /// The zero with its sign.
    fn zero(self) -> Self {
        Finite { negative: self.negative(), exponent: 0, mantissa: 0 }
    }

    fn with_sign(self, negative: bool) -> Self {
        match self {
            Nan => Nan,
            Infinite { .. } => Infinite { negative },
            Finite { exponent, mantissa, .. } => Finite { negative, exponent, mantissa },
        }
    }
}

const ONE: Number = Finite { negative: false, exponent: 0, mantissa: 1 };

/// Takes bits apart. A denormal becomes zero if the instruction flushes.
pub(super) fn unpack(format: &Format, bits: u64, flush: bool) -> Number {
    let bits = if flush { format.flush(bits) } else { bits };
    let negative = bits & format.sign() != 0;
    let magnitude = (bits & (format.sign() - 1)) >> format.padding;
    let fraction = magnitude & ((1 << (format.precision - 1)) - 1);
    let field = (magnitude >> (format.precision - 1)) as i32;
    if field == 2 * format.bias + 1 {
        return if fraction == 0 { Infinite { negative } } else { Nan };
    }
    let hidden = if field == 0 { 0 } else { 1 << (format.precision - 1) };
    let exponent = field.max(1) - format.bias - (format.precision as i32 - 1);
    Finite { negative, exponent, mantissa: u128::from(hidden | fraction) }
}

/// Returns whether rounding increases a magnitude by a unit: `kept` is its integer part, and `rest`
/// the fraction.
fn rounds_up(rounding: Rounding, negative: bool, kept: u128, rest: u128, half: u128) -> bool {
    match rounding {
        Rounding::Nearest => rest > half || rest == half && kept & 1 == 1,
        Rounding::Away => rest >= half,
        Rounding::Zero => false,
        Rounding::Down => negative && rest != 0,
        Rounding::Up => !negative && rest != 0,
    }
}

/// `mantissa / 2^shift`, rounded to an integer.
pub(super) fn shifted(rounding: Rounding, negative: bool, mantissa: u128, shift: i32) -> u128 {
    if shift <= 0 {
        return mantissa << -shift;
    }
    // Anything far below a half rounds like a quarter.
    let (mantissa, shift) = if shift > 127 { (u128::from(mantissa != 0), 2) } else { (mantissa, shift) };
    let kept = mantissa >> shift;
    let (rest, half) = (mantissa & ((1 << shift) - 1), 1 << (shift - 1));
    kept + u128::from(rounds_up(rounding, negative, kept, rest, half))
}

/// Rounds to a format.
pub(super) fn pack(format: &Format, rounding: Rounding, number: Number) -> u64 {
    let sign = if number.negative() { format.sign() } else { 0 };
    let (negative, exponent, mantissa) = match number {
        Nan => return format.nan,
        Infinite { .. } => return sign | format.infinity(),
        Finite { mantissa: 0, .. } => return sign,
        Finite { negative, exponent, mantissa } => (negative, exponent, mantissa),
    };
    let digits = format.precision as i32 - 1;
    let top = exponent + 127 - mantissa.leading_zeros() as i32;
    let unit = top.max(1 - format.bias) - digits;
    let kept = shifted(rounding, negative, mantissa, unit - exponent) as u64;
    // The hidden bit adds one to the exponent field, and so does a carry out of the significand;
    // both are correct.
    let magnitude = ((unit + digits + format.bias - 1) as u64) * (1 << digits) + kept;
    let overflows = magnitude << format.padding >= format.infinity();
    let towards_zero = match rounding {
        Rounding::Nearest | Rounding::Away => false,
        Rounding::Zero => true,
        Rounding::Down => !negative,
        Rounding::Up => negative,
    };
    match overflows {
        true if towards_zero => sign | ((format.infinity() >> format.padding) - 1) << format.padding,
        true => sign | format.infinity(),
        false => sign | magnitude << format.padding,
    }
}

/// Rounds, and applies the opcode's modifiers: it flushes denormals, and clamps results to 0..1 or
/// to 0 from below.
pub(super) fn finish(format: &Format, modifiers: Modifiers, number: Number) -> u64 {
    let flush = modifiers.flushes() && is_tiny(format, modifiers.rounding(), number);
    let number = if flush { number.zero() } else { number };
    clamp(format, modifiers, pack(format, modifiers.rounding(), number))
}

/// Returns whether a number would be a denormal if it were rounded with an unlimited exponent. Such
/// a number is flushed, even if rounding as a denormal would give the least normal number.
pub(super) fn is_tiny(format: &Format, rounding: Rounding, number: Number) -> bool {
    let Finite { negative, exponent, mantissa } = number else { return false };
    if mantissa == 0 {
        return false;
    }
    let unit = exponent + 128 - mantissa.leading_zeros() as i32 - format.precision as i32;
    let kept = shifted(rounding, negative, mantissa, unit - exponent);
    unit + 127 - (kept.leading_zeros() as i32) < 1 - format.bias
}

/// `.sat` and `.relu`
pub(super) fn clamp(format: &Format, modifiers: Modifiers, bits: u64) -> u64 {
    let below = bits & format.sign() != 0;
    if modifiers.saturates() {
        return if format.is_nan(bits) || below { 0 } else { bits.min(format.one()) };
    }
    if modifiers.relu() && below && !format.is_nan(bits) { 0 } else { bits }
}

/// The exact product.
fn product(a: Number, b: Number) -> Number {
    let negative = a.negative() != b.negative();
    match (a, b) {
        (Nan, _) | (_, Nan) => Nan,
        (Infinite { .. }, other) | (other, Infinite { .. }) if other.is_zero() => Nan,
        (Infinite { .. }, _) | (_, Infinite { .. }) => Infinite { negative },
        (Finite { exponent: e, mantissa: a, .. }, Finite { exponent: f, mantissa: b, .. }) => {
            Finite { negative, exponent: e + f, mantissa: a * b }
        }
    }
}

/// The sum: exact, or with everything far below in the lowest bit.
fn sum(rounding: Rounding, a: Number, b: Number) -> Number {
    let (Finite { negative, .. }, Finite { negative: other, .. }) = (a, b) else {
        return match (a, b) {
            (Nan, _) | (_, Nan) => Nan,
            (Infinite { negative: a }, Infinite { negative: b }) if a != b => Nan,
            (Infinite { .. }, _) => a,
            _ => b,
        };
    };
    // A zero sum has the sign of both operands, or if they differ, the sign that the rounding
    // gives.
    let zero = Finite { negative: rounding == Rounding::Down, exponent: 0, mantissa: 0 };
    match (a.is_zero(), b.is_zero()) {
        (true, true) => return if negative == other { a } else { zero },
        (true, false) => return b,
        (false, true) => return a,
        (false, false) => {}
    }
    let ((high, e), (low, f)) = (normal(a), normal(b));
    let (a_first, distance) = ((e, high) >= (f, low), e.abs_diff(f));
    let (big, small, exponent) = if a_first { (high, low, e) } else { (low, high, f) };
    let sticky = |value: u128| match distance {
        0..=127 => value >> distance | u128::from(value & ((1 << distance) - 1) != 0),
        _ => 1,
    };
    let small = sticky(small);
    let mantissa = if negative == other { big + small } else { big - small };
    let sign = if a_first { negative } else { other };
    if mantissa == 0 { zero } else { Finite { negative: sign, exponent, mantissa } }
}

/// A finite number's mantissa with its top bit at 125, and the matching exponent. A product of two
/// numbers has at most 106 bits, so the low bits are zero: if a difference cancels more than one
/// bit, the sticky bit has lost nothing.
fn normal(number: Number) -> (u128, i32) {
    let Finite { exponent, mantissa, .. } = number else { return (0, 0) };
    let up = mantissa.leading_zeros() as i32 - 2;
    (mantissa << up, exponent - up)
}

/// The quotient, with the remainder in the lowest bit.
fn quotient(a: Number, b: Number) -> Number {
    let negative = a.negative() != b.negative();
    match (a, b) {
        (Nan, _) | (_, Nan) | (Infinite { .. }, Infinite { .. }) => Nan,
        (Infinite { .. }, _) => Infinite { negative },
        (_, Infinite { .. }) => Finite { negative, exponent: 0, mantissa: 0 },
        _ if a.is_zero() && b.is_zero() => Nan,
        _ if b.is_zero() => Infinite { negative },
        _ if a.is_zero() => a.with_sign(negative),
        (Finite { .. }, Finite { exponent: f, mantissa: divisor, .. }) => {
            let (dividend, e) = normal(a);
            let mantissa = (dividend / divisor) | u128::from(!dividend.is_multiple_of(divisor));
            Finite { negative, exponent: e - f, mantissa }
        }
    }
}

/// The square root, with the remainder in the lowest bit.
fn root(a: Number) -> Number {
    if a.is_zero() || a == (Infinite { negative: false }) {
        return a;
    }
    if a == Nan || a.negative() {
        return Nan;
    }
    let (mantissa, exponent) = normal(a);
    let odd = exponent & 1;
    let mantissa = mantissa << odd;
    let root = mantissa.isqrt();
    Finite {
        negative: false,
        exponent: (exponent - odd) / 2 - 1,
        mantissa: root << 1 | u128::from(root * root != mantissa),
    }
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident($($operand:ident),*), [$($first:ident),*] = |$rounding:ident| $compute:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<T: Float>(modifiers: Modifiers, $($operand: T),*) -> T {
            T::of_bits(bits::$name(T::format(modifiers), modifiers, $($operand.bits()),*))
        }
    )*
        /// One copy of the code for all formats and both copies of the engine.
        mod bits {
            use super::*;
            $(
                #[inline(never)]
                pub(super) fn $name(format: &Format, modifiers: Modifiers, $($operand: u64),*) -> u64 {
                    if let Some(nan) = format.nan_among([$($first),*]) {
                        return clamp(format, modifiers, nan);
                    }
                    $(let $operand = unpack(format, $operand, modifiers.flushes());)*
                    let $rounding = modifiers.rounding();
                    finish(format, modifiers, $compute)
                }
            )*
        }
    };
}

// The brackets list the operands in the order in which an H100 looks for a NaN result.
operations! {
    /// `a + b`
    add(a, b), [b, a] = |rounding| sum(rounding, a, b);
    /// `a - b`
    sub(a, b), [b, a] = |rounding| sum(rounding, a, b.with_sign(!b.negative()));
    /// `a * b`
    mul(a, b), [b, a] = |_rounding| product(a, b);
    /// `a * b + c`, rounded once.
    fma(a, b, c), [b, c, a] = |rounding| sum(rounding, product(a, b), c);
    /// `a / b`
    div(a, b), [a, b] = |_rounding| quotient(a, b);
    /// `1 / a`
    rcp(a), [a] = |_rounding| quotient(ONE, a);
    /// The square root.
    sqrt(a), [a] = |_rounding| root(a);
}

macro_rules! extrema {
    ($($name:ident $greater:literal;)*) => {$(
        /// The lesser or the greater operand, under the opcode's rules for NaNs.
        #[inline(always)]
        pub(crate) fn $name<T: Float>(modifiers: Modifiers, a: T, b: T) -> T {
            T::of_bits(extremum(T::format(modifiers), modifiers, [a.bits(), b.bits()], $greater))
        }
    )*};
}

extrema! { min false; max true; }

#[inline(never)]
fn extremum(format: &Format, modifiers: Modifiers, operands: [u64; 2], greater: bool) -> u64 {
    let [a, b] = if modifiers.flushes() { operands.map(|bits| format.flush(bits)) } else { operands };
    let sign = if modifiers.xorsign() { (a ^ b) & format.sign() } else { 0 };
    let [a, b] = if modifiers.xorsign() { [a, b].map(|bits| bits & !format.sign()) } else { [a, b] };
    // As integers, positive numbers are in order of magnitude. The complement of a negative number
    // is in order too, below them.
    let key = |bits: u64| if bits & format.sign() != 0 { !(bits & (format.sign() - 1)) as i64 } else { bits as i64 };
    let bits = match (format.is_nan(a), format.is_nan(b)) {
        (true, true) => return format.nan,
        (true, _) | (_, true) if modifiers.keeps_nan() => return format.nan,
        (true, _) => b,
        (_, true) => a,
        _ if (key(a) > key(b)) == greater => a,
        _ => b,
    };
    bits | sign
}

/// `neg`
#[inline(always)]
pub(crate) fn neg<T: Float>(modifiers: Modifiers, a: T) -> T {
    sign_only(modifiers, a, |bits, sign| bits ^ sign)
}

/// `abs`
#[inline(always)]
pub(crate) fn abs<T: Float>(modifiers: Modifiers, a: T) -> T {
    sign_only(modifiers, a, |bits, sign| bits & !sign)
}

#[inline(always)]
fn sign_only<T: Float>(modifiers: Modifiers, a: T, change: impl Fn(u64, u64) -> u64) -> T {
    let format = T::format(modifiers);
    let bits = if modifiers.flushes() { format.flush(a.bits()) } else { a.bits() };
    T::of_bits(if format.is_nan(bits) { format.nan } else { change(bits, format.sign()) })
}
