//! Any layout to any layout.

use crate::abi::{ELEMENTS_BLOCK, ELEMENTS_PER_THREAD, ElementsParams};
use crate::axes;
use crate::block;
use crate::index::Index;
use crate::thread::{self, Global, Word};

const STEPS: usize = ELEMENTS_PER_THREAD as usize;

/// Numbers the elements in the destination's order, so that neighbouring lanes write side by side where it allows that.
///
/// # Safety
///
/// See [`ElementsParams`]: both layouts are allocated, aligned to the width, and nothing else writes them.
#[inline(always)]
pub unsafe fn elements<W: Word, I: Index>(params: ElementsParams) {
    let first = block::linear::<I>() * I::new(ELEMENTS_BLOCK * ELEMENTS_PER_THREAD) + I::new(thread::thread_x());
    let mut numbers = [first; STEPS];
    for step in 0..STEPS {
        numbers[step] = first + I::new(step as u32 * ELEMENTS_BLOCK);
    }
    let len = I::truncate(params.len);
    let offsets = axes::offsets(numbers, &params.axes, params.rank);
    let (src, dst) = (Global::new(params.src), Global::new(params.dst));
    let at = |start: Global, offset: I| start.offset(offset.sign_extend().wrapping_mul(u64::from(W::BYTES)));

    let mut held = [W::ZERO; STEPS];
    for step in 0..STEPS {
        if numbers[step] < len {
            // SAFETY: an element of the `len`.
            held[step] = unsafe { W::load_global(at(src, offsets[step].src)) };
        }
    }
    for step in 0..STEPS {
        if numbers[step] < len {
            // SAFETY: the same on the other side; no two threads have the same element.
            unsafe { held[step].store_global(at(dst, offsets[step].dst)) };
        }
    }
}
