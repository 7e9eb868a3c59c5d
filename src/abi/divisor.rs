//! Division by a number that a launch knows: a multiplication and a shift.

use super::params;

params! {
    /// Division by a number known before the launch, as a multiplication (Granlund and Montgomery
    /// 1994): `n / value = mulhi(2 * n, multiplier) >> shift`, where `shift = ceil(log2(value))`.
    ///
    /// Narrow: `multiplier = ceil(2^(31 + shift) / value)` for `n < 2^31`, by a 32-bit `mulhi`.
    /// Wide: `ceil(2^(63 + shift) / value)` for `n < 2^63`, by a 64-bit one. For numbers of 31 (63)
    /// bits the multiplier fits a word; for 32 (64) it would not.
    #[derive(Hash)]
    pub struct Divisor {
        /// The divisor, at least 1.
        pub value: u64,
        /// The reciprocal.
        pub multiplier: u64,
        /// Bits by which the product is shifted.
        pub shift: u64,
    }
}

impl Divisor {
    /// For [`Index::Narrow`](super::Index::Narrow): divides numbers below 2^31 by a `value` from 1
    /// to 2^31.
    pub const fn narrow(value: u64) -> Self {
        Self::of_bits(value, 31)
    }

    /// For [`Index::Wide`](super::Index::Wide): divides numbers below 2^63 by a `value` from 1 to
    /// 2^63.
    pub const fn wide(value: u64) -> Self {
        Self::of_bits(value, 63)
    }

    const fn of_bits(value: u64, bits: u32) -> Self {
        let shift = value.next_power_of_two().trailing_zeros();
        // A plan has many divisors, and a 64-bit division takes a host a third of the time of a
        // 128-bit one.
        let multiplier = if bits + shift < 64 {
            (1u64 << (bits + shift)).div_ceil(value)
        } else {
            (1u128 << (bits + shift)).div_ceil(value as u128) as u64
        };
        Self { value, multiplier, shift: shift as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrow(n: u32, by: &Divisor) -> u64 {
        let product = u64::from(n << 1) * by.multiplier;
        product >> 32 >> by.shift
    }

    fn wide(n: u64, by: &Divisor) -> u64 {
        let product = u128::from(n << 1) * u128::from(by.multiplier);
        (product >> 64) as u64 >> by.shift
    }

    /// Returns numbers of up to `bits` bits that are likely to be bounds: those around powers of
    /// two, and random ones.
    fn numbers(bits: u32) -> impl Iterator<Item = u64> + Clone {
        let around = (0..=bits).flat_map(|power| [(1u64 << power) - 1, 1 << power, (1 << power) + 1]);
        let random = (1u64..200).map(move |i| {
            let bits_of_it = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            bits_of_it >> (64 - bits as u64 + i % u64::from(bits))
        });
        around.chain(random)
    }

    #[test]
    fn narrow_divisions_are_exact() {
        for value in numbers(31).filter(|value| (1..=1 << 31).contains(value)) {
            let divisor = Divisor::narrow(value);
            assert!(divisor.multiplier <= u64::from(u32::MAX) && divisor.shift < 32, "{divisor:?}");
            let multiples = numbers(31).flat_map(|n| [n, n / value * value, (n / value * value).wrapping_sub(1)]);
            for n in multiples.filter(|&n| n < 1 << 31) {
                assert_eq!(narrow(n as u32, &divisor), n / value, "{n} / {value}");
            }
        }
    }

    #[test]
    fn wide_divisions_are_exact() {
        for value in numbers(63).filter(|value| (1..=1 << 63).contains(value)) {
            let divisor = Divisor::wide(value);
            assert!(divisor.shift < 64, "{divisor:?}");
            let multiples = numbers(63).flat_map(|n| [n, n / value * value, (n / value * value).wrapping_sub(1)]);
            for n in multiples.filter(|&n| n < 1 << 63) {
                assert_eq!(wide(n, &divisor), n / value, "{n} / {value}");
            }
        }
    }
}
