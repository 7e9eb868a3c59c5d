//! Groups of threads that join their values: a power of two of them, within a warp or of whole
//! warps.

use core::marker::PhantomData;

use crate::thread::number::{Number, Value};
use crate::thread::{self, B32, B64, Footprint, Shared, Word};

/// Lanes of a warp.
const WARP: u32 = 32;
/// Most warps of a block.
const WARPS: u32 = 32;
/// Joins that a group makes in sequence, each through separate shared memory, so that none waits
/// for the readers of the one before.
const ROUNDS: u32 = 3;

/// A value that threads pass to each other.
pub trait Pass: Copy {
    /// Bytes in shared memory.
    const BYTES: u32;

    /// Returns the value of the lane across.
    ///
    /// # Safety
    ///
    /// As for [`thread::from_across`].
    unsafe fn from_across(self, across: u32) -> Self;

    /// Stores to shared memory.
    ///
    /// # Safety
    ///
    /// `to` is aligned, and inside the block's reserved memory; no other thread accesses it
    /// meanwhile.
    unsafe fn store(self, to: Shared);

    /// Loads from shared memory.
    ///
    /// # Safety
    ///
    /// As for [`store`](Pass::store); a value has been stored.
    unsafe fn load(from: Shared) -> Self;
}

macro_rules! pass {
    ($($value:ident $word:ident)*) => {$(
        impl Pass for $value {
            const BYTES: u32 = $word::BYTES;

            #[inline(always)]
            unsafe fn from_across(self, across: u32) -> Self {
                // SAFETY: as the caller promises.
                let half = |bits: u32| unsafe { thread::from_across(bits, across) };
                let bits = Self::word(self).low();
                if Self::BYTES == 4 {
                    return Self::value($word::new(half(bits as u32) as _));
                }
                let (low, high) = (half(bits as u32), half((bits as u64 >> 32) as u32));
                Self::value($word::new((u64::from(low) | u64::from(high) << 32) as _))
            }

            #[inline(always)]
            unsafe fn store(self, to: Shared) {
                // SAFETY: as the caller promises.
                unsafe { Self::word(self).store_shared(to) }
            }

            #[inline(always)]
            unsafe fn load(from: Shared) -> Self {
                // SAFETY: as the caller promises.
                Self::value(unsafe { $word::load_shared(from) })
            }
        }
    )*};
}

pass! { f32 B32 f64 B64 u32 B32 i32 B32 u64 B64 i64 B64 }

/// A value, and its index along an axis.
#[derive(Clone, Copy)]
pub struct Placed<V> {
    /// The value.
    pub value: V,
    /// Its index.
    pub place: u64,
}

impl<V: Value + Pass> Pass for Placed<V> {
    const BYTES: u32 = 16;

    #[inline(always)]
    unsafe fn from_across(self, across: u32) -> Self {
        // SAFETY: as the caller promises.
        let half = |bits: u32| unsafe { thread::from_across(bits, across) };
        let (low, high) = (half(self.place as u32), half((self.place >> 32) as u32));
        // SAFETY: as the caller promises.
        let value = unsafe { self.value.from_across(across) };
        Placed { value, place: u64::from(low) | u64::from(high) << 32 }
    }

    #[inline(always)]
    unsafe fn store(self, to: Shared) {
        // SAFETY: as the caller promises.
        unsafe { self.value.store(to) };
        // SAFETY: as above, after the value.
        unsafe { B64::new(self.place).store_shared(to.offset(8)) };
    }

    #[inline(always)]
    unsafe fn load(from: Shared) -> Self {
        // SAFETY: as the caller promises.
        let value = unsafe { V::load(from) };
        // SAFETY: as above, after the value.
        let place = unsafe { B64::load_shared(from.offset(8)) }.low();
        Placed { value, place }
    }
}

/// Shared memory for a value of each warp in each round.
pub struct WarpValues<P>(PhantomData<P>);

impl<P: Pass> Footprint for WarpValues<P> {
    const BYTES: u32 = ROUNDS * WARPS * P::BYTES;
}

/// The group of a thread.
#[derive(Clone, Copy)]
pub struct Group {
    /// Its threads.
    pub size: u32,
    /// This thread's number in it.
    pub lane: u32,
    /// Its number in the block.
    pub number: u32,
    /// The number of groups of the block.
    pub count: u32,
    /// Memory for [`WarpValues`].
    values: Shared,
}

impl Group {
    /// Returns this thread's group if a block has groups of `size` threads, a power of two, with
    /// memory for [`WarpValues`].
    #[inline(always)]
    pub fn new(size: u32, values: Shared) -> Self {
        let power = size.trailing_zeros();
        let number = thread::thread_x() >> power;
        Group {
            size,
            lane: thread::thread_x() - (number << power),
            number,
            count: thread::block_width() >> power,
            values,
        }
    }

    /// Joins the values of all threads of the group pair by pair, and returns the result to all of
    /// them. The size alone decides the order.
    ///
    /// # Safety
    ///
    /// Every thread of the block calls it together, once for each round below [`ROUNDS`]; blocks
    /// are whole warps.
    #[inline(always)]
    pub unsafe fn join<P: Pass>(self, round: u32, value: P, neutral: P, join: impl Fn(P, P) -> P) -> P {
        // SAFETY: all lanes take the same number of steps.
        let value = unsafe { across(value, if self.size < WARP { self.size } else { WARP }, &join) };
        if self.size <= WARP {
            return value;
        }
        let (warp, lane) = (thread::thread_x() / WARP, thread::thread_x() % WARP);
        let at = |warp: u32| self.values.offset((round * WARPS + warp) * P::BYTES);
        if lane == 0 {
            // SAFETY: the memory belongs to this warp.
            unsafe { value.store(at(warp)) };
        }
        // SAFETY: the size is the same for all threads of the block.
        unsafe { thread::barrier() };
        let first = self.number * (self.size / WARP);
        let value = if lane < self.size / WARP {
            // SAFETY: the memory belongs to a warp of this group, which wrote it before the
            // barrier.
            unsafe { P::load(at(first + lane)) }
        } else {
            neutral
        };
        // SAFETY: all lanes take the same number of steps.
        unsafe { across(value, WARP, &join) }
    }
}

/// Joins the values of `size` neighbouring lanes.
///
/// # Safety
///
/// Every lane of the warp calls it together, with the same size: a power of two up to a warp.
#[inline(always)]
unsafe fn across<P: Pass>(value: P, size: u32, join: &impl Fn(P, P) -> P) -> P {
    let (mut value, mut across) = (value, 1);
    while across < size {
        // SAFETY: as the caller promises.
        value = join(value, unsafe { value.from_across(across) });
        across *= 2;
    }
    value
}
