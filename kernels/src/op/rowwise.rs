//! Operations that need a whole row before they know what becomes of any of its elements. A row is read once: the threads of its
//! group hold it in registers. Rows that are too long for that are read twice.

use crate::abi::{RowwiseParams, held_quads};
use crate::group::{Group, Pass, WarpValues};
use crate::number::{Number, Value};
use crate::quad::Lanes;
use crate::thread::{self, Global, Quad, Shared, Word};

/// Values that a thread holds of a row, at most.
const HELD: usize = 32;

/// A row, as a group of threads has it.
struct Row {
    src: Global,
    dst: Global,
    group: Group,
    /// Its elements; none where there is no such row.
    len: u64,
    /// Those before the first quad.
    first: u64,
    quads: u64,
}

impl Row {
    /// This thread's.
    #[inline(always)]
    fn new<T: Number>(params: &RowwiseParams, group: Group) -> Self {
        let number = u64::from(thread::block_x()) * u64::from(group.count) + u64::from(group.number);
        let width = u64::from(T::Word::BYTES);
        let [src, dst] = [params.src, params.dst].map(|start| Global::new(start).offset(number * params.n * width));
        let len = if number < params.rows { params.n } else { 0 };
        let before = u64::from((16 - src.misalignment()) % 16 / T::Word::BYTES);
        // Where the sides do not start equally far from a quad, all elements are singles.
        let (first, quads) = match src.misalignment() == dst.misalignment() {
            true if before < len => (before, (len - before) / T::Word::COUNT as u64),
            _ => (0, 0),
        };
        Row { src, dst, group, len, first, quads }
    }

    /// How far a quad lies from the start.
    #[inline(always)]
    fn quad(&self, number: u64, width: u32) -> u64 {
        self.first * u64::from(width) + 16 * number
    }

    /// How far an element outside of quads lies from the start, where there are so many.
    #[inline(always)]
    fn single<W: Word + Lanes>(&self, number: u64) -> Option<u64> {
        let within = self.quads * W::COUNT as u64;
        let element = if number < self.first { number } else { number + within };
        (element < self.len).then_some(element * u64::from(W::BYTES))
    }

    /// Whether this thread holds a quad in its `step`th place.
    #[inline(always)]
    fn holds(&self, step: usize) -> bool {
        self.group.lane + step as u32 * self.group.size < self.quads as u32
    }

    /// How far from the start its quad in its `step`th place lies.
    #[inline(always)]
    fn held_at<W: Word>(&self, step: usize) -> u64 {
        u64::from(self.first as u32 * W::BYTES + 16 * self.group.lane) + u64::from(16 * step as u32 * self.group.size)
    }

    /// The values that this thread holds, and one outside of quads; `missing` where it has none.
    ///
    /// # Safety
    ///
    /// The group holds the row: see [`RowwiseParams`].
    #[inline(always)]
    unsafe fn hold<T: Number>(&self, missing: T::Value) -> ([T::Value; HELD], T::Value) {
        let (count, steps) = (T::Word::COUNT, held_quads(T::Word::BYTES) as usize);
        let mut held = [[0; 4]; 8];
        if self.quads > 0 {
            // Without a question, because loads behind questions wait for them: a thread that has no quad loads the row's first.
            for step in 0..steps {
                let at = if self.holds(step) { self.held_at::<T::Word>(step) } else { self.quad(0, T::Word::BYTES) };
                // SAFETY: a quad of the row.
                held[step] = unsafe { thread::load_quad(self.src.offset(at)) };
            }
        }
        let mut values = [missing; HELD];
        crate::unrolled!(value < 32 => {
            if value < count * steps {
                let loaded = T::value(T::Word::get(held[value / count], value % count));
                values[value] = if self.holds(value / count) { loaded } else { missing };
            }
        });
        let single = match self.single::<T::Word>(u64::from(self.group.lane)) {
            // SAFETY: an element of the row.
            Some(at) => T::value(unsafe { T::Word::load_global(self.src.offset(at)) }),
            None => missing,
        };
        (values, single)
    }

