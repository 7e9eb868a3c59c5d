//! Splits structs of few fields into planes, or joins planes, by vectors: 16 bytes a lane on both
//! sides, if images and planes start on 16 bytes.
//!
//! It works as [`super::fields`]. Packed vectors lie side by side in shared memory. For a vector of
//! a plane, a lane moves word by word the elements that lie a struct apart there. So that 32 lanes
//! never share banks,
//!
//! - lanes whose vectors are a multiple of all banks apart start with different words of them, and
//!   go around;
//! - if `fields` shares a power of two with the banks, that number of lanes still share a bank.
//!   They belong to different groups of structs, whose numbers are exclusive-ored into the
//!   positions of words.

use core::marker::PhantomData;

use super::fields::{Chunk, Place, Shares};
use crate::abi::{FIELDS_QUADS, FieldsParams};
use crate::index::{Wide, quotient};
use crate::thread::cache::Cache;
use crate::thread::grain::Grain;
use crate::thread::quad::{self, Lanes};
use crate::thread::{self, Quad, Shared, Word};
use crate::unrolled;

/// The structs that a block moves by vectors of elements `W`.
struct Quads<'a, W> {
    chunk: Chunk<'a>,
    of: PhantomData<W>,
}

impl<'a, W: Grain> Quads<'a, W> {
    /// Base-2 logarithm of the words of a vector.
    const GRANULES_LOG2: u32 = <W::Granule as Lanes>::COUNT.ilog2();
    /// The bits of a word's number that are its position in a vector.
    const PLACES: u32 = (1 << Self::GRANULES_LOG2) - 1;
    /// Base-2 logarithm of the elements of a vector.
    const COUNT_LOG2: u32 = W::COUNT_LOG2 + Self::GRANULES_LOG2;
    /// Words of a word.
    const WORDS: u32 = W::Granule::BYTES / 4;

    #[inline(always)]
    fn new(params: &'a FieldsParams, is_packed_src: bool) -> Self {
        let threads = thread::block_width();
        let shares = Shares { count_log2: Self::COUNT_LOG2, threads, shared: Shared::dynamic() };
        Quads { chunk: Chunk::new::<W, Wide>(params, is_packed_src, shares), of: PhantomData }
    }

    /// Returns the number that is exclusive-ored into the positions of a group's words.
    #[inline(always)]
    fn spread(&self, group: u32) -> u32 {
        let banks = 128 / W::Granule::BYTES;
        group & ((banks >> (self.chunk.params.group_log2 as u32 & 31)) - 1)
    }

    /// Returns the address of a packed vector in shared memory, and the number that is
    /// exclusive-ored into the positions of its words.
    #[inline(always)]
    fn linear(&self, number: u32) -> (Shared, u32) {
        let by = self.spread(quotient(number, &self.chunk.params.group));
        let granule = (number << Self::GRANULES_LOG2) ^ (by & !Self::PLACES);
        (self.chunk.shares.shared.offset(granule * W::Granule::BYTES), by & Self::PLACES)
    }

    /// Stores a packed vector to shared memory.
    ///
    /// # Safety
    ///
    /// It belongs to the chunk, and no other thread accesses it before the next barrier.
    #[inline(always)]
    unsafe fn put(&self, number: u32, quad: Quad) {
        let (to, by) = self.linear(number);
        // SAFETY: within the room, which has all vectors of a chunk; the rest as the caller
        // promises.
        unsafe { thread::store_shared_quad(to, quad::exchanged(quad, by * Self::WORDS)) };
    }

    /// Loads a packed vector from shared memory.
    ///
    /// # Safety
    ///
    /// It belongs to the chunk, and no thread writes it before the next barrier.
    #[inline(always)]
    unsafe fn get(&self, number: u32) -> Quad {
        let (from, by) = self.linear(number);
        // SAFETY: within the room, which has all vectors of a chunk; the rest as the caller
        // promises.
        quad::exchanged(unsafe { thread::load_shared_quad(from) }, by * Self::WORDS)
    }

    /// Returns the word of a plane's vector with which its lane starts.
    #[inline(always)]
    fn turn(&self, Place { position, .. }: Place) -> u32 {
        (position >> ((self.chunk.params.group_log2 as u32 - Self::GRANULES_LOG2) & 31)) & Self::PLACES
    }

    /// Returns the address of an element of a plane's vector in shared memory.
    #[inline(always)]
    fn strided(&self, Place { field, position }: Place, element: u32) -> Shared {
        // As in `linear`: `fields << group_log2` vectors are a group, which a field's pack never
        // leaves.
        let by = self.spread(position >> (self.chunk.params.group_log2 as u32 & 31));
        let row = (position << Self::COUNT_LOG2) + element;
        let packed = (row * self.chunk.params.fields.value as u32 + field) * W::BYTES;
        self.chunk.shares.shared.offset(packed ^ (by * W::Granule::BYTES))
    }

