//! Moves any layout to any layout, element by element.

use crate::abi::{Axis, ELEMENTS_BLOCK, ElementsParams, MAX_AXES, elements_per_thread};
use crate::block;
use crate::index::Index;
use crate::index::axes;
use crate::thread::cache::Cache;
use crate::thread::{self, Global, Word};

/// Numbers the elements in the destination's order, so that neighbouring lanes write side by side
/// if the layout allows. `STEPS` is [`elements_per_thread`].
///
/// # Safety
///
/// See [`ElementsParams`]: both layouts are allocated, aligned to the width, and no other work
/// writes them.
#[inline(always)]
pub unsafe fn elements<W: Word, I: Index, C: Cache<W>, const STEPS: usize>(params: ElementsParams) {
    let ElementsParams { src, dst, len, rank, axes } = &params;
    // SAFETY: as the caller promises.
    unsafe { elements_along::<W, I, C, STEPS, MAX_AXES>([*src, *dst], *len, *rank, axes) }
}

/// As [`elements`], between sides at these addresses, along up to `AXES` axes.
///
/// # Safety
///
/// As [`elements`].
#[inline(always)]
pub unsafe fn elements_along<W: Word, I: Index, C: Cache<W>, const STEPS: usize, const AXES: usize>(
    [src, dst]: [u64; 2],
    len: u64,
    rank: u64,
    axes: &[Axis; AXES],
) {
    const { assert!(STEPS as u32 == elements_per_thread(W::BYTES), "the host counts blocks of as many elements") };
    let first = block::linear::<I>() * I::new(ELEMENTS_BLOCK * STEPS as u32) + I::new(thread::thread_x());
    let mut numbers = [first; STEPS];
    for step in 0..STEPS {
        numbers[step] = first + I::new(step as u32 * ELEMENTS_BLOCK);
    }
    let len = I::truncate(len);
    let offsets = axes::offsets(numbers, axes, rank);
    let (src, dst) = (Global::new(src), Global::new(dst));
    let at = |start: Global, offset: I| start.offset(offset.bytes::<W>());

    let cache = C::new();
    let mut held = [W::ZERO; STEPS];
    for step in 0..STEPS {
        if numbers[step] < len {
            // SAFETY: one of the source's `len` elements, which the caller promises to be allocated
            // and aligned.
            held[step] = unsafe { cache.load(at(src, offsets[step].src)) };
        }
    }
    for step in 0..STEPS {
        if numbers[step] < len {
            // SAFETY: the same element's address in the destination, which no other element has; no
            // two threads have one number.
            unsafe { cache.store(at(dst, offsets[step].dst), held[step]) };
        }
    }
}
