//! Integers and bits.

macro_rules! shifts {
    ($($unsigned:ty, $signed:ty: $shl:ident $shr_u:ident $shr_s:ident;)*) => {$(
        /// `shl`: amounts beyond the width give 0; they do not wrap.
        pub(crate) fn $shl(a: $unsigned, amount: u32) -> $unsigned {
            a.checked_shl(amount).unwrap_or(0)
        }
        /// `shr` of an unsigned value: 0 beyond the width.
        pub(crate) fn $shr_u(a: $unsigned, amount: u32) -> $unsigned {
            a.checked_shr(amount).unwrap_or(0)
        }
        /// `shr` of a signed value: only sign bits beyond the width.
        pub(crate) fn $shr_s(a: $signed, amount: u32) -> $signed {
            a >> amount.min(<$signed>::BITS - 1)
        }
    )*};
}

shifts! {
    u16, i16: shl16 shr_u16 shr_s16;
    u32, i32: shl32 shr_u32 shr_s32;
    u64, i64: shl64 shr_u64 shr_s64;
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

/// `bfe.u32`: `len` bits from `pos`; bits beyond the value read as 0. For 32-bit fields, the counts
/// are taken modulo 256, as the ISA's manual says; for 64-bit fields, an H100 clamps the whole
/// counts.
pub(crate) fn bfe_u32(a: u32, pos: u32, len: u32) -> u32 {
    bfe_u64(u64::from(a), pos & 0xff, len & 0xff) as u32
}

/// `bfe.u64`
pub(crate) fn bfe_u64(a: u64, pos: u32, len: u32) -> u64 {
    let mask = 1_u64.checked_shl(len).map_or(u64::MAX, |bit| bit - 1);
    shr_u64(a, pos) & mask
}

/// `bfe.s32`: like the unsigned form, but filled with the field's top bit, and beyond the value's
/// end with the value's top bit.
pub(crate) fn bfe_s32(a: i32, pos: u32, len: u32) -> i32 {
    // Sign extension to 64 bits provides the bits beyond the end; the rest is the same.
    bfe_s64(i64::from(a), (pos & 0xff).min(32), (len & 0xff).min(32)) as i32
}

/// `bfe.s64`
pub(crate) fn bfe_s64(a: i64, pos: u32, len: u32) -> i64 {
    let len = len.min(64);
    if len == 0 {
        return 0;
    }
    shr_s64(a, pos) << (64 - len) >> (64 - len)
}

/// `bfi.b32`: inserts the `len` low bits of `a` into `b` at `pos`; both counts modulo 256.
pub(crate) fn bfi32(a: u32, b: u32, pos: u32, len: u32) -> u32 {
    let (pos, len) = ((pos & 0xff).min(32), (len & 0xff).min(32));
    bfi64(u64::from(a), u64::from(b), pos, len) as u32
}

/// `bfi.b64`
pub(crate) fn bfi64(a: u64, b: u64, pos: u32, len: u32) -> u64 {
    let field = 1_u64.checked_shl(len).map_or(u64::MAX, |bit| bit - 1);
    let mask = shl64(field, pos);
    b & !mask | shl64(a, pos) & mask
}

/// `prmt.b32`: each nibble of `selector` selects one of the 8 bytes of `b:a`, or with its top bit
/// set, that byte's sign.
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

macro_rules! upper_halves {
    ($($type:ty, $wide:ty: $name:ident;)*) => {$(
        /// Upper half of a product.
        pub(crate) fn $name(a: $type, b: $type) -> $type {
            ((<$wide>::from(a) * <$wide>::from(b)) >> <$type>::BITS) as $type
        }
    )*};
}

upper_halves! {
    u32, u64: mul_hi_u32;
    i32, i64: mul_hi_s32;
    u64, u128: mul_hi_u64;
    i64, i128: mul_hi_s64;
}

macro_rules! division {
    ($($type:ty: $div:ident $rem:ident;)*) => {$(
        /// `div`; division by zero gives all ones, where PTX leaves the result undefined.
        pub(crate) fn $div(a: $type, b: $type) -> $type {
            if b == 0 { !0 } else { a.wrapping_div(b) }
        }
        /// `rem`; division by zero gives all ones too, as on an H100.
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

/// `mul24`: the low 24 bits of the operands, multiplied; the product has 48.
pub(crate) fn mul24_u(a: u32, b: u32) -> u64 {
    u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)
}

/// The same with the sign in bit 23.
pub(crate) fn mul24_s(a: i32, b: i32) -> i64 {
    i64::from(a << 8 >> 8) * i64::from(b << 8 >> 8)
}

/// `lop3.b32`: bit `4a + 2b + c` of the table is the result where the operands' bits are `a`, `b`
/// and `c`.
#[inline(always)]
pub(crate) fn lop3(a: u32, b: u32, c: u32, table: u32) -> u32 {
    // All ones if the table has the bit, so that the loop over lanes has no branch.
    let row = |index: u32| (table >> index & 1).wrapping_neg();
    let of_c = |low: u32| row(low + 1) & c | row(low) & !c;
    (of_c(6) & b | of_c(4) & !b) & a | (of_c(2) & b | of_c(0) & !b) & !a
}

/// `bfind`: the position of the highest bit that is not the sign, from the lowest; all ones if
/// there is none.
pub(crate) fn bfind_u32(a: u32) -> u32 {
    31_u32.wrapping_sub(a.leading_zeros())
}

/// `bfind`
pub(crate) fn bfind_u64(a: u64) -> u32 {
    63_u32.wrapping_sub(a.leading_zeros())
}

/// The amount that shifts the bit found by `bfind` to the top.
pub(crate) fn shift_amount(place: u32, top: u32) -> u32 {
    if place == u32::MAX { place } else { top - place }
}

/// The bits in which a signed value differs from its sign.
pub(crate) fn unsigned_bits32(a: i32) -> u32 {
    (a ^ a >> 31) as u32
}

/// The same for 64 bits.
pub(crate) fn unsigned_bits64(a: i64) -> u64 {
    (a ^ a >> 63) as u64
}

/// `fns.b32`: the position of the nth set bit, from 1, counted from bit `base` upwards, or with a
/// negative `nth` downwards. For 0, the position of bit `base` itself, if it is set. For the least
/// integer, an H100 gives 0.
#[inline(never)]
pub(crate) fn nth_set(mask: u32, base: u32, nth: i32) -> u32 {
    let is_set = |place: &u32| mask >> place & 1 == 1;
    let wanted = (nth.unsigned_abs() as usize).wrapping_sub(1);
    let found = match nth {
        i32::MIN => Some(0),
        0 => Some(base).filter(|base| *base < 32 && is_set(base)),
        1.. => (base..32).filter(is_set).nth(wanted),
        _ if base > 31 => None,
        _ => (0..=base).rev().filter(is_set).nth(wanted),
    };
    found.unwrap_or(u32::MAX)
}

/// `bmsk`: `width` ones from bit `start` on; both are at most 32.
pub(crate) fn mask32(start: u32, width: u32) -> u32 {
    shl32(((1_u64 << width) - 1) as u32, start)
}

/// `prmt.MODE`: the low two bits of `c` choose one of four selectors.
#[inline(never)]
pub(crate) fn prmt_mode(a: u32, b: u32, c: u32, selectors: [u32; 4]) -> u32 {
    prmt(a, b, selectors[(c & 3) as usize])
}

/// `.f4e`: four bytes from a position upwards.
pub(crate) const FORWARD: [u32; 4] = [0x3210, 0x4321, 0x5432, 0x6543];
/// `.b4e`: four bytes from a position downwards.
pub(crate) const BACKWARD: [u32; 4] = [0x5670, 0x6701, 0x7012, 0x0123];
/// `.rc8`: one byte, four times.
pub(crate) const REPLICATE_BYTE: [u32; 4] = [0x0000, 0x1111, 0x2222, 0x3333];
/// `.ecl`: bytes below a position become the byte at that position.
pub(crate) const CLAMP_LEFT: [u32; 4] = [0x3210, 0x3211, 0x3222, 0x3333];
/// `.ecr`: bytes above a position become the byte at that position.
pub(crate) const CLAMP_RIGHT: [u32; 4] = [0x0000, 0x1110, 0x2210, 0x3210];
/// `.rc16`: one half, twice.
pub(crate) const REPLICATE_HALF: [u32; 4] = [0x1010, 0x3232, 0x1010, 0x3232];

/// `addc`, and whether it carries.
#[inline(always)]
pub(crate) fn add_carry32(a: u32, b: u32, carry: bool) -> (u32, bool) {
    let sum = u64::from(a) + u64::from(b) + u64::from(carry);
    (sum as u32, sum >> 32 != 0)
}

/// `addc` for 64 bits.
#[inline(always)]
pub(crate) fn add_carry64(a: u64, b: u64, carry: bool) -> (u64, bool) {
    let (sum, first) = a.overflowing_add(b);
    let (sum, second) = sum.overflowing_add(u64::from(carry));
    (sum, first | second)
}
