//! Casts numbers from one type to another, as Rust's `as` does.

use core::arch::asm;

use crate::abi::{CAST_BLOCK, CastParams};
use crate::block;
use crate::index::span;
use crate::index::{Index, Wide};
use crate::thread::number::{Bf16, F16, Number};
use crate::thread::quad::Lanes;
use crate::thread::{self, B8, B16, B32, B32x2, B64, Global, Quad, Word};

/// The form in which numbers are held. Methods are named by their results, rounded to nearest even
/// and saturated if needed.
pub trait Value: Copy {
    fn u8(self) -> u8;
    fn i8(self) -> i8;
    fn u16(self) -> u16;
    fn i16(self) -> i16;
    fn u32(self) -> u32;
    fn i32(self) -> i32;
    fn u64(self) -> u64;
    fn i64(self) -> i64;
    fn f32(self) -> f32;
    fn f64(self) -> f64;
    /// Returns an `f32` rounded to odd: an inexact result ends in a one. A second rounding, to a
    /// half, then gives the nearest, while two roundings to nearest might not (Boldo and Melquiond
    /// 2008).
    fn odd(self) -> f32;
}

macro_rules! values {
    ($($value:ident |$number:ident| $odd:expr;)*) => {$(
        impl Value for $value {
            values! { @ u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }

            #[inline(always)]
            fn odd(self) -> f32 {
                let $number = self;
                $odd
            }
        }
    )*};
    (@ $($to:ident)*) => {$(
        #[inline(always)]
        fn $to(self) -> $to {
            self as $to
        }
    )*};
}

/// Rounds towards zero, by the types' names in PTX, and makes the result odd if it is inexact.
macro_rules! odd {
    ($number:ident $type:ident $name:literal $class:ident) => {{
        let low: f32;
        // SAFETY: arithmetic.
        unsafe {
            asm!(concat!("cvt.rz.f32.", $name, " {}, {};"), out(reg32) low, in($class) $number,
                options(pure, nomem, nostack))
        };
        if low as $type == $number { low } else { f32::from_bits(low.to_bits() | 1) }
    }};
}

values! {
    u8 |number| f32::from(number);
    i8 |number| f32::from(number);
    u16 |number| f32::from(number);
    i16 |number| f32::from(number);
    u32 |number| odd!(number u32 "u32" reg32);
    i32 |number| odd!(number i32 "s32" reg32);
    u64 |number| odd!(number u64 "u64" reg64);
    i64 |number| odd!(number i64 "s64" reg64);
    f32 |number| number;
    f64 |number| odd!(number f64 "f64" reg64);
}

/// A number type in memory.
pub trait Scalar {
    /// Its bits.
    type Word: Word + Lanes;
    /// The form in which its numbers are held.
    type Value: Value;

    /// Returns the value of these bits.
    fn value(word: Self::Word) -> Self::Value;
    /// Returns the bits of a value.
    fn word<V: Value>(value: V) -> Self::Word;
}

macro_rules! scalars {
    ($($scalar:ident $word:ident $as:ident: |$bits:ident| $value:expr, |$from:ident| $into:expr;)*) => {$(
        impl Scalar for $scalar {
            type Word = $word;
            type Value = $as;

            #[inline(always)]
            fn value(word: $word) -> $as {
                let $bits = word;
                $value
            }

            #[inline(always)]
            fn word<V: Value>($from: V) -> $word {
                $into
            }
        }
    )*};
}

