//! Rows that are taken, or put, by their indices.

use crate::abi::{INDEXED_BLOCK, INDEXED_PER_THREAD, IndexedRowsParams};
use crate::block;
use crate::index::{Index, Wide};
use crate::thread::{self, B32, B64, Global, Word};
use crate::unrolled;

/// Where word `number` of all rows lies: in the side whose rows are one behind the other, and in
/// the other, if its index is one of that side's rows.
///
/// # Safety
///
/// The index of the word's row is allocated and aligned, and nothing writes it.
#[inline(always)]
unsafe fn places<W: Word>(params: &IndexedRowsParams, number: u64) -> (u64, Option<u64>) {
    let row = Wide::truncate(number).divide(&params.words).0;
    let word = number - row * params.words.value;
    let indices = Global::new(params.indices);
    let index = if params.long != 0 {
        // A negative one is above all rows, as they are numbered here.
        // SAFETY: as the caller promises.
        unsafe { B64::load_global(indices.offset(8 * row)) }.low()
    } else {
        // SAFETY: as the caller promises.
        u64::from(unsafe { B32::load_global(indices.offset(4 * row)) }.low())
    };
    let width = u64::from(W::BYTES);
    (number * width, (index < params.rows).then(|| (index * params.words.value + word) * width))
}

/// Words of rows: `PUT` to the rows that the indices name, or taken from there. Lanes that follow
/// each other have words that do.
///
/// # Safety
///
/// See [`IndexedRowsParams`]: both sides and the indices are allocated and aligned, and nothing
/// else accesses what is written, or writes what is read.
#[inline(always)]
pub unsafe fn rows_by_index<W: Word, const PUT: bool>(params: IndexedRowsParams) {
    const STEPS: usize = INDEXED_PER_THREAD as usize;
    let first = block::linear::<Wide>().0 * u64::from(INDEXED_BLOCK) * STEPS as u64 + u64::from(thread::thread_x());
    let (src, dst) = (Global::new(params.src), Global::new(params.dst));
    let mut held = [W::ZERO; STEPS];
    let mut to = [None; STEPS];
    unrolled!(step < 4 => {
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
    unrolled!(step < 4 => {
        if let Some(to) = to[step] {
            // SAFETY: a word of a row of the destination, which is this thread's, or that of
            // several whose order nobody promises.
            unsafe { held[step].store_global(to) };
        }
    });
}
