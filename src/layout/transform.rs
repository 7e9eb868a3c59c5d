//! Operations that make a view from a view.

use std::fmt;
use std::ops::{Bound, RangeBounds};

use super::{Layout, MAX_RANK};
use crate::error::{Error, Result, counted, require};

/// A range in Rust's notation: `2..5`, `..=3`.
struct Written<'a, R>(&'a R);

impl<R: RangeBounds<usize>> fmt::Display for Written<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.start_bound() {
            Bound::Included(start) => write!(f, "{start}..")?,
            // Rust has no notation for an excluded start, but whole numbers allow the next one.
            Bound::Excluded(before) => write!(f, "{}..", u128::try_from(*before).unwrap_or_default() + 1)?,
            Bound::Unbounded => f.write_str("..")?,
        }
        match self.0.end_bound() {
            Bound::Included(last) => write!(f, "={last}"),
            Bound::Excluded(end) => write!(f, "{end}"),
            Bound::Unbounded => Ok(()),
        }
    }
}

impl Layout {
    /// Reorders the axes: axis `i` of the result is axis `axes[i]` of this layout. Torch and NumPy:
    /// `permute`, `transpose`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` unless `axes` names each axis once.
    pub fn permuted_axes(self, axes: &[usize]) -> Result<Self> {
        // The caller's layout stays as it is: with `mut self` permuted in place and inlined into a
        // caller that uses its layout again, Rust 1.95 permuted the caller's own, twice.
        if !self.names_each_once(axes) {
            return Err(self.not_each_once(axes));
        }
        let mut permuted = self;
        for (to, &from) in axes.iter().enumerate() {
            permuted.shape[to] = self.shape[from];
            permuted.strides[to] = self.strides[from];
        }
        Ok(permuted)
    }

    /// Returns whether `axes` names each axis exactly once.
    fn names_each_once(&self, axes: &[usize]) -> bool {
        let mut seen = 0_u32;
        for &axis in axes.iter().filter(|&&axis| axis < self.rank) {
            seen |= 1 << axis;
        }
        axes.len() == self.rank && seen == (1 << self.rank) - 1
    }

    #[cold]
    fn not_each_once(&self, axes: &[usize]) -> Error {
        Error::argument(format!(
            "axes {axes:?} do not name each of the {} of shape {:?} once; give a permutation of the numbers below {}",
            counted(self.rank, "axis"),
            self.shape(),
            self.rank
        ))
    }

    /// Reverses the order of the axes; for a matrix, this is its transpose.
    #[must_use]
    pub fn t(mut self) -> Self {
        self.shape[..self.rank].reverse();
        self.strides[..self.rank].reverse();
        self
    }

    /// Selects part of an axis: the indices in `range`, every `|step|`-th of them. A negative step
    /// walks the range from its last index to its first, so `slice(0, .., -1)` is a reversal and
    /// `slice(0, 0..5, -2)` has indices 4, 2, 0.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for an axis that does not exist, a step of 0, or a range that is not
    /// within the axis.
    pub fn slice(mut self, axis: usize, range: impl RangeBounds<usize>, step: isize) -> Result<Self> {
        self.check_axis(axis)?;
        require!(step != 0, InvalidArgument, "a step of 0 was given for axis {axis}; give 1 for every index");
        let extent = self.shape[axis];
        let start = match range.start_bound() {
            Bound::Included(&start) => Some(start),
            Bound::Excluded(&before) => before.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.checked_add(1),
            Bound::Excluded(&end) => Some(end),
            Bound::Unbounded => Some(extent),
        };
        let (start, end) = match (start, end) {
            (Some(start), Some(end)) if start <= end && end <= extent => (start, end),
            _ => {
                return Err(Error::argument(format!(
                    "range {} is not within axis {axis} of shape {:?}, which has {}",
                    Written(&range),
                    self.shape(),
                    counted(extent, "index")
                )));
            }
        };
        let count = (end - start).div_ceil(step.unsigned_abs());
        self.shape[axis] = count;
        if count > 0 {
            self.advance(axis, if step > 0 { start } else { end - 1 });
        }
        if count > 1 {
            // The stride of an axis with one index has no effect, and might overflow here.
            self.strides[axis] *= step;
        }
        Ok(self)
    }

    /// Reverses one axis. Torch and NumPy: `flip`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for an axis that does not exist.
    pub fn reverse(self, axis: usize) -> Result<Self> {
        self.slice(axis, .., -1)
    }

