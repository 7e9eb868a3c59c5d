//! Operations that need a whole row before they compute any of its results. A row is read once: the
//! threads of its group hold it in registers. Rows that are too long for that are read twice.

use crate::abi::{RowwiseParams, held_quads};
use crate::block::group::{Group, Pass, WarpValues};
use crate::thread::number::{EXP_SCALE, Number, Real, Value};
use crate::thread::quad::Lanes;
use crate::thread::{self, Global, Shared, Word};

/// Most values of a row that a thread holds.
const HELD: usize = 32;
/// Most vectors of a row that a thread holds.
const HELD_QUADS: usize = 8;
/// The next element may exceed the base of a sum of exponentials by this much.
const SLACK: f64 = 8.0;

/// A value outside of vectors, and its distance from the start of the row.
type Single<V> = Option<(u64, V)>;

/// A group's row.
struct Row {
    src: Global,
    dst: Global,
    group: Group,
    /// Its elements; 0 if there is no such row.
    len: u64,
    /// The elements before the first vector.
    first: u64,
    quads: u64,
}

impl Row {
    /// Returns this thread's row.
    #[inline(always)]
    fn new<T: Number<Value: Real>>(params: &RowwiseParams, group: Group) -> Self {
        let number = u64::from(thread::block_x()) * u64::from(group.count) + u64::from(group.number);
        let width = u64::from(T::Word::BYTES);
        let [src, dst] = [params.src, params.dst].map(|start| Global::new(start).offset(number * params.n * width));
        let len = if number < params.rows { params.n } else { 0 };
        let before = u64::from((16 - src.misalignment()) % 16 / T::Word::BYTES);
        // If the sides do not start equally far from a vector, all elements are singles.
        let (first, quads) = match src.misalignment() == dst.misalignment() {
            true if before < len => (before, (len - before) / T::Word::COUNT as u64),
            _ => (0, 0),
        };
        Row { src, dst, group, len, first, quads }
    }

    /// Returns the distance of a vector from the start.
    #[inline(always)]
    fn quad(&self, number: u64, width: u32) -> u64 {
        self.first * u64::from(width) + 16 * number
    }

    /// Returns the distance of a single element from the start, if there is one with this number.
    #[inline(always)]
    fn single<W: Word + Lanes>(&self, number: u64) -> Option<u64> {
        let within = self.quads * W::COUNT as u64;
        let element = if number < self.first { number } else { number + within };
        (element < self.len).then_some(element * u64::from(W::BYTES))
    }

    /// Returns whether this thread holds a vector in `step`.
    #[inline(always)]
    fn holds(&self, step: usize) -> bool {
        step as u32 * self.group.size < (self.quads as u32).saturating_sub(self.group.lane)
    }

    /// Returns the address on a side of its first vector, and the distance to each next.
    #[inline(always)]
    fn held_at<W: Word>(&self, side: Global) -> (Global, u64) {
        (side.offset(self.quad(u64::from(self.group.lane), W::BYTES)), u64::from(16 * self.group.size))
    }

    /// Returns the values that this thread holds, and a single one if it has one. A vector that the
    /// thread does not hold ([`holds`]) is another vector of the row, or `missing` values if the
    /// row has none.
    ///
    /// [`holds`]: Row::holds
    ///
    /// # Safety
    ///
    /// The group holds the row: see [`RowwiseParams`].
    #[inline(always)]
    unsafe fn hold<T: Number<Value: Real>>(&self, missing: T::Value) -> ([T::Value; HELD], Single<T::Value>) {
        let (count, steps) = (T::Word::COUNT, held_quads(T::Word::BYTES) as usize);
        let mut values = [missing; HELD];
        if self.quads > 0 {
            let mut held = [[0; 4]; HELD_QUADS];
            // Without a condition, because loads behind conditions wait for them: a thread without
            // a vector loads the row's first.
            let (mut at, next) = self.held_at::<T::Word>(self.src);
            for step in 0..steps {
                let there = if self.holds(step) { at } else { self.src.offset(self.quad(0, T::Word::BYTES)) };
                // SAFETY: a vector of the row.
                held[step] = unsafe { thread::load_quad(there) };
                at = at.offset(next);
            }
            crate::unrolled!(value < HELD <= 32 => {
                if value < count * steps {
                    values[value] = T::value(T::Word::get(held[value / count], value % count));
                }
            });
        }
        let single = self.single::<T::Word>(u64::from(self.group.lane));
        // SAFETY: an element of the row.
        (values, single.map(|at| (at, T::value(unsafe { T::Word::load_global(self.src.offset(at)) }))))
    }

