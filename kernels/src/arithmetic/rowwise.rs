//! Operations that need a whole row before they compute any of its results, with a group of threads
//! for each row.

use crate::abi::{RowwiseParams, softmax_quads};
use crate::arithmetic::row::Row;
use crate::block::group::{Group, Pass, WarpValues};
use crate::thread::number::{Number, Real};
use crate::thread::{Shared, Word};

/// Computes `e^(x - greatest) / sum of these` for each row.
///
/// # Safety
///
/// See [`RowwiseParams`]: the rows of both sides are allocated and aligned to an element, and no
/// other work accesses those of the destination.
#[inline(always)]
pub unsafe fn softmax<T: Number<Value: Real + Pass>>(params: RowwiseParams) {
    let group = Group::new(params.group as u32, Shared::reserve::<WarpValues<T::Value>>());
    let (row, steps) = (Row::of_group::<T>(&params, group), softmax_quads(T::Word::BYTES) as usize);
    // The exponentials of halves take as long as their loads, which therefore begin before.
    if T::Word::BYTES == 2 && Row::number(group) + params.ahead < params.rows {
        // SAFETY: a row of the source.
        unsafe { row.prefetch::<T::Word>(params.ahead * params.n) };
    }
    // Elements that are all minus infinity become NaN. SAFETY: as the caller promises; every thread
    // of the block gets here.
    let (values, single, _, total) = unsafe { row.exponentials::<T>(steps, |most| most) };
    let factor = T::Value::ONE / total;
    // SAFETY: as the caller promises.
    unsafe { row.store::<T>(steps, &values, single, params.aligned != 0, |value| value * factor) };
}

/// Computes the mean of each row, and the mean of the squared differences of its elements from it.
///
/// # Safety
///
/// See [`RowwiseParams`]: the rows are allocated and aligned to an element, and no work writes
/// them; there is memory for two results a row, which no other work accesses.
#[inline(always)]
pub unsafe fn mean_variance<T: Number<Value: Real + Pass>>(params: RowwiseParams) {
    let group = Group::new(params.group as u32, Shared::reserve::<WarpValues<T::Value>>());
    let means = params.dst;
    // A row has no destination, and so whole vectors wherever it starts.
    let params = RowwiseParams { dst: params.src, ..params };
    let row = Row::of_group::<T>(&params, group);
    // SAFETY: as the caller promises; every thread of the block gets here.
    let moments = unsafe { row.moments::<T>(T::Value::of(params.n as f64)) };
    if row.len > 0 && group.lane == 0 {
        // SAFETY: the row's own results.
        unsafe { moments.store([means, params.variances], Row::number(group)) };
    }
}
