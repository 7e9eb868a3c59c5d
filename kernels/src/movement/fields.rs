//! Splits structs of few fields into one plane per field, or joins planes: the narrow side of a
//! matrix is too short for tiles.
//!
//! Origin: our own, without a published model that we know; ADR 9 says when a plan takes it.
//!
//! A block moves a run of structs. Their packed side is one run of memory, and passes through
//! shared memory unchanged: words of at least a bank's 4 bytes, one a lane, side by side. On the
//! planes' side a lane has a word of one field, whose elements lie a struct apart in shared memory.
//!
//! ```text
//! deinterleave (interleave does the same backwards):
//! (image, chunk) = digits of the block's number
//! for each packed word of the thread: load it
//! store the elements that fill no word to their planes, one by one
//! for each packed word:                     # one word a group stays free
//!     store it to shared memory at word + word / group
//! barrier
//! for each word of a plane:                           # a warp stays in one plane
//!     gather its elements from shared memory, a struct apart
//!     store it to the plane
//! ```
//!
//! Lanes of a plane are `fields` words apart. If that shares a power of two with the banks, a
//! padding word every `group` moves lanes that would share a bank by one bank each.
//!
//! ```text
//! packed, three fields:   x0 y0 z0 x1 y1 z1 x2 y2 z2 x3 y3 z3      shared memory keeps this order
//!                         |        |        |        |
//! plane x:                x0       x1       x2       x3            lanes read `fields` apart
//! plane y:                y0 y1 y2 y3
//! plane z:                z0 z1 z2 z3
//! ```
//!
//! If both sides start on 16 bytes, a lane moves 16 bytes at a time: see [`super::fields_quads`].

use core::marker::PhantomData;

use crate::abi::{FIELDS_THREADS, FieldsParams};
use crate::block;
use crate::index::axes::{self, Offsets};
use crate::index::{Index, quotient};
use crate::thread::grain::Grain;
use crate::thread::{self, Footprint, Global, Shared, Word};
use crate::unrolled;

/// Shared memory for a chunk of `STEPS` words a thread and its padding, whose group has at least
/// half a warp.
struct Room<G, const STEPS: usize>(PhantomData<G>);

impl<G: Word, const STEPS: usize> Footprint for Room<G, STEPS> {
    const BYTES: u32 = STEPS as u32 * FIELDS_THREADS * G::BYTES / 16 * 17;
}

/// How a block's threads move its structs: by packs, which are words or vectors.
pub struct Shares {
    /// Base-2 logarithm of the elements of a pack.
    pub count_log2: u32,
    pub threads: u32,
    /// The structs in shared memory.
    pub shared: Shared,
}

/// The structs that a block moves.
pub struct Chunk<'a> {
    pub params: &'a FieldsParams,
    /// Their starts on both sides.
    packed: Global,
    planes: Global,
    /// Packs of each field, and elements of it that fill none.
    run: u32,
    rest: u32,
    pub shares: Shares,
}

/// A pack of a plane.
#[derive(Clone, Copy)]
pub struct Place {
    pub field: u32,
    pub position: u32,
}

impl<'a> Chunk<'a> {
    #[inline(always)]
    pub fn new<W: Word, I: Index>(params: &'a FieldsParams, is_packed_src: bool, shares: Shares) -> Self {
        let number = block::linear::<I>();
        let image = number.divide(&params.chunks);
        let chunk = axes::remainder(number, image, &params.chunks);
        let [Offsets { src, dst }] = axes::offsets([image], &params.axes, params.rank);
        let most = (params.run.value as u32) << shares.count_log2;
        let first = chunk * I::new(most);
        let left = I::truncate(params.structs) - first;
        let structs = if left < I::new(most) { left.low() } else { most };
        let along = first * I::truncate(params.fields.value);
        let at = |start: u64, offset: I| Global::new(start).offset(offset.bytes::<W>());
        let (packed, planes) = if is_packed_src {
            (at(params.src, src + along), at(params.dst, dst + first))
        } else {
            (at(params.dst, dst + along), at(params.src, src + first))
        };
        let run = structs >> shares.count_log2;
        Chunk { params, packed, planes, run, rest: structs - (run << shares.count_log2), shares }
    }

