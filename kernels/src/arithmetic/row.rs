//! A row whose values the threads of a group hold in registers, so that it is read once.

use crate::abi::{MOMENTS_QUADS, RowwiseParams};
use crate::block::group::{Group, Pass};
use crate::thread::number::{Number, Real, Value};
use crate::thread::quad::Lanes;
use crate::thread::{self, Global, Quad, Word};

/// Most values of a row that a thread holds.
const HELD: usize = 32;
/// Most vectors of a row that a thread holds.
const HELD_QUADS: usize = 8;
/// Bytes of a line of the L2 cache.
const LINE: u32 = 128;
/// Bytes that a group has the cache fetch, for each of its threads. On an H100 that makes 8 MiB of
/// all threads that run; of 16 MiB, the cache loses most before they are read.
const AHEAD: u32 = 64;

/// A row, or a part of one, that a group holds.
pub struct Row {
    src: Global,
    dst: Global,
    /// The threads that hold it.
    group: Group,
    /// Its elements; 0 if there is no such row.
    pub len: u32,
    /// The elements before the first vector.
    first: u32,
    quads: u32,
}

impl Row {
    /// Returns the row of `len` elements that starts at these addresses, plus some elements.
    #[inline(always)]
    pub fn new<T: Number<Value: Real>>(sides: [u64; 2], start: u64, len: u64, group: Group) -> Self {
        let [src, dst] = sides.map(|side| Global::new(side).offset(start * u64::from(T::Word::BYTES)));
        // No group holds 2^32 elements.
        let (len, before) = (len as u32, (16 - src.misalignment()) % 16 / T::Word::BYTES);
        let quads = len.saturating_sub(before) / T::Word::COUNT as u32;
        // A row within a vector has singles alone.
        let first = if before < len { before } else { 0 };
        Row { src, dst, group, len, first, quads }
    }

    /// Returns the number of this thread's row, if each group has one.
    #[inline(always)]
    pub fn number(group: Group) -> u64 {
        u64::from(thread::block_x()) * u64::from(group.count) + u64::from(group.number)
    }

    /// Returns this thread's row, if each group has one.
    #[inline(always)]
    pub fn of_group<T: Number<Value: Real>>(params: &RowwiseParams, group: Group) -> Self {
        let number = Self::number(group);
        let len = if number < params.rows { params.n } else { 0 };
        Self::new::<T>([params.src, params.dst], number * params.n, len, group)
    }

    /// Has the L2 cache fetch the start of the row that is a number of elements ahead, for a group
    /// that will hold it.
    ///
    /// # Safety
    ///
    /// A row of this length is allocated there.
    #[inline(always)]
    pub unsafe fn prefetch<W: Word>(&self, elements: u64) {
        let line = self.group.lane * LINE;
        if line < self.len * W::BYTES && line < self.group.size * AHEAD {
            let at = elements * u64::from(W::BYTES) + u64::from(line);
            // SAFETY: within that row.
            unsafe { thread::prefetch(self.src.offset(at)) };
        }
    }

    /// Returns the distance in bytes from the start of this thread's element outside of vectors, if
    /// it has one.
    #[inline(always)]
    fn single<W: Word + Lanes>(&self) -> Option<u32> {
        let (lane, within) = (self.group.lane, self.quads * W::COUNT as u32);
        let element = if lane < self.first { lane } else { lane + within };
        (element < self.len).then_some(element * W::BYTES)
    }

    /// Returns whether this thread holds a vector in `step`.
    #[inline(always)]
    fn holds(&self, step: usize) -> bool {
        step as u32 * self.group.size < self.quads.saturating_sub(self.group.lane)
    }

    /// Returns the address on a side of its first vector, and the distance to each next.
    #[inline(always)]
    fn held_at<W: Word>(&self, side: Global) -> (Global, u64) {
        let start = self.first * W::BYTES + 16 * self.group.lane;
        (side.offset(u64::from(start)), u64::from(16 * self.group.size))
    }

