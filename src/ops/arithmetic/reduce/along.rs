//! The axes of a reduction, and the form of an array in which kernels reduce them.

use std::fmt;

use crate::error::{Error, Result};
use crate::layout::{Layout, MAX_RANK};

/// The axes that a reduction takes: one number, several (`[0, 2]`), or `None` for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Along(Axes);

/// One number more than there are axes is enough to see a mistake.
const MOST: usize = MAX_RANK + 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Axes {
    All,
    Few { numbers: [usize; MOST], count: usize },
}

impl From<&[usize]> for Along {
    fn from(axes: &[usize]) -> Self {
        let count = axes.len().min(MOST);
        let mut numbers = [0; MOST];
        numbers[..count].copy_from_slice(&axes[..count]);
        Self(Axes::Few { numbers, count })
    }
}

impl<const N: usize> From<[usize; N]> for Along {
    fn from(axes: [usize; N]) -> Self {
        Self::from(&axes[..])
    }
}

impl From<usize> for Along {
    fn from(axis: usize) -> Self {
        Self::from([axis])
    }
}

impl From<Option<usize>> for Along {
    fn from(axis: Option<usize>) -> Self {
        axis.map_or(Self(Axes::All), Self::from)
    }
}

impl Along {
    /// Returns true for each axis of a shape that is reduced.
    ///
    /// # Errors
    ///
    /// `Layout` if the shape has no such axis, or one is named twice.
    pub(in crate::ops::arithmetic) fn reduced(&self, shape: &[usize]) -> Result<[bool; MAX_RANK]> {
        let mut reduced = [false; MAX_RANK];
        let Axes::Few { numbers, count } = &self.0 else {
            reduced[..shape.len()].fill(true);
            return Ok(reduced);
        };
        for &axis in &numbers[..*count] {
            super::check_axis(shape, axis)?;
            if std::mem::replace(&mut reduced[axis], true) {
                return Err(Error::layout(format!("axis {axis} of shape {shape:?} is named twice; name it once")));
            }
        }
        Ok(reduced)
    }

    /// Returns whether this means all axes, of any array.
    pub(in crate::ops::arithmetic) fn is_all(&self) -> bool {
        self.0 == Axes::All
    }

    /// Returns the only axis, or `None` for all axes, if this is one of both.
    pub(super) fn simple(&self) -> Option<Option<usize>> {
        match self.0 {
            Axes::All => Some(None),
            Axes::Few { numbers, count: 1 } => Some(Some(numbers[0])),
            Axes::Few { .. } => None,
        }
    }
}

/// Returns the extents of the axes that stay.
pub(in crate::ops::arithmetic) fn kept<'a>(
    shape: &'a [usize],
    reduced: &'a [bool; MAX_RANK],
) -> impl Iterator<Item = usize> + Clone + 'a {
    shape.iter().zip(reduced).filter(|(_, reduced)| !**reduced).map(|(&extent, _)| extent)
}

/// Checks that a result has the shape of the axes that stay; where all are reduced, that it has one
/// element.
pub(in crate::ops::arithmetic) fn check_shape(
    what: impl fmt::Display,
    kept: impl Iterator<Item = usize> + Clone,
    is_all: bool,
    result: &Layout,
) -> Result<()> {
    let found = result.shape();
    if if is_all { result.len() == 1 } else { kept.clone().eq(found.iter().copied()) } {
        return Ok(());
    }
    Err(Error::layout(if is_all {
        format!("the {what} of all elements is one value, and its view has shape {found:?}; give one element")
    } else {
        let shape: Vec<usize> = kept.collect();
        format!("the {what} has shape {shape:?}, and its view {found:?}; give a view of {shape:?}")
    }))
}

/// Returns the number of elements along the axes that are reduced, at most `usize::MAX`.
pub(in crate::ops::arithmetic) fn count_along(shape: &[usize], reduced: &[bool; MAX_RANK]) -> usize {
    let along = shape.iter().zip(reduced).filter(|(_, reduced)| **reduced);
    along.fold(1, |count: usize, (&extent, _)| count.saturating_mul(extent))
}

/// Returns the error of an operation that needs an element along these axes of a shape.
pub(in crate::ops::arithmetic) fn no_elements(what: impl fmt::Display, shape: &[usize], axes: &[usize]) -> Error {
    let along = match axes {
        [axis] => format!("axis {axis}"),
        axes => format!("axes {axes:?}"),
    };
    Error::argument(format!(
        "there is no {what} of no elements: shape {shape:?} has none along {along}; give an array with elements there, or \
         reduce other axes"
    ))
}

/// Returns the numbers of the axes that are reduced.
pub(in crate::ops::arithmetic) fn numbers(rank: usize, reduced: &[bool; MAX_RANK]) -> Vec<usize> {
    (0..rank).filter(|&axis| reduced[axis]).collect()
}

