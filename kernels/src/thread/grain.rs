//! Packs narrow elements into words of at least 4 bytes.

use crate::thread::quad::Lanes;
use crate::thread::{B8, B16, B32, B64, B128, Word};

/// Elements that move together, several of which fill 4 bytes.
pub trait Grain: Word {
    /// The word that moves.
    type Granule: Word + Lanes;
    /// Base-2 logarithm of its elements.
    const COUNT_LOG2: u32;

    /// Returns an element of a word.
    fn part(granule: Self::Granule, lane: u32) -> Self;
    /// Sets an element in a lane of a word, which was zero.
    fn with(self, granule: Self::Granule, lane: u32) -> Self::Granule;
    /// Returns the bits of a word of several elements.
    fn bits(granule: Self::Granule) -> u32;
}

macro_rules! grain {
    ($($word:ident $log2:literal)*) => {$(
        impl Grain for $word {
            type Granule = B32;
            const COUNT_LOG2: u32 = $log2;

            #[inline(always)]
            fn part(granule: B32, lane: u32) -> Self {
                // The store drops the bits above.
                Self::new(granule.low() >> (8 * Self::BYTES * lane))
            }

            #[inline(always)]
            fn with(self, granule: B32, lane: u32) -> B32 {
                B32::new(granule.low() | self.low() << (8 * Self::BYTES * lane))
            }

            #[inline(always)]
            fn bits(granule: B32) -> u32 {
                granule.low()
            }
        }
    )*};
    (whole $($word:ident)*) => {$(
        impl Grain for $word {
            type Granule = $word;
            const COUNT_LOG2: u32 = 0;

            #[inline(always)]
            fn part(granule: $word, _: u32) -> Self {
                granule
            }

            #[inline(always)]
            fn with(self, _: $word, _: u32) -> $word {
                self
            }

            #[inline(always)]
            fn bits(_: $word) -> u32 {
                0
            }
        }
    )*};
}

grain! { B8 2 B16 1 }
grain! { whole B32 B64 B128 }
