//! Random frames from a seed.

use crate::random::SplitMix64;

/// A type of the elements of frames: `u8` or `f32`.
pub trait Pixel: sealed::Drawn + Default {}

impl Pixel for u8 {}
impl Pixel for f32 {}

mod sealed {
    use crate::element::Element;

    pub trait Drawn: Element {
        /// Fills elements with random values, from number `place` of the numbers of a seed on.
        /// Eight bytes take one number.
        fn fill(seed: u64, place: u64, elements: &mut [Self]);
    }
}

impl sealed::Drawn for u8 {
    fn fill(seed: u64, place: u64, elements: &mut [Self]) {
        for (place, eight) in (place..).zip(elements.chunks_mut(8)) {
            eight.copy_from_slice(&SplitMix64::at(seed, place).to_le_bytes()[..eight.len()]);
        }
    }
}

impl sealed::Drawn for f32 {
    fn fill(seed: u64, place: u64, elements: &mut [Self]) {
        for (place, two) in (place..).zip(elements.chunks_mut(2)) {
            let drawn = SplitMix64::at(seed, place);
            // As many bits as a single has.
            let singles = [drawn as u32, (drawn >> 32) as u32].map(|bits| (bits >> 8) as f32 / (1 << 24) as f32);
            two.copy_from_slice(&singles[..two.len()]);
        }
    }
}

/// Random frames: bytes from 0 to 255, or singles from 0 to 1. A seed and a number make the same
/// frame on every machine, in whichever batch.
///
/// ```
/// use warpstride::pipeline::frames::Synthetic;
///
/// let frames = Synthetic { seed: 7, elements: 12 };
/// let (mut two, mut second) = ([0_u8; 24], [0_u8; 12]);
/// frames.fill(0, &mut two);
/// frames.fill(1, &mut second);
/// assert_eq!(two[12..], second);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Synthetic {
    /// The seed.
    pub seed: u64,
    /// The number of elements of a frame.
    pub elements: usize,
}

impl Synthetic {
    /// Makes frames from number `first` on, until the elements are full. The last frame may be a
    /// part.
    pub fn fill<T: Pixel>(&self, first: u64, elements: &mut [T]) {
        // Without elements there is nothing to fill.
        let numbers = (self.elements * size_of::<T>()).div_ceil(8) as u64;
        for (frame, elements) in (first..).zip(elements.chunks_mut(self.elements.max(1))) {
            T::fill(self.seed, frame.wrapping_mul(numbers), elements);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_the_same_in_every_batch() {
        let frames = Synthetic { seed: 5, elements: 13 };
        let mut all = vec![0_u8; 13 * 7];
        frames.fill(0, &mut all);
        for (first, count) in [(0, 1), (3, 4), (6, 1)] {
            let mut some = vec![0_u8; 13 * count];
            frames.fill(first as u64, &mut some);
            assert_eq!(some, all[13 * first..][..13 * count]);
        }
        assert_ne!(all[..13], all[13..26]);
    }

    #[test]
    fn singles_are_from_0_to_1_and_differ() {
        let mut all = vec![0_f32; 1000];
        Synthetic { seed: 9, elements: 10 }.fill(0, &mut all);
        assert!(all.iter().all(|x| (0.0..1.0).contains(x)));
        let mean = all.iter().sum::<f32>() / 1000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
    }
}
