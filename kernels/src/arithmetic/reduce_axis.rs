//! Reduces contiguous arrays along one axis, as arrays of shape `[outer, n, inner]`.

use core::marker::PhantomData;

use super::greatest_bytes::GreatestBytes;
use super::reduce::{Max, Min, Reduction, Sum};
use crate::abi::{REDUCE_STEPS, ReduceColumnsParams, ReduceRowsParams, reduce_columns_block};
use crate::block::group::{Group, Pass, Placed, WarpValues};
use crate::index::{Index, Wide, quotient};
use crate::thread::number::{Number, Value};
use crate::thread::quad::Lanes;
use crate::thread::{self, B64, Footprint, Global, Quad, Shared, Word};

/// Loads that a thread has in flight along a row.
const ALONG: usize = REDUCE_STEPS as usize;
/// Loads of elements outside of vectors that it has in flight.
const ASIDE: usize = 4;
/// Loads that it has in flight down a column. Of vectors whose elements are joined one by one there
/// are fewer, because more gained little and make more PTX.
const DOWN: usize = 8;
const FEWER_DOWN: usize = 4;
/// Vectors of bytes that it has in flight along a row, if it looks for the greatest.
const ALONG_BYTES: usize = 2;

/// A reduction of the elements along an axis to one.
pub trait Along<T: Number> {
    /// The state after some elements.
    type State: Pass;
    /// The state without elements.
    const START: Self::State;
    /// True if indices matter.
    const PLACES: bool;

    /// True if values are added.
    const ADDS: bool = false;

    /// Adds one element, which lies after all before.
    fn take(state: Self::State, value: T::Value, place: u64) -> Self::State;
    /// Adds all elements of a vector at once, if that takes fewer instructions than one by one.
    fn take_quad(state: Self::State, quad: Quad, place: u64) -> Option<Self::State>;
    /// Joins two states, in any order of their elements.
    fn join(one: Self::State, other: Self::State) -> Self::State;

    /// Writes element `at` of the result; for argmax also its value, if there are `values`.
    ///
    /// # Safety
    ///
    /// Both have room for it, and no other work accesses it.
    unsafe fn write(state: Self::State, result: u64, values: u64, at: u64);
}

macro_rules! values {
    ($($reduction:ident)*) => {$(
        impl<T: Number<Value: Pass, Sum: Pass>> Along<T> for $reduction {
            type State = <Self as Reduction<T>>::Value;
            const START: Self::State = <Self as Reduction<T>>::NEUTRAL;
            const PLACES: bool = false;
            const ADDS: bool = <Self as Reduction<T>>::ADDS;

            #[inline(always)]
            fn take(state: Self::State, value: T::Value, _: u64) -> Self::State {
                <Self as Reduction<T>>::join(state, <Self as Reduction<T>>::term(value, value))
            }

            #[inline(always)]
            fn take_quad(state: Self::State, quad: Quad, _: u64) -> Option<Self::State> {
                Some(<Self as Reduction<T>>::join(state, <Self as Reduction<T>>::quad(quad)?))
            }

            #[inline(always)]
            fn join(one: Self::State, other: Self::State) -> Self::State {
                <Self as Reduction<T>>::join(one, other)
            }

            #[inline(always)]
            unsafe fn write(state: Self::State, result: u64, _: u64, at: u64) {
                let to = Global::new(result).offset(at * u64::from(<<Self as Reduction<T>>::Result as Number>::Word::BYTES));
                // SAFETY: as the caller promises.
                unsafe { <Self as Reduction<T>>::Result::word(state).store_global(to) };
            }
        }
    )*};
}

values! { Sum Min Max }

/// The index of the greatest, the first of several; NaN is greater than any number.
pub struct ArgMax;

impl<T: Number<Value: Pass>> Along<T> for ArgMax {
    type State = Placed<T::Value>;
    // If no element is greater than this, all are equal to it, and the first of them lies at 0.
    const START: Placed<T::Value> = Placed { value: T::Value::LEAST, place: 0 };
    const PLACES: bool = true;

    #[inline(always)]
    fn take(state: Self::State, value: T::Value, place: u64) -> Self::State {
        let is_less_or_same = value <= state.value;
        if !is_less_or_same && !state.value.is_nan() { Placed { value, place } } else { state }
    }

    #[inline(always)]
    fn take_quad(state: Self::State, quad: Quad, place: u64) -> Option<Self::State> {
        let (value, lane) = T::greatest(quad)?;
        Some(<Self as Along<T>>::take(state, value, place + u64::from(lane)))
    }

