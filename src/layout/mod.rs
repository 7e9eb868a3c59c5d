//! The positions of an array's elements in their storage: shape, signed strides and an offset, with
//! the algebra of views.
//!
//! A [`Layout`] is plain data. Every operation is O(1) in the number of elements, consumes the
//! layout and returns another; none allocates. The names follow ndarray; where torch uses another
//! name, the documentation gives that too.
//!
//! The invariants follow ndarray's constraints on `ArrayBase`. They are checked when a layout is
//! made from parts, and every operation preserves them. The code refers to them by number:
//!
//! 1. The rank is at most [`MAX_RANK`]. Beyond the rank, extents are 1 and strides 0, so that
//!    layouts with equal parts are equal.
//! 2. The product of the nonzero extents is at most `isize::MAX`: neither the length nor the
//!    product of some of the extents overflows.
//! 3. No stride is `isize::MIN`, and the sum of `|stride| * (extent - 1)` over the axes with at
//!    least two elements is at most `isize::MAX`: no walk within the array overflows.
//! 4. The storage has at most `isize::MAX` elements, and `offset` is at most its length. Unless the
//!    array is empty, every offset that an index reaches is less than the length of the storage.
//!
//! Two indices may reach the same element (a broadcast axis has stride 0). Such layouts may be read
//! but not written; [`Layout::overlaps_itself`] detects them.
//!
//! ```
//! use warpstride::layout::Layout;
//!
//! let matrix = Layout::row_major(&[4, 6])?;
//! assert_eq!(matrix.t().strides(), [1, 6]);
//! let part = matrix.slice(0, 1..3, 1)?.slice(1, .., -2)?;
//! assert_eq!((part.shape(), part.strides(), part.offset()), (&[2, 3][..], &[6, -2][..], 11));
//! # Ok::<(), warpstride::Error>(())
//! ```

#![forbid(unsafe_code)]

mod axes;
mod reshape;
mod transform;
pub(crate) mod walk;

pub use axes::Axes;
#[doc(hidden)]
pub use axes::fewer_axes;
pub use reshape::Reshape;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use crate::error::{Error, Result, counted, require};

/// The largest number of axes of a layout.
pub const MAX_RANK: usize = 16;

/// Shape, strides and offset of an array in its storage. Everything counts elements, not bytes.
#[derive(Clone, Copy)]
pub struct Layout {
    rank: usize,
    shape: [usize; MAX_RANK],
    strides: [isize; MAX_RANK],
    offset: usize,
    storage_len: usize,
}

// A layout of few axes compares few numbers.
impl PartialEq for Layout {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
            && self.offset == other.offset
            && self.storage_len == other.storage_len
            && self.axes().eq(other.axes())
    }
}

impl Eq for Layout {}

impl Hash for Layout {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.shape(), self.strides(), self.offset, self.storage_len).hash(state);
    }
}

impl Layout {
    /// Makes a layout in C order: the last axis varies fastest. The offset is 0, and the storage
    /// has exactly the array's length.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for more than [`MAX_RANK`] axes; `Layout` if the number of elements
    /// overflows.
    #[inline]
    pub fn row_major(shape: &[usize]) -> Result<Self> {
        let len = Self::len_of(shape)?;
        Ok(Self::c_order(shape, len))
    }

    /// Makes the layout in C order of a shape whose length [`Layout::len_of`] returned. A launch in
    /// a loop makes two views each time, and what may fail costs a copy of the layout.
    #[inline]
    pub(crate) fn c_order(shape: &[usize], len: usize) -> Self {
        let mut layout = Self::with_len(shape, len);
        layout.stride_in_c_order();
        layout
    }

    /// The layout in C order of the same shape.
    #[inline]
    pub(crate) fn in_c_order(&self) -> Self {
        let mut layout =
            Self { rank: self.rank, shape: self.shape, strides: [0; MAX_RANK], offset: 0, storage_len: self.len() };
        layout.stride_in_c_order();
        layout
    }

