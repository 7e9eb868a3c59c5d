//! Every lane computes the same as one lane alone, and lanes whose guard is off keep their old
//! values.

use std::collections::HashSet;
use std::sync::LazyLock;

use proptest::prelude::*;
use warpstride_interp::coverage::{self, Operands};
use warpstride_interp::{Config, Memory, Module, run};

use super::shape;

/// A type of operand.
#[derive(Clone, Copy, PartialEq)]
enum Type {
    Pred,
    B16,
    B32,
    B64,
}
use Type::{B16, B32, B64, Pred};

impl Type {
    fn bits(self) -> u32 {
        match self {
            Pred => 1,
            B16 => 16,
            B32 => 32,
            B64 => 64,
        }
    }

    /// The low bits that an operand of this type uses.
    fn cut(self, value: u64) -> u64 {
        value & (u64::MAX >> (64 - self.bits()))
    }
}

struct Case {
    opcode: &'static str,
    result: Type,
    sources: &'static [Type],
    model: fn([i128; 4]) -> i128,
}

/// Sign extension of the low `bits` bits.
fn signed(value: i128, bits: u32) -> i128 {
    value << (128 - bits) >> (128 - bits)
}

fn float(bits: i128) -> f32 {
    f32::from_bits(bits as u32)
}

fn bits_of(value: f32) -> i128 {
    i128::from(if value.is_nan() { 0x7fff_ffff } else { value.to_bits() })
}

fn double(bits: i128) -> f64 {
    f64::from_bits(bits as u64)
}

/// The single-precision number with these bits.
fn double_of(bits: i128) -> f64 {
    f64::from(float(bits))
}

/// Makes a NaN result the first NaN among the operands, made quiet, or if there is none, the
/// hardware's own NaN.
fn bits_of_double<const N: usize>(value: f64, operands: [i128; N]) -> i128 {
    let none = operands.into_iter().find(|bits| double(*bits).is_nan()).map_or(0xfff8 << 48, |bits| bits | 8 << 48);
    if value.is_nan() { none } else { i128::from(value.to_bits()) }
}

/// A NaN keeps the bits that fit.
fn double_of_single(a: i128) -> i128 {
    let nan = (a >> 31) << 63 | 0x7ff8 << 48 | (a & 0x7f_ffff) << 29;
    if float(a).is_nan() { nan } else { i128::from(double_of(a).to_bits()) }
}

/// The same in the other direction.
fn single_of_double(a: i128) -> i128 {
    let nan = (a >> 63) << 31 | 0x7fc0_0000 | (a & ((1 << 52) - 1)) >> 29;
    if double(a).is_nan() { nan } else { bits_of(double(a) as f32) }
}

/// The operand that is a number; of two numbers the smaller or the greater, with -0 below +0.
fn extremum(a: f64, b: f64, greater: bool) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if a.total_cmp(&b).is_gt() == greater => a,
        _ => b,
    }
}

/// Bit by bit: the bits of `b`, and within the field those of `a`.
fn insert(a: i128, b: i128, at: i128, len: i128) -> i128 {
    let bit = |bit: i128| if (at..at + len).contains(&bit) { a >> (bit - at) & 1 } else { b >> bit & 1 };
    (0..64).fold(0, |out, position| out | bit(position) << position)
}

/// `len` bits from `at`, extended with their top bit.
fn signed_field(a: i128, at: i128, len: i128) -> i128 {
    let len = len.min(64);
    if len == 0 { 0 } else { signed(a >> at.min(127), len as u32) }
}

fn permuted(bytes: i128, selector: i128) -> i128 {
    let byte = |index: i128| {
        let nibble = selector >> (4 * index) & 0xf;
        let picked = bytes >> (8 * (nibble & 7)) & 0xff;
        if nibble < 8 { picked } else { (picked >> 7) * 0xff }
    };
    (0..4).fold(0, |out, index| out | byte(index) << (8 * index))
}

macro_rules! cases {
    ($($opcode:literal $result:ident $($source:ident)* = $model:expr;)*) => {
        &[$(Case { opcode: $opcode, result: $result, sources: &[$($source),*], model: $model }),*]
    };
}