    #[inline(always)]
    fn join(one: Self::State, other: Self::State) -> Self::State {
        let (nan, other_nan) = (one.value.is_nan(), other.value.is_nan());
        let same = one.value == other.value || (nan && other_nan);
        let greater = other.value > one.value || (other_nan && !nan);
        if greater || (same && other.place < one.place) { other } else { one }
    }

    #[inline(always)]
    unsafe fn write(state: Self::State, result: u64, values: u64, at: u64) {
        // SAFETY: as the caller promises.
        unsafe { B64::new(state.place).store_global(Global::new(result).offset(8 * at)) };
        if values != 0 {
            let to = Global::new(values).offset(at * u64::from(T::Word::BYTES));
            // SAFETY: as the caller promises.
            unsafe { T::word(state.value).store_global(to) };
        }
    }
}

/// Reduces rows, with a group of threads a row: whole vectors wherever the row starts, and the
/// elements around them.
///
/// # Safety
///
/// See [`ReduceRowsParams`]: the rows are allocated and aligned to an element, and no work writes
/// them; there is memory for the results, which no other work accesses.
#[inline(always)]
pub unsafe fn reduce_rows<T: Number<Value: Pass, Sum: Pass>, R: Along<T>>(params: ReduceRowsParams) {
    let group = Group::new(params.group as u32, Shared::reserve::<WarpValues<R::State>>());
    let row = u64::from(thread::block_x()) * u64::from(group.count) + u64::from(group.number);
    let part = u64::from(thread::block_y());
    let start = part * params.part;
    let left = params.n - start;
    let part_len = if left < params.part { left } else { params.part };
    // A missing row has length 0 instead of a branch around it, after which the barrier would need
    // a copy.
    let len = if row < params.rows { part_len } else { 0 };
    let at = Global::new(params.a).offset((row * params.n + start) * u64::from(T::Word::BYTES));
    // SAFETY: this row's part, as the caller promises.
    let state = unsafe { along::<T, R>(at, start, len, group) };
    // SAFETY: every thread of the block gets here, once.
    let state = unsafe { group.join(0, state, R::START, R::join) };
    if row < params.rows && group.lane == 0 {
        // SAFETY: the row's part's own result.
        unsafe { R::write(state, params.result, params.values, part * params.rows + row) };
    }
}

/// Reduces this thread's part of `len` elements from an address on, the first of which has index
/// `start` along the axis.
///
/// # Safety
///
/// They are allocated and aligned to an element, and no work writes them.
#[inline(always)]
unsafe fn along<T: Number<Value: Pass, Sum: Pass>, R: Along<T>>(
    at: Global,
    start: u64,
    len: u64,
    group: Group,
) -> R::State {
    let (width, count) = (T::Word::BYTES, T::Word::COUNT as u64);
    let before = u64::from((16 - at.misalignment()) % 16 / width);
    let first = if before < len { before } else { len };
    let quads = (len - first) / count;
    let (lane, size) = (u64::from(group.lane), u64::from(group.size));
    let whole = at.offset(first * u64::from(width));
    // SAFETY: a whole vector of the row.
    let load = |quad: u64| unsafe { thread::load_quad(whole.offset(16 * quad)) };
    let (mut state, mut quad) = (R::START, lane);
    if finds_bytes::<T, R>() {
        state = along_bytes::<T, R>(load, [lane, size, quads], start + first);
        quad = quads;
    }
    // A state for each lane of a vector, so that they do not wait for each other.
    let mut states = [R::START; 16];
    let mut take = |quad: Quad, number: u64| {
        let place = start + first + number * count;
        if let Some(state) = R::take_quad(states[0], quad, place) {
            states[0] = state;
            return;
        }
        crate::unrolled!(lane < 16 => {
            if lane < T::Word::COUNT {
                states[lane] = R::take(states[lane], T::value(T::Word::get(quad, lane)), place + lane as u64);
            }
        });
    };
    while quad + (ALONG as u64 - 1) * size < quads {
        let mut held = [[0; 4]; ALONG];
        for step in 0..ALONG {
            held[step] = load(quad + step as u64 * size);
        }
        for step in 0..ALONG {
            take(held[step], quad + step as u64 * size);
        }
        quad += ALONG as u64 * size;
    }
    while quad < quads {
        take(load(quad), quad);
        quad += size;
    }
    crate::unrolled!(lane < 16 => {
        if lane < T::Word::COUNT {
            state = R::join(state, states[lane]);
        }
    });
    // The elements before the vectors and those after, numbered through. Missing ones load the last
    // again, because loads behind conditions wait for them.
    let singles = len - quads * count;
    let mut single = lane;
    while single < singles {
        let element = |step: usize| aside(single + step as u64 * size, singles, first, [quads, count]);
        let mut held = [T::Word::ZERO; ASIDE];
        for step in 0..ASIDE {
            // SAFETY: an element of the row.
            held[step] = unsafe { T::Word::load_global(at.offset(element(step) * u64::from(width))) };
        }
        for step in 0..ASIDE {
            if single + (step as u64 * size) < singles {
                state = R::join(state, R::take(R::START, T::value(held[step]), start + element(step)));
            }
        }
        single += ASIDE as u64 * size;
    }
    state
}

