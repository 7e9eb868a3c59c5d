//! What instructions compute: functions of plain values, one lane's worth. Where the standard library has the function the
//! table names that one; these are the rest, and where PTX differs from the obvious Rust the comment says so.
//!
//! All are total: a lane whose guard is off is computed like the others and its result dropped.

/// `shl`: amounts beyond the width give 0, they do not wrap.
pub(crate) fn shl16(a: u16, amount: u32) -> u16 {
    a.checked_shl(amount).unwrap_or(0)
}

/// `shl`
pub(crate) fn shl32(a: u32, amount: u32) -> u32 {
    a.checked_shl(amount).unwrap_or(0)
}

/// `shl`
pub(crate) fn shl64(a: u64, amount: u32) -> u64 {
    a.checked_shl(amount).unwrap_or(0)
}

/// `shr` of an unsigned value: 0 beyond the width.
pub(crate) fn shr_u16(a: u16, amount: u32) -> u16 {
    a.checked_shr(amount).unwrap_or(0)
}

/// `shr`
pub(crate) fn shr_u32(a: u32, amount: u32) -> u32 {
    a.checked_shr(amount).unwrap_or(0)
}

/// `shr`
pub(crate) fn shr_u64(a: u64, amount: u32) -> u64 {
    a.checked_shr(amount).unwrap_or(0)
}

/// `shr` of a signed value: all sign beyond the width.
pub(crate) fn shr_s16(a: i16, amount: u32) -> i16 {
    a >> amount.min(15)
}

/// `shr`
pub(crate) fn shr_s32(a: i32, amount: u32) -> i32 {
    a >> amount.min(31)
}

/// `shr`
pub(crate) fn shr_s64(a: i64, amount: u32) -> i64 {
    a >> amount.min(63)
}

/// `shf.l`: the upper half of `high:low` shifted left; `amount` is at most 32.
pub(crate) fn funnel_left(low: u32, high: u32, amount: u32) -> u32 {
    let both = u64::from(high) << 32 | u64::from(low);
    (both << amount >> 32) as u32
}

/// `shf.r`: the lower half of `high:low` shifted right; `amount` is at most 32.
pub(crate) fn funnel_right(low: u32, high: u32, amount: u32) -> u32 {
    let both = u64::from(high) << 32 | u64::from(low);
    (both >> amount) as u32
}

/// `bfe.u32`: `len` bits from `pos`; bits beyond the value read as 0. Both counts are taken modulo 256,
/// as the ISA's manual has it; of 64-bit fields an H100 clamps whole counts instead.
pub(crate) fn bfe_u32(a: u32, pos: u32, len: u32) -> u32 {
    bfe_u64(u64::from(a), pos, len) as u32
}

/// `bfe.u64`
pub(crate) fn bfe_u64(a: u64, pos: u32, len: u32) -> u64 {
    let mask = 1_u64.checked_shl(len & 0xff).map_or(u64::MAX, |bit| bit - 1);
    shr_u64(a, pos & 0xff) & mask
}

/// `bfe.s32`: like the unsigned one, but filled with the field's top bit, and with the value's own beyond its end.
pub(crate) fn bfe_s32(a: i32, pos: u32, len: u32) -> i32 {
    // Sign extension to 64 bits gives the bits beyond the end; the rest is the same.
    bfe_s64(i64::from(a), (pos & 0xff).min(32), (len & 0xff).min(32)) as i32
}

/// `bfe.s64`
pub(crate) fn bfe_s64(a: i64, pos: u32, len: u32) -> i64 {
    let len = (len & 0xff).min(64);
    if len == 0 {
        return 0;
    }
    shr_s64(a, pos & 0xff) << (64 - len) >> (64 - len)
}

/// `bfi.b32`: `len` low bits of `a` put into `b` at `pos`; both counts modulo 256.
pub(crate) fn bfi32(a: u32, b: u32, pos: u32, len: u32) -> u32 {
    let (pos, len) = ((pos & 0xff).min(32), (len & 0xff).min(32));
    bfi64(u64::from(a), u64::from(b), pos, len) as u32
}

/// `bfi.b64`
pub(crate) fn bfi64(a: u64, b: u64, pos: u32, len: u32) -> u64 {
    let (pos, len) = (pos & 0xff, len & 0xff);
    let field = 1_u64.checked_shl(len).map_or(u64::MAX, |bit| bit - 1);
    let mask = shl64(field, pos);
    b & !mask | shl64(a, pos) & mask
}