    /// Repeats the array to `shape` under NumPy's rule: axes are matched from the last, an axis
    /// with one index repeats, and new axes come in front. Torch: `expand`. The result overlaps
    /// itself, so it can be read but not written.
    ///
    /// # Errors
    ///
    /// `Layout` if the shapes are incompatible or the number of elements overflows;
    /// `InvalidArgument` for more than [`MAX_RANK`] axes.
    pub fn broadcast(self, shape: &[usize]) -> Result<Self> {
        let mut wide = Self::of_shape(shape)?;
        let fits = shape.len() >= self.rank
            && self.shape().iter().rev().zip(shape.iter().rev()).all(|(&own, &wanted)| own == wanted || own == 1);
        if !fits {
            return Err(Error::layout(format!(
                "shape {:?} cannot be broadcast to {shape:?}: matched from the last axis, extents must be equal or 1",
                self.shape()
            )));
        }
        let new_axes = shape.len() - self.rank;
        for axis in 0..self.rank {
            let repeated = self.shape[axis] != shape[new_axes + axis];
            wide.strides[new_axes + axis] = if repeated { 0 } else { self.strides[axis] };
        }
        wide.offset = self.offset;
        wide.storage_len = self.storage_len;
        Ok(wide)
    }

    /// Splits one axis into the indices before `mid` and those from `mid` on. The two parts share
    /// no element unless this layout overlaps itself.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for an axis that does not exist, or `mid` beyond its extent.
    pub fn split_at(self, axis: usize, mid: usize) -> Result<(Self, Self)> {
        Ok((self.slice(axis, ..mid, 1)?, self.slice(axis, mid.., 1)?))
    }

    /// Selects one index of an axis and removes that axis. Torch: `select`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for an axis or an index that does not exist.
    pub fn index_axis(mut self, axis: usize, index: usize) -> Result<Self> {
        self.check_axis(axis)?;
        if index >= self.shape[axis] {
            return Err(Error::argument(format!(
                "index {index} was given for axis {axis} of shape {:?}, which has {}; give one below {}",
                self.shape(),
                counted(self.shape[axis], "index"),
                self.shape[axis]
            )));
        }
        self.advance(axis, index);
        self.drop_axis(axis);
        Ok(self)
    }

    /// Inserts a new axis with one index before axis `axis`, or after the last axis if `axis` is
    /// the rank. Torch: `unsqueeze`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if `axis` is greater than the rank, or if the rank is already
    /// [`MAX_RANK`].
    pub fn insert_axis(mut self, axis: usize) -> Result<Self> {
        if axis > self.rank || self.rank == MAX_RANK {
            return Err(Error::argument(format!(
                "an axis cannot be inserted at {axis} in shape {:?}: places are 0 to {}, and at most {MAX_RANK} axes are \
                 supported",
                self.shape(),
                self.rank
            )));
        }
        self.shape.copy_within(axis..MAX_RANK - 1, axis + 1);
        self.strides.copy_within(axis..MAX_RANK - 1, axis + 1);
        self.shape[axis] = 1;
        self.strides[axis] = 0;
        self.rank += 1;
        Ok(self)
    }

    /// Removes an axis with one index. Torch: `squeeze`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for an axis that does not exist or whose extent is not 1.
    pub fn remove_axis(mut self, axis: usize) -> Result<Self> {
        self.check_axis(axis)?;
        if self.shape[axis] != 1 {
            return Err(Error::argument(format!(
                "axis {axis} of shape {:?} has {}; only an axis with one index can be removed (index_axis selects one of several)",
                self.shape(),
                counted(self.shape[axis], "index")
            )));
        }
        self.drop_axis(axis);
        Ok(self)
    }

    /// Selects the elements whose indices on axes `a` and `b` are equal. They form a last axis,
    /// which replaces both. NumPy: `diagonal`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` unless `a` and `b` are two different axes.
    pub fn diagonal(mut self, a: usize, b: usize) -> Result<Self> {
        self.check_axis(a)?;
        self.check_axis(b)?;
        require!(
            a != b,
            InvalidArgument,
            "the diagonal of axis {a} with itself was requested; name two different axes"
        );
        let extent = self.shape[a].min(self.shape[b]);
        // If at most one index is left, the stride has no effect, and the sum might overflow.
        let stride = if extent > 1 { self.strides[a] + self.strides[b] } else { 0 };
        self.drop_axis(a.max(b));
        self.drop_axis(a.min(b));
        self.shape[self.rank] = extent;
        self.strides[self.rank] = stride;
        self.rank += 1;
        Ok(self)
    }

