//! The CPU's reference for results: the bits that are moved, and the places where they belong.

use anyhow::Result;
use bytemuck::Pod;
use rayon::prelude::*;
use warpstride::layout::Layout;

use super::{threads, zeroed};

/// Rows and columns of the CPU's tiles: both sides of one stay in its L1 cache at every element
/// width.
const TILE: usize = 32;
/// Elements at least that a host thread takes at a time.
const GRAIN: usize = 4096;
const MEGABYTE: usize = 1 << 20;

/// Runs `work` on the numbered parts of `bytes`, each of `len` bytes but the last, on all threads.
/// A thread takes at least `fewest` parts at a time. The compiler makes this once for all elements,
/// as it does the other functions of this file that take a `dyn Fn`.
fn in_parts(bytes: &mut [u8], len: usize, fewest: usize, work: &(dyn Fn(usize, &mut [u8]) + Sync)) {
    bytes.par_chunks_mut(len).with_min_len(fewest).enumerate().for_each(|(number, part)| work(number, part));
}

/// Bits of fixed sequences (xorshift64*, Vigna 2016), one a megabyte: the same elements on every
/// run, and no two runs of them alike.
pub(super) fn random<T: Pod>(len: usize) -> Result<Vec<T>> {
    threads::start_all()?;
    let mut elements = zeroed::<T>(len)?;
    in_parts(bytemuck::cast_slice_mut(&mut elements), MEGABYTE, 1, &|number, part| {
        // Multiples of an odd number: none is 0, where a sequence would stay.
        let mut state = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for chunk in part.chunks_mut(8) {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            let bits = state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes();
            chunk.copy_from_slice(&bits[..chunk.len()]);
        }
    });
    Ok(elements)
}

/// `elements`, an array of `shape` in C order, with its axes in the order `axes`, in C order again.
pub(super) fn permuted<T: Pod + Send + Sync>(elements: &[T], shape: &[usize], axes: &[usize]) -> Result<Vec<T>> {
    in_c_order(elements, &Layout::row_major(shape)?.permuted_axes(axes)?)
}

/// The view of `elements` that a layout describes, in C order.
///
/// Along the axis that the source has closest together, and along all those behind it in the
/// result, it goes in tiles.
pub(super) fn in_c_order<T: Pod + Send + Sync>(elements: &[T], view: &Layout) -> Result<Vec<T>> {
    threads::start_all()?;
    let mut result = zeroed::<T>(view.len())?;
    if view.is_empty() {
        return Ok(result);
    }
    // The result's axes; those of one index are nowhere.
    let axes = view.shape().iter().zip(view.strides()).map(|(&extent, &stride)| Axis { extent, stride });
    let axes: Vec<Axis> = axes.filter(|axis| axis.extent > 1).collect();
    let first = view.offset() as isize;
    let Some(near) = (0..axes.len()).min_by_key(|&axis| axes[axis].stride.unsigned_abs()) else {
        result.fill(elements[view.offset()]);
        return Ok(result);
    };
    let (outer, near, inner) = (&axes[..near], axes[near], &axes[near + 1..]);
    let row = inner.iter().map(|axis| axis.extent).product::<usize>();
    let rows = (GRAIN / row).max(TILE);
    let long = near.extent * row;
    let (bytes, width) = (bytemuck::cast_slice_mut(&mut result), size_of::<T>());
    // Blocks of a few elements, which arrays of many short axes have, go together.
    in_parts(bytes, long * width, (GRAIN / long).max(1), &|index, block| {
        let block_start = first + start(outer, index);
        let part = |index: usize, part: &mut [u8]| {
            let begin = block_start + (index * rows) as isize * near.stride;
            tiles(elements, [begin, near.stride], inner, bytemuck::cast_slice_mut(part), row);
        };
        if long <= rows * row {
            part(0, block);
        } else {
            in_parts(block, rows * row * width, 1, &part);
        }
    });
    Ok(result)
}