    #[inline]
    fn stride_in_c_order(&mut self) {
        let mut step = 1;
        for (stride, &extent) in self.strides[..self.rank].iter_mut().zip(&self.shape[..self.rank]).rev() {
            *stride = step;
            // Invariant 2: the product fits.
            step *= extent.max(1) as isize;
        }
    }

    /// Makes a layout in Fortran order: the first axis varies fastest. The offset is 0, and the
    /// storage has exactly the array's length.
    ///
    /// # Errors
    ///
    /// Those of [`Layout::row_major`].
    pub fn column_major(shape: &[usize]) -> Result<Self> {
        let mut layout = Self::of_shape(shape)?;
        let mut step = 1;
        for axis in 0..layout.rank {
            layout.strides[axis] = step;
            step *= layout.shape[axis].max(1) as isize;
        }
        Ok(layout)
    }

    /// Makes a layout from its parts, in a storage of `len` elements. `offset` is the position of
    /// index `[0, 0, ...]`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for more than [`MAX_RANK`] axes, or if the numbers of strides and axes
    /// differ; `Layout` if a number of elements overflows, or if an index reaches beyond the
    /// storage.
    pub fn new(shape: &[usize], strides: &[isize], offset: usize, len: usize) -> Result<Self> {
        let mut layout = Self::of_shape(shape)?;
        if strides.len() != shape.len() {
            return Err(Error::argument(format!(
                "shape {shape:?} of {} was given with {}; give one stride per axis",
                counted(shape.len(), "axis"),
                counted(strides.len(), "stride")
            )));
        }
        layout.strides[..strides.len()].copy_from_slice(strides);
        layout.offset = offset;
        layout.storage_len = len;
        layout.check_reach()?;
        Ok(layout)
    }

    /// Checks invariants 1 and 2, as [`Layout::len_of`] does, and makes [`Layout::with_len`].
    #[inline]
    fn of_shape(shape: &[usize]) -> Result<Self> {
        let len = Self::len_of(shape)?;
        Ok(Self::with_len(shape, len))
    }

    /// Returns the length of a shape that fulfils invariants 1 and 2.
    #[inline]
    pub(crate) fn len_of(shape: &[usize]) -> Result<usize> {
        if shape.len() > MAX_RANK {
            return Err(too_many_axes(shape));
        }
        let (mut product, mut has_none) = (1usize, false);
        for &extent in shape {
            has_none |= extent == 0;
            product = product.checked_mul(extent.max(1)).ok_or_else(|| too_many_elements(shape))?;
        }
        if product > isize::MAX as usize {
            return Err(too_many_elements(shape));
        }
        Ok(if has_none { 0 } else { product })
    }

    /// Makes a layout of this shape, whose strides and offset are 0, in a storage of its length.
    #[inline]
    fn with_len(shape: &[usize], len: usize) -> Self {
        let mut layout =
            Self { rank: shape.len(), shape: [1; MAX_RANK], strides: [0; MAX_RANK], offset: 0, storage_len: len };
        layout.shape[..shape.len()].copy_from_slice(shape);
        layout
    }