    /// Maps the values that this thread holds, and a single one, and sums them: each vector
    /// separately, so that few roundings follow each other.
    #[inline(always)]
    fn sum_mapped<T: Number<Value: Real>>(
        &self,
        values: &mut [T::Value; HELD],
        single: &mut Single<T::Value>,
        map: impl Fn(T::Value) -> T::Value,
    ) -> T::Value {
        let (count, steps) = (T::Word::COUNT, held_quads(T::Word::BYTES) as usize);
        *single = single.map(|(at, value)| (at, map(value)));
        let mut total = single.map_or(T::Value::ZERO, |(_, value)| value);
        crate::unrolled!(step < HELD_QUADS => {
            if step < steps {
                let mut quad = [T::Value::ZERO; 8];
                for lane in 0..count {
                    quad[lane] = map(values[step * count + lane]);
                    values[step * count + lane] = quad[lane];
                }
                let [a, b, c, d, e, f, g, h] = quad;
                let quad = match count {
                    2 => a + b,
                    4 => (a + b) + (c + d),
                    _ => ((a + b) + (c + d)) + ((e + f) + (g + h)),
                };
                total = total + if self.holds(step) { quad } else { T::Value::ZERO };
            }
        });
        total
    }

    /// Writes the mapped values that this thread holds.
    ///
    /// # Safety
    ///
    /// As for [`hold`](Row::hold); no other work accesses the destination.
    #[inline(always)]
    unsafe fn store<T: Number<Value: Real>>(&self, values: &[T::Value; HELD], single: Single<T::Value>) {
        let (count, steps) = (T::Word::COUNT, held_quads(T::Word::BYTES) as usize);
        let (mut at, next) = self.held_at::<T::Word>(self.dst);
        crate::unrolled!(step < HELD_QUADS => {
            if step < steps {
                let quad = T::quad(core::array::from_fn(|lane| values[(step * count + lane) % HELD]));
                if self.holds(step) {
                    // SAFETY: this thread's vector.
                    unsafe { thread::store_quad(at, quad) };
                }
                at = at.offset(next);
            }
        });
        if let Some((at, single)) = single {
            // SAFETY: this thread's element.
            unsafe { T::word(single).store_global(self.dst.offset(at)) };
        }
    }