/// Finds the greatest byte of every `size`th vector from the `lane`th on. The first byte of the
/// vectors has this place.
#[inline(always)]
fn along_bytes<T: Number<Value: Pass, Sum: Pass>, R: Along<T>>(
    load: impl Fn(u64) -> Quad,
    [lane, size, quads]: [u64; 3],
    place: u64,
) -> R::State {
    let (mut state, mut quad) = (R::START, lane);
    while quad < quads {
        let (from, mut greatest, mut number) = (quad, GreatestBytes::NONE, 0);
        while number <= GreatestBytes::LOADS - ALONG_BYTES as u32 && quad + (ALONG_BYTES as u64 - 1) * size < quads {
            let mut held = [[0; 4]; ALONG_BYTES];
            for step in 0..ALONG_BYTES {
                held[step] = load(quad + step as u64 * size);
            }
            crate::unrolled!(step < ALONG_BYTES <= 4 => {
                greatest.take::<T>(held[step], number + step as u32);
            });
            quad += ALONG_BYTES as u64 * size;
            number += ALONG_BYTES as u32;
        }
        while number < GreatestBytes::LOADS && quad < quads {
            greatest.take::<T>(load(quad), number);
            quad += size;
            number += 1;
        }
        let (value, number, lane) = greatest.first::<T>();
        let place = place + (from + u64::from(number) * size) * 16 + u64::from(lane);
        state = R::join(state, R::take(R::START, value, place));
    }
    state
}

/// Returns whether a reduction finds the place of a byte, for which [`GreatestBytes`] is there.
#[inline(always)]
const fn finds_bytes<T: Number, R: Along<T>>() -> bool {
    R::PLACES && T::Word::BYTES == 1
}

/// Returns the place of an element outside of the vectors, which lie behind the first elements:
/// the last place for numbers that are too great.
#[inline(always)]
fn aside(number: u64, singles: u64, first: u64, [quads, count]: [u64; 2]) -> u64 {
    let number = if number < singles { number } else { singles - 1 };
    if number < first { number } else { number + quads * count }
}

/// Returns the columns that a thread has room for: those of a vector, and at least eight.
pub const fn column_lanes<W: Lanes>() -> usize {
    if W::COUNT > 8 { W::COUNT } else { 8 }
}

/// Shared memory for each column's states of a thread.
struct States<S, T>(PhantomData<(S, T)>);

impl<S: Pass, T: Number> Footprint for States<S, T> {
    const BYTES: u32 = reduce_columns_block(T::Word::BYTES) * T::Word::COUNT as u32 * S::BYTES;
}

/// Reduces columns, with threads across columns, each of a vector or an element, and threads down
/// them; then it joins the threads' states of a column in sequence.
///
/// # Safety
///
/// See [`ReduceColumnsParams`]: the array is allocated and aligned to an element, its rows to
/// vectors if lanes are vectors, and no work writes it; there is memory for the results, which no
/// other work accesses.
#[inline(always)]
pub unsafe fn reduce_columns<T: Number<Value: Pass, Sum: Pass>, R: Along<T>, const LANES: usize>(
    params: ReduceColumnsParams,
) {
    let states = Shared::reserve::<States<R::State, T>>();
    if params.quads != 0 {
        // SAFETY: as the caller promises.
        unsafe { columns::<T, R, true, LANES>(&params, states) }
    } else {
        // SAFETY: as the caller promises.
        unsafe { columns::<T, R, false, LANES>(&params, states) }
    }
}

