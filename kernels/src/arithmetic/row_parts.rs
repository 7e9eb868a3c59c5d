//! Operations on long rows, which several blocks share, each with parts of them.

use crate::abi::{RECORD_BYTES, RowPartsParams, SLOTS, softmax_quads};
use crate::arithmetic::row::{Moments, Row, larger, sum};
use crate::block::group::{Group, Pass, WarpValues};
use crate::thread::number::{EXP_SCALE, Number, Real, Value};
use crate::thread::{self, Global, Shared, Word};

/// The scale of the factor of a part's exponentials. With theirs, no product exceeds 2^124.
const FACTOR_SCALE: f64 = (1_u64 << 60) as f64;

/// The rows that a block shares with others, and its place among them.
struct Parts<'a> {
    params: &'a RowPartsParams,
    group: Group,
    /// The number of the block's team, and the first row that it takes.
    team: u32,
    /// The block's number in it, and its first part of each row. Fewer than 2^32 parts fit in
    /// memory.
    member: u32,
    /// The blocks of a team.
    size: u32,
    /// The parts of a row.
    count: u32,
}

impl<'a> Parts<'a> {
    #[inline(always)]
    fn new(params: &'a RowPartsParams, group: Group) -> Self {
        let size = params.team as u32;
        // The compiler does not know that a team has blocks.
        let team = thread::block_x().checked_div(size).unwrap_or(0);
        Parts { params, group, team, member: thread::block_x() - team * size, size, count: params.parts as u32 }
    }

    /// Returns the row that the team takes at its turn.
    #[inline(always)]
    fn row(&self, turn: u32) -> u64 {
        u64::from(self.team) + u64::from(turn) * self.params.teams
    }

    /// Returns the number of elements of a part.
    #[inline(always)]
    fn len(&self, part: u32) -> u64 {
        let left = self.params.n - u64::from(part) * self.params.part;
        if left < self.params.part { left } else { self.params.part }
    }

    /// Returns a part of a row; one of no elements if there is no such row.
    #[inline(always)]
    fn part<T: Number<Value: Real>>(&self, dst: u64, row: u64, part: u32) -> Row {
        let start = row * self.params.n + u64::from(part) * self.params.part;
        let len = if row < self.params.rows { self.len(part) } else { 0 };
        Row::new::<T>([self.params.src, dst], start, len, self.group)
    }

    /// Joins what this thread's share of the parts has with that of the block's other threads.
    ///
    /// # Safety
    ///
    /// As for [`Group::join`].
    #[inline(always)]
    unsafe fn join<V: Value + Pass>(
        &self,
        round: u32,
        neutral: V,
        mut of_part: impl FnMut(u32) -> V,
        join: impl Fn(V, V) -> V,
    ) -> V {
        let (mut all, mut part) = (neutral, self.group.lane);
        while part < self.count {
            all = join(all, of_part(part));
            part += self.group.size;
        }
        // SAFETY: as the caller promises.
        unsafe { self.group.join(round, all, neutral, join) }
    }

    /// Returns the address of a part's record, from record number `first` on. Fewer than 2^32 fit
    /// in memory beside their parts.
    #[inline(always)]
    fn record(&self, first: u32, part: u32) -> Global {
        Global::new(self.params.scratch).offset(u64::from(first + part) * RECORD_BYTES)
    }

    /// Returns the record that counts the parts that this block's team has published, of all rows.
    /// Behind it are the records of two rows, which take turns: a block may publish its parts of a
    /// row while another one reads those of the row before.
    #[inline(always)]
    fn published(&self) -> u32 {
        self.team * (1 + SLOTS * self.count)
    }

    /// Returns the address of a value of a part's record, for the row of this turn.
    #[inline(always)]
    fn of_turn<V: Number>(&self, turn: u32, part: u32, value: u32) -> Global {
        let first = self.published() + 1 + turn % SLOTS * self.count;
        self.record(first, part).offset(u64::from(value * V::Word::BYTES))
    }

    /// Returns the address of a value of a part's record, where each row has a team of its own.
    #[inline(always)]
    fn of_row<V: Number>(&self, part: u32, value: u32) -> Global {
        self.record(self.team * self.count, part).offset(u64::from(value * V::Word::BYTES))
    }