/// `elements`, which are in C order, where a layout has them, between zeros. Its last axis has them
/// one behind the other.
pub(super) fn placed<T: Pod>(elements: Vec<T>, layout: &Layout) -> Result<Vec<T>> {
    let (Some((&row, _)), true) = (layout.shape().split_last(), layout.storage_len() > elements.len()) else {
        return Ok(elements);
    };
    let mut placed = zeroed::<T>(layout.storage_len())?;
    let axes = layout.shape().iter().zip(layout.strides()).map(|(&extent, &stride)| Axis { extent, stride });
    let axes: Vec<Axis> = axes.take(layout.rank() - 1).collect();
    for (index, row) in elements.chunks_exact(row).enumerate() {
        let at = layout.offset() + start(&axes, index) as usize;
        placed[at..at + row.len()].copy_from_slice(row);
    }
    Ok(placed)
}

/// An axis of the result: its indices, and how far apart the source has them.
#[derive(Clone, Copy)]
struct Axis {
    extent: usize,
    stride: isize,
}

/// How far from its first element the source has what the result's C order of `axes` has at
/// `index`.
fn start(axes: &[Axis], mut index: usize) -> isize {
    let mut start = 0;
    for axis in axes.iter().rev() {
        start += (index % axis.extent) as isize * axis.stride;
        index /= axis.extent;
    }
    start
}

/// Fills `rows` of `row` elements each: from `first` a step of `stride` in the source from row to
/// row, `inner` within one.
fn tiles<T: Copy>(source: &[T], [first, stride]: [isize; 2], inner: &[Axis], rows: &mut [T], row: usize) {
    for begin in (0..row).step_by(TILE) {
        let mut starts = [0; TILE];
        let columns = TILE.min(row - begin);
        for (column, at) in starts[..columns].iter_mut().enumerate() {
            *at = first + start(inner, begin + column);
        }
        for (index, row) in rows.chunks_exact_mut(row).enumerate() {
            for (element, &at) in row[begin..].iter_mut().zip(&starts[..columns]) {
                *element = source[(at + index as isize * stride) as usize];
            }
        }
    }
}

/// `elements` with every bit the other way round: what a result holds before it is written, so that
/// whatever a kernel leaves out is seen.
pub(super) fn complement<T: Pod>(elements: &[T]) -> Result<Vec<T>> {
    threads::start_all()?;
    let mut wrong = zeroed::<T>(elements.len())?;
    let (bytes, right) = (bytemuck::cast_slice_mut::<T, u8>(&mut wrong), bytemuck::cast_slice::<T, u8>(elements));
    in_parts(bytes, MEGABYTE, 1, &|number, part| {
        part.iter_mut().zip(&right[number * MEGABYTE..]).for_each(|(byte, right)| *byte = !right);
    });
    Ok(wrong)
}

/// Returns whether `is_right` holds for each of `len` places.
pub(super) fn all(len: usize, is_right: &(dyn Fn(usize) -> bool + Sync)) -> bool {
    (0..len).into_par_iter().all(is_right)
}

/// Says whether elements have equal bytes: a NaN equals itself here.
pub(super) fn are_equal<T: Pod>(some: &[T], others: &[T]) -> bool {
    let [some, others] = [some, others].map(bytemuck::cast_slice::<T, u8>);
    some.par_chunks(MEGABYTE).eq(others.par_chunks(MEGABYTE))
}

/// Returns the sum of `len` terms, in any order.
pub(super) fn sum(len: usize, term: &(dyn Fn(usize) -> f64 + Sync)) -> f64 {
    (0..len).into_par_iter().map(term).sum()
}

/// Returns the first of `len` places, of which there is one at least, by this order.
pub(super) fn first(len: usize, is_before: &(dyn Fn(usize, usize) -> bool + Sync)) -> usize {
    (0..len).into_par_iter().reduce(|| 0, |best, next| if is_before(next, best) { next } else { best })
}

#[cfg(test)]
mod tests;
