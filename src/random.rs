//! Random numbers from a seed, the same on every machine.

/// SplitMix64 (Steele, Lea and Flood, 2014), which has no bad seeds.
#[derive(Debug, Clone, Default)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// Returns number `place` of the sequence of `seed`, from 0.
    pub fn at(seed: u64, place: u64) -> u64 {
        let mixed = seed.wrapping_add(place.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns the next number of the sequence.
    pub fn draw(&mut self) -> u64 {
        let drawn = Self::at(self.0, 0);
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        drawn
    }

    /// Returns a number below `bound`, or 0. Small ones are likelier by `bound / 2^64` at most.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_reference() {
        // The first numbers of seed 1234567 by the reference implementation.
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        let mut random = SplitMix64(1_234_567);
        for (place, expected) in (0..).zip(expected) {
            assert_eq!((random.draw(), SplitMix64::at(1_234_567, place)), (expected, expected));
        }
    }
}
