//! How an array is divided among ranks.

use std::fmt;
use std::ops::Range;

use crate::element::Element;
use crate::error::{Error, Result, counted, require};
use crate::layout::Layout;
use crate::transfer::HostSliceMut;

/// The division of an array among ranks: each axis is whole or cut into contiguous parts. Each rank
/// has one box of the array, in C order.
///
/// Cuts of several axes make a grid of ranks. The ranks count through it in C order: the axis that
/// was cut first varies slowest.
///
/// ```
/// use warpstride::distributed::Split;
///
/// let rows = Split::whole(&[10, 6])?.cut(0, 4)?;
/// assert_eq!(rows.to_string(), "[10, 6] by 0:4");
/// assert_eq!(rows.part(0).shape(), [3, 6]); // the first parts are the longer ones
/// let last = rows.part(3);
/// assert_eq!((last.start(), last.shape()), ([8, 0].as_slice(), [2, 6].as_slice()));
///
/// let grid = Split::whole(&[10, 6])?.cut(0, 2)?.cut_at(1, &[6, 0])?; // parts may be empty
/// assert_eq!((grid.ranks(), grid.part(3).shape()), (4, [5, 0].as_slice()));
/// # Ok::<(), warpstride::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Split {
    shape: Vec<usize>,
    cuts: Vec<Cut>,
    /// The extents that each rank stores, of which its part is the beginning.
    padded: Option<Vec<usize>>,
}

/// An axis that is cut.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Cut {
    axis: usize,
    /// The start of each part, and the axis's extent.
    bounds: Vec<usize>,
}

/// The box of an array that a rank has, and how the rank stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    start: Vec<usize>,
    layout: Layout,
}

impl Split {
    /// Gives the whole array to one rank.
    ///
    /// # Errors
    ///
    /// `Layout` if the shape has no axis or too many elements, `InvalidArgument` if it has too many
    /// axes.
    pub fn whole(shape: &[usize]) -> Result<Self> {
        require!(!shape.is_empty(), Layout, "an array without axes cannot be split; give it an axis of extent 1");
        Layout::row_major(shape)?;
        Ok(Self { shape: shape.to_vec(), cuts: Vec::new(), padded: None })
    }

    /// Cuts an axis into parts whose extents differ by 1 at most, the longer ones first.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is no such axis, it is cut already, `parts` is 0, or there are
    /// more than 65,536 ranks.
    pub fn cut(self, axis: usize, parts: usize) -> Result<Self> {
        self.check_ranks(axis, parts)?;
        let extent = self.shape.get(axis).copied().unwrap_or_default();
        let sizes: Vec<usize> = match extent.checked_div(parts) {
            Some(size) => (0..parts).map(|part| size + usize::from(part < extent % parts)).collect(),
            None => Vec::new(),
        };
        self.cut_at(axis, &sizes)
    }

    /// Cuts an axis into parts with these extents, which may be 0.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is no such axis, it is cut already, there is no extent, they do
    /// not add up to the axis's, or there are more than 65,536 ranks.
    pub fn cut_at(mut self, axis: usize, extents: &[usize]) -> Result<Self> {
        self.check_ranks(axis, extents.len())?;
        let (rank, shape) = (self.shape.len(), &self.shape);
        require!(axis < rank, InvalidArgument, "there is no axis {axis} to cut: shape {shape:?} has {rank}");
        require!(
            self.cuts.iter().all(|cut| cut.axis != axis),
            InvalidArgument,
            "axis {axis} of shape {shape:?} is cut already; cut it once, into all parts"
        );
        let mut bounds = vec![0_usize];
        for &extent in extents {
            bounds.push(bounds[bounds.len() - 1].saturating_add(extent));
        }
        let sum = bounds[bounds.len() - 1];
        require!(
            !extents.is_empty() && sum == shape[axis],
            InvalidArgument,
            "the parts {extents:?} of axis {axis} have {sum} of its {}; give parts, 1 at least, that add up to it",
            shape[axis]
        );
        self.cuts.push(Cut { axis, bounds });
        self.check_padding()?;
        Ok(self)
    }

    /// Checks the number of ranks after a cut, before anything is made for each part.
    fn check_ranks(&self, axis: usize, parts: usize) -> Result<()> {
        require!(
            self.ranks().checked_mul(parts).is_some_and(|ranks| ranks <= MOST_RANKS),
            InvalidArgument,
            "a cut of axis {axis} into {} makes more than {MOST_RANKS} ranks; cut into fewer",
            counted(parts, "part")
        );
        Ok(())
    }