/// The model in wide integers: operands arrive zero-extended, results are truncated.
const CASES: &[Case] = cases! {
    "add.s16" B16 B16 B16 = |[a, b, ..]| a + b;
    "add.s32" B32 B32 B32 = |[a, b, ..]| a + b;
    "add.s64" B64 B64 B64 = |[a, b, ..]| a + b;
    "sub.u32" B32 B32 B32 = |[a, b, ..]| a - b;
    "mul.lo.s16" B16 B16 B16 = |[a, b, ..]| a * b;
    "mul.lo.s32" B32 B32 B32 = |[a, b, ..]| a * b;
    "mul.lo.u64" B64 B64 B64 = |[a, b, ..]| a.wrapping_mul(b);
    "mul.hi.u32" B32 B32 B32 = |[a, b, ..]| (a * b) >> 32;
    "mul.hi.s32" B32 B32 B32 = |[a, b, ..]| (signed(a, 32) * signed(b, 32)) >> 32;
    "mul.hi.s64" B64 B64 B64 = |[a, b, ..]| (signed(a, 64) * signed(b, 64)) >> 64;
    "mul.wide.u16" B32 B16 B16 = |[a, b, ..]| a * b;
    "mul.wide.u32" B64 B32 B32 = |[a, b, ..]| a * b;
    "mul.wide.s32" B64 B32 B32 = |[a, b, ..]| signed(a, 32) * signed(b, 32);
    "mad.lo.s32" B32 B32 B32 B32 = |[a, b, c, _]| a * b + c;
    "mad.wide.s32" B64 B32 B32 B64 = |[a, b, c, _]| signed(a, 32) * signed(b, 32) + c;
    "div.u32" B32 B32 B32 = |[a, b, ..]| if b == 0 { -1 } else { a / b };
    "div.s32" B32 B32 B32 = |[a, b, ..]| if b == 0 { -1 } else { signed(a, 32) / signed(b, 32) };
    "rem.s64" B64 B64 B64 = |[a, b, ..]| if b == 0 { -1 } else { signed(a, 64) % signed(b, 64) };
    "min.s32" B32 B32 B32 = |[a, b, ..]| signed(a, 32).min(signed(b, 32));
    "max.u64" B64 B64 B64 = |[a, b, ..]| a.max(b);
    "abs.s32" B32 B32 = |[a, ..]| signed(a, 32).abs();
    "neg.s64" B64 B64 = |[a, ..]| -a;
    "xor.b16" B16 B16 B16 = |[a, b, ..]| a ^ b;
    "not.b32" B32 B32 = |[a, ..]| !a;
    "shl.b32" B32 B32 B32 = |[a, n, ..]| if n > 31 { 0 } else { a << n };
    "shl.b64" B64 B64 B32 = |[a, n, ..]| if n > 63 { 0 } else { a << n };
    "shr.u32" B32 B32 B32 = |[a, n, ..]| if n > 31 { 0 } else { a >> n };
    "shr.s32" B32 B32 B32 = |[a, n, ..]| signed(a, 32) >> n.min(127);
    "shr.s64" B64 B64 B32 = |[a, n, ..]| signed(a, 64) >> n.min(127);
    "shf.l.wrap.b32" B32 B32 B32 B32 = |[a, b, n, _]| ((b << 32 | a) << (n % 32)) >> 32;
    "shf.r.clamp.b32" B32 B32 B32 B32 = |[a, b, n, _]| (b << 32 | a) >> n.min(32);
    "bfe.u32" B32 B32 B32 B32 = |[a, at, len, _]| (a >> (at & 0xff).min(64)) & ((1 << (len & 0xff).min(64)) - 1);
    "clz.b32" B32 B32 = |[a, ..]| (0..32).take_while(|bit| a >> (31 - bit) & 1 == 0).count() as i128;
    "popc.b64" B32 B64 = |[a, ..]| (0..64).map(|bit| a >> bit & 1).sum();
    "brev.b32" B32 B32 = |[a, ..]| (0..32).fold(0, |out, bit| out << 1 | a >> bit & 1);
    "selp.b32" B32 B32 B32 Pred = |[a, b, p, _]| if p == 1 { a } else { b };
    "selp.b64" B64 B64 B64 Pred = |[a, b, p, _]| if p == 1 { a } else { b };
    "setp.lt.u32" Pred B32 B32 = |[a, b, ..]| i128::from(a < b);
    "setp.lt.s32" Pred B32 B32 = |[a, b, ..]| i128::from(signed(a, 32) < signed(b, 32));
    "setp.ge.s64" Pred B64 B64 = |[a, b, ..]| i128::from(signed(a, 64) >= signed(b, 64));
    "setp.ne.s16" Pred B16 B16 = |[a, b, ..]| i128::from(a != b);
    "setp.neu.f32" Pred B32 B32 = |[a, b, ..]| i128::from(float(a) != float(b));
    "setp.ltu.f32" Pred B32 B32 = |[a, b, ..]| i128::from(float(a).partial_cmp(&float(b)).is_none_or(|o| o.is_lt()));
    "setp.equ.f32" Pred B32 B32 = |[a, b, ..]| i128::from(float(a).partial_cmp(&float(b)).is_none_or(|o| o.is_eq()));
    "setp.ne.f32" Pred B32 B32 = |[a, b, ..]| i128::from(float(a).partial_cmp(&float(b)).is_some_and(|o| o.is_ne()));
    "setp.geu.f32" Pred B32 B32 = |[a, b, ..]| i128::from(float(a).partial_cmp(&float(b)).is_none_or(|o| o.is_ge()));
    "setp.gtu.f32" Pred B32 B32 = |[a, b, ..]| i128::from(float(a).partial_cmp(&float(b)).is_none_or(|o| o.is_gt()));
    "setp.le.f32" Pred B32 B32 = |[a, b, ..]| i128::from(float(a).partial_cmp(&float(b)).is_some_and(|o| o.is_le()));
    "setp.nan.f32" Pred B32 B32 = |[a, b, ..]| i128::from(float(a).is_nan() || float(b).is_nan());
    "and.pred" Pred Pred Pred = |[a, b, ..]| a & b;
    "not.pred" Pred Pred = |[a, ..]| 1 - a;
    "mov.b64" B64 B64 = |[a, ..]| a;
    "cvt.u32.u64" B32 B64 = |[a, ..]| a;
    "cvt.s64.s32" B64 B32 = |[a, ..]| signed(a, 32);
    "cvt.u64.u32" B64 B32 = |[a, ..]| a;
    "cvt.u16.u32" B16 B32 = |[a, ..]| a;
    "cvt.s32.s16" B32 B16 = |[a, ..]| signed(a, 16);
    "cvt.s8.s32" B32 B32 = |[a, ..]| signed(a, 8);
    "cvt.s32.s8" B32 B16 = |[a, ..]| signed(a, 8);
    "cvt.rn.f32.s32" B32 B32 = |[a, ..]| bits_of(signed(a, 32) as f32);
    "cvt.rzi.s32.f32" B32 B32 = |[a, ..]| i128::from(float(a) as i32);
    "add.rn.f32" B32 B32 B32 = |[a, b, ..]| bits_of(float(a) + float(b));
    "mul.f32" B32 B32 B32 = |[a, b, ..]| bits_of(float(a) * float(b));
    "fma.rn.f32" B32 B32 B32 B32 = |[a, b, c, _]| bits_of(float(a).mul_add(float(b), float(c)));
    "div.rn.f32" B32 B32 B32 = |[a, b, ..]| bits_of(float(a) / float(b));
    "sub.f32" B32 B32 B32 = |[a, b, ..]| bits_of(float(a) - float(b));
    "sqrt.rn.f32" B32 B32 = |[a, ..]| bits_of(float(a).sqrt());
    "neg.f32" B32 B32 = |[a, ..]| bits_of(-float(a));
    "abs.f32" B32 B32 = |[a, ..]| bits_of(float(a).abs());
    "min.f32" B32 B32 B32 = |[a, b, ..]| bits_of(extremum(double_of(a), double_of(b), false) as f32);
    "max.f32" B32 B32 B32 = |[a, b, ..]| bits_of(extremum(double_of(a), double_of(b), true) as f32);
    "copysign.f32" B32 B32 B32 = |[a, b, ..]| a & 1 << 31 | b & 0x7fff_ffff;
    "add.f64" B64 B64 B64 = |[a, b, ..]| bits_of_double(double(a) + double(b), [b, a]);
    "sub.rn.f64" B64 B64 B64 = |[a, b, ..]| bits_of_double(double(a) - double(b), [b, a]);
    "mul.f64" B64 B64 B64 = |[a, b, ..]| bits_of_double(double(a) * double(b), [b, a]);
    "fma.rn.f64" B64 B64 B64 B64 = |[a, b, c, _]| bits_of_double(double(a).mul_add(double(b), double(c)), [b, c, a]);
    "div.rn.f64" B64 B64 B64 = |[a, b, ..]| bits_of_double(double(a) / double(b), [a, b]);
    "sqrt.rn.f64" B64 B64 = |[a, ..]| bits_of_double(double(a).sqrt(), [a]);
    "min.f64" B64 B64 B64 = |[a, b, ..]| bits_of_double(extremum(double(a), double(b), false), [b]);
    "max.f64" B64 B64 B64 = |[a, b, ..]| bits_of_double(extremum(double(a), double(b), true), [b]);
    "neg.f64" B64 B64 = |[a, ..]| bits_of_double(-double(a), [a]);
    "abs.f64" B64 B64 = |[a, ..]| bits_of_double(double(a).abs(), [a]);
    "copysign.f64" B64 B64 B64 = |[a, b, ..]| a & 1 << 63 | b & !(1 << 63);
    "setp.lt.f64" Pred B64 B64 = |[a, b, ..]| i128::from(double(a) < double(b));
    "setp.ne.f64" Pred B64 B64 = |[a, b, ..]| i128::from(double(a).partial_cmp(&double(b)).is_some_and(|o| o.is_ne()));
    "setp.gtu.f64" Pred B64 B64 = |[a, b, ..]| i128::from(double(a).partial_cmp(&double(b)).is_none_or(|o| o.is_gt()));
    "setp.num.f64" Pred B64 B64 = |[a, b, ..]| i128::from(!double(a).is_nan() && !double(b).is_nan());
    "cvt.rn.f32.f64" B32 B64 = |[a, ..]| single_of_double(a);
    "cvt.f64.f32" B64 B32 = |[a, ..]| double_of_single(a);
    "cvt.rn.f64.s64" B64 B64 = |[a, ..]| bits_of_double(signed(a, 64) as f64, []);
    "cvt.rn.f32.u64" B32 B64 = |[a, ..]| bits_of(a as f32);
    "cvt.rzi.u32.f32" B32 B32 = |[a, ..]| i128::from(float(a) as u32);
    "cvt.rzi.u32.f64" B32 B64 = |[a, ..]| if double(a).is_nan() { 1 << 31 } else { i128::from(double(a) as u32) };
    "cvt.rzi.s32.f64" B32 B64 = |[a, ..]| if double(a).is_nan() { 1 << 31 } else { i128::from(double(a) as i32) };
    "cvt.s16.s8" B32 B16 = |[a, ..]| signed(a, 8);
    "cvt.u16.s8" B32 B16 = |[a, ..]| signed(a, 8) & 0xffff;
    "cvt.s16.u16" B32 B16 = |[a, ..]| signed(a, 16);
    "cvt.s16.s16" B32 B16 = |[a, ..]| signed(a, 16);
    "cvt.s16.u32" B32 B32 = |[a, ..]| signed(a, 16);
    "cvt.s16.s32" B32 B32 = |[a, ..]| signed(a, 16);
    "cvt.s16.u64" B32 B64 = |[a, ..]| signed(a, 16);
    "cvt.s16.s64" B32 B64 = |[a, ..]| signed(a, 16);
    "cvt.u16.s64" B32 B64 = |[a, ..]| a & 0xffff;
    "rem.u16" B16 B16 B16 = |[a, b, ..]| if b == 0 { -1 } else { a % b };
    "rem.s16" B16 B16 B16 = |[a, b, ..]| if b == 0 { -1 } else { signed(a, 16) % signed(b, 16) };
    "rem.u32" B32 B32 B32 = |[a, b, ..]| if b == 0 { -1 } else { a % b };
    "rem.u64" B64 B64 B64 = |[a, b, ..]| if b == 0 { -1 } else { a % b };
    "div.s16" B16 B16 B16 = |[a, b, ..]| if b == 0 { -1 } else { signed(a, 16) / signed(b, 16) };
    "div.s64" B64 B64 B64 = |[a, b, ..]| if b == 0 { -1 } else { signed(a, 64) / signed(b, 64) };
    "min.s16" B16 B16 B16 = |[a, b, ..]| signed(a, 16).min(signed(b, 16));
    "max.s64" B64 B64 B64 = |[a, b, ..]| signed(a, 64).max(signed(b, 64));
    "mul.wide.s16" B32 B16 B16 = |[a, b, ..]| signed(a, 16) * signed(b, 16);
    "mul.hi.u64" B64 B64 B64 = |[a, b, ..]| ((a as u128 * b as u128) >> 64) as i128;
    "mad.hi.s32" B32 B32 B32 B32 = |[a, b, c, _]| ((signed(a, 32) * signed(b, 32)) >> 32) + c;
    "mad.wide.u32" B64 B32 B32 B64 = |[a, b, c, _]| a * b + c;
    "bfi.b32" B32 B32 B32 B32 B32 = |[a, b, at, len]| insert(a, b, at & 0xff, len & 0xff);
    "bfi.b64" B64 B64 B64 B32 B32 = |[a, b, at, len]| insert(a, b, at, len);
    "prmt.b32" B32 B32 B32 B32 = |[a, b, selector, _]| permuted(b << 32 | a, selector);
    "shf.l.clamp.b32" B32 B32 B32 B32 = |[a, b, n, _]| ((b << 32 | a) << n.min(32)) >> 32;
    "shf.r.wrap.b32" B32 B32 B32 B32 = |[a, b, n, _]| (b << 32 | a) >> (n % 32);
    "shr.s16" B16 B16 B32 = |[a, n, ..]| signed(a, 16) >> n.min(127);
    "shl.b16" B16 B16 B32 = |[a, n, ..]| if n > 15 { 0 } else { a << n };
    "clz.b64" B32 B64 = |[a, ..]| (0..64).take_while(|bit| a >> (63 - bit) & 1 == 0).count() as i128;
    "brev.b64" B64 B64 = |[a, ..]| (0..64).fold(0, |out, bit| out << 1 | a >> bit & 1);
    "sub.u16" B16 B16 B16 = |[a, b, ..]| a - b;
    "sub.u64" B64 B64 B64 = |[a, b, ..]| a - b;
    "mad.lo.u16" B16 B16 B16 B16 = |[a, b, c, _]| a * b + c;
    "mad.lo.u64" B64 B64 B64 B64 = |[a, b, c, _]| a.wrapping_mul(b).wrapping_add(c);
    "mad.hi.u32" B32 B32 B32 B32 = |[a, b, c, _]| ((a * b) >> 32) + c;
    "mad.wide.u16" B32 B16 B16 B32 = |[a, b, c, _]| a * b + c;
    "mad.wide.s16" B32 B16 B16 B32 = |[a, b, c, _]| signed(a, 16) * signed(b, 16) + c;
    "div.u16" B16 B16 B16 = |[a, b, ..]| if b == 0 { -1 } else { a / b };
    "div.u64" B64 B64 B64 = |[a, b, ..]| if b == 0 { -1 } else { a / b };
    "rem.s32" B32 B32 B32 = |[a, b, ..]| if b == 0 { -1 } else { signed(a, 32) % signed(b, 32) };
    "min.u16" B16 B16 B16 = |[a, b, ..]| a.min(b);
    "min.u32" B32 B32 B32 = |[a, b, ..]| a.min(b);
    "min.u64" B64 B64 B64 = |[a, b, ..]| a.min(b);
    "min.s64" B64 B64 B64 = |[a, b, ..]| signed(a, 64).min(signed(b, 64));
    "max.u16" B16 B16 B16 = |[a, b, ..]| a.max(b);
    "max.s16" B16 B16 B16 = |[a, b, ..]| signed(a, 16).max(signed(b, 16));
    "max.u32" B32 B32 B32 = |[a, b, ..]| a.max(b);
    "max.s32" B32 B32 B32 = |[a, b, ..]| signed(a, 32).max(signed(b, 32));
    "abs.s16" B16 B16 = |[a, ..]| signed(a, 16).abs();
    "abs.s64" B64 B64 = |[a, ..]| signed(a, 64).abs();
    "neg.s16" B16 B16 = |[a, ..]| -a;
    "neg.s32" B32 B32 = |[a, ..]| -a;
    "and.b16" B16 B16 B16 = |[a, b, ..]| a & b;
    "and.b32" B32 B32 B32 = |[a, b, ..]| a & b;
    "and.b64" B64 B64 B64 = |[a, b, ..]| a & b;
    "or.b16" B16 B16 B16 = |[a, b, ..]| a | b;
    "or.b32" B32 B32 B32 = |[a, b, ..]| a | b;
    "or.b64" B64 B64 B64 = |[a, b, ..]| a | b;
    "xor.b32" B32 B32 B32 = |[a, b, ..]| a ^ b;
    "xor.b64" B64 B64 B64 = |[a, b, ..]| a ^ b;
    "not.b16" B16 B16 = |[a, ..]| !a;
    "not.b64" B64 B64 = |[a, ..]| !a;
    "or.pred" Pred Pred Pred = |[a, b, ..]| a | b;
    "xor.pred" Pred Pred Pred = |[a, b, ..]| a ^ b;
    "mov.pred" Pred Pred = |[a, ..]| a;
    "shr.u16" B16 B16 B32 = |[a, b, ..]| if b > 15 { 0 } else { a >> b };
    "shr.u64" B64 B64 B32 = |[a, b, ..]| if b > 63 { 0 } else { a >> b };
    "bfe.s32" B32 B32 B32 B32 = |[a, b, c, _]| signed_field(signed(a, 32), b & 0xff, c & 0xff);
    "bfe.u64" B64 B64 B32 B32 = |[a, b, c, _]| (a >> b.min(64)) & ((1 << c.min(64)) - 1);
    "bfe.s64" B64 B64 B32 B32 = |[a, b, c, _]| signed_field(signed(a, 64), b, c);
    "popc.b32" B32 B32 = |[a, ..]| (0..32).map(|bit| a >> bit & 1).sum();
    "mov.b16" B16 B16 = |[a, ..]| a;
    "mov.b32" B32 B32 = |[a, ..]| a;
    "selp.b16" B16 B16 B16 Pred = |[a, b, c, _]| if c == 1 { a } else { b };
    "setp.eq.b16" Pred B16 B16 = |[a, b, ..]| i128::from(a == b);
    "setp.eq.b32" Pred B32 B32 = |[a, b, ..]| i128::from(a == b);
    "setp.eq.b64" Pred B64 B64 = |[a, b, ..]| i128::from(a == b);
    "setp.ne.b32" Pred B32 B32 = |[a, b, ..]| i128::from(a != b);
    "setp.ne.b64" Pred B64 B64 = |[a, b, ..]| i128::from(a != b);
    "setp.lt.u16" Pred B16 B16 = |[a, b, ..]| i128::from(a < b);
    "setp.lt.s16" Pred B16 B16 = |[a, b, ..]| i128::from(signed(a, 16) < signed(b, 16));
    "setp.lt.u64" Pred B64 B64 = |[a, b, ..]| i128::from(a < b);
    "setp.lt.s64" Pred B64 B64 = |[a, b, ..]| i128::from(signed(a, 64) < signed(b, 64));
    "setp.le.u16" Pred B16 B16 = |[a, b, ..]| i128::from(a <= b);
    "setp.le.s16" Pred B16 B16 = |[a, b, ..]| i128::from(signed(a, 16) <= signed(b, 16));
    "setp.le.u32" Pred B32 B32 = |[a, b, ..]| i128::from(a <= b);
    "setp.le.s32" Pred B32 B32 = |[a, b, ..]| i128::from(signed(a, 32) <= signed(b, 32));
    "setp.le.u64" Pred B64 B64 = |[a, b, ..]| i128::from(a <= b);
    "setp.le.s64" Pred B64 B64 = |[a, b, ..]| i128::from(signed(a, 64) <= signed(b, 64));
    "setp.gt.u16" Pred B16 B16 = |[a, b, ..]| i128::from(a > b);
    "setp.gt.s16" Pred B16 B16 = |[a, b, ..]| i128::from(signed(a, 16) > signed(b, 16));
    "setp.gt.u32" Pred B32 B32 = |[a, b, ..]| i128::from(a > b);
    "setp.gt.s32" Pred B32 B32 = |[a, b, ..]| i128::from(signed(a, 32) > signed(b, 32));
    "setp.gt.u64" Pred B64 B64 = |[a, b, ..]| i128::from(a > b);
    "setp.gt.s64" Pred B64 B64 = |[a, b, ..]| i128::from(signed(a, 64) > signed(b, 64));
    "setp.ge.u16" Pred B16 B16 = |[a, b, ..]| i128::from(a >= b);
    "setp.ge.s16" Pred B16 B16 = |[a, b, ..]| i128::from(signed(a, 16) >= signed(b, 16));
    "setp.ge.u32" Pred B32 B32 = |[a, b, ..]| i128::from(a >= b);
    "setp.ge.s32" Pred B32 B32 = |[a, b, ..]| i128::from(signed(a, 32) >= signed(b, 32));
    "setp.ge.u64" Pred B64 B64 = |[a, b, ..]| i128::from(a >= b);
    "setp.lt.f32" Pred B32 B32 = |[a, b, ..]| i128::from(float(a) < float(b));
    "setp.gt.f32" Pred B32 B32 = |[a, b, ..]| i128::from(float(a) > float(b));
    "setp.ge.f32" Pred B32 B32 = |[a, b, ..]| i128::from(float(a) >= float(b));
    "setp.eq.f32" Pred B32 B32 = |[a, b, ..]| i128::from(float(a) == float(b));
    "setp.leu.f32" Pred B32 B32 = |[a, b, ..]| i128::from(float(a).partial_cmp(&float(b)).is_none_or(|o| o.is_le()));
    "setp.num.f32" Pred B32 B32 = |[a, b, ..]| i128::from(!float(a).is_nan() && !float(b).is_nan());
    "setp.eq.f64" Pred B64 B64 = |[a, b, ..]| i128::from(double(a) == double(b));
    "setp.le.f64" Pred B64 B64 = |[a, b, ..]| i128::from(double(a) <= double(b));
    "setp.gt.f64" Pred B64 B64 = |[a, b, ..]| i128::from(double(a) > double(b));
    "setp.ge.f64" Pred B64 B64 = |[a, b, ..]| i128::from(double(a) >= double(b));
    "setp.neu.f64" Pred B64 B64 = |[a, b, ..]| i128::from(double(a) != double(b));
    "setp.equ.f64" Pred B64 B64 = |[a, b, ..]| i128::from(double(a).partial_cmp(&double(b)).is_none_or(|o| o.is_eq()));
    "setp.ltu.f64" Pred B64 B64 = |[a, b, ..]| i128::from(double(a).partial_cmp(&double(b)).is_none_or(|o| o.is_lt()));
    "setp.leu.f64" Pred B64 B64 = |[a, b, ..]| i128::from(double(a).partial_cmp(&double(b)).is_none_or(|o| o.is_le()));
    "setp.geu.f64" Pred B64 B64 = |[a, b, ..]| i128::from(double(a).partial_cmp(&double(b)).is_none_or(|o| o.is_ge()));
    "setp.nan.f64" Pred B64 B64 = |[a, b, ..]| i128::from(double(a).is_nan() || double(b).is_nan());
    "cvt.u8.u32" B32 B32 = |[a, ..]| a & 0xff;
    "cvt.u8.u64" B32 B64 = |[a, ..]| a & 0xff;
    "cvt.s8.s64" B32 B64 = |[a, ..]| signed(a, 8);
    "cvt.u16.u8" B16 B16 = |[a, ..]| a & 0xff;
    "cvt.u32.u8" B32 B16 = |[a, ..]| a & 0xff;
    "cvt.u32.u16" B32 B16 = |[a, ..]| a;
    "cvt.u32.s32" B32 B32 = |[a, ..]| a;
    "cvt.u64.u8" B64 B16 = |[a, ..]| a & 0xff;
    "cvt.s64.s8" B64 B16 = |[a, ..]| signed(a, 8);
    "cvt.u64.u16" B64 B16 = |[a, ..]| a;
    "cvt.s64.s16" B64 B16 = |[a, ..]| signed(a, 16);
    "cvt.u64.s64" B64 B64 = |[a, ..]| a;
    "cvt.rn.f32.u16" B32 B16 = |[a, ..]| bits_of(a as f32);
    "cvt.rn.f32.s16" B32 B16 = |[a, ..]| bits_of(signed(a, 16) as f32);
    "cvt.rn.f32.u32" B32 B32 = |[a, ..]| bits_of(a as f32);
    "cvt.rn.f32.s64" B32 B64 = |[a, ..]| bits_of(signed(a, 64) as f32);
    "cvt.rn.f64.u16" B64 B16 = |[a, ..]| bits_of_double(a as f64, []);
    "cvt.rn.f64.s16" B64 B16 = |[a, ..]| bits_of_double(signed(a, 16) as f64, []);
    "cvt.rn.f64.u32" B64 B32 = |[a, ..]| bits_of_double(a as f64, []);
    "cvt.rn.f64.s32" B64 B32 = |[a, ..]| bits_of_double(signed(a, 32) as f64, []);
    "cvt.rn.f64.u64" B64 B64 = |[a, ..]| bits_of_double(a as f64, []);
};