    /// Checks invariants 3 and 4.
    fn check_reach(&self) -> Result<()> {
        let too_far = || {
            let most = isize::MAX;
            Error::layout(format!(
                "{} spans more elements than can be counted ({most}); use shorter strides or extents",
                self.described()
            ))
        };
        let (mut below, mut above) = (0usize, 0usize);
        for (&extent, &stride) in self.shape().iter().zip(self.strides()) {
            let side = if stride < 0 { &mut below } else { &mut above };
            let walk = stride.unsigned_abs().checked_mul(extent.saturating_sub(1));
            match walk.and_then(|walk| side.checked_add(walk)) {
                Some(sum) if stride != isize::MIN => *side = sum,
                _ => return Err(too_far()),
            }
        }
        if below.checked_add(above).is_none_or(|span| span > isize::MAX as usize) {
            return Err(too_far());
        }
        if self.storage_len > isize::MAX as usize || self.offset > self.storage_len {
            return Err(Error::layout(format!(
                "offset {} lies beyond a storage of {} (of at most {}); give an offset within the storage",
                self.offset,
                counted(self.storage_len, "element"),
                isize::MAX
            )));
        }
        // Both sums are at most isize::MAX by now, and so is the offset: no overflow.
        if !self.is_empty() && (below > self.offset || self.offset + above >= self.storage_len) {
            return Err(Error::layout(format!(
                "{} from offset {} reaches offsets {} to {} of a storage of {}; make the storage larger or the view \
                 smaller",
                self.described(),
                self.offset,
                self.offset as i128 - below as i128,
                self.offset + above,
                counted(self.storage_len, "element")
            )));
        }
        Ok(())
    }

    /// Elements along each axis.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        &self.shape[..self.rank]
    }

    /// Elements of storage from one index to the next along each axis: negative if the axis runs
    /// backwards, 0 if it is broadcast.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        &self.strides[..self.rank]
    }

    fn axes(&self) -> impl Iterator<Item = (usize, isize)> {
        self.shape().iter().copied().zip(self.strides().iter().copied())
    }

    /// Number of axes.
    #[inline]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The position of index `[0, 0, ...]` in the storage.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Number of elements: the product of the extents, 1 at rank 0.
    #[inline]
    pub fn len(&self) -> usize {
        self.shape().iter().product()
    }

    /// Returns whether some extent is 0.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.shape().contains(&0)
    }

    /// The number of elements of the storage that the layout was made for.
    #[inline]
    pub fn storage_len(&self) -> usize {
        self.storage_len
    }

    /// The range of offsets from the least to the greatest that an index reaches. Not every offset
    /// in between need be reached. The range is empty for an empty array.
    pub fn storage_range(&self) -> Range<usize> {
        if self.is_empty() {
            return self.offset..self.offset;
        }
        let (mut least, mut greatest) = (self.offset, self.offset);
        for (&extent, &stride) in self.shape().iter().zip(self.strides()) {
            let walk = stride.unsigned_abs() * (extent - 1);
            if stride < 0 {
                least -= walk;
            } else {
                greatest += walk;
            }
        }
        least..greatest + 1
    }

    /// The position of an index in the storage; `None` if the index is outside the array.
    pub fn offset_of(&self, index: &[usize]) -> Option<usize> {
        if index.len() != self.rank {
            return None;
        }
        let mut walk = 0;
        for (axis, &at) in index.iter().enumerate() {
            if at >= self.shape[axis] {
                return None;
            }
            // Invariants 3 and 4: no partial sum overflows and the last one is an offset in the
            // storage.
            walk += at as isize * self.strides[axis];
        }
        self.offset.checked_add_signed(walk)
    }

    /// Returns whether the elements lie side by side in C order; true for an empty array. Torch:
    /// `is_contiguous`.
    pub fn is_standard_layout(&self) -> bool {
        let axes = (0..self.rank).rev();
        self.is_empty() || self.is_packed(axes)
    }

    /// Returns whether the elements fill [`Layout::storage_range`], each offset once, in any order
    /// of axes and directions; true for an empty array. Torch: `is_non_overlapping_and_dense`.
    pub fn is_contiguous(&self) -> bool {
        self.is_empty() || (!self.overlaps_itself() && self.storage_range().len() == self.len())
    }

    /// Returns whether the axes, fastest first, follow one another without gaps.
    fn is_packed(&self, axes: impl Iterator<Item = usize>) -> bool {
        let mut expected = 1;
        for axis in axes.filter(|&axis| self.shape[axis] != 1) {
            if self.strides[axis] != expected {
                return false;
            }
            expected *= self.shape[axis] as isize;
        }
        true
    }

    /// Fails if writes through this layout might meet, as [`Layout::overlaps_itself`] finds.
    pub(crate) fn check_writable(&self) -> Result<()> {
        require!(
            !self.overlaps_itself(),
            Layout,
            "{} may reach an element twice and cannot be written to; use strides that step over each other",
            self.described()
        );
        Ok(())
    }

    /// Fails if the storage is longer than the `len` elements of a holder. With invariant 4, a
    /// holder as long as the storage has every element.
    pub(crate) fn check_storage(&self, holder: &str, len: usize) -> Result<()> {
        require!(
            self.storage_len <= len,
            Layout,
            "the layout is of a storage of {} and the {holder} has {len}; make the layout for a storage of the {holder}'s \
             length",
            counted(self.storage_len, "element")
        );
        Ok(())
    }

    /// Returns the shape and the strides, for errors.
    pub(crate) fn described(&self) -> String {
        format!("shape {:?} with strides {:?}", self.shape(), self.strides())
    }

    /// Returns whether two indices may reach the same element, so that nothing may be written
    /// through this layout.
    ///
    /// The test is conservative. It returns `false` only if, from the shortest stride to the
    /// longest, each stride exceeds the whole reach of the shorter ones. That is exact for every
    /// layout made from a contiguous one by this module's operations. Strides made by hand, such as
    /// `[2, 3]` with shape `[2, 2]`, may count as overlapping although they do not overlap.
    pub fn overlaps_itself(&self) -> bool {
        // Most destinations are in C order, and need no sorting.
        if self.is_standard_layout() {
            return false;
        }
        let mut axes = [(0usize, 0usize); MAX_RANK];
        let mut count = 0;
        for (&extent, stride) in self.shape().iter().zip(self.strides()).filter(|&(&extent, _)| extent > 1) {
            axes[count] = (stride.unsigned_abs(), extent);
            count += 1;
        }
        let axes = &mut axes[..count];
        axes.sort_unstable();
        let mut reach = 0;
        axes.iter().any(|&(stride, extent)| {
            let overlaps = stride <= reach;
            // Invariant 3.
            reach += stride * (extent - 1);
            overlaps
        })
    }

    fn check_axis(&self, axis: usize) -> Result<()> {
        if axis < self.rank {
            return Ok(());
        }
        Err(Error::argument(format!(
            "axis {axis} was given for shape {:?}, whose axes number {}, counted from 0",
            self.shape(),
            self.rank
        )))
    }
}

