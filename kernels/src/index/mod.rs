//! Index arithmetic in 32 or 64 bits.

pub mod axes;
pub mod span;

use core::num::Wrapping;
use core::ops::{Add, Mul, Sub};

use crate::abi::Divisor;
use crate::thread::{self, B32, B64, Word};

/// For matrices whose extents and element offsets all fit in 31 bits.
pub type Narrow = Wrapping<u32>;
/// For all other matrices.
pub type Wide = Wrapping<u64>;

/// Unsigned indices and two's complement offsets, in one integer type.
///
/// It wraps, so signed strides need no second type, and offsets of elements that a guard skips may
/// overflow.
pub trait Index: Copy + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    /// Makes an index from a thread's or a block's number.
    fn new(value: u32) -> Self;
    /// Returns the low bits of an extent or of a stride's two's complement.
    fn truncate(value: u64) -> Self;
    /// Returns the offset as 64 bits of two's complement.
    fn sign_extend(self) -> u64;
    /// Returns the bytes of this number of elements, as 64 bits of two's complement.
    #[inline(always)]
    fn bytes<W: Word>(self) -> u64 {
        self.sign_extend().wrapping_mul(u64::from(W::BYTES))
    }
    /// Returns the low 32 bits.
    fn low(self) -> u32;
    /// Divides a number of 31 (63) bits by a divisor made for this type.
    fn divide(self, by: &Divisor) -> Self;

    /// Its form in memory.
    type Word: Word;
    /// Returns the form in memory.
    fn word(self) -> Self::Word;
    /// Returns the number of that form.
    fn of(word: Self::Word) -> Self;
}

/// Divides a number of 31 bits by a divisor made for [`Narrow`].
#[inline(always)]
pub fn quotient(number: u32, by: &Divisor) -> u32 {
    Narrow::new(number).divide(by).low()
}

impl Index for Narrow {
    #[inline(always)]
    fn low(self) -> u32 {
        self.0
    }

    #[inline(always)]
    fn new(value: u32) -> Self {
        Wrapping(value)
    }

    #[inline(always)]
    fn truncate(value: u64) -> Self {
        Wrapping(value as u32)
    }

    #[inline(always)]
    fn sign_extend(self) -> u64 {
        i64::from(self.0 as i32) as u64
    }

    #[inline(always)]
    fn divide(self, by: &Divisor) -> Self {
        Wrapping(thread::high_product(self.0 << 1, by.multiplier as u32) >> (by.shift as u32 & 31))
    }

    type Word = B32;

    #[inline(always)]
    fn word(self) -> B32 {
        B32::new(self.0)
    }

    #[inline(always)]
    fn of(word: B32) -> Self {
        Wrapping(word.low())
    }
}

impl Index for Wide {
    #[inline(always)]
    fn low(self) -> u32 {
        self.0 as u32
    }

    #[inline(always)]
    fn new(value: u32) -> Self {
        Wrapping(u64::from(value))
    }

    #[inline(always)]
    fn truncate(value: u64) -> Self {
        Wrapping(value)
    }

    #[inline(always)]
    fn sign_extend(self) -> u64 {
        self.0
    }

    #[inline(always)]
    fn divide(self, by: &Divisor) -> Self {
        let product = u128::from(self.0 << 1) * u128::from(by.multiplier);
        Wrapping((product >> 64) as u64 >> (by.shift as u32 & 63))
    }

    type Word = B64;

    #[inline(always)]
    fn word(self) -> B64 {
        B64::new(self.0)
    }

    #[inline(always)]
    fn of(word: B64) -> Self {
        Wrapping(word.low())
    }
}