/// A kernel that loads the operands of `case` from 64-bit cells, in a row of 32 for each operand,
/// and applies it where a bit of `%mask` is set. It stores the result, whose old value comes from
/// the fifth row, back there.
fn kernel(index: usize, case: &Case) -> String {
    let mut body = String::new();
    let mut load = |name: &str, kind: Type, row: usize| {
        let at = row * 256;
        body += &match kind {
            Pred => format!("ld.global.u32 %t, [%rd2+{at}]; and.b32 %t, %t, 1; setp.ne.u32 %p{name}, %t, 0;\n"),
            B16 => format!("ld.global.u16 %h{name}, [%rd2+{at}];\n"),
            B32 => format!("ld.global.u32 %w{name}, [%rd2+{at}];\n"),
            B64 => format!("ld.global.u64 %d{name}, [%rd2+{at}];\n"),
        };
    };
    let name = |kind: Type, index: usize| match kind {
        Pred => format!("%p{index}"),
        B16 => format!("%h{index}"),
        B32 => format!("%w{index}"),
        B64 => format!("%d{index}"),
    };
    case.sources.iter().enumerate().for_each(|(row, &kind)| load(&row.to_string(), kind, row));
    load("4", case.result, 4);
    let sources: Vec<String> = case.sources.iter().enumerate().map(|(row, &kind)| name(kind, row)).collect();
    body += &format!("@%guard {} {}, {};\n", case.opcode, name(case.result, 4), sources.join(", "));
    body += match case.result {
        Pred => "selp.b32 %w4, 1, 0, %p4; cvt.u64.u32 %d4, %w4;",
        B16 => "cvt.u64.u16 %d4, %h4;",
        B32 => "cvt.u64.u32 %d4, %w4;",
        B64 => "",
    };
    format!(
        ".visible .entry k{index}(.param .u64 cells, .param .u32 mask) {{
            .reg .pred %p<5>, %guard; .reg .b16 %h<5>; .reg .b32 %w<5>, %t, %r<3>; .reg .b64 %d<5>; .reg .b64 %rd<3>;
            ld.param.u64 %rd1, [cells]; mov.u32 %r1, %laneid; mul.wide.u32 %rd2, %r1, 8; add.s64 %rd2, %rd1, %rd2;
            ld.param.u32 %r2, [mask]; shr.u32 %r2, %r2, %r1; and.b32 %r2, %r2, 1; setp.eq.u32 %guard, %r2, 1;
            {body}
            st.global.u64 [%rd2+1024], %d4;
        }}\n"
    )
}

