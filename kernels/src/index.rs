//! Index arithmetic in 32 or 64 bits.

use core::num::Wrapping;
use core::ops::{Add, Mul, Sub};

/// For matrices whose extents and element offsets all fit in 31 bits.
pub type Narrow = Wrapping<u32>;
/// For all others.
pub type Wide = Wrapping<u64>;

/// Unsigned positions and two's complement offsets, in one integer type.
///
/// It wraps, so that signed strides need no second type, and offsets of elements that a guard will leave out may overflow.
pub trait Index: Copy + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    /// A position inside a block, or a block's.
    fn new(value: u32) -> Self;
    /// The low bits of an extent or of a stride's two's complement.
    fn truncate(value: u64) -> Self;
    /// The offset as 64 bits of two's complement.
    fn sign_extend(self) -> u64;
    /// Quotient and remainder of positions. By 0, which no kernel asks for, it is as by 1: a check would be a branch.
    fn div_rem(self, by: Self) -> (Self, Self);
}

impl Index for Narrow {
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
    fn div_rem(self, by: Self) -> (Self, Self) {
        let quotient = Wrapping(self.0 / by.0.max(1));
        (quotient, self - quotient * by)
    }
}

impl Index for Wide {
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
    fn div_rem(self, by: Self) -> (Self, Self) {
        let quotient = Wrapping(self.0 / by.0.max(1));
        (quotient, self - quotient * by)
    }
}
