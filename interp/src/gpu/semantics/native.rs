//! Floating point for which the host's arithmetic equals the device's: single and double precision,
//! rounding to nearest, nothing flushed.

/// Returns whether an operand is a NaN, which makes `ltu` and the like true and the plain
/// comparisons false.
pub(crate) fn unordered32(a: f32, b: f32) -> bool {
    a.is_nan() || b.is_nan()
}

/// The same in double precision.
pub(crate) fn unordered64(a: f64, b: f64) -> bool {
    a.is_nan() || b.is_nan()
}

/// Replaces a NaN result by the one NaN that the hardware makes. It is detected and chosen as bits,
/// because the compiler may substitute any NaN for another.
pub(crate) fn canonical32(value: f32) -> f32 {
    let bits = value.to_bits();
    f32::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 { 0x7fff_ffff } else { bits })
}

/// Replaces a NaN result of double precision by the first NaN among `operands`, made quiet, or if
/// there is none, by the one NaN that the hardware makes.
#[inline(always)]
pub(crate) fn first_nan<const N: usize>(value: f64, operands: [f64; N]) -> f64 {
    let is_nan = |bits: u64| bits & (u64::MAX >> 1) > 0x7ff0 << 48;
    let none = operands
        .iter()
        .rev()
        .map(|operand| operand.to_bits())
        .fold(0xfff8 << 48, |found, bits| if is_nan(bits) { bits | 0x8 << 48 } else { found });
    let bits = value.to_bits();
    f64::from_bits(if is_nan(bits) { none } else { bits })
}

/// The result of a sum or of a change of sign with `.ftz`, from flushed operands.
#[inline(always)]
pub(crate) fn ftz(value: f32) -> f32 {
    canonical32(flush(value))
}

/// The result of a product with `.ftz`. The least normal number may have been rounded up from
/// below; in that case `exact` decides.
#[inline(always)]
pub(crate) fn ftz_product(value: f32, exact: impl Fn() -> f32) -> f32 {
    if value.abs() == f32::MIN_POSITIVE { exact() } else { ftz(value) }
}

/// Flushes a denormal to the zero of its sign; other numbers stay the same.
#[inline(always)]
pub(crate) fn flush(value: f32) -> f32 {
    let bits = value.to_bits();
    f32::from_bits(if bits & 0x7f80_0000 == 0 { bits & 1 << 31 } else { bits })
}

/// `neg.f64`: a NaN keeps its sign.
pub(crate) fn neg_f64(a: f64) -> f64 {
    first_nan(if a.is_nan() { a } else { -a }, [a])
}

/// `abs.f64`: a NaN keeps its sign.
pub(crate) fn abs_f64(a: f64) -> f64 {
    first_nan(if a.is_nan() { a } else { a.abs() }, [a])
}

/// `cvt.rzi.u32.f64`
pub(crate) fn integer_u32(a: f64) -> u32 {
    if a.is_nan() { 1 << 31 } else { a as u32 }
}

/// `cvt.rzi.s32.f64`
pub(crate) fn integer_s32(a: f64) -> i32 {
    if a.is_nan() { i32::MIN } else { a as i32 }
}

macro_rules! extrema {
    ($($name:ident $type:ty: $greatest:literal, $nan:expr;)*) => {$(
        /// `min` or `max`: a number wins over a NaN, and -0 is below +0.
        pub(crate) fn $name(a: $type, b: $type) -> $type {
            let wins = if $greatest { b > a } else { b < a };
            let equal = if a.is_sign_negative() == $greatest { b } else { a };
            let otherwise = if a == b { equal } else { a };
            $nan(if a.is_nan() || wins { b } else { otherwise }, b)
        }
    )*};
}

extrema! {
    min_f32 f32: false, |value, _| canonical32(value);
    max_f32 f32: true, |value, _| canonical32(value);
    min_f64 f64: false, |value, b| first_nan(value, [b]);
    max_f64 f64: true, |value, b| first_nan(value, [b]);
}
