//! The runs of contiguous elements that a box of an array has.

#![forbid(unsafe_code)]

/// Runs of one length, in the order of their offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Runs {
    /// Elements of a run; 0 if there are none.
    len: usize,
    /// The first run's offset.
    first: usize,
    /// Number of runs along each axis, and the distance from one to the next. The last axis runs
    /// fastest.
    axes: Vec<(usize, usize)>,
}

impl Runs {
    /// Returns the runs of a box of an array in C order, from each axis's extent in the array, and
    /// the start and the extent of the box along it.
    pub(crate) fn of_box(axes: impl DoubleEndedIterator<Item = (usize, usize, usize)>) -> Self {
        let mut runs = Self { len: 1, first: 0, axes: Vec::new() };
        let mut stride = 1;
        // This is true while all inner axes are whole.
        let mut is_whole = true;
        for (extent, start, len) in axes.rev() {
            runs.first += start * stride;
            if is_whole {
                runs.len *= len;
            } else if len != 1 {
                runs.axes.push((len, stride));
            }
            is_whole &= len == extent;
            stride *= extent;
        }
        runs.axes.reverse();
        runs
    }

    /// Returns the elements of a run.
    pub(crate) fn run(&self) -> usize {
        self.len
    }

    /// Returns whether one call of a copy engine takes all runs: rows a pitch apart, in slices a
    /// pitch apart.
    pub(super) fn are_one_box(&self) -> bool {
        self.axes.len() <= 2
    }

    /// Returns the number of runs.
    pub(crate) fn count(&self) -> usize {
        if self.len == 0 { 0 } else { self.axes.iter().map(|&(count, _)| count).product() }
    }

    /// Returns the offset of the first element of each run.
    pub(crate) fn offsets(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.count()).map(|run| {
            let mut rest = run;
            self.axes.iter().rev().fold(self.first, |offset, &(count, stride)| {
                let index = rest % count;
                rest /= count;
                offset + index * stride
            })
        })
    }

    /// Returns the offset and the elements of each piece of at most `most` elements, at least 1.
    pub(super) fn pieces(&self, most: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.offsets()
            .flat_map(move |offset| (0..self.len).step_by(most).map(move |at| (offset + at, most.min(self.len - at))))
    }
}