/// # Safety
///
/// As for [`reduce_columns`].
#[inline(always)]
unsafe fn columns<T: Number<Value: Pass, Sum: Pass>, R: Along<T>, const QUADS: bool, const LANES: usize>(
    params: &ReduceColumnsParams,
    shared: Shared,
) {
    let count = if QUADS { T::Word::COUNT as u32 } else { 1 };
    let (threads, across) = (thread::block_width(), params.across.value as u32);
    let [y, down] = [thread::thread_x(), threads].map(|number| quotient(number, &params.across));
    let x = thread::thread_x() - y * across;
    let first = u64::from(thread::block_x()) * u64::from(across);
    let column = first + u64::from(x);
    // The states of a lane lie side by side, so that neighbouring threads access different banks.
    let at = |lane: u32, y: u32, x: u32| shared.offset((lane * threads + y * across + x) * R::State::BYTES);
    if y < down && column < params.columns {
        let (part, to) = (Column::new::<T, QUADS>(params, column, [y, down]), |lane: u32| at(lane, y, x));
        if QUADS && finds_bytes::<T, R>() {
            // SAFETY: a column of the array, and this thread's memory.
            unsafe { down_bytes::<T, R>(part, to) };
        } else {
            // SAFETY: as above.
            unsafe { down_column::<T, R, QUADS, LANES>(params, part, to) };
        }
    }
    // SAFETY: every thread of the block gets here.
    unsafe { thread::barrier() };
    let left = params.columns - first;
    let columns = if left < u64::from(across) { left as u32 } else { across };
    let to = (u64::from(thread::block_y()) * params.columns + first) * u64::from(count);
    let mut element = thread::thread_x();
    while element < across * count {
        let lane = quotient(element, &params.across);
        let x = element - lane * across;
        if x < columns {
            // SAFETY: a state that a thread stored before the barrier.
            let load = |y: u32| unsafe { R::State::load(at(lane, y, x)) };
            let mut state = load(0);
            for y in 1..down {
                state = R::join(state, load(y));
            }
            // SAFETY: the column's part's own result.
            unsafe { R::write(state, params.result, params.values, to + u64::from(x * count + lane)) };
        }
        element += threads;
    }
}

/// The rows of the block's part that a thread takes in a column.
#[derive(Clone, Copy)]
struct Column {
    /// The column's number in its outer index, and that outer index.
    lane: u64,
    outer: u64,
    /// The next row, the rows to the one after it, and the end of the part.
    place: u64,
    step: u64,
    end: u64,
    /// The address of the next row, and the bytes to the one after it: an address that advances
    /// instead of one from each index takes fewer registers, so more threads run.
    at: Global,
    pitch: u64,
}

impl Column {
    /// Returns every `down`th row, from the `y`th on.
    #[inline(always)]
    fn new<T: Number, const QUADS: bool>(params: &ReduceColumnsParams, column: u64, [y, down]: [u32; 2]) -> Self {
        let bytes = u64::from(T::Word::BYTES) * if QUADS { T::Word::COUNT as u64 } else { 1 };
        let outer = Wide::truncate(column).divide(&params.lanes).0;
        let start = u64::from(thread::block_y()) * params.part;
        let left = params.n - start;
        let (place, step) = (start + u64::from(y), u64::from(down));
        let mut this = Column {
            lane: column - outer * params.lanes.value,
            outer,
            place,
            step,
            end: start + if left < params.part { left } else { params.part },
            at: Global::new(params.a),
            pitch: step * params.lanes.value * bytes,
        };
        this.at = this.at.offset(this.number(params, place) * bytes);
        this
    }

    /// Returns the number of a row's element among all columns' elements.
    #[inline(always)]
    fn number(&self, params: &ReduceColumnsParams, place: u64) -> u64 {
        (self.outer * params.n + place) * params.lanes.value + self.lane
    }

    /// Returns whether there are so many more rows.
    #[inline(always)]
    fn has(&self, rows: u64) -> bool {
        self.place + (rows - 1) * self.step < self.end
    }

    /// Loads the next row.
    ///
    /// # Safety
    ///
    /// There is one, it is allocated and aligned, and nothing writes it.
    #[inline(always)]
    unsafe fn load<T: Number, const QUADS: bool>(&mut self) -> Quad {
        let at = self.at;
        self.at = at.offset(self.pitch);
        self.place += self.step;
        if QUADS {
            // SAFETY: as the caller promises.
            unsafe { thread::load_quad(at) }
        } else {
            // SAFETY: as the caller promises.
            unsafe { T::Word::load_global(at) }.put([0; 4], 0)
        }
    }
}