    /// Returns the number of the pack that this thread moves in `step` on the packed side, if there
    /// is one.
    #[inline(always)]
    pub fn number(&self, step: usize) -> Option<u32> {
        let number = thread::thread_x() + step as u32 * self.shares.threads;
        (number < self.run * self.params.fields.value as u32).then_some(number)
    }

    /// Returns the pack of a plane that this thread moves in `step`, if there is one: a warp's
    /// packs belong to one field.
    #[inline(always)]
    pub fn place(&self, step: usize) -> Option<Place> {
        let number = thread::thread_x() + step as u32 * self.shares.threads;
        let field = quotient(number, &self.params.run);
        let position = number - field * self.params.run.value as u32;
        (field < self.params.fields.value as u32 && position < self.run).then_some(Place { field, position })
    }

    /// Returns the address of a pack of the packed side in global memory.
    #[inline(always)]
    pub fn packed<W: Word>(&self, number: u32) -> Global {
        self.packed.offset(u64::from(number) * u64::from(W::BYTES << self.shares.count_log2))
    }

    /// Returns the address of a packed word in shared memory.
    #[inline(always)]
    fn linear<W: Grain>(&self, number: u32) -> Shared {
        self.shares.shared.offset((number + quotient(number, &self.params.group)) * W::Granule::BYTES)
    }

    /// Returns the address of element `position` of a field in its plane, in global memory.
    #[inline(always)]
    pub fn plane<W: Word, I: Index>(&self, field: u32, position: u32) -> Global {
        let plane = (I::new(field) * I::truncate(self.params.pitch as u64)).bytes::<W>();
        self.planes.offset(plane).offset(u64::from(position) * u64::from(W::BYTES))
    }

    /// Returns the address of the first element of a plane's word in shared memory; each further
    /// element is a struct further.
    #[inline(always)]
    fn strided<W: Grain>(&self, Place { field, position }: Place) -> Shared {
        // As `linear` pads: `fields << group_log2` words are a group, which a field's pack never
        // leaves.
        let pads = position >> (self.params.group_log2 as u32 & 31);
        let granules = position * self.params.fields.value as u32 + pads;
        self.shares.shared.offset(granules * W::Granule::BYTES + field * W::BYTES)
    }

    /// Returns the bytes of a struct.
    #[inline(always)]
    fn pitch<W: Word>(&self) -> u32 {
        self.params.fields.value as u32 * W::BYTES
    }

    /// Returns the addresses, packed and in its plane, of element `number` of those that fill no
    /// pack, if there is one.
    #[inline(always)]
    fn last<W: Word, I: Index>(&self, number: u32) -> Option<(Global, Global)> {
        let row = quotient(number, &self.params.fields);
        let field = number - row * self.params.fields.value as u32;
        let whole = self.run << self.shares.count_log2;
        let packed = (whole * self.params.fields.value as u32 + number) * W::BYTES;
        (row < self.rest).then_some((self.packed.offset(u64::from(packed)), self.plane::<W, I>(field, whole + row)))
    }

    /// Moves that element, from the structs or to them, if there is one, and returns whether there
    /// is.
    ///
    /// # Safety
    ///
    /// All elements are allocated, no other work writes them, and no other thread has this number.
    #[inline(always)]
    pub unsafe fn move_last<W: Word, I: Index, const IS_PACKED_SRC: bool>(&self, number: u32) -> bool {
        let Some((packed, plane)) = self.last::<W, I>(number) else { return false };
        let (src, dst) = if IS_PACKED_SRC { (packed, plane) } else { (plane, packed) };
        // SAFETY: an element of the source, as the caller promises.
        let element = unsafe { W::load_global(src) };
        // SAFETY: the same element of the destination, after the packs, which no other thread has.
        unsafe { element.store_global(dst) };
        true
    }
}

/// Returns the words that a thread of `deinterleave` holds, by the elements' width in bytes.
pub const fn deinterleave_steps(width: u32) -> usize {
    if width < 8 { 16 } else { 8 }
}

/// Returns the words that a thread of `interleave` holds, by the elements' width in bytes.
pub const fn interleave_steps(width: u32) -> usize {
    if width == 4 { 16 } else { 8 }
}