#[cold]
fn too_many_axes(shape: &[usize]) -> Error {
    let axes = counted(shape.len(), "axis");
    Error::argument(format!("a shape of {axes} was given; at most {MAX_RANK} are supported"))
}

#[cold]
fn too_many_elements(shape: &[usize]) -> Error {
    let most = isize::MAX;
    Error::layout(format!("shape {shape:?} has more elements than a layout can count ({most}); use smaller extents"))
}

#[cfg(test)]
impl Layout {
    /// Returns the position of every index, in C order.
    pub(crate) fn offsets(&self) -> Vec<usize> {
        let indices = self.shape().iter().fold(vec![Vec::new()], |found, &extent| {
            found.iter().flat_map(|index| (0..extent).map(move |last| [index.as_slice(), &[last]].concat())).collect()
        });
        indices.iter().map(|index| self.offset_of(index).expect("it is in the array")).collect()
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layout")
            .field("shape", &self.shape())
            .field("strides", &self.strides())
            .field("offset", &self.offset)
            .field("storage_len", &self.storage_len)
            .finish()
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Layout {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut fields = serializer.serialize_struct("Layout", 4)?;
        fields.serialize_field("shape", self.shape())?;
        fields.serialize_field("strides", self.strides())?;
        fields.serialize_field("offset", &self.offset)?;
        fields.serialize_field("storage_len", &self.storage_len)?;
        fields.end()
    }
}
