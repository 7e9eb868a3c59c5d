//! Reshapes a layout, as a view if possible.

use super::Layout;
use crate::error::{Error, Result, counted};

/// The result of a reshape.
///
/// ```
/// use warpstride::Layout;
/// use warpstride::layout::Reshape;
///
/// let matrix = Layout::row_major(&[4, 6])?;
/// assert!(matrix.reshape(&[2, 12])?.view().is_some());
/// assert_eq!(matrix.t().reshape(&[24])?, Reshape::NeedsCopy);
/// # Ok::<(), warpstride::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reshape<V = Layout> {
    /// The elements stay in place.
    View(V),
    /// No strides describe the new shape: the elements must be copied to a contiguous array first.
    NeedsCopy,
}

impl<V> Reshape<V> {
    /// The view, if it is one.
    pub fn view(self) -> Option<V> {
        match self {
            Self::View(view) => Some(view),
            Self::NeedsCopy => None,
        }
    }

    /// Applies `wrap` to the view, if it is one.
    pub(crate) fn map<W>(self, wrap: impl FnOnce(V) -> W) -> Reshape<W> {
        match self {
            Self::View(view) => Reshape::View(wrap(view)),
            Self::NeedsCopy => Reshape::NeedsCopy,
        }
    }
}

impl Layout {
    /// Gives the same elements in the same (C) order another shape.
    ///
    /// The idea is NumPy's `_attempt_nocopy_reshape`. The array is first divided into runs, each
    /// with one stride. Each new axis, from the last, is then cut from the current run. If it does
    /// not divide the run, the result cannot be a view.
    ///
    /// # Errors
    ///
    /// `Layout` if the numbers of elements differ or overflow; `InvalidArgument` for more than
    /// [`MAX_RANK`](super::MAX_RANK) axes.
    pub fn reshape(self, shape: &[usize]) -> Result<Reshape> {
        let mut reshaped = Self::of_shape(shape)?;
        if reshaped.len() != self.len() {
            return Err(Error::layout(format!(
                "shape {:?} has {} and cannot be reshaped to {shape:?}, which has {}; give a shape with the same number of elements",
                self.shape(),
                counted(self.len(), "element"),
                reshaped.len()
            )));
        }
        reshaped.offset = self.offset;
        reshaped.storage_len = self.storage_len;
        if self.is_empty() {
            return Ok(Reshape::View(reshaped));
        }
        let runs = self.coalesced();
        let mut next_run = (0..runs.rank).rev();
        let (mut left, mut stride) = (1, 1);
        for axis in (0..reshaped.rank).rev() {
            let extent = reshaped.shape[axis];
            if extent > 1 && left == 1 {
                // The lengths are equal, so a run is left while a new axis has more than one index.
                let Some(run) = next_run.next() else { return Ok(Reshape::NeedsCopy) };
                (left, stride) = runs.axis(run);
            }
            reshaped.strides[axis] = stride;
            if left % extent != 0 {
                return Ok(Reshape::NeedsCopy);
            }
            left /= extent;
            if left > 1 {
                stride *= extent as isize;
            }
        }
        Ok(Reshape::View(reshaped))
    }
}