/// `prmt.b32`: each nibble of `selector` picks one of the 8 bytes of `b:a`, or with its top bit that byte's sign.
pub(crate) fn prmt(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = u64::from(b) << 32 | u64::from(a);
    let mut out = 0;
    for byte in 0..4 {
        let nibble = selector >> (4 * byte) & 0xf;
        let picked = (bytes >> (8 * (nibble & 7))) as u8;
        let value = if nibble & 8 != 0 { (picked as i8 >> 7) as u8 } else { picked };
        out |= u32::from(value) << (8 * byte);
    }
    out
}

/// Upper half of a product.
pub(crate) fn mul_hi_u32(a: u32, b: u32) -> u32 {
    ((u64::from(a) * u64::from(b)) >> 32) as u32
}

/// Upper half of a product.
pub(crate) fn mul_hi_s32(a: i32, b: i32) -> i32 {
    ((i64::from(a) * i64::from(b)) >> 32) as i32
}

/// Upper half of a product.
pub(crate) fn mul_hi_u64(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

/// Upper half of a product.
pub(crate) fn mul_hi_s64(a: i64, b: i64) -> i64 {
    ((i128::from(a) * i128::from(b)) >> 64) as i64
}

macro_rules! division {
    ($($type:ty: $div:ident $rem:ident;)*) => {$(
        /// `div`; by zero, where PTX leaves the result open, all ones.
        pub(crate) fn $div(a: $type, b: $type) -> $type {
            if b == 0 { !0 } else { a.wrapping_div(b) }
        }
        /// `rem`; by zero all ones too, as an H100 has it.
        pub(crate) fn $rem(a: $type, b: $type) -> $type {
            if b == 0 { !0 } else { a.wrapping_rem(b) }
        }
    )*};
}

division! {
    u16: div_u16 rem_u16;
    i16: div_s16 rem_s16;
    u32: div_u32 rem_u32;
    i32: div_s32 rem_s32;
    u64: div_u64 rem_u64;
    i64: div_s64 rem_s64;
}

/// Whether an operand is no number, which makes `ltu` and its like true and the plain comparisons false.
pub(crate) fn unordered32(a: f32, b: f32) -> bool {
    a.is_nan() || b.is_nan()
}

/// The same in double precision.
pub(crate) fn unordered64(a: f64, b: f64) -> bool {
    a.is_nan() || b.is_nan()
}

/// A result that is no number is the one NaN that the hardware makes. Told apart and chosen as bits, for the compiler may
/// take any NaN for another.
pub(crate) fn canonical32(value: f32) -> f32 {
    let bits = value.to_bits();
    f32::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 { 0x7fff_ffff } else { bits })
}

/// The same in double precision: always the plain quiet NaN, where the hardware may keep bits of an operand's.
pub(crate) fn canonical64(value: f64) -> f64 {
    let bits = value.to_bits();
    let nan = bits & (u64::MAX >> 1) > 0x7ff0_0000_0000_0000;
    f64::from_bits(if nan { 0x7ff8_0000_0000_0000 } else { bits })
}

/// `neg.f64`: a NaN stays as it is, sign and all.
pub(crate) fn neg_f64(a: f64) -> f64 {
    if a.is_nan() { a } else { -a }
}

/// `abs.f64`: a NaN stays as it is, sign and all.
pub(crate) fn abs_f64(a: f64) -> f64 {
    if a.is_nan() { a } else { a.abs() }
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
    ($type:ty, $canonical:ident: $min:ident $max:ident) => {
        /// `min`: the operand that is a number, and -0 before +0.
        pub(crate) fn $min(a: $type, b: $type) -> $type {
            let equal = if a.is_sign_negative() { a } else { b };
            $canonical(if a.is_nan() || b < a {
                b
            } else if a == b {
                equal
            } else {
                a
            })
        }
        /// `max`: the operand that is a number, and +0 after -0.
        pub(crate) fn $max(a: $type, b: $type) -> $type {
            let equal = if a.is_sign_negative() { b } else { a };
            $canonical(if a.is_nan() || b > a {
                b
            } else if a == b {
                equal
            } else {
                a
            })
        }
    };
}

