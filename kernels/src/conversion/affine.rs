//! Scales, shifts and converts elements while moving them to another layout: one by one, in any
//! layouts.

use crate::abi::{
    AFFINE_BF16, AFFINE_F16, AFFINE_U8, AffineElementsParams, AffineValues, ELEMENTS_BLOCK, elements_per_thread,
};
use crate::block;
use crate::conversion::cast::{self, Scalar};
use crate::index::Index;
use crate::index::axes::{self, Offsets};
use crate::thread::number::{Bf16, F16, Number, Real};
use crate::thread::{self, B32, B32x2, Global, Shared, Word};

/// The type of arithmetic.
pub trait Computed: Real {
    /// Returns the value of a number.
    fn take<N: cast::Value>(number: N) -> Self;

    /// Loads two values from shared memory.
    ///
    /// # Safety
    ///
    /// As [`Word::load_shared`], for an address that is a multiple of both values' bytes.
    unsafe fn load_pair(at: Shared) -> [Self; 2];
}

impl Computed for f32 {
    #[inline(always)]
    fn take<N: cast::Value>(number: N) -> Self {
        number.f32()
    }

    #[inline(always)]
    unsafe fn load_pair(at: Shared) -> [f32; 2] {
        // SAFETY: as the caller promises.
        let pair = unsafe { B32x2::load_shared(at) };
        [pair.low(), pair.high()].map(f32::from_bits)
    }
}

impl Computed for f64 {
    #[inline(always)]
    fn take<N: cast::Value>(number: N) -> Self {
        number.f64()
    }

    #[inline(always)]
    unsafe fn load_pair(at: Shared) -> [f64; 2] {
        // SAFETY: as the caller promises.
        let [a, b, c, d] = unsafe { thread::load_shared_quad(at) };
        [[a, b], [c, d]].map(|[low, high]| f64::from_bits(u64::from(high) << 32 | u64::from(low)))
    }
}

/// A factor and an offset.
#[derive(Clone, Copy)]
pub struct Pair<V> {
    factor: V,
    offset: V,
}

impl<V: Computed> Pair<V> {
    #[inline(always)]
    pub fn apply(self, value: V) -> V {
        value.fma(self.factor, self.offset)
    }

    /// Loads both from shared memory.
    ///
    /// # Safety
    ///
    /// As [`Word::load_shared`], for both, one after the other.
    #[inline(always)]
    pub unsafe fn load_shared(at: Shared) -> Self {
        // SAFETY: as the caller promises.
        let [factor, offset] = unsafe { V::load_pair(at) };
        Self { factor, offset }
    }

    /// Stores both to shared memory.
    ///
    /// # Safety
    ///
    /// As [`Word::store_shared`], for both, one after the other.
    #[inline(always)]
    pub unsafe fn store_shared(self, at: Shared) {
        let Self { factor, offset } = self;
        // SAFETY: as the caller promises; so below.
        unsafe { V::word(factor).store_shared(at) };
        // SAFETY: see above.
        unsafe { V::word(offset).store_shared(at.offset(<V as Number>::Word::BYTES)) };
    }
}

impl AffineValues {
    /// Returns the channel of a number.
    #[inline(always)]
    pub fn channel<I: Index>(&self, number: I) -> I {
        let outer = number.divide(&self.inner);
        axes::remainder(outer, outer.divide(&self.channels), &self.channels)
    }

    /// Returns the factor and the offset of a channel, or those that all elements share.
    ///
    /// # Safety
    ///
    /// As [`AffineValues::of_channel`].
    #[inline(always)]
    pub unsafe fn pair<V: Computed, I: Index>(&self, channel: I) -> Pair<V> {
        if self.factors == 0 {
            let value = |bits: u64| V::of(f64::from_bits(bits));
            return Pair { factor: value(self.factor), offset: value(self.offset) };
        }
        // SAFETY: as the caller promises.
        unsafe { self.of_channel(channel) }
    }

    /// Returns the factor and the offset of a channel, if each channel has its own.
    ///
    /// # Safety
    ///
    /// There are more channels than `channel`, and their values are allocated and not written
    /// meanwhile.
    #[inline(always)]
    pub unsafe fn of_channel<V: Computed, I: Index>(&self, channel: I) -> Pair<V> {
        let at = (channel * I::truncate(self.step as u64)).bytes::<B32>();
        let value = |start: u64| {
            // SAFETY: an `f32` of the channel, as the caller promises.
            let bits = unsafe { B32::load_global(Global::new(start).offset(at)) }.low();
            V::take(f32::from_bits(bits))
        };
        Pair { factor: value(self.factors), offset: value(self.offsets) }
    }
}

/// Elements that a thread moves.
const STEPS: usize = elements_per_thread(4) as usize;

