//! Measures memory: only loads, only stores, and both.

use crate::abi::ProbeParams;
use crate::block;
use crate::index::Wide;
use crate::thread::cache::{Cache, Unhinted};
use crate::thread::{self, Global, Quad};

/// Returns the bytes from the start to this thread's vector of a number: the threads of a block
/// have neighbouring vectors of each number.
#[inline(always)]
fn quad<const STEPS: usize>(number: usize) -> u64 {
    let threads = u64::from(thread::block_width());
    let first = block::linear::<Wide>().0 * threads * STEPS as u64;
    16 * (first + number as u64 * threads + u64::from(thread::thread_x()))
}

/// Loads `STEPS` vectors a thread.
///
/// # Safety
///
/// All vectors of the grid are allocated, and no work writes them.
#[inline(always)]
unsafe fn load<const STEPS: usize>(cache: impl Cache<Quad>, src: Global) -> [Quad; STEPS] {
    let mut held = [[0; 4]; STEPS];
    for number in 0..STEPS {
        // SAFETY: one of the grid's vectors.
        held[number] = unsafe { cache.load(src.offset(quad::<STEPS>(number))) };
    }
    held
}

/// Loads, and stores only if the data gives `never`.
///
/// # Safety
///
/// See [`ProbeParams`]: all memory is allocated and aligned to 16 bytes; no work writes what is
/// read.
#[inline(always)]
pub unsafe fn read<const STEPS: usize>(params: ProbeParams) {
    // SAFETY: as the caller promises.
    let held: [Quad; STEPS] = unsafe { load(Unhinted, Global::new(params.src)) };
    let mut all = 0;
    for [a, b, c, d] in held {
        all ^= a ^ b ^ c ^ d;
    }
    if all == params.never as u32 {
        // SAFETY: an allocated vector; no thread reads it, whichever writes it.
        unsafe { thread::store_quad(Global::new(params.dst), [all; 4]) };
    }
}

/// Stores the numbers of its vectors' bytes.
///
/// # Safety
///
/// See [`ProbeParams`]: the vectors to write are allocated, and no other work accesses them.
#[inline(always)]
pub unsafe fn write<const STEPS: usize>(params: ProbeParams) {
    for number in 0..STEPS {
        let at = quad::<STEPS>(number);
        let word = at as u32;
        // SAFETY: one of the grid's vectors.
        unsafe { thread::store_quad(Global::new(params.dst).offset(at), [word, word + 4, word + 8, word + 12]) };
    }
}

/// Loads, and then stores the same elsewhere.
///
/// # Safety
///
/// See [`ProbeParams`]: as for both.
#[inline(always)]
pub unsafe fn copy<C: Cache<Quad>, const STEPS: usize>(params: ProbeParams) {
    let cache = C::new();
    // SAFETY: as the caller promises.
    let held: [Quad; STEPS] = unsafe { load(cache, Global::new(params.src)) };
    for number in 0..STEPS {
        // SAFETY: one of the vectors to write.
        unsafe { cache.store(Global::new(params.dst).offset(quad::<STEPS>(number)), held[number]) };
    }
}