    /// Writes what has become of the values that this thread holds.
    ///
    /// # Safety
    ///
    /// As of [`hold`](Row::hold); nothing else accesses the destination.
    #[inline(always)]
    unsafe fn store<T: Number>(&self, values: &[T::Value; HELD], single: T::Value) {
        let (count, steps) = (T::Word::COUNT, held_quads(T::Word::BYTES) as usize);
        let mut quads = [[0; 4]; 8];
        crate::unrolled!(value < 32 => {
            if value < count * steps {
                quads[value / count] = T::word(values[value]).put(quads[value / count], value % count);
            }
        });
        for step in 0..steps {
            if self.holds(step) {
                // SAFETY: this thread's quad.
                unsafe { thread::store_quad(self.dst.offset(self.held_at::<T::Word>(step)), quads[step]) };
            }
        }
        if let Some(at) = self.single::<T::Word>(u64::from(self.group.lane)) {
            // SAFETY: this thread's element.
            unsafe { T::word(single).store_global(self.dst.offset(at)) };
        }
    }

    /// `take` on every value of this thread's part of the row, which may be of any length.
    ///
    /// # Safety
    ///
    /// The row is allocated and aligned to an element, and nothing writes it.
    #[inline(always)]
    unsafe fn each<T: Number>(&self, mut take: impl FnMut(T::Value)) {
        let (mut quad, mut single) = (u64::from(self.group.lane), u64::from(self.group.lane));
        while quad < self.quads {
            // SAFETY: a quad of the row.
            let held = unsafe { thread::load_quad(self.src.offset(self.quad(quad, T::Word::BYTES))) };
            crate::unrolled!(lane < 8 => {
                if lane < T::Word::COUNT {
                    take(T::value(T::Word::get(held, lane)));
                }
            });
            quad += u64::from(self.group.size);
        }
        while let Some(at) = self.single::<T::Word>(single) {
            // SAFETY: an element of the row.
            take(T::value(unsafe { T::Word::load_global(self.src.offset(at)) }));
            single += u64::from(self.group.size);
        }
    }

    /// Writes what becomes of every value of this thread's part of the row.
    ///
    /// # Safety
    ///
    /// As of [`each`](Row::each); of the destination nothing else accesses this part.
    #[inline(always)]
    unsafe fn map<T: Number>(&self, become_: impl Fn(T::Value) -> T::Value) {
        let (mut quad, mut single) = (u64::from(self.group.lane), u64::from(self.group.lane));
        while quad < self.quads {
            let at = self.quad(quad, T::Word::BYTES);
            // SAFETY: a quad of the row.
            let held = unsafe { thread::load_quad(self.src.offset(at)) };
            let mut result: Quad = [0; 4];
            crate::unrolled!(lane < 8 => {
                if lane < T::Word::COUNT {
                    result = T::word(become_(T::value(T::Word::get(held, lane)))).put(result, lane);
                }
            });
            // SAFETY: this thread's quad.
            unsafe { thread::store_quad(self.dst.offset(at), result) };
            quad += u64::from(self.group.size);
        }
        while let Some(at) = self.single::<T::Word>(single) {
            // SAFETY: an element of the row.
            let value = T::value(unsafe { T::Word::load_global(self.src.offset(at)) });
            // SAFETY: this thread's element.
            unsafe { T::word(become_(value)).store_global(self.dst.offset(at)) };
            single += u64::from(self.group.size);
        }
    }
}

#[inline(always)]
fn greater<V: Value>(one: V, other: V) -> V {
    if one > other { one } else { other }
}

#[inline(always)]
fn sum<V: Value>(one: V, other: V) -> V {
    one + other
}

/// `e^(x - greatest) / sum of these`, for each row.
///
/// # Safety
///
/// See [`RowwiseParams`]: the rows of both sides are allocated and aligned to an element, and nothing else accesses those of the
/// destination.
#[inline(always)]
pub unsafe fn softmax<T: Number<Value: Pass>>(params: RowwiseParams) {
    let group = Group::new(params.group as u32, Shared::reserve::<WarpValues<T::Value>>());
    let row = Row::new::<T>(&params, group);
    if params.held != 0 {
        // SAFETY: the group holds the row; the rest as the caller promises.
        unsafe { softmax_held::<T>(&row) }
    } else {
        // SAFETY: as the caller promises.
        unsafe { softmax_long::<T>(&row) }
    }
}