extrema!(f32, canonical32: min_f32 max_f32);
extrema!(f64, canonical64: min_f64 max_f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_clamp() {
        assert_eq!([shl32(1, 31), shl32(1, 32), shl32(1, 255)], [1 << 31, 0, 0]);
        assert_eq!([shr_u32(!0, 31), shr_u32(!0, 32), shr_u32(!0, 33)], [1, 0, 0]);
        assert_eq!([shr_s32(-8, 1), shr_s32(-8, 32), shr_s32(8, 200)], [-4, -1, 0]);
        assert_eq!((shl16(1, 15), shl16(1, 16), shr_s16(-1, 99)), (1 << 15, 0, -1));
        assert_eq!((shl64(1, 63), shl64(1, 64), shr_s64(i64::MIN, 64)), (1 << 63, 0, -1));
    }

    #[test]
    fn funnels() {
        assert_eq!(funnel_left(0x8000_0001, 0x0000_0003, 1), 7);
        assert_eq!((funnel_left(5, 9, 0), funnel_left(5, 9, 32)), (9, 5));
        assert_eq!(funnel_right(0x8000_0001, 0x0000_0003, 1), 0xc000_0000);
        assert_eq!((funnel_right(5, 9, 0), funnel_right(5, 9, 32)), (5, 9));
    }

    #[test]
    fn bit_fields() {
        assert_eq!([bfe_u32(0xabcd, 4, 8), bfe_u32(0xabcd, 4, 0), bfe_u32(!0, 28, 8)], [0xbc, 0, 0xf]);
        assert_eq!([bfe_u32(0xabcd, 300, 8), bfe_u32(7, 0, 255)], [bfe_u32(0xabcd, 44, 8), 7]);
        assert_eq!([bfe_s32(0xc0, 4, 4), bfe_s32(0x40, 4, 4), bfe_s32(-1, 40, 3), bfe_s32(-1, 0, 0)], [-4, 4, -1, 0]);
        assert_eq!(bfe_s64(i64::MIN, 60, 255), -8);
        assert_eq!([bfi32(0xff, 0, 4, 4), bfi32(0, !0, 8, 8), bfi32(!0, 1, 32, 4)], [0xf0, 0xffff_00ff, 1]);
        assert_eq!(bfi64(!0, 0, 60, 255), 0xf << 60);
    }

    #[test]
    fn byte_permutes() {
        let (a, b) = (0x8382_8180, 0x0706_0504);
        assert_eq!(prmt(a, b, 0x3210), a);
        assert_eq!(prmt(a, b, 0x7654), b);
        assert_eq!(prmt(a, b, 0x0123), 0x8081_8283);
        assert_eq!(prmt(a, b, 0xc840), 0x00ff_0480, "a nibble's top bit asks for the byte's sign");
    }

    #[test]
    fn products() {
        assert_eq!(mul_hi_u32(!0, !0), !1);
        assert_eq!(mul_hi_s32(-1, 1), -1);
        assert_eq!(mul_hi_u64(!0, 2), 1);
        assert_eq!(mul_hi_s64(i64::MIN, 2), -1);
    }

    #[test]
    fn division_never_traps() {
        assert_eq!((div_u32(7, 0), rem_u32(7, 0), rem_s16(7, 0)), (!0, !0, -1));
        assert_eq!((div_s32(i32::MIN, -1), rem_s32(i32::MIN, -1)), (i32::MIN, 0));
    }

    #[test]
    fn extrema_prefer_numbers_and_order_zeros() {
        assert_eq!((min_f32(f32::NAN, 1.0), max_f32(1.0, f32::NAN)), (1.0, 1.0));
        assert_eq!(min_f32(f32::NAN, f32::NAN).to_bits(), 0x7fff_ffff);
        assert!(min_f32(0.0, -0.0).is_sign_negative() && min_f32(-0.0, 0.0).is_sign_negative());
        assert!(max_f64(0.0, -0.0).is_sign_positive() && max_f64(-0.0, 0.0).is_sign_positive());
        assert_eq!((min_f64(2.0, 1.0), max_f64(2.0, 1.0)), (1.0, 2.0));
    }

    #[test]
    fn no_number_is_the_hardware_s() {
        for bits in [0x7f80_0001, 0x7fc0_0000, 0xffc0_0000, 0xffff_ffff] {
            assert_eq!(canonical32(f32::from_bits(bits)).to_bits(), 0x7fff_ffff);
        }
        let infinite = [f32::NEG_INFINITY, f32::INFINITY];
        assert_eq!(infinite.map(canonical32), infinite);
        let nan = f64::from_bits(0xfff8_0000_0000_0123);
        assert_eq!([neg_f64(nan), abs_f64(nan)].map(f64::to_bits), [nan.to_bits(); 2]);
        assert_eq!(canonical64(nan).to_bits(), 0x7ff8 << 48);
        assert_eq!((neg_f64(-2.0), abs_f64(-2.0), canonical64(f64::INFINITY)), (2.0, 2.0, f64::INFINITY));
        assert_eq!(
            (integer_u32(nan), integer_s32(nan), integer_u32(-1.5), integer_s32(-1.5)),
            (1 << 31, i32::MIN, 0, -1)
        );
    }
}
