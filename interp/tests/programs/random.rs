//! Numbers drawn from a seed, the same on every machine, and the values that arithmetic goes wrong
//! on.

/// xorshift64* (Vigna 2016).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Self((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        // Neighbouring seeds begin alike.
        (0..8).for_each(|_| _ = random.bits());
        random
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((self.bits() >> 33) % end as u64) as usize
    }

    /// True once in `times`.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// An integer of so many bits: small, near the ends of its range, or anything.
    pub(crate) fn integer(&mut self, bits: u32) -> u64 {
        let mask = u64::MAX >> (64 - bits);
        let value = match self.below(8) {
            0..=2 => self.below(70) as u64,
            3 => (self.below(9) as u64).wrapping_sub(4),
            4 => (1_u64 << (bits - 1)).wrapping_add((self.below(5) as u64).wrapping_sub(2)),
            5 => (1_u64 << self.below(bits as usize)).wrapping_sub(self.below(2) as u64),
            _ => self.bits(),
        };
        value & mask
    }

    /// The bits of a number of this format: special, near 1, an integer, or anything.
    pub(crate) fn float(&mut self, format: Format) -> u64 {
        let Format { bits, mantissa } = format;
        let exponents = (1 << (bits - 1 - mantissa)) - 1;
        let (infinity, bias) = ((exponents as u64) << mantissa, exponents / 2);
        let magnitude = match self.below(12) {
            0 => 0,
            1 => infinity,
            // A NaN of either sort with any payload.
            2 => infinity | (self.bits() & ((1 << mantissa) - 1)).max(1),
            // Denormals, and the smallest numbers that are not.
            3 => *self.pick(&[1, 2, (1 << mantissa) - 1, 1 << mantissa, (1 << mantissa) + 1]),
            4 => infinity - 1,
            5 => self.bits() & ((1 << mantissa) - 1),
            // Powers of two where integers end, and halves, which are rounded to even.
            6..=7 => {
                let exponent = bias + *self.pick(&[-1_i32, 0, 1, 7, 8, 15, 16, 23, 24, 31, 32, 52, 53, 63, 64]);
                (exponent.clamp(0, exponents - 1) as u64) << mantissa | self.bits() & 3 << (mantissa - 2)
            }
            // Around 1, where sums and products stay in range.
            8..=9 => ((bias - 4 + self.below(9) as i32) as u64) << mantissa | self.bits() & ((1 << mantissa) - 1),
            _ => self.bits() & (u64::MAX >> (65 - bits)),
        };
        magnitude | (self.below(2) as u64) << (bits - 1)
    }
}

/// A binary interchange format.
#[derive(Clone, Copy)]
pub(crate) struct Format {
    bits: u32,
    mantissa: u32,
}

pub(crate) const HALF: Format = Format { bits: 16, mantissa: 10 };
pub(crate) const BRAIN: Format = Format { bits: 16, mantissa: 7 };
pub(crate) const SINGLE: Format = Format { bits: 32, mantissa: 23 };
pub(crate) const DOUBLE: Format = Format { bits: 64, mantissa: 52 };
