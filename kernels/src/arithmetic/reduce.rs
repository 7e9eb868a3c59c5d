//! Reduces contiguous arrays to one value a block.

use core::marker::PhantomData;

use crate::abi::{REDUCE_BLOCK, REDUCE_STEPS, ReduceParams};
use crate::index::span;
use crate::thread::number::{Number, Real, Value};
use crate::thread::quad::Lanes;
use crate::thread::{self, Footprint, Global, Quad, Shared, Word};

const STEPS: usize = REDUCE_STEPS as usize;

/// A reduction of values to one.
pub trait Reduction<T: Number> {
    /// The type in which values are joined.
    type Value: Value;
    /// The type of the result.
    type Result: Number<Value = Self::Value>;
    /// True if there is a second operand.
    const SECOND: bool = false;
    /// The value that changes no other.
    const NEUTRAL: Self::Value;

    /// True if values are added.
    const ADDS: bool = false;

    /// Maps an element to its value.
    fn term(a: T::Value, b: T::Value) -> Self::Value;
    /// Maps the elements of a vector, if that takes fewer instructions than one by one.
    #[inline(always)]
    fn quad(_: Quad) -> Option<Self::Value> {
        None
    }
    /// Joins two values.
    fn join(one: Self::Value, other: Self::Value) -> Self::Value;
}

/// The sum.
pub struct Sum;
/// The sum of products.
pub struct Dot;
/// The least; NaN if there is one.
pub struct Min;
/// The greatest; NaN if there is one.
pub struct Max;

impl<T: Number> Reduction<T> for Sum {
    type Value = T::Sum;
    type Result = T::Sum;
    const NEUTRAL: T::Sum = T::Sum::ZERO;
    const ADDS: bool = true;

    #[inline(always)]
    fn term(a: T::Value, _: T::Value) -> T::Sum {
        T::term(a)
    }

    #[inline(always)]
    fn quad(quad: Quad) -> Option<T::Sum> {
        T::sum(quad)
    }

    #[inline(always)]
    fn join(one: T::Sum, other: T::Sum) -> T::Sum {
        one.plus(other)
    }
}

impl<T: Number<Value: Real>> Reduction<T> for Dot {
    type Value = T::Value;
    type Result = T::Value;
    const SECOND: bool = true;
    const NEUTRAL: T::Value = T::Value::ZERO;

    #[inline(always)]
    fn term(a: T::Value, b: T::Value) -> T::Value {
        a * b
    }

    #[inline(always)]
    fn join(one: T::Value, other: T::Value) -> T::Value {
        one + other
    }
}

impl<T: Number> Reduction<T> for Min {
    type Value = T::Value;
    type Result = T;
    const NEUTRAL: T::Value = T::Value::GREATEST;

    #[inline(always)]
    fn term(a: T::Value, _: T::Value) -> T::Value {
        a
    }

    #[inline(always)]
    fn join(one: T::Value, other: T::Value) -> T::Value {
        if one < other || one.is_nan() { one } else { other }
    }
}

impl<T: Number> Reduction<T> for Max {
    type Value = T::Value;
    type Result = T;
    const NEUTRAL: T::Value = T::Value::LEAST;

    #[inline(always)]
    fn term(a: T::Value, _: T::Value) -> T::Value {
        a
    }

    #[inline(always)]
    fn join(one: T::Value, other: T::Value) -> T::Value {
        if one > other || one.is_nan() { one } else { other }
    }
}

/// Shared memory for a value of each thread of the block.
struct Values<V>(PhantomData<V>);

impl<V: Value> Footprint for Values<V> {
    const BYTES: u32 = REDUCE_BLOCK * <V::Word as Word>::BYTES;
}

/// Reduces runs of vectors, one run a block at a time, then the threads' values pair by pair. The
/// numbers alone decide the order in which values are joined.
///
/// # Safety
///
/// See [`ReduceParams`]: the operands are allocated and aligned to an element, their vectors to 16
/// bytes, and no work writes them; there is memory for one result a block, which no other work
/// accesses.
#[inline(always)]
pub unsafe fn reduce<T: Number, R: Reduction<T>>(params: ReduceParams) {
    let (a, b) = (Global::new(params.a), Global::new(params.b));
    // SAFETY: as the caller promises.
    let joined = unsafe { quads::<T, R>(&params, a, b) };
    // SAFETY: as above.
    let value = unsafe { singles::<T, R>(&params, a, b, joined) };
    // SAFETY: every thread of the block gets here.
    let value = unsafe { across::<T, R>(value) };
    if thread::thread_x() == 0 {
        let place = u64::from(thread::block_x() * <R::Result as Number>::Word::BYTES);
        // SAFETY: the block's own result.
        unsafe { R::Result::word(value).store_global(Global::new(params.partials).offset(place)) };
    }
}