    /// Returns the vectors that this thread holds, and a single value if it has one. A vector that
    /// the thread does not hold ([`holds`]) is another vector of the row, or `missing` if the row
    /// has none.
    ///
    /// [`holds`]: Row::holds
    ///
    /// # Safety
    ///
    /// The group holds the row by so many vectors a thread: see [`RowwiseParams`].
    #[inline(always)]
    unsafe fn load<T: Number<Value: Real>>(
        &self,
        steps: usize,
        missing: Quad,
    ) -> ([Quad; HELD_QUADS], Option<T::Value>) {
        let mut held = [missing; HELD_QUADS];
        if self.quads > 0 {
            // Without a condition, because loads behind conditions wait for them: a thread without
            // a vector loads the row's first.
            let (mut at, next) = self.held_at::<T::Word>(self.src);
            let first = self.src.offset(u64::from(self.first * T::Word::BYTES));
            for step in 0..steps {
                // SAFETY: a vector of the row.
                held[step] = unsafe { thread::load_quad_once(if self.holds(step) { at } else { first }) };
                at = at.offset(next);
            }
        }
        let single = self.single::<T::Word>();
        // SAFETY: an element of the row.
        (held, single.map(|at| T::value(unsafe { T::Word::load_global(self.src.offset(u64::from(at))) })))
    }

    /// Writes the mapped values of `steps` vectors that this thread holds, and a single one: by
    /// vectors if the destination has vectors where the source has them (`aligned`), or else one by
    /// one.
    ///
    /// # Safety
    ///
    /// As for [`load`](Row::load); no other work accesses the destination.
    #[inline(always)]
    pub unsafe fn store<T: Number<Value: Real>>(
        &self,
        steps: usize,
        values: &[T::Value; HELD],
        single: Option<T::Value>,
        aligned: bool,
        map: impl Fn(T::Value) -> T::Value,
    ) {
        let count = T::Word::COUNT;
        let (at, next) = self.held_at::<T::Word>(self.dst);
        crate::unrolled!(step < HELD_QUADS => {
            if step < steps {
                let quad = T::quad(core::array::from_fn(|lane| map(values[(step * count + lane) % HELD])));
                let at = at.offset(step as u64 * next);
                if self.holds(step) {
                    if aligned {
                        // SAFETY: this thread's vector.
                        unsafe { thread::store_quad_once(at, quad) };
                    } else {
                        for lane in 0..count {
                            let to = at.offset(lane as u64 * u64::from(T::Word::BYTES));
                            // SAFETY: an element of this thread's vector.
                            unsafe { T::Word::get(quad, lane).store_global(to) };
                        }
                    }
                }
            }
        });
        if let (Some(at), Some(single)) = (self.single::<T::Word>(), single) {
            // SAFETY: this thread's element.
            unsafe { T::word(map(single)).store_global(self.dst.offset(u64::from(at))) };
        }
    }
}

#[inline(always)]
pub fn larger<V: Real>(one: V, other: V) -> V {
    one.larger(other)
}

#[inline(always)]
pub fn sum<V: Real>(one: V, other: V) -> V {
    one + other
}

/// Moments of some elements about a number near their mean.
pub struct Moments<V> {
    /// This number: the rounded mean.
    pub mean: V,
    /// The sum of the elements' differences from it.
    pub differences: V,
    /// The sum of the squares of these.
    pub squares: V,
    /// The number of elements.
    pub count: V,
}

impl<V: Real> Moments<V> {
    /// Writes the mean and the variance of a row.
    ///
    /// Two passes, because the sum of squares less the square of the sum would cancel; and
    /// corrected ones (Chan, Golub and LeVeque 1983): the differences from the rounded mean are
    /// summed too, which gives its error. In rows far from zero this error exceeds the differences
    /// between elements.
    ///
    /// # Safety
    ///
    /// Both addresses have memory for the row of this number, which no other work accesses.
    #[inline(always)]
    pub unsafe fn store(self, [mean_at, variance_at]: [u64; 2], row: u64) {
        let Moments { mean, differences, squares, count } = self;
        let off = differences / count;
        let variance = squares / count - off * off;
        // No difference from an infinite mean is a number.
        let mean = if (off - off).is_nan() { mean } else { mean + off };
        let variance = if variance < V::ZERO { V::ZERO } else { variance };
        let at = row * u64::from(V::Word::BYTES);
        // SAFETY: the row's own result.
        unsafe { V::word(mean).store_global(Global::new(mean_at).offset(at)) };
        // SAFETY: the row's own result.
        unsafe { V::word(variance).store_global(Global::new(variance_at).offset(at)) };
    }
}

