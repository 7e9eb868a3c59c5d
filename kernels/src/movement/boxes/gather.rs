//! Gathers the elements of a vector of the destination.

use crate::thread::quad::{Lanes, permute_bytes};
use crate::thread::{self, B8, B16, B32, B64, B128, Quad, Shared, Word};
use crate::unrolled;

/// Elements that a vector is gathered from.
pub trait Gather: Lanes + Word {
    /// Joins the elements at these addresses to a vector.
    ///
    /// # Safety
    ///
    /// As [`Word::load_shared`].
    unsafe fn gather<const N: usize>(from: &[u32; N], start: Shared) -> Quad;
}

impl Gather for B8 {
    #[inline(always)]
    unsafe fn gather<const N: usize>(from: &[u32; N], start: Shared) -> Quad {
        let mut quad = [0; 4];
        unrolled!(word < 4 => {
            // SAFETY: as the caller promises.
            let byte = |lane: usize| unsafe { Self::load_shared(start.offset(from[4 * word + lane])) }.low();
            let pair = |lane: usize| permute_bytes::<0x0040>(byte(lane), byte(lane + 1));
            quad[word] = permute_bytes::<0x5410>(pair(0), pair(2));
        });
        quad
    }
}

impl Gather for B16 {
    #[inline(always)]
    unsafe fn gather<const N: usize>(from: &[u32; N], start: Shared) -> Quad {
        let mut quad = [0; 4];
        unrolled!(word < 4 => {
            // SAFETY: as the caller promises.
            let half = |lane: usize| unsafe { Self::load_shared(start.offset(from[2 * word + lane])) }.low();
            quad[word] = permute_bytes::<0x5410>(half(0), half(1));
        });
        quad
    }
}

macro_rules! gather {
    ($($word:ident)*) => {$(
        impl Gather for $word {
            #[inline(always)]
            unsafe fn gather<const N: usize>(from: &[u32; N], start: Shared) -> Quad {
                let mut quad = [0; 4];
                unrolled!(lane < 4 => {
                    if lane < N {
                        // SAFETY: as the caller promises.
                        quad = unsafe { Self::load_shared(start.offset(from[lane])) }.put(quad, lane);
                    }
                });
                quad
            }
        }
    )*};
}

gather! { B32 B64 }

impl Gather for B128 {
    #[inline(always)]
    unsafe fn gather<const N: usize>(from: &[u32; N], start: Shared) -> Quad {
        // SAFETY: as the caller promises.
        unsafe { thread::load_shared_quad(start.offset(from[0])) }
    }
}

/// Returns the element that a lane of a vector gathers, if its words are turned.
#[inline(always)]
pub(super) fn turned<const N: usize>(lane: u32, turn: u32) -> u32 {
    let word = if N >= 4 { N as u32 / 4 } else { return lane };
    (lane / word + turn & 3) * word + lane % word
}