/// Neighbouring axes in memory that are all reduced, or all stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops::arithmetic) struct Group {
    pub(super) extent: usize,
    pub(super) reduced: bool,
}

/// An array without gaps, as groups of axes in the order of memory. Its results lie in C order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops::arithmetic) struct Groups {
    count: usize,
    groups: [Group; MOST],
}

impl Groups {
    /// Returns the groups of an array without gaps, whose axes may have another order in memory;
    /// `None` if it has gaps, or if results would come in another order. With `ordered`, the
    /// reduced axes have their order, too.
    pub(in crate::ops::arithmetic) fn new(layout: &Layout, reduced: &[bool; MAX_RANK], ordered: bool) -> Option<Self> {
        let (shape, strides) = (layout.shape(), layout.strides());
        if layout.is_empty() {
            // One group of each kind takes one launch, whatever the extents beside the empty one.
            return Some(Self::of_copy(shape, reduced));
        }
        let mut order = [0; MAX_RANK];
        let mut rank = 0;
        for axis in (0..shape.len()).filter(|&axis| shape[axis] != 1) {
            order[rank] = axis;
            rank += 1;
        }
        order[..rank].sort_by_key(|&axis| std::cmp::Reverse(strides[axis]));
        let mut step = 1;
        for &axis in order[..rank].iter().rev() {
            if strides[axis] != step {
                return None;
            }
            step *= shape[axis] as isize;
        }
        let is_in_order = |which: bool| {
            let mut of_kind = order[..rank].iter().filter(|&&axis| reduced[axis] == which);
            let mut last = None;
            of_kind.all(|&axis| last.replace(axis).is_none_or(|before| before < axis))
        };
        (is_in_order(false) && (!ordered || is_in_order(true)))
            .then(|| Self::of(order[..rank].iter().map(|&axis| (shape[axis], reduced[axis]))))
    }

    /// Returns the groups of a copy whose reduced axes come last.
    pub(in crate::ops::arithmetic) fn of_copy(shape: &[usize], reduced: &[bool; MAX_RANK]) -> Self {
        let axes = |which: bool| {
            shape
                .iter()
                .zip(reduced)
                .filter(move |(_, reduced)| **reduced == which)
                .map(move |(&extent, _)| (extent, which))
        };
        Self::of(axes(false).chain(axes(true)))
    }

    /// Returns the order of axes for that copy.
    pub(in crate::ops::arithmetic) fn order_of_copy(rank: usize, reduced: &[bool; MAX_RANK]) -> Vec<usize> {
        let axes = |which: bool| (0..rank).filter(move |&axis| reduced[axis] == which);
        axes(false).chain(axes(true)).collect()
    }

    fn of(axes: impl Iterator<Item = (usize, bool)>) -> Self {
        let mut groups = Self { count: 0, groups: [Group { extent: 1, reduced: false }; MOST] };
        for (extent, reduced) in axes {
            match groups.groups[..groups.count].last_mut() {
                Some(last) if last.reduced == reduced => last.extent *= extent,
                _ => groups.push(Group { extent, reduced }),
            }
        }
        // An axis of one index is reduced too.
        if groups.last_reduced().is_none() {
            groups.push(Group { extent: 1, reduced: true });
        }
        groups
    }

    fn push(&mut self, group: Group) {
        self.groups[self.count] = group;
        self.count += 1;
    }

    /// Returns the place of the last group that is reduced.
    fn last_reduced(&self) -> Option<usize> {
        self.as_slice().iter().rposition(|group| group.reduced)
    }

    /// Returns the elements before the last group that is reduced, its own, and those after it.
    pub(in crate::ops::arithmetic) fn extents(&self) -> [usize; 3] {
        let place = self.last_reduced().unwrap_or(0);
        let product = |groups: &[Group]| groups.iter().map(|group| group.extent).product();
        let groups = self.as_slice();
        [product(&groups[..place]), groups[place].extent, product(&groups[place + 1..])]
    }

    /// Returns the groups without the last that is reduced, with its neighbours joined.
    pub(super) fn without_last(&self) -> Self {
        let (groups, place) = (self.as_slice(), self.last_reduced().unwrap_or(0));
        let others = groups[..place].iter().chain(&groups[place + 1..]);
        Self::of(others.map(|group| (group.extent, group.reduced)))
    }

    /// Returns whether one group is reduced.
    pub(super) fn has_one(&self) -> bool {
        self.as_slice().iter().filter(|group| group.reduced).count() == 1
    }

    fn as_slice(&self) -> &[Group] {
        &self.groups[..self.count]
    }

    /// Returns whether the axes that are reduced come last in memory.
    pub(in crate::ops::arithmetic) fn are_rows(&self) -> bool {
        self.has_one() && self.last_reduced() == Some(self.count - 1)
    }
}

#[cfg(test)]
mod tests;