    /// Merges two axes into one, at the place of `inner`: index `o * extent(inner) + i` stands for
    /// `o` on `outer` and `i` on `inner`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` unless `outer` and `inner` are two different axes; `Layout` if a step
    /// along `outer` is not as long as the whole of `inner`, so that no single stride walks both.
    pub fn merge_axes(mut self, outer: usize, inner: usize) -> Result<Self> {
        self.check_axis(outer)?;
        self.check_axis(inner)?;
        require!(outer != inner, InvalidArgument, "axis {outer} cannot be merged with itself; name two different axes");
        let Some((extent, stride)) = merged(self.axis(outer), self.axis(inner)) else {
            return Err(Error::layout(format!(
                "axes {outer} and {inner} of {} cannot be merged: a step along axis {outer} is not the whole of axis \
                 {inner}; copy to a contiguous array first",
                self.described()
            )));
        };
        self.shape[inner] = extent;
        self.strides[inner] = stride;
        self.drop_axis(outer);
        Ok(self)
    }

    /// Splits one axis into several in its place, of which the last varies fastest. Torch:
    /// `unflatten`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for an axis that does not exist or more than [`MAX_RANK`] axes; `Layout`
    /// if the product of `extents` is not the axis's extent.
    pub fn split_axis(self, axis: usize, extents: &[usize]) -> Result<Self> {
        self.check_axis(axis)?;
        let (extent, stride) = self.axis(axis);
        let rank = self.rank - 1 + extents.len();
        if rank > MAX_RANK {
            return Err(Error::argument(format!(
                "splitting axis {axis} of shape {:?} into {extents:?} makes {rank}; at most {MAX_RANK} are supported",
                self.shape(),
                rank = counted(rank, "axis")
            )));
        }
        let mut shape = [1; MAX_RANK];
        shape[..axis].copy_from_slice(&self.shape[..axis]);
        shape[axis..axis + extents.len()].copy_from_slice(extents);
        shape[axis + extents.len()..rank].copy_from_slice(&self.shape[axis + 1..self.rank]);
        let mut split = Self::of_shape(&shape[..rank])?;
        if extents.iter().product::<usize>() != extent {
            return Err(Error::layout(format!(
                "axis {axis} of shape {:?} has {extent} and cannot be split into {extents:?}, whose product is \
                 another",
                self.shape(),
                extent = counted(extent, "index")
            )));
        }
        split.strides[..axis].copy_from_slice(&self.strides[..axis]);
        split.strides[axis + extents.len()..rank].copy_from_slice(&self.strides[axis + 1..self.rank]);
        // An empty axis has no walk that could bound the new strides (invariant 3), so they are 0.
        let (mut left, mut step) = (extent, if extent == 0 { 0 } else { stride });
        for new in (axis..axis + extents.len()).rev() {
            split.strides[new] = step;
            left /= shape[new].max(1);
            if left > 1 {
                // Otherwise all further extents are 1. Their strides have no effect, and the
                // product might overflow.
                step *= shape[new] as isize;
            }
        }
        split.offset = self.offset;
        split.storage_len = self.storage_len;
        Ok(split)
    }

    /// Reduces the number of axes as far as possible, with the same elements in the same order. It
    /// drops axes with one index, and merges each axis with the next if one stride walks both. An
    /// array in C order becomes one axis.
    #[must_use]
    pub fn coalesced(mut self) -> Self {
        let mut axis = self.rank;
        while axis > 0 {
            axis -= 1;
            if self.shape[axis] == 1 {
                self.drop_axis(axis);
            } else if axis + 1 < self.rank
                && let Some((extent, stride)) = merged(self.axis(axis), self.axis(axis + 1))
            {
                self.shape[axis] = extent;
                self.strides[axis] = stride;
                self.drop_axis(axis + 1);
            }
        }
        self
    }

    pub(super) fn axis(&self, axis: usize) -> (usize, isize) {
        (self.shape[axis], self.strides[axis])
    }

    /// Moves the origin to an existing index of `axis`. An empty array keeps its offset, because it
    /// reaches nothing and invariant 4 would no longer hold.
    fn advance(&mut self, axis: usize, index: usize) {
        if !self.is_empty() {
            // Invariants 3 and 4.
            self.offset = self.offset.wrapping_add_signed(self.strides[axis] * index as isize);
        }
    }

    fn drop_axis(&mut self, axis: usize) {
        self.shape.copy_within(axis + 1.., axis);
        self.strides.copy_within(axis + 1.., axis);
        self.shape[MAX_RANK - 1] = 1;
        self.strides[MAX_RANK - 1] = 0;
        self.rank -= 1;
    }
}

/// Merges two axes into one, if one stride walks both.
fn merged(outer: (usize, isize), inner: (usize, isize)) -> Option<(usize, isize)> {
    let extent = outer.0 * inner.0; // Invariant 2.
    match (outer.0, inner.0) {
        (_, 1) => Some((extent, outer.1)),
        (0 | 1, _) | (_, 0) => Some((extent, inner.1)),
        _ => (inner.1.checked_mul(inner.0 as isize) == Some(outer.1)).then_some((extent, inner.1)),
    }
}