/// The elements of one thread, numbered in the destination's order.
struct Walk<'a, I> {
    params: &'a AffineElementsParams,
    numbers: [I; STEPS],
    offsets: [Offsets<I>; STEPS],
}

impl<'a, I: Index> Walk<'a, I> {
    #[inline(always)]
    fn new(params: &'a AffineElementsParams) -> Self {
        let first = block::linear::<I>() * I::new(ELEMENTS_BLOCK * STEPS as u32) + I::new(thread::thread_x());
        let mut numbers = [first; STEPS];
        for step in 0..STEPS {
            numbers[step] = first + I::new(step as u32 * ELEMENTS_BLOCK);
        }
        let offsets = axes::offsets(numbers, &params.elements.axes, params.elements.rank);
        Walk { params, numbers, offsets }
    }

    #[inline(always)]
    fn has(&self, step: usize) -> bool {
        self.numbers[step] < I::truncate(self.params.elements.len)
    }

    /// Loads the elements as values: all loads are in flight before the first use.
    ///
    /// # Safety
    ///
    /// The source is allocated, of this type and aligned to it, and not written meanwhile.
    #[inline(always)]
    unsafe fn load<S: Scalar, V: Computed>(&self) -> [V; STEPS] {
        let mut held = [S::Word::ZERO; STEPS];
        for step in 0..STEPS {
            if self.has(step) {
                let from = Global::new(self.params.elements.src).offset(self.offsets[step].src.bytes::<S::Word>());
                // SAFETY: one of the source's `len` elements.
                held[step] = unsafe { S::Word::load_global(from) };
            }
        }
        held.map(|word| V::take(S::value(word)))
    }

    /// Maps values.
    ///
    /// # Safety
    ///
    /// As [`AffineValues::pair`].
    #[inline(always)]
    unsafe fn map<V: Computed>(&self, mut values: [V; STEPS]) -> [V; STEPS] {
        let of = &self.params.values;
        for step in 0..STEPS {
            // Uniform values need no division.
            let channel = if of.factors == 0 { I::new(0) } else { of.channel(self.numbers[step]) };
            // SAFETY: the channel of a number, which is less than the channels, also for a number
            // beyond the last.
            values[step] = unsafe { of.pair::<V, I>(channel) }.apply(values[step]);
        }
        values
    }

    /// Stores values, rounded to the type.
    ///
    /// # Safety
    ///
    /// The destination is allocated, of this type and aligned to it, and no other thread accesses
    /// these elements.
    #[inline(always)]
    unsafe fn store<D: Number>(&self, values: [D::Value; STEPS]) {
        for step in 0..STEPS {
            if self.has(step) {
                let to = Global::new(self.params.elements.dst).offset(self.offsets[step].dst.bytes::<D::Word>());
                // SAFETY: the element's address in the destination, which no other element has; no
                // two threads have one number.
                unsafe { D::word(values[step]).store_global(to) };
            }
        }
    }
}

/// Maps any layout to any layout. The types are parameters: the walk along the axes is most of the
/// kernel, and all threads of a launch take the same branch.
///
/// # Safety
///
/// See [`AffineElementsParams`]: both layouts and the channels' values are allocated, aligned to
/// their types, and no other work writes them.
#[inline(always)]
pub unsafe fn affine_elements<I: Index>(params: AffineElementsParams) {
    let walk = Walk::<I>::new(&params);
    let held = match params.src_type {
        // SAFETY: as the caller promises; so below.
        AFFINE_U8 => unsafe { walk.load::<u8, f32>() },
        // SAFETY: see above.
        AFFINE_F16 => unsafe { walk.load::<F16, f32>() },
        // SAFETY: see above.
        AFFINE_BF16 => unsafe { walk.load::<Bf16, f32>() },
        // SAFETY: see above.
        _ => unsafe { walk.load::<f32, f32>() },
    };
    // SAFETY: see above.
    let made = unsafe { walk.map(held) };
    match params.dst_type {
        // SAFETY: see above.
        AFFINE_F16 => unsafe { walk.store::<F16>(made) },
        // SAFETY: see above.
        AFFINE_BF16 => unsafe { walk.store::<Bf16>(made) },
        // SAFETY: see above.
        _ => unsafe { walk.store::<f32>(made) },
    }
}

/// Does the same from doubles to doubles.
///
/// # Safety
///
/// As [`affine_elements`].
#[inline(always)]
pub unsafe fn affine_elements_f64<I: Index>(params: AffineElementsParams) {
    let walk = Walk::<I>::new(&params);
    // SAFETY: as the caller promises; so below.
    let held = unsafe { walk.load::<f64, f64>() };
    // SAFETY: see above.
    let made = unsafe { walk.map(held) };
    // SAFETY: see above.
    unsafe { walk.store::<f64>(made) };
}