    /// Makes every rank store these extents, of which its part is the beginning. All ranks then
    /// have as many bytes, and rows may begin at multiples of a line.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the number of axes differs or a part is larger; `Layout` for too many
    /// elements.
    pub fn padded(mut self, extents: &[usize]) -> Result<Self> {
        Layout::row_major(extents)?;
        self.padded = Some(extents.to_vec());
        self.check_padding()?;
        Ok(self)
    }

    fn check_padding(&self) -> Result<()> {
        let Some(padded) = &self.padded else { return Ok(()) };
        let largest: Vec<usize> = (0..self.shape.len()).map(|axis| self.largest(axis)).collect();
        let fits = padded.len() == largest.len() && padded.iter().zip(&largest).all(|(padded, part)| padded >= part);
        require!(
            fits,
            InvalidArgument,
            "parts of {largest:?} do not fit into a padding of {padded:?}; cut first, and then pad to the largest part or more"
        );
        Ok(())
    }

    /// Returns the largest extent of a part along an axis.
    fn largest(&self, axis: usize) -> usize {
        let cut = self.cuts.iter().find(|cut| cut.axis == axis);
        cut.map_or(self.shape[axis], |cut| cut.bounds.windows(2).map(|part| part[1] - part[0]).max().unwrap_or(0))
    }

    /// Returns the shape of the whole array.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the number of ranks that have a part, which may be empty.
    pub fn ranks(&self) -> usize {
        self.cuts.iter().map(Cut::parts).product()
    }

    /// Returns the part of a rank. Ranks beyond [`Split::ranks`] have an empty one.
    pub fn part(&self, rank: usize) -> Part {
        let mut ranges: Vec<Range<usize>> = self.shape.iter().map(|&extent| 0..extent).collect();
        let mut rest = rank;
        for cut in self.cuts.iter().rev() {
            let part = rest % cut.parts();
            rest /= cut.parts();
            ranges[cut.axis] = cut.bounds[part]..cut.bounds[part + 1];
        }
        if rest > 0 {
            ranges.iter_mut().for_each(|range| range.end = range.start);
        }
        let extents: Vec<usize> = ranges.iter().map(ExactSizeIterator::len).collect();
        let start = ranges.into_iter().map(|range| range.start).collect();
        let stored = self.padded.as_ref().filter(|_| rest == 0).unwrap_or(&extents);
        Part { start, layout: beginning(stored, &extents) }
    }

    /// Returns each axis that is cut, with the start of each part and the axis's extent, the one
    /// that varies slowest first.
    pub(super) fn cuts(&self) -> impl DoubleEndedIterator<Item = (usize, &[usize])> {
        self.cuts.iter().map(|cut| (cut.axis, &*cut.bounds))
    }

    /// Returns the extents that each rank stores, if they are not those of its part.
    pub(super) fn padding(&self) -> Option<&[usize]> {
        self.padded.as_deref()
    }

    /// Cuts another shape along the same axes into as many parts, whose extents differ by 1 at
    /// most.
    ///
    /// # Errors
    ///
    /// As [`Split::whole`] and [`Split::cut`].
    pub(super) fn recut(&self, shape: &[usize]) -> Result<Self> {
        self.cuts.iter().try_fold(Self::whole(shape)?, |split, cut| split.cut(cut.axis, cut.parts()))
    }

    /// Splits host memory of the array's shape into the boxes of the ranks, rank by rank; `None`
    /// for an empty one.
    pub(super) fn boxes<'a, T: Element>(&self, host: HostSliceMut<'a, T>) -> Result<Vec<Option<HostSliceMut<'a, T>>>> {
        let mut boxes = vec![Some(host)];
        for cut in &self.cuts {
            let mut parts = Vec::with_capacity(boxes.len() * cut.parts());
            for mut rest in boxes {
                for bounds in cut.bounds.windows(2) {
                    let extent = bounds[1] - bounds[0];
                    let part = if extent == 0 { None } else { rest.take() };
                    let (part, behind) = part.map(|part| part.split_at(cut.axis, extent)).transpose()?.unzip();
                    if extent > 0 {
                        rest = behind.flatten();
                    }
                    parts.push(part);
                }
            }
            boxes = parts;
        }
        Ok(boxes)
    }

    /// Returns the ranks whose parts have elements in a box of the array.
    pub(super) fn ranks_in(&self, region: &[Range<usize>]) -> Vec<usize> {
        if region.iter().any(|range| range.is_empty()) {
            return Vec::new();
        }
        let mut ranks = vec![0];
        for cut in &self.cuts {
            let range = &region[cut.axis];
            let has = |&part: &usize| {
                let (start, end) = (cut.bounds[part], cut.bounds[part + 1]);
                start < end && start < range.end && range.start < end
            };
            let parts: Vec<usize> = (0..cut.parts()).filter(has).collect();
            ranks = ranks.iter().flat_map(|rank| parts.iter().map(move |part| rank * cut.parts() + part)).collect();
        }
        ranks
    }
}