/// Splits packed structs into planes. `STEPS` is [`crate::abi::fields_steps`].
///
/// # Safety
///
/// See [`FieldsParams`]: all elements are allocated, words are aligned on both sides, and no other
/// work writes them.
#[inline(always)]
pub unsafe fn deinterleave<W: Grain, I: Index, const STEPS: usize>(params: FieldsParams) {
    let shared = Shared::reserve::<Room<W::Granule, STEPS>>();
    let shares = Shares { count_log2: W::COUNT_LOG2, threads: FIELDS_THREADS, shared };
    let chunk = Chunk::new::<W, I>(&params, true, shares);
    let mut held = [W::Granule::ZERO; STEPS];
    unrolled!(step < STEPS => {
        if let Some(number) = chunk.number(step) {
            // SAFETY: a word of the structs, aligned and allocated as the caller promises.
            held[step] = unsafe { W::Granule::load_global(chunk.packed::<W>(number)) };
        }
    });
    if W::COUNT_LOG2 > 0 {
        // SAFETY: as the caller promises; each thread has its own number.
        unsafe { chunk.move_last::<W, I, true>(thread::thread_x()) };
    }
    unrolled!(step < STEPS => {
        if let Some(number) = chunk.number(step) {
            // SAFETY: within the memory, which a chunk and its padding never exceed; each thread
            // has its own words.
            unsafe { held[step].store_shared(chunk.linear::<W>(number)) };
        }
    });
    // SAFETY: every thread of the block comes here: no code above returns.
    unsafe { thread::barrier() };
    unrolled!(step < STEPS => {
        if let Some(place) = chunk.place(step) {
            let mut granule = W::Granule::ZERO;
            for lane in 0..1 << W::COUNT_LOG2 {
                let from = chunk.strided::<W>(place).offset(lane * chunk.pitch::<W>());
                // SAFETY: a word before the barrier wrote this element, and no thread writes it any
                // more.
                granule = unsafe { W::load_shared(from) }.with(granule, lane);
            }
            // SAFETY: a word of a plane, aligned and allocated as the caller promises, which no
            // other thread has.
            unsafe { granule.store_global(chunk.plane::<W, I>(place.field, place.position << W::COUNT_LOG2)) };
        }
    });
}

/// Joins planes into packed structs.
///
/// # Safety
///
/// As [`deinterleave`].
#[inline(always)]
pub unsafe fn interleave<W: Grain, I: Index, const STEPS: usize>(params: FieldsParams) {
    let shared = Shared::reserve::<Room<W::Granule, STEPS>>();
    let shares = Shares { count_log2: W::COUNT_LOG2, threads: FIELDS_THREADS, shared };
    let chunk = Chunk::new::<W, I>(&params, false, shares);
    let mut held = [W::Granule::ZERO; STEPS];
    unrolled!(step < STEPS => {
        if let Some(Place { field, position }) = chunk.place(step) {
            // SAFETY: a word of a plane, aligned and allocated as the caller promises.
            held[step] = unsafe { W::Granule::load_global(chunk.plane::<W, I>(field, position << W::COUNT_LOG2)) };
        }
    });
    if W::COUNT_LOG2 > 0 {
        // SAFETY: as the caller promises; each thread has its own number.
        unsafe { chunk.move_last::<W, I, false>(thread::thread_x()) };
    }
    unrolled!(step < STEPS => {
        if let Some(place) = chunk.place(step) {
            for lane in 0..1 << W::COUNT_LOG2 {
                let to = chunk.strided::<W>(place).offset(lane * chunk.pitch::<W>());
                // SAFETY: within the memory, which a chunk and its padding never exceed; each
                // thread has its own elements.
                unsafe { W::part(held[step], lane).store_shared(to) };
            }
        }
    });
    // SAFETY: every thread of the block comes here: no code above returns.
    unsafe { thread::barrier() };
    unrolled!(step < STEPS => {
        if let Some(number) = chunk.number(step) {
            // SAFETY: all of its elements were written before the barrier, and no thread writes
            // them any more.
            let granule = unsafe { W::Granule::load_shared(chunk.linear::<W>(number)) };
            // SAFETY: a word of the structs, aligned and allocated as the caller promises, which no
            // other thread has.
            unsafe { granule.store_global(chunk.packed::<W>(number)) };
        }
    });
}