    /// Gathers a plane's vector from elements in shared memory.
    ///
    /// # Safety
    ///
    /// It belongs to the chunk, and no thread writes it before the next barrier.
    #[inline(always)]
    unsafe fn gather(&self, place: Place) -> Quad {
        let turn = self.turn(place);
        let mut quad = [0; 4];
        unrolled!(number < 4 => {
            if number < <W::Granule as Lanes>::COUNT {
                let from = (number as u32 + turn) & Self::PLACES;
                let mut granule = W::Granule::ZERO;
                for lane in 0..1 << W::COUNT_LOG2 {
                    let from = self.strided(place, (from << W::COUNT_LOG2) + lane);
                    // SAFETY: an element of the vector, as the caller promises.
                    granule = unsafe { W::load_shared(from) }.with(granule, lane);
                }
                quad = granule.put(quad, number);
            }
        });
        quad::rotated(quad, turn * Self::WORDS)
    }

    /// Stores the elements of a plane's vector to shared memory.
    ///
    /// # Safety
    ///
    /// It belongs to the chunk, and no other thread accesses it before the next barrier.
    #[inline(always)]
    unsafe fn scatter(&self, place: Place, quad: Quad) {
        let turn = self.turn(place);
        let quad = quad::rotated(quad, 4 - turn * Self::WORDS);
        unrolled!(number < 4 => {
            if number < <W::Granule as Lanes>::COUNT {
                let to = (number as u32 + turn) & Self::PLACES;
                let granule = W::Granule::get(quad, number);
                for lane in 0..1 << W::COUNT_LOG2 {
                    let to = self.strided(place, (to << W::COUNT_LOG2) + lane);
                    // SAFETY: an element of the vector, as the caller promises.
                    unsafe { W::part(granule, lane).store_shared(to) };
                }
            }
        });
    }
}

/// Splits packed structs into planes.
///
/// # Safety
///
/// See [`FieldsParams`]: all elements are allocated, vectors are aligned on both sides, and no
/// other work writes them.
#[inline(always)]
pub unsafe fn deinterleave_quads<W: Grain, C: Cache<Quad>>(params: FieldsParams) {
    let quads = Quads::<W>::new(&params, true);
    let (chunk, cache) = (&quads.chunk, C::new());
    let mut held = [[0; 4]; FIELDS_QUADS];
    unrolled!(step < FIELDS_QUADS => {
        if let Some(number) = chunk.number(step) {
            // SAFETY: a vector of the structs, aligned and allocated as the caller promises.
            held[step] = unsafe { cache.load(chunk.packed::<W>(number)) };
        }
    });
    let mut number = thread::thread_x();
    // SAFETY: as the caller promises; no two threads have one number.
    while unsafe { chunk.move_last::<W, Wide, true>(number) } {
        number += chunk.shares.threads;
    }
    unrolled!(step < FIELDS_QUADS => {
        if let Some(number) = chunk.number(step) {
            // SAFETY: each thread has its own vectors, and no thread reads them before the barrier.
            unsafe { quads.put(number, held[step]) };
        }
    });
    // SAFETY: every thread of the block comes here: no code above returns.
    unsafe { thread::barrier() };
    unrolled!(step < FIELDS_QUADS => {
        if let Some(place) = chunk.place(step) {
            // SAFETY: vectors before the barrier wrote these elements, and no thread writes them
            // any more.
            let quad = unsafe { quads.gather(place) };
            let to = chunk.plane::<W, Wide>(place.field, place.position << Quads::<W>::COUNT_LOG2);
            // SAFETY: a vector of a plane, aligned and allocated as the caller promises, which no
            // other thread has.
            unsafe { cache.store(to, quad) };
        }
    });
}

/// Joins planes into packed structs.
///
/// # Safety
///
/// As [`deinterleave_quads`].
#[inline(always)]
pub unsafe fn interleave_quads<W: Grain, C: Cache<Quad>>(params: FieldsParams) {
    let quads = Quads::<W>::new(&params, false);
    let (chunk, cache) = (&quads.chunk, C::new());
    let mut held = [[0; 4]; FIELDS_QUADS];
    unrolled!(step < FIELDS_QUADS => {
        if let Some(Place { field, position }) = chunk.place(step) {
            let from = chunk.plane::<W, Wide>(field, position << Quads::<W>::COUNT_LOG2);
            // SAFETY: a vector of a plane, aligned and allocated as the caller promises.
            held[step] = unsafe { cache.load(from) };
        }
    });
    let mut number = thread::thread_x();
    // SAFETY: as the caller promises; no two threads have one number.
    while unsafe { chunk.move_last::<W, Wide, false>(number) } {
        number += chunk.shares.threads;
    }
    unrolled!(step < FIELDS_QUADS => {
        if let Some(place) = chunk.place(step) {
            // SAFETY: each thread has its own elements, and no thread reads them before the
            // barrier.
            unsafe { quads.scatter(place, held[step]) };
        }
    });
    // SAFETY: every thread of the block comes here: no code above returns.
    unsafe { thread::barrier() };
    unrolled!(step < FIELDS_QUADS => {
        if let Some(number) = chunk.number(step) {
            // SAFETY: all of its elements were written before the barrier, and no thread writes
            // them any more.
            let quad = unsafe { quads.get(number) };
            // SAFETY: a vector of the structs, aligned and allocated as the caller promises, which
            // no other thread has.
            unsafe { cache.store(chunk.packed::<W>(number), quad) };
        }
    });
}