/// The most ranks of a split.
const MOST_RANKS: usize = 1 << 16;

/// The beginning of an array in C order.
fn beginning(stored: &[usize], extents: &[usize]) -> Layout {
    let slice = |layout: Layout, (axis, &extent): (usize, &usize)| layout.slice(axis, ..extent, 1);
    let begun = Layout::row_major(stored).and_then(|whole| extents.iter().enumerate().try_fold(whole, slice));
    begun.expect("the split was checked")
}

impl Cut {
    fn parts(&self) -> usize {
        self.bounds.len() - 1
    }
}

impl Part {
    /// Returns the index of its first element in the whole array.
    pub fn start(&self) -> &[usize] {
        &self.start
    }

    /// Returns its extents.
    pub fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    /// Returns the number of its elements.
    pub fn len(&self) -> usize {
        self.layout.len()
    }

    /// Returns whether it has no element.
    pub fn is_empty(&self) -> bool {
        self.layout.is_empty()
    }

    /// Returns how the rank stores it: in C order, with the padding of the split.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the part's box in the whole array.
    pub(super) fn region(&self) -> Vec<Range<usize>> {
        self.start.iter().zip(self.shape()).map(|(&start, &extent)| start..start + extent).collect()
    }

    /// Returns the elements of the part in a box of the whole array that lies within it.
    pub(super) fn within(&self, region: &[Range<usize>]) -> Layout {
        let slice = |layout: Layout, (axis, range): (usize, &Range<usize>)| {
            layout.slice(axis, range.start - self.start[axis]..range.end - self.start[axis], 1)
        };
        region.iter().enumerate().try_fold(self.layout, slice).expect("the box lies within the part")
    }
}

/// The shape, and each cut as `axis:parts` or `axis:extent+extent`, as the command line has it.
impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shape)?;
        let balanced = |cut: &Cut| Self::whole(&self.shape).and_then(|whole| whole.cut(cut.axis, cut.parts()));
        for (number, cut) in self.cuts.iter().enumerate() {
            f.write_str(if number == 0 { " by " } else { "," })?;
            if balanced(cut).is_ok_and(|even| even.cuts[0] == *cut) {
                write!(f, "{}:{}", cut.axis, cut.parts())?;
            } else {
                let extents = cut.bounds.windows(2).map(|part| (part[1] - part[0]).to_string());
                write!(f, "{}:{}", cut.axis, extents.collect::<Vec<_>>().join("+"))?;
            }
        }
        if let Some(padded) = &self.padded {
            write!(f, ", padded to {padded:?}")?;
        }
        Ok(())
    }
}

impl Split {
    /// Reads cuts as the command line has them: `0:4` cuts axis 0 into 4 parts, `0:3+1` into parts
    /// of 3 and 1, and a comma separates cuts of several axes. Nothing at all cuts nothing.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the text is of another form; else as [`Split::cut_at`].
    ///
    /// ```
    /// use warpstride::distributed::Split;
    ///
    /// let split = Split::parse(&[8, 6], "0:2,1:4+2")?;
    /// assert_eq!(split, Split::whole(&[8, 6])?.cut(0, 2)?.cut_at(1, &[4, 2])?);
    /// # Ok::<(), warpstride::Error>(())
    /// ```
    pub fn parse(shape: &[usize], cuts: &str) -> Result<Self> {
        let whole = Self::whole(shape)?;
        if cuts.is_empty() {
            return Ok(whole);
        }
        let malformed = || {
            Error::argument(format!(
                "`{cuts}` does not cut axes; write axis:parts, such as 0:4, or axis:extent+extent, several by comma"
            ))
        };
        cuts.split(',').try_fold(whole, |split, cut| {
            let (axis, parts) = cut.split_once(':').ok_or_else(malformed)?;
            let number = |text: &str| text.parse::<usize>().map_err(|_| malformed());
            if parts.contains('+') {
                let extents: Vec<usize> = parts.split('+').map(number).collect::<Result<_>>()?;
                return split.cut_at(number(axis)?, &extents);
            }
            split.cut(number(axis)?, number(parts)?)
        })
    }
}

#[cfg(test)]
mod tests;