static MODULE: LazyLock<Module> = LazyLock::new(|| {
    let kernels: String = CASES.iter().enumerate().map(|(index, case)| kernel(index, case)).collect();
    Module::parse(&format!(".version 7.0\n.target sm_80\n.address_size 64\n{kernels}")).expect("it parses")
});

fn check(case: &Case, kernel: &str, cells: &[[u64; 32]; 5], mask: u32) -> Result<(), TestCaseError> {
    let memory = Memory::new(1 << 20);
    let address = memory.alloc(5 * 256).expect("it fits");
    let bytes: Vec<u8> = cells.iter().flatten().flat_map(|cell| cell.to_le_bytes()).collect();
    memory.write(address, &bytes).expect("it is there");
    let mut params = address.to_le_bytes().to_vec();
    params.extend(mask.to_le_bytes());
    let kernel = MODULE.kernel(kernel).expect("a kernel");
    run(kernel, &shape(1, 32), &params, &memory, &Config::default()).unwrap_or_else(|stop| panic!("{stop}"));
    let mut out = [0; 256];
    memory.read(address + 4 * 256, &mut out).expect("it is there");
    for (lane, got) in out.as_chunks::<8>().0.iter().enumerate() {
        let mut sources = [0; 4];
        for (index, kind) in case.sources.iter().enumerate() {
            sources[index] = i128::from(kind.cut(cells[index][lane]));
        }
        let active = mask >> lane & 1 == 1;
        let wanted = case.result.cut(if active { (case.model)(sources) as u64 } else { cells[4][lane] });
        let got = u64::from_le_bytes(*got);
        prop_assert_eq!(got, wanted, "{} of {:x?} in lane {} of {:#x}", case.opcode, sources, lane, mask);
    }
    Ok(())
}