/// # Safety
///
/// As of [`softmax`]; the group holds the row.
#[inline(always)]
unsafe fn softmax_held<T: Number<Value: Pass>>(row: &Row) {
    let least = T::Value::NEGATIVE_INFINITY;
    // SAFETY: as the caller promises.
    let (mut values, single) = unsafe { row.hold::<T>(least) };
    let mut most = single;
    for value in &values {
        most = greater(most, *value);
    }
    // SAFETY: every thread of the block gets here.
    let most = unsafe { row.group.join(0, most, least, greater) };
    let single = (single - most).exp();
    let mut total = single;
    let count = T::Word::COUNT * held_quads(T::Word::BYTES) as usize;
    crate::unrolled!(value < 32 => {
        if value < count {
            values[value] = (values[value] - most).exp();
            total = total + values[value];
        }
    });
    // SAFETY: every thread of the block gets here.
    let total = unsafe { row.group.join(1, total, T::Value::ZERO, sum) };
    let factor = T::Value::ONE / total;
    for value in &mut values {
        *value = *value * factor;
    }
    // SAFETY: as the caller promises.
    unsafe { row.store::<T>(&values, single * factor) };
}

/// The greatest and the sum in one read: where a greater one comes, what was summed is scaled (Milakov and Gimelshein 2018).
///
/// # Safety
///
/// As of [`softmax`].
#[inline(always)]
unsafe fn softmax_long<T: Number<Value: Pass>>(row: &Row) {
    let least = T::Value::NEGATIVE_INFINITY;
    let (mut most, mut total) = (least, T::Value::ZERO);
    // SAFETY: as the caller promises.
    unsafe {
        row.each::<T>(|value| {
            let before = most;
            most = greater(value, most);
            // Before the first number there is no difference.
            let shift = if most > least { most } else { T::Value::ZERO };
            total = total * (before - shift).exp() + (value - shift).exp();
        })
    };
    // SAFETY: every thread of the block gets here.
    let greatest = unsafe { row.group.join(0, most, least, greater) };
    let shift = if greatest > least { greatest } else { T::Value::ZERO };
    // SAFETY: every thread of the block gets here.
    let total = unsafe { row.group.join(1, total * (most - shift).exp(), T::Value::ZERO, sum) };
    let factor = T::Value::ONE / total;
    // SAFETY: as the caller promises.
    unsafe { row.map::<T>(|value| (value - shift).exp() * factor) };
}

/// The mean of each row, and the mean of the squares of what its elements differ from it: two passes over what the group holds, as
/// the sum of squares less the square of the sum would cancel.
///
/// # Safety
///
/// See [`RowwiseParams`]: the rows are allocated and aligned to an element, and nothing writes them; there is room for two
/// results a row, which nothing else accesses.
#[inline(always)]
pub unsafe fn mean_variance<T: Number<Value: Pass>>(params: RowwiseParams) {
    let group = Group::new(params.group as u32, Shared::reserve::<WarpValues<T::Value>>());
    let [mean_at, variance_at] = [params.dst, params.variances].map(Global::new);
    // A row has no destination, and so whole quads wherever it starts.
    let row = Row::new::<T>(&RowwiseParams { dst: params.src, ..params }, group);
    let count = T::Value::of(params.n as f64);
    let zero = T::Value::ZERO;
    let (mut values, mut single) = ([zero; HELD], zero);
    let mut total = zero;
    if params.held != 0 {
        // SAFETY: the group holds the row; the rest as the caller promises.
        (values, single) = unsafe { row.hold::<T>(zero) };
        total = single;
        for value in &values {
            total = total + *value;
        }
    } else {
        // SAFETY: as the caller promises.
        unsafe { row.each::<T>(|value| total = total + value) };
    }
    // SAFETY: every thread of the block gets here.
    let mean = unsafe { group.join(0, total, zero, sum) } / count;
    let square = |value: T::Value| (value - mean) * (value - mean);
    let mut squares = zero;
    if params.held != 0 {
        let (lanes, steps) = (T::Word::COUNT, held_quads(T::Word::BYTES) as usize);
        if row.single::<T::Word>(u64::from(group.lane)).is_some() {
            squares = square(single);
        }
        crate::unrolled!(value < 32 => {
            if value < lanes * steps && row.holds(value / lanes) {
                squares = squares + square(values[value]);
            }
        });
    } else {
        // SAFETY: as the caller promises.
        unsafe { row.each::<T>(|value| squares = squares + square(value)) };
    }
    // SAFETY: every thread of the block gets here.
    let variance = unsafe { group.join(1, squares, zero, sum) } / count;
    if row.len > 0 && group.lane == 0 {
        let number = u64::from(thread::block_x()) * u64::from(group.count) + u64::from(group.number);
        let at = number * u64::from(<T::Value as Number>::Word::BYTES);
        // SAFETY: the row's own result.
        unsafe { T::Value::word(mean).store_global(mean_at.offset(at)) };
        // SAFETY: the row's own result.
        unsafe { T::Value::word(variance).store_global(variance_at.offset(at)) };
    }
}