scalars! {
    u8 B8 u8: |bits| bits.low() as u8, |value| B8::new(u32::from(value.u8()));
    i8 B8 i8: |bits| bits.low() as i8, |value| B8::new(u32::from(value.i8() as u8));
    u16 B16 u16: |bits| bits.low() as u16, |value| B16::new(u32::from(value.u16()));
    i16 B16 i16: |bits| bits.low() as i16, |value| B16::new(u32::from(value.i16() as u16));
    F16 B16 f32: |bits| <Self as Number>::value(bits), |value| <Self as Number>::word(value.odd());
    Bf16 B16 f32: |bits| <Self as Number>::value(bits), |value| <Self as Number>::word(value.odd());
    u32 B32 u32: |bits| bits.low(), |value| B32::new(value.u32());
    i32 B32 i32: |bits| bits.low() as i32, |value| B32::new(value.i32() as u32);
    f32 B32 f32: |bits| f32::from_bits(bits.low()), |value| B32::new(value.f32().to_bits());
    u64 B64 u64: |bits| bits.low(), |value| B64::new(value.u64());
    i64 B64 i64: |bits| bits.low() as i64, |value| B64::new(value.i64() as u64);
    f64 B64 f64: |bits| f64::from_bits(bits.low()), |value| B64::new(value.f64().to_bits());
}

/// Loads a vector, or 8, 4 or 2 bytes as the start of one.
///
/// # Safety
///
/// They are allocated, aligned to their number, and no work writes them.
#[inline(always)]
unsafe fn load_part(from: Global, bytes: u32) -> Quad {
    match bytes {
        // SAFETY: as the caller promises; so below.
        16 => unsafe { thread::load_quad(from) },
        8 => {
            // SAFETY: see above.
            let pair = unsafe { B32x2::load_global(from) };
            [pair.low(), pair.high(), 0, 0]
        }
        // SAFETY: see above.
        4 => [unsafe { B32::load_global(from) }.low(), 0, 0, 0],
        // SAFETY: see above.
        _ => [unsafe { B16::load_global(from) }.low(), 0, 0, 0],
    }
}

/// Stores a vector, or its first 8, 4 or 2 bytes.
///
/// # Safety
///
/// They are allocated, aligned to their number, and no other thread accesses them.
#[inline(always)]
unsafe fn store_part(to: Global, quad: Quad, bytes: u32) {
    match bytes {
        // SAFETY: as the caller promises; so below.
        16 => unsafe { thread::store_quad(to, quad) },
        // SAFETY: see above.
        8 => unsafe { B32x2::new(quad[0], quad[1]).store_global(to) },
        // SAFETY: see above.
        4 => unsafe { B32::new(quad[0]).store_global(to) },
        // SAFETY: see above.
        _ => unsafe { B16::new(quad[0]).store_global(to) },
    }
}

/// Casts a vector of the wider type a thread, with the same elements of the other type, and an
/// element outside of vectors. So neighbouring lanes access neighbouring bytes on both sides.
///
/// # Safety
///
/// See [`CastParams`]: both sides are allocated and aligned to an element, and as `span` says; no
/// other work accesses what is written, or writes what is read.
#[inline(always)]
pub unsafe fn cast<S: Scalar, D: Scalar>(params: CastParams) {
    let lane = (block::linear::<Wide>() * Wide::new(CAST_BLOCK) + Wide::new(thread::thread_x())).0;
    let (from, to) = (S::Word::BYTES, D::Word::BYTES);
    let count = 16 / if from > to { from } else { to };
    let sides = |element: u64| {
        let (src, dst) = (Global::new(params.src), Global::new(params.dst));
        (src.offset(element * u64::from(from)), dst.offset(element * u64::from(to)))
    };
    if lane < params.span.quads {
        let (src, dst) = sides(params.span.first + lane * u64::from(count));
        // SAFETY: this lane's elements of the source.
        let held = unsafe { load_part(src, count * from) };
        let mut made = [0; 4];
        crate::unrolled!(lane < 16 => {
            if lane < count as usize {
                made = D::word(S::value(S::Word::get(held, lane))).put(made, lane);
            }
        });
        // SAFETY: the same elements of the destination.
        unsafe { store_part(dst, made, count * to) };
    }
    if let Some(element) = span::single(&params.span, u64::from(count), lane) {
        let (src, dst) = sides(element);
        // SAFETY: an element of the source.
        let value = S::value(unsafe { S::Word::load_global(src) });
        // SAFETY: this lane's element of the destination.
        unsafe { D::word(value).store_global(dst) };
    }
}