/// Any value, and often an edge.
fn cell() -> impl Strategy<Value = u64> {
    const EDGES: [u64; 16] =
        [0, 1, 2, 31, 32, 33, 63, 64, 255, 0x7fff, 0x8000, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 63, u64::MAX];
    // Floats among them: 1.5, -0, infinity, NaN; 1 is the smallest denormal.
    const FLOATS: [u64; 5] = [0x3fc0_0000, 0x8000_0000, 0x7f80_0000, 0x7fc0_0000, 0xc2f6_e979];
    // The same in double precision, and a NaN with a sign and a payload.
    const DOUBLES: [u64; 5] = [0x3ff8 << 48, 0x7ff0 << 48, 0xfff0 << 48, 0xfff8_0000_0000_0123, 0xc0fe_240c_9fbe_76c9];
    let floats = prop_oneof![prop::sample::select(&FLOATS[..]), prop::sample::select(&DOUBLES[..])];
    prop_oneof![any::<u64>(), prop::sample::select(&EDGES[..]), floats]
}

proptest! {
    #[test]
    fn lanes_compute_what_one_alone_would(
        // A vector holds them, because nested arrays of strategies overflow a test's stack.
        cells in prop::collection::vec(cell(), 5 * 32),
        mask in prop_oneof![any::<u32>(), Just(u32::MAX), Just(0)],
    ) {
        let cells = std::array::from_fn(|operand| std::array::from_fn(|lane| cells[32 * operand + lane]));
        for (index, case) in CASES.iter().enumerate() {
            check(case, &format!("k{index}"), &cells, mask)?;
        }
    }
}