/// Reduces the rows of a column, and stores the state of each lane at `to`.
///
/// # Safety
///
/// As for [`reduce_columns`]; the column is one of the array, and no other thread accesses the
/// shared memory before a barrier.
#[inline(always)]
unsafe fn down_column<T: Number<Value: Pass, Sum: Pass>, R: Along<T>, const QUADS: bool, const LANES: usize>(
    params: &ReduceColumnsParams,
    column: Column,
    to: impl Fn(u32) -> Shared,
) {
    let (whole, mut column) = (column, column);
    let count = if QUADS { T::Word::COUNT } else { 1 };
    let mut states = [R::START; LANES];
    let take = |states: &mut [R::State; LANES], quad: Quad, place: u64| {
        let named = if R::PLACES && !QUADS && params.places != 0 {
            let at = Global::new(params.places).offset(8 * whole.number(params, place));
            // SAFETY: an index for every element, if there are indices.
            unsafe { B64::load_global(at) }.low()
        } else {
            place
        };
        crate::unrolled!(lane < 16 => {
            if lane < count {
                states[lane] = R::take(states[lane], T::value(T::Word::get(quad, lane)), named);
            }
        });
    };
    let one_by_one = if R::ADDS { !T::ADDS_IN_VALUES } else { T::Word::COUNT >= 8 };
    let loads = if QUADS && one_by_one { FEWER_DOWN } else { DOWN };
    while column.has(loads as u64) {
        let (mut held, first) = ([[0; 4]; DOWN], column.place);
        for number in 0..loads {
            // SAFETY: a row of the column.
            held[number] = unsafe { column.load::<T, QUADS>() };
        }
        if R::ADDS && T::ADDS_IN_VALUES {
            // One 64-bit addition a column, instead of one for each load.
            crate::unrolled!(lane < 16 => {
                if lane < count {
                    let mut sum = T::Value::ZERO;
                    for number in 0..loads {
                        sum = sum.plus(T::value(T::Word::get(held[number], lane)));
                    }
                    states[lane] = R::take(states[lane], sum, first);
                }
            });
        } else {
            crate::unrolled!(number < DOWN => {
                if number < loads {
                    take(&mut states, held[number], first + number as u64 * column.step);
                }
            });
        }
    }
    while column.has(1) {
        let place = column.place;
        // SAFETY: as above.
        let quad = unsafe { column.load::<T, QUADS>() };
        take(&mut states, quad, place);
    }
    crate::unrolled!(lane < 16 => {
        if lane < count {
            // SAFETY: as the caller promises.
            unsafe { states[lane].store(to(lane as u32)) };
        }
    });
}

/// Finds the greatest bytes of a column of vectors, and stores the state of each lane at `to`.
///
/// # Safety
///
/// As for [`down_column`].
#[inline(always)]
unsafe fn down_bytes<T: Number<Value: Pass, Sum: Pass>, R: Along<T>>(column: Column, to: impl Fn(u32) -> Shared) {
    let (mut column, start) = (column, column.place);
    loop {
        let (first, mut greatest, mut number) = (column.place, GreatestBytes::NONE, 0);
        while number <= GreatestBytes::LOADS - DOWN as u32 && column.has(DOWN as u64) {
            let mut held = [[0; 4]; DOWN];
            for step in 0..DOWN {
                // SAFETY: a row of the column.
                held[step] = unsafe { column.load::<T, true>() };
            }
            crate::unrolled!(step < DOWN => {
                greatest.take::<T>(held[step], number + step as u32);
            });
            number += DOWN as u32;
        }
        while number < GreatestBytes::LOADS && column.has(1) {
            // SAFETY: as above.
            greatest.take::<T>(unsafe { column.load::<T, true>() }, number);
            number += 1;
        }
        crate::unrolled!(lane < 16 => {
            let (value, number) = greatest.get::<T>(lane);
            let mut state = R::take(R::START, value, first + u64::from(number) * column.step);
            if first != start {
                // SAFETY: this thread stored it.
                state = R::join(unsafe { R::State::load(to(lane as u32)) }, state);
            }
            // SAFETY: as the caller promises.
            unsafe { state.store(to(lane as u32)) };
        });
        if !column.has(1) {
            return;
        }
    }
}
