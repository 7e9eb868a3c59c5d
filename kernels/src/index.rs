//! Index arithmetic in 32 or 64 bits.

use core::num::Wrapping;
use core::ops::{Add, Mul, Sub};

use crate::abi::Divisor;

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
    /// The low 32 bits.
    fn low(self) -> u32;
    /// The quotient by a divisor that was made for this width.
    fn divide(self, by: &Divisor) -> Self;
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
        let high = (u64::from(self.0 << 1) * u64::from(by.multiplier as u32)) >> 32;
        Wrapping(high as u32 >> (by.shift as u32 & 31))
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
        let high = (u128::from(self.0 << 1) * u128::from(by.multiplier)) >> 64;
        Wrapping(high as u64 >> (by.shift as u32 & 63))
    }
}