#[test]
fn every_case_is_supported() {
    for (index, case) in CASES.iter().enumerate() {
        let kernel = MODULE.kernel(&format!("k{index}")).expect("a kernel");
        kernel.supported().unwrap_or_else(|error| panic!("{}: {error}", case.opcode));
    }
}

/// Forms that depend on the kind of their operands or on windows, which `text.rs` tests, and opaque
/// forms, which `policies.rs` tests.
const ELSEWHERE: &[&str] = &["mov.b32", "mov.b64", "cvta", "isspacep", "createpolicy"];

#[test]
fn every_form_that_is_a_function_has_a_case() {
    // Tested here, or in the record of an H100's results.
    let record = include_str!("../data/forms-h100.txt");
    let recorded: HashSet<&str> = record.lines().filter_map(|line| line.split(' ').next()).collect();
    let has_case = |opcode: &str| recorded.contains(opcode) || CASES.iter().any(|case| case.opcode == opcode);
    let functions = coverage::forms().filter(|form| matches!(form.operands(), Operands::Values { .. }));
    // A name with a space is a step of an instruction.
    let named = functions.filter(|form| !form.pattern().contains(' '));
    let named: Vec<_> = named.filter(|form| !ELSEWHERE.iter().any(|start| form.pattern().starts_with(start))).collect();
    assert!(named.len() > 400, "only {} lines of the table", named.len());
    for form in named {
        let found = (0..form.spellings()).any(|number| has_case(&form.spelling(number)));
        assert!(found, "{} has no case", form.pattern());
    }
}