impl Row {
    /// Returns `e^(x - shift(greatest))` of the values of `steps` vectors that this thread holds,
    /// still scaled, and of a single one, with the greatest and the sum of all.
    ///
    /// # Safety
    ///
    /// The group holds the row, and no work writes it; every thread of the block calls it together.
    #[inline(always)]
    pub unsafe fn exponentials<T: Number<Value: Real + Pass>>(
        &self,
        steps: usize,
        shift: impl Fn(T::Value) -> T::Value,
    ) -> ([T::Value; HELD], Option<T::Value>, T::Value, T::Value) {
        let (least, zero) = (T::Value::LEAST, T::Value::ZERO);
        let count = T::Word::COUNT;
        // SAFETY: as the caller promises.
        let (held, mut single) = unsafe { self.load::<T>(steps, T::quad([least; 8])) };
        let mut values = [least; HELD];
        crate::unrolled!(value < HELD <= 32 => {
            if value < count * steps {
                values[value] = T::value(T::Word::get(held[value / count], value % count));
            }
        });
        let mut most = single.unwrap_or(least);
        for value in &values {
            most = larger(most, *value);
        }
        // SAFETY: every thread of the block gets here.
        let most = unsafe { self.group.join(0, most, least, larger) };
        let shift = shift(most);
        single = single.map(|value| (value - shift).scaled_exp());
        let mut total = single.unwrap_or(zero);
        crate::unrolled!(step < HELD_QUADS => {
            if step < steps {
                let mut quad = [zero; 8];
                for lane in 0..count {
                    quad[lane] = (values[step * count + lane] - shift).scaled_exp();
                    values[step * count + lane] = quad[lane];
                }
                total = total + if self.holds(step) { sum_of(quad, count) } else { zero };
            }
        });
        // SAFETY: every thread of the block gets here.
        let total = unsafe { self.group.join(1, total, zero, sum) };
        (values, single, most, total)
    }

    /// Returns the moments of `count` elements: see [`Moments`].
    ///
    /// # Safety
    ///
    /// As for [`exponentials`](Row::exponentials).
    #[inline(always)]
    pub unsafe fn moments<T: Number<Value: Real + Pass>>(&self, count: T::Value) -> Moments<T::Value> {
        let (zero, lanes, steps) = (T::Value::ZERO, T::Word::COUNT, MOMENTS_QUADS as usize);
        // SAFETY: as the caller promises.
        let (mut held, single) = unsafe { self.load::<T>(steps, [0; 4]) };
        let mut total = single.unwrap_or(zero);
        crate::unrolled!(step < HELD_QUADS => {
            if step < steps {
                let quad = sum_of(values_of::<T>(held[step]), lanes);
                total = total + if self.holds(step) { quad } else { zero };
            }
        });
        // SAFETY: every thread of the block gets here.
        let mean = unsafe { self.group.join(0, total, zero, sum) } / count;
        let mut off = single.map_or([zero; 2], |value| [value - mean, (value - mean) * (value - mean)]);
        crate::unrolled!(step < HELD_QUADS => {
            if step < steps {
                // The compiler would keep the converted values, which take more registers.
                held[step] = thread::unknown(held[step]);
                let differences = values_of::<T>(held[step]).map(|value| value - mean);
                let sums = [differences, differences.map(|value| value * value)].map(|quad| sum_of(quad, lanes));
                if self.holds(step) {
                    off = [off[0] + sums[0], off[1] + sums[1]];
                }
            }
        });
        // SAFETY: every thread of the block gets here.
        let differences = unsafe { self.group.join(1, off[0], zero, sum) };
        // SAFETY: every thread of the block gets here.
        let squares = unsafe { self.group.join(2, off[1], zero, sum) };
        Moments { mean, differences, squares, count }
    }
}

/// Returns the values of a vector, of which a type may have fewer than eight.
#[inline(always)]
fn values_of<T: Number<Value: Real>>(quad: Quad) -> [T::Value; 8] {
    core::array::from_fn(|lane| T::value(T::Word::get(quad, lane % T::Word::COUNT)))
}

/// Sums the first `count` of a vector's values pair by pair, so that few roundings follow each
/// other.
#[inline(always)]
fn sum_of<V: Real>([a, b, c, d, e, f, g, h]: [V; 8], count: usize) -> V {
    match count {
        2 => a + b,
        4 => (a + b) + (c + d),
        _ => ((a + b) + (c + d)) + ((e + f) + (g + h)),
    }
}