/// Reduces this thread's part of the vectors: whole runs without a condition, because loads behind
/// conditions wait for them; the last vectors one by one.
///
/// # Safety
///
/// As for [`reduce`].
#[inline(always)]
unsafe fn quads<T: Number, R: Reduction<T>>(params: &ReduceParams, a: Global, b: Global) -> R::Value {
    let blocks = u64::from(thread::grid_x());
    let (run, threads) = (u64::from(REDUCE_BLOCK * REDUCE_STEPS), u64::from(REDUCE_BLOCK));
    let whole = params.span.quads / run * run;
    let start = params.span.first * u64::from(T::Word::BYTES);
    let load = |quad: u64| {
        let at = start + 16 * quad;
        // SAFETY: a vector of the first operand, which is allocated and which no work writes.
        let first = unsafe { thread::load_quad(a.offset(at)) };
        // SAFETY: the same for the second, if there is one.
        let second = if R::SECOND { unsafe { thread::load_quad(b.offset(at)) } } else { [0; 4] };
        (first, second)
    };
    // A value for each lane of a vector, so that they do not wait for each other.
    let mut joined = [R::NEUTRAL; 8];
    let mut quad = u64::from(thread::block_x()) * run + u64::from(thread::thread_x());
    while quad < whole {
        let mut held = [([0; 4], [0; 4]); STEPS];
        for step in 0..STEPS {
            held[step] = load(quad + step as u64 * threads);
        }
        for step in 0..STEPS {
            join_lanes::<T, R>(&mut joined, held[step]);
        }
        quad += blocks * run;
    }
    let mut quad = whole + u64::from(thread::block_x()) * threads + u64::from(thread::thread_x());
    while quad < params.span.quads {
        join_lanes::<T, R>(&mut joined, load(quad));
        quad += blocks * threads;
    }
    let mut all = R::NEUTRAL;
    crate::unrolled!(lane < 8 => { all = R::join(all, joined[lane]); });
    all
}

/// Joins each element of a vector to the value of its lane.
#[inline(always)]
fn join_lanes<T: Number, R: Reduction<T>>(joined: &mut [R::Value; 8], (a, b): (Quad, Quad)) {
    crate::unrolled!(lane < 8 => {
        if lane < T::Word::COUNT {
            let [a, b] = [a, b].map(|quad| T::value(T::Word::get(quad, lane)));
            joined[lane] = R::join(joined[lane], R::term(a, b));
        }
    });
}

/// Joins this thread's part of the elements outside of vectors to a value.
///
/// # Safety
///
/// As for [`reduce`].
#[inline(always)]
unsafe fn singles<T: Number, R: Reduction<T>>(
    params: &ReduceParams,
    a: Global,
    b: Global,
    value: R::Value,
) -> R::Value {
    let mut value = value;
    let mut lane = u64::from(thread::block_x()) * u64::from(REDUCE_BLOCK) + u64::from(thread::thread_x());
    while let Some(element) = span::single(&params.span, T::Word::COUNT as u64, lane) {
        let at = element * u64::from(T::Word::BYTES);
        // SAFETY: an element of the first operand.
        let first = unsafe { T::Word::load_global(a.offset(at)) };
        // SAFETY: of the second, if there is one.
        let second = if R::SECOND { unsafe { T::Word::load_global(b.offset(at)) } } else { T::Word::ZERO };
        value = R::join(value, R::term(T::value(first), T::value(second)));
        lane += u64::from(thread::grid_x()) * u64::from(REDUCE_BLOCK);
    }
    value
}

/// Returns the block's value in its first thread.
///
/// # Safety
///
/// Every thread of the block calls it, once.
#[inline(always)]
unsafe fn across<T: Number, R: Reduction<T>>(value: R::Value) -> R::Value {
    type WordOf<V> = <V as Number>::Word;
    let values = Shared::reserve::<Values<R::Value>>();
    let thread = thread::thread_x();
    let at = |thread: u32| values.offset(thread * WordOf::<R::Value>::BYTES);
    let mut value = value;
    let mut half = REDUCE_BLOCK / 2;
    // SAFETY: this thread's memory.
    unsafe { R::Value::word(value).store_shared(at(thread)) };
    while half > 0 {
        // SAFETY: all threads go through the same number of rounds.
        unsafe { thread::barrier() };
        if thread < half {
            // SAFETY: the memory of a thread that is done, which wrote it before the barrier.
            let other = unsafe { WordOf::<R::Value>::load_shared(at(thread + half)) };
            value = R::join(value, R::Value::value(other));
            // SAFETY: this thread's memory, which no thread reads before the next barrier.
            unsafe { R::Value::word(value).store_shared(at(thread)) };
        }
        half /= 2;
    }
    value
}