    /// Publishes the values of a part.
    ///
    /// # Safety
    ///
    /// One thread calls it, and its block has waited for the turn before.
    #[inline(always)]
    unsafe fn publish<V: Value>(&self, turn: u32, part: u32, values: [V; 2]) {
        // SAFETY: the scratch has the record. No block reads it before the count; and each has read
        // what it held of the turn before the last before it published its parts of the last one.
        unsafe { V::word(values[0]).store_global(self.of_turn::<V>(turn, part, 0)) };
        // SAFETY: as above.
        unsafe { V::word(values[1]).store_global(self.of_turn::<V>(turn, part, 1)) };
        // SAFETY: the count is only added to and read.
        unsafe { thread::add_release(self.record(self.published(), 0), 1) };
    }

    /// Waits until the team has published all parts of its rows up to this turn.
    ///
    /// # Safety
    ///
    /// Every thread of the block calls it together, and all blocks of the grid run at once.
    #[inline(always)]
    unsafe fn wait(&self, turn: u32) {
        if self.group.lane == 0 {
            let all = u64::from(turn + 1) * u64::from(self.count);
            // SAFETY: the scratch has the count, which is only added to and read.
            while unsafe { thread::load_acquire(self.record(self.published(), 0)) } < all {}
        }
        // SAFETY: as the caller promises.
        unsafe { thread::barrier() };
    }

    /// Reads a value of a part's record.
    ///
    /// # Safety
    ///
    /// The block has waited for this turn, and has published nothing of the next one: so no block
    /// writes the record.
    #[inline(always)]
    unsafe fn read<V: Value>(&self, turn: u32, part: u32, value: u32) -> V {
        // SAFETY: as the caller promises.
        V::value(unsafe { V::Word::load_global(self.of_turn::<V>(turn, part, value)) })
    }
}

/// Computes `e^(x - greatest) / sum of these` for each row.
///
/// The exponentials of a part are relative to its greatest element, and its record has that and
/// their sum (Milakov and Gimelshein 2018). So a row is read once, as far as the threads of all
/// blocks can hold it.
///
/// # Safety
///
/// See [`RowPartsParams`]: the rows of both sides are allocated and aligned to an element, and no
/// other work accesses those of the destination; all blocks of the grid run at once, and the counts
/// of published parts are 0.
#[inline(always)]
pub unsafe fn softmax_parts<T: Number<Value: Real + Pass>>(params: RowPartsParams) {
    let group = Group::new(thread::block_width(), Shared::reserve::<WarpValues<T::Value>>());
    let parts = Parts::new(&params, group);
    // No number differs from minus infinity.
    let shift = |most| if most > T::Value::LEAST { most } else { T::Value::ZERO };
    let (mut turn, steps) = (0, softmax_quads(T::Word::BYTES) as usize);
    while parts.row(turn) < params.rows {
        let (mut part, mut all) = (parts.member, None);
        loop {
            let row = parts.part::<T>(params.dst, parts.row(turn), part);
            // SAFETY: a block holds a part; every thread of it gets here.
            let (values, single, most, total) = unsafe { row.exponentials::<T>(steps, shift) };
            let (greatest, total) = match all {
                Some(all) => all,
                None => {
                    if group.lane == 0 {
                        // SAFETY: one thread of the part's block gets here.
                        unsafe { parts.publish(turn, part, [most, total]) };
                    }
                    let next = part + parts.size;
                    if next < parts.count {
                        part = next;
                        continue;
                    }
                    // The block's next part, while this one waits: if it has one part of each row.
                    if part < parts.size && parts.row(turn + 1) < params.rows {
                        // SAFETY: the same part of a row of the source.
                        unsafe { row.prefetch::<T::Word>(params.teams * params.n) };
                    }
                    // SAFETY: every thread of the block gets here; the caller promises the rest.
                    unsafe { parts.wait(turn) };
                    // SAFETY: every thread of the block gets here, and has waited for the turn.
                    *all.insert(unsafe { sum_of_parts::<T::Value>(&parts, turn) })
                }
            };
            // Scaled, so that neither it nor a product is denormal before the last one.
            let factor = scaled(most, greatest) / (total * T::Value::of(1.0 / FACTOR_SCALE));
            let unscale = T::Value::of(1.0 / (EXP_SCALE * FACTOR_SCALE));
            // SAFETY: the block holds the part, which is its own.
            unsafe { row.store::<T>(steps, &values, single, params.aligned != 0, |value| value * factor * unscale) };
            if part < parts.size {
                break;
            }
            // A block of several parts reads all but the last again.
            part -= parts.size;
        }
        turn += 1;
    }
}