    /// Calls `take` with every value of this thread's part of the row, which may have any length.
    ///
    /// # Safety
    ///
    /// The row is allocated and aligned to an element, and no work writes it.
    #[inline(always)]
    unsafe fn each<T: Number<Value: Real>>(&self, mut take: impl FnMut(T::Value)) {
        let (mut quad, mut single) = (u64::from(self.group.lane), u64::from(self.group.lane));
        while quad < self.quads {
            // SAFETY: a vector of the row.
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

    /// Maps and writes every value of this thread's part of the row, from its end, which was read
    /// last and so still is in the L2 cache.
    ///
    /// # Safety
    ///
    /// As for [`each`](Row::each); no other work accesses this part of the destination.
    #[inline(always)]
    unsafe fn map<T: Number<Value: Real>>(&self, become_: impl Fn(T::Value) -> T::Value) {
        let (size, lane) = (u64::from(self.group.size), u64::from(self.group.lane));
        let mut left = (self.quads + (size - 1 - lane)) >> size.trailing_zeros();
        while left > 0 {
            left -= 1;
            let at = self.quad(lane + left * size, T::Word::BYTES);
            // SAFETY: a vector of the row.
            let held = unsafe { thread::load_quad(self.src.offset(at)) };
            let mut result = [T::Value::ZERO; 8];
            crate::unrolled!(lane < 8 => {
                if lane < T::Word::COUNT {
                    result[lane] = become_(T::value(T::Word::get(held, lane)));
                }
            });
            // SAFETY: this thread's vector.
            unsafe { thread::store_quad(self.dst.offset(at), T::quad(result)) };
        }
        let mut single = lane;
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
fn larger<V: Real>(one: V, other: V) -> V {
    one.larger(other)
}

#[inline(always)]
fn sum<V: Real>(one: V, other: V) -> V {
    one + other
}

/// A sum of very many numbers, with its lost roundings (Knuth's two-sum).
#[derive(Clone, Copy)]
struct Compensated<V> {
    sum: V,
    lost: V,
}

impl<V: Real> Compensated<V> {
    const ZERO: Self = Compensated { sum: V::ZERO, lost: V::ZERO };

    #[inline(always)]
    fn plus(self, value: V) -> Self {
        let sum = self.sum + value;
        let before = sum - value;
        let lost = (self.sum - before) + (value - (sum - before));
        Compensated { sum, lost: self.lost + lost }
    }

    #[inline(always)]
    fn times(self, factor: V) -> Self {
        Compensated { sum: self.sum * factor, lost: self.lost * factor }
    }

    #[inline(always)]
    fn value(self) -> V {
        // An infinite sum has lost no number.
        if self.lost.is_nan() { self.sum } else { self.sum + self.lost }
    }
}

/// Computes `e^(x - greatest) / sum of these` for each row.
///
/// # Safety
///
/// See [`RowwiseParams`]: the rows of both sides are allocated and aligned to an element, and no
/// other work accesses those of the destination.
#[inline(always)]
pub unsafe fn softmax<T: Number<Value: Real + Pass>>(params: RowwiseParams) {
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
/// As for [`softmax`]; the group holds the row.
#[inline(always)]
unsafe fn softmax_held<T: Number<Value: Real + Pass>>(row: &Row) {
    let least = T::Value::LEAST;
    // SAFETY: as the caller promises.
    let (mut values, mut single) = unsafe { row.hold::<T>(least) };
    let mut most = single.map_or(least, |(_, value)| value);
    for value in &values {
        most = larger(most, *value);
    }
    // SAFETY: every thread of the block gets here.
    let most = unsafe { row.group.join(0, most, least, larger) };
    let total = row.sum_mapped::<T>(&mut values, &mut single, |value| (value - most).scaled_exp());
    // SAFETY: every thread of the block gets here.
    let total = unsafe { row.group.join(1, total, T::Value::ZERO, sum) };
    let factor = T::Value::ONE / total;
    for value in &mut values {
        *value = *value * factor;
    }
    // SAFETY: as the caller promises.
    unsafe { row.store::<T>(&values, single.map(|(at, value)| (at, value * factor))) };
}

/// Finds the greatest and the sum in one read: if a much greater element comes, the sum is scaled
/// (Milakov and Gimelshein 2018).
///
/// Only a much greater element scales it, because every scaling is rounded, and rising rows would
/// scale for each element. Until then terms are up to `e^SLACK`.
///
/// # Safety
///
/// As for [`softmax`].
#[inline(always)]
unsafe fn softmax_long<T: Number<Value: Real + Pass>>(row: &Row) {
    let least = T::Value::LEAST;
    let unscale = T::Value::of(1.0 / EXP_SCALE);
    // There is no difference before the first number.
    let or_zero = |shift: T::Value| if shift > least { shift } else { T::Value::ZERO };
    let (mut most, mut base, mut total) = (least, least, Compensated::ZERO);
    // SAFETY: as the caller promises.
    unsafe {
        row.each::<T>(|value| {
            most = larger(most, value);
            // The scale mostly is 1, which rounds nothing, and a branch would cost registers.
            let next = if value - base > T::Value::of(SLACK) { value } else { base };
            total = total.times((base - or_zero(next)).scaled_exp() * unscale);
            base = next;
            total = total.plus((value - or_zero(base)).scaled_exp());
        })
    };
    // SAFETY: every thread of the block gets here.
    let greatest = unsafe { row.group.join(0, most, least, larger) };
    let shift = or_zero(greatest);
    // SAFETY: every thread of the block gets here.
    let total =
        unsafe { row.group.join(1, total.value() * ((base - shift).scaled_exp() * unscale), T::Value::ZERO, sum) };
    let factor = T::Value::ONE / total;
    // SAFETY: as the caller promises.
    unsafe { row.map::<T>(|value| (value - greatest).scaled_exp() * factor) };
}

/// Computes the mean of each row, and the mean of the squared differences of its elements from it.
///
/// Two passes, because the sum of squares less the square of the sum would cancel; and corrected
/// ones (Chan, Golub and LeVeque 1983): the differences from the rounded mean are summed too, which
/// gives its error. In rows far from zero this error exceeds the differences between elements.
///
/// # Safety
///
/// See [`RowwiseParams`]: the rows are allocated and aligned to an element, and no work writes
/// them; there is memory for two results a row, which no other work accesses.
#[inline(always)]
pub unsafe fn mean_variance<T: Number<Value: Real + Pass>>(params: RowwiseParams) {
    let group = Group::new(params.group as u32, Shared::reserve::<WarpValues<T::Value>>());
    let [mean_at, variance_at] = [params.dst, params.variances].map(Global::new);
    // A row has no destination, and so whole vectors wherever it starts.
    let row = Row::new::<T>(&RowwiseParams { dst: params.src, ..params }, group);
    let count = T::Value::of(params.n as f64);
    let (mean, differences, squares) = if params.held != 0 {
        // SAFETY: the group holds the row; the rest as the caller promises.
        unsafe { moments_held::<T>(&row, count) }
    } else {
        // SAFETY: as the caller promises.
        unsafe { moments_long::<T>(&row, count) }
    };
    let zero = T::Value::ZERO;
    // SAFETY: every thread of the block gets here.
    let off = unsafe { row.group.join(1, differences, zero, sum) } / count;
    // SAFETY: every thread of the block gets here.
    let variance = unsafe { row.group.join(2, squares, zero, sum) } / count - off * off;
    // No difference from an infinite mean is a number.
    let mean = if (off - off).is_nan() { mean } else { mean + off };
    let variance = if variance < zero { zero } else { variance };
    if row.len > 0 && group.lane == 0 {
        let number = u64::from(thread::block_x()) * u64::from(group.count) + u64::from(group.number);
        let at = number * u64::from(<T::Value as Number>::Word::BYTES);
        // SAFETY: the row's own result.
        unsafe { T::Value::word(mean).store_global(mean_at.offset(at)) };
        // SAFETY: the row's own result.
        unsafe { T::Value::word(variance).store_global(variance_at.offset(at)) };
    }
}

/// Returns the mean of the row, and the sums of this thread's differences from it and of their
/// micro-tiles.
///
/// # Safety
///
/// As for [`mean_variance`]; the group holds the row.
#[inline(always)]
unsafe fn moments_held<T: Number<Value: Real + Pass>>(row: &Row, count: T::Value) -> (T::Value, T::Value, T::Value) {
    let zero = T::Value::ZERO;
    // SAFETY: as the caller promises.
    let (mut values, mut single) = unsafe { row.hold::<T>(zero) };
    let total = row.sum_mapped::<T>(&mut values, &mut single, |value| value);
    // SAFETY: every thread of the block gets here.
    let mean = unsafe { row.group.join(0, total, zero, sum) } / count;
    let differences = row.sum_mapped::<T>(&mut values, &mut single, |value| value - mean);
    let squares = row.sum_mapped::<T>(&mut values, &mut single, |difference| difference * difference);
    (mean, differences, squares)
}

/// Does the same for a row that is read twice.
///
/// # Safety
///
/// As for [`mean_variance`].
#[inline(always)]
unsafe fn moments_long<T: Number<Value: Real + Pass>>(row: &Row, count: T::Value) -> (T::Value, T::Value, T::Value) {
    let mut total = Compensated::ZERO;
    // SAFETY: as the caller promises.
    unsafe { row.each::<T>(|value| total = total.plus(value)) };
    // SAFETY: every thread of the block gets here.
    let mean = unsafe { row.group.join(0, total.value(), T::Value::ZERO, sum) } / count;
    let (mut differences, mut squares) = (Compensated::ZERO, Compensated::ZERO);
    // SAFETY: as the caller promises.
    unsafe {
        row.each::<T>(|value| {
            let difference = value - mean;
            differences = differences.plus(difference);
            squares = squares.plus(difference * difference);
        })
    };
    (mean, differences.value(), squares.value())
}
