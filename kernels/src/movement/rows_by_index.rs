//! Takes or puts rows by their indices.

use crate::abi::{INDEXED_BLOCK, INDEXED_PER_THREAD, IndexedRowsParams};
use crate::block;
use crate::index::{Index, Wide};
use crate::thread::{self, B32, B64, Global, Word};
use crate::unrolled;

/// Returns the offset of word `number` of all rows: on the side whose rows are contiguous, and on
/// the other side if its index is in range.
///
/// # Safety
///
/// The index of the word's row is allocated and aligned, and no work writes it.
#[inline(always)]
unsafe fn places<W: Word>(params: &IndexedRowsParams, number: u64) -> (u64, Option<u64>) {
    let row = Wide::truncate(number).divide(&params.words).0;
    let word = number - row * params.words.value;
    let indices = Global::new(params.indices);
    let index = if params.long != 0 {
        // A negative index is above all rows, because indices are unsigned here. SAFETY: as the
        // caller promises.
        unsafe { B64::load_global(indices.offset(8 * row)) }.low()
    } else {
        // SAFETY: as the caller promises.
        u64::from(unsafe { B32::load_global(indices.offset(4 * row)) }.low())
    };
    let width = u64::from(W::BYTES);
    (number * width, (index < params.rows).then(|| (index * params.words.value + word) * width))
}

/// Moves words of rows: with `PUT` to the rows that the indices name, else from there. Neighbouring
/// lanes move neighbouring words.
///
/// # Safety
///
/// See [`IndexedRowsParams`]: both sides and the indices are allocated and aligned; no other work
/// accesses what is written, or writes what is read.
#[inline(always)]
pub unsafe fn rows_by_index<W: Word, const PUT: bool>(params: IndexedRowsParams) {
    const STEPS: usize = INDEXED_PER_THREAD as usize;
    let first = block::linear::<Wide>().0 * u64::from(INDEXED_BLOCK) * STEPS as u64 + u64::from(thread::thread_x());
    let (src, dst) = (Global::new(params.src), Global::new(params.dst));
    let mut held = [W::ZERO; STEPS];
    let mut to = [None; STEPS];
    unrolled!(step < STEPS <= 4 => {
        let number = first + step as u64 * u64::from(INDEXED_BLOCK);
        if number < params.len {
            // SAFETY: the row of a word has an index.
            let (straight, indexed) = unsafe { places::<W>(&params, number) };
            if let Some(indexed) = indexed {
                let (from, into) = if PUT { (straight, indexed) } else { (indexed, straight) };
                // SAFETY: a word of a row of the source.
                held[step] = unsafe { W::load_global(src.offset(from)) };
                to[step] = Some(dst.offset(into));
            }
        }
    });
    unrolled!(step < STEPS <= 4 => {
        if let Some(to) = to[step] {
            // SAFETY: a word of a row of the destination, which only this thread writes, or several
            // whose order is unspecified.
            unsafe { held[step].store_global(to) };
        }
    });
}