/// Returns the greatest element of a row, and the sum of `e^(x - greatest)` of all, still scaled.
///
/// # Safety
///
/// Every thread of the block calls it together, and has waited for the turn.
#[inline(always)]
unsafe fn sum_of_parts<V: Real + Pass>(parts: &Parts<'_>, turn: u32) -> (V, V) {
    // SAFETY: as the caller promises.
    let most = |part| unsafe { parts.read::<V>(turn, part, 0) };
    // SAFETY: as the caller promises.
    let total = |part| unsafe { parts.read::<V>(turn, part, 1) };
    // SAFETY: every thread of the block gets here.
    let greatest = unsafe { parts.join(0, V::LEAST, most, larger) };
    let scaled_total = |part| total(part) * (scaled(most(part), greatest) * V::of(1.0 / EXP_SCALE));
    // SAFETY: every thread of the block gets here.
    (greatest, unsafe { parts.join(1, V::ZERO, scaled_total, sum) })
}

/// Returns `e^(most - greatest)`, scaled: 0 for a part whose elements are all minus infinity.
#[inline(always)]
fn scaled<V: Real>(most: V, greatest: V) -> V {
    if most > V::LEAST { (most - greatest).scaled_exp() } else { V::ZERO }
}

/// Computes the moments of parts of rows: a block a part, in the order of the parts. Each record
/// has three values: see [`Moments`].
///
/// # Safety
///
/// See [`RowPartsParams`]: the rows are allocated and aligned to an element, and no work writes
/// them; there is a record for each part, which no other work accesses.
#[inline(always)]
pub unsafe fn moments_of_parts<T: Number<Value: Real + Pass>>(params: RowPartsParams) {
    let group = Group::new(thread::block_width(), Shared::reserve::<WarpValues<T::Value>>());
    let parts = Parts::new(&params, group);
    // A row has no destination, and so whole vectors wherever it starts.
    let row = parts.part::<T>(params.src, u64::from(parts.team), parts.member);
    // SAFETY: a block holds a part; every thread of it gets here.
    let moments = unsafe { row.moments::<T>(T::Value::of(f64::from(row.len))) };
    if group.lane == 0 {
        let values = [moments.mean, moments.differences, moments.squares];
        crate::unrolled!(value < 3 <= 4 => {
            let at = parts.of_row::<T::Value>(parts.member, value as u32);
            // SAFETY: this block's record.
            unsafe { T::Value::word(values[value]).store_global(at) };
        });
    }
}

/// Computes the mean of each row, and the mean of the squared differences of its elements from it:
/// a block a row. The moments of its parts become moments about the row's mean, as Chan, Golub and
/// LeVeque (1983) join samples.
///
/// # Safety
///
/// See [`RowPartsParams`]: there is a record for each part, which no work writes, and memory for
/// two results a row, which no other work accesses.
#[inline(always)]
pub unsafe fn join_moments<V: Real + Pass>(params: RowPartsParams) {
    let group = Group::new(thread::block_width(), Shared::reserve::<WarpValues<V>>());
    let params = RowPartsParams { team: 1, ..params };
    let parts = Parts::new(&params, group);
    // SAFETY: a part's record, which no work writes.
    let read = |part, value| V::value(unsafe { V::Word::load_global(parts.of_row::<V>(part, value)) });
    let (zero, count) = (V::ZERO, V::of(params.n as f64));
    let len = |part| V::of(parts.len(part) as f64);
    // SAFETY: every thread of the block gets here.
    let mean = unsafe { parts.join(0, zero, |part| read(part, 0) * len(part), sum) } / count;
    let off = |part| read(part, 0) - mean;
    // SAFETY: every thread of the block gets here.
    let differences = unsafe { parts.join(1, zero, |part| read(part, 1) + off(part) * len(part), sum) };
    let square = |part| {
        let (off, differences) = (off(part), read(part, 1));
        read(part, 2) + off * (differences + differences + off * len(part))
    };
    // SAFETY: every thread of the block gets here.
    let squares = unsafe { parts.join(2, zero, square, sum) };
    if group.lane == 0 {
        let moments = Moments { mean, differences, squares, count };
        // SAFETY: the row's own results.
        unsafe { moments.store([params.dst, params.variances], u64::from(parts.team)) };
    }
}
