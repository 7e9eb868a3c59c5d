//! Scales, shifts and converts elements while moving tiles of several axes by vectors:
//! `packed_quads` with two types.
//!
//! A tile lies in shared memory in the source's type. Each thread gathers vectors of the
//! destination and maps their elements on the way. Offsets in shared memory have the element's
//! channel above the address, so the same sums of strides give both.

use core::marker::PhantomData;

use crate::abi::{AFFINE_BF16, AFFINE_F16, AFFINE_U8, AffineQuadsParams, CHANNEL_SHIFT};
use crate::block;
use crate::conversion::affine::{Computed, Pair};
use crate::conversion::cast::{self, Scalar};
use crate::index::{Index, Narrow};
use crate::movement::gathered::Gathered;
use crate::movement::packed_quads::gather_tile;
use crate::thread::cache::Unhinted;
use crate::thread::grain::Grain;
use crate::thread::number::{Bf16, F16, Number, Value};
use crate::thread::quad::Lanes;
use crate::thread::{self, B16, B32, Shared, Word};
use crate::unrolled;

/// A type of elements of a tile, or several of one width.
trait Source {
    /// The bits of an element.
    type Word: Grain;
    /// The form in which numbers are held.
    type Value: cast::Value;

    /// Returns the value of these bits, by the `affine_type`.
    fn value(word: Self::Word, of: u64) -> Self::Value;
}

macro_rules! sources {
    ($($scalar:ident)*) => {$(
        impl Source for $scalar {
            type Word = <$scalar as Scalar>::Word;
            type Value = <$scalar as Scalar>::Value;

            #[inline(always)]
            fn value(word: Self::Word, _: u64) -> Self::Value {
                <$scalar as Scalar>::value(word)
            }
        }
    )*};
}

sources! { u8 f32 f64 }

/// `F16` or `Bf16`, which the kernel distinguishes by each element: two copies of it would be
/// large.
struct Half;

impl Source for Half {
    type Word = B16;
    type Value = f32;

    #[inline(always)]
    fn value(word: B16, of: u64) -> f32 {
        if of == AFFINE_BF16 { <Bf16 as Number>::value(word) } else { <F16 as Number>::value(word) }
    }
}

/// Elements of the destination that are mapped from those of a tile.
struct Mapped<S, D> {
    /// The source's `affine_type`.
    src_type: u64,
    /// The start of the table of factors and offsets, by channel of the tile.
    pairs: Shared,
    types: PhantomData<(S, D)>,
}

impl<S, D> Clone for Mapped<S, D> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<S, D> Copy for Mapped<S, D> {}

impl<S: Source, D: Number<Value: Computed>> Mapped<S, D> {
    /// Writes the factors and offsets of the tile's channels.
    ///
    /// # Safety
    ///
    /// The channels' values are allocated and not written meanwhile, and no other thread accesses
    /// the table before the next barrier.
    #[inline(always)]
    unsafe fn new(params: &AffineQuadsParams) -> Self {
        let pairs = Shared::dynamic().offset(params.pairs as u32);
        let part = params.values.channel(block::linear::<Narrow>());
        let mut at = thread::thread_x();
        while at < params.chunk as u32 {
            let channel = part * Narrow::truncate(params.chunk) + Narrow::new(at);
            if channel < Narrow::truncate(params.channels) {
                // SAFETY: one of the channels.
                let pair = unsafe { params.values.pair::<D::Value, Narrow>(channel) };
                // SAFETY: within the table, and each thread has its own entries.
                unsafe { pair.store_shared(Self::entry(pairs, at)) };
            }
            at += thread::block_width();
        }
        Self { src_type: params.src_type, pairs, types: PhantomData }
    }

    /// Returns the address of a channel's factor and offset.
    #[inline(always)]
    fn entry(pairs: Shared, channel: u32) -> Shared {
        pairs.offset(channel * 2 * <D::Value as Number>::Word::BYTES)
    }

    /// Maps an element.
    ///
    /// # Safety
    ///
    /// As [`Gathered::element`].
    #[inline(always)]
    unsafe fn value(self, place: Shared) -> D::Value {
        let (at, channel) = place.untagged(CHANNEL_SHIFT);
        // SAFETY: an element of the tile, and a channel of the table.
        let (word, pair) = unsafe { (S::Word::load_shared(at), Pair::load_shared(Self::entry(self.pairs, channel))) };
        pair.apply(D::Value::take(S::value(word, self.src_type)))
    }
}

impl<S: Source, D: Number<Word: Grain, Value: Computed>> Gathered for Mapped<S, D> {
    type From = S::Word;
    type To = D::Word;
    type Entry = B32;
    const LONG_LINES: bool = false;
    // A part of a granule has one element.
    const JOINS_ENDS: bool = false;

    #[inline(always)]
    unsafe fn element(self, place: Shared) -> D::Word {
        // SAFETY: as the caller promises.
        D::word(unsafe { self.value(place) })
    }

    #[inline(always)]
    unsafe fn granule(self, place: impl Fn(usize) -> Shared) -> <D::Word as Grain>::Granule {
        let mut values = [D::Value::ZERO; 8];
        unrolled!(lane < 4 => {
            if lane < 1 << D::Word::COUNT_LOG2 {
                // SAFETY: as the caller promises.
                values[lane] = unsafe { self.value(place(lane)) };
            }
        });
        <D::Word as Grain>::Granule::get(D::quad(values), 0)
    }
}

/// Maps tiles of several axes, for runs that start anywhere on either side. The source's type is a
/// parameter, and all threads of a launch take the same branch.
///
/// # Safety
///
/// See [`AffineQuadsParams`]: all elements and the channels' values are allocated, and no other
/// work writes them.
#[inline(always)]
pub unsafe fn affine_quads<D: Number<Word: Grain, Value = f32>>(params: AffineQuadsParams) {
    match params.src_type {
        // SAFETY: as the caller promises; so below.
        AFFINE_U8 => unsafe { map::<u8, D>(&params) },
        // SAFETY: see above.
        AFFINE_F16 | AFFINE_BF16 => unsafe { map::<Half, D>(&params) },
        // SAFETY: see above.
        _ => unsafe { map::<f32, D>(&params) },
    }
}

/// Does the same from doubles to doubles.
///
/// # Safety
///
/// As [`affine_quads`].
#[inline(always)]
pub unsafe fn affine_quads_f64(params: AffineQuadsParams) {
    // SAFETY: as the caller promises.
    unsafe { map::<f64, f64>(&params) }
}

/// Maps elements of these types.
///
/// # Safety
///
/// As [`affine_quads`].
#[inline(always)]
unsafe fn map<S: Source, D: Number<Word: Grain, Value: Computed>>(params: &AffineQuadsParams) {
    // SAFETY: as the caller promises; the barriers of `gather_tile` come before the first access.
    let mapped = unsafe { Mapped::<S, D>::new(params) };
    // SAFETY: as the caller promises.
    unsafe { gather_tile::<_, Unhinted>(&params.quads, mapped) }
}
