//! One launch of a reduction.

use std::fmt;

use crate::abi::{ReduceColumnsParams, ReduceParams, ReduceRowsParams};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::error::Result;
use crate::launch_shape::LaunchShape;
use crate::ops::plan::{AnyStep, Step, placed};

/// The addresses of a launch, which ignores those that it does not need.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::ops) struct Sides {
    /// The elements.
    pub(super) a: u64,
    /// The second operand of a dot product.
    pub(super) b: u64,
    /// An index for each element, instead of its own; 0 for none.
    pub(super) indices: u64,
    /// The results.
    pub(super) result: u64,
    /// Memory for the elements at the indices; 0 for none.
    pub(super) values: u64,
}

/// A launch, by its kernel's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// All elements, with one value a block.
    All(Step<ReduceParams>),
    /// The last axis.
    Rows(Step<ReduceRowsParams>),
    /// Another axis, or the results of parts.
    Columns(Step<ReduceColumnsParams>),
}

impl Pass {
    /// Returns what all launches share. The kernels read and write no more than [`Pass::launch`]
    /// asks for:
    ///
    /// - `over_all::passes` took the span of all elements from the planned starts, so its vectors
    ///   are aligned in both operands, and a block writes the one result of its part.
    /// - The kernel of rows finds the first whole vector by a row's address. `Cut::pass` gives
    ///   blocks of whole groups of threads: both are powers of two, and `along_axis::rows` makes no
    ///   group larger than its block.
    /// - `along_axis::columns` has `quads` only if the planned start and the inner axis are whole
    ///   vectors, and no more columns across than the block has threads.
    pub(super) fn step(&self) -> &dyn AnyStep<Sides> {
        match self {
            Self::All(step) => step,
            Self::Rows(step) => step,
            Self::Columns(step) => step,
        }
    }

    /// # Safety
    ///
    /// - `a` and, if there is a second operand, `b` hold the planned elements, and start as far
    ///   from a multiple of 16 bytes as planned. `indices` is 0, or holds a `u64` for each of them.
    /// - `result` has room for a result of each part, and is aligned to one. `values` is 0, or has
    ///   room for an element of each part.
    /// - This memory lives until the launch has run, and other work on it is ordered.
    unsafe fn launch(&self, device: &Device, sides: Sides, stream: StreamHandle) -> Result<()> {
        // SAFETY: the caller holds the memory, and `step` says why the kernel stays within it.
        unsafe { self.step().queue(device, sides, stream) }
    }
}

/// The launches of a reduction: none if there are no results. If there are two, the first leaves
/// the results of parts in the scratch memory, and the second joins them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Passes {
    pub(super) first: Option<Pass>,
    pub(super) second: Option<Pass>,
    /// The bytes of the parts' indices, which lie before their elements in the scratch; 0 if the
    /// results are not indices.
    pub(super) indices: u64,
}

impl Passes {
    pub(super) const NONE: Self = Self { first: None, second: None, indices: 0 };

    /// As [`Plan::entry`](crate::ops::Plan::entry).
    pub(super) fn entry(&self) -> Option<&'static str> {
        self.first.as_ref().map(|first| first.step().entry().name())
    }

    /// As [`Plan::shape`](crate::ops::Plan::shape).
    pub(super) fn shape(&self) -> Option<LaunchShape> {
        self.first.as_ref().map(|first| first.step().shape())
    }

    /// As [`Plan::launches`](crate::ops::Plan::launches).
    pub(super) fn count(&self) -> u64 {
        [self.first, self.second].into_iter().flatten().count() as u64
    }

    /// Writes the first launch, for these elements, and the kernel of the second.
    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, elements: impl fmt::Display, nothing: &str) -> fmt::Result {
        let Some(first) = self.first.as_ref().map(Pass::step) else { return f.write_str(nothing) };
        write!(f, "{}: {elements}, {}", first.entry(), first.shape())?;
        self.second.map_or(Ok(()), |second| write!(f, ", then {}", second.step().entry()))
    }

    /// Queues them, from `a` (and `b`) to `result`.
    ///
    /// # Safety
    ///
    /// As [`Pass::launch`], with room in `result` for the results of the reduction. `scratch` is
    /// aligned to 16 bytes, has [`Scratch::BYTES`](super::Scratch::BYTES), and overlaps no other
    /// operand.
    pub(super) unsafe fn launch(
        &self,
        device: &Device,
        [a, b, result, scratch]: [u64; 4],
        stream: StreamHandle,
    ) -> Result<()> {
        let Some(first) = &self.first else { return Ok(()) };
        let sides = Sides { a, b, result, ..Sides::default() };
        let Some(second) = &self.second else {
            // SAFETY: as the caller promises: the only part has the results of the reduction.
            return unsafe { first.launch(device, sides, stream) };
        };
        let behind = if self.indices == 0 { 0 } else { scratch + self.indices };
        // SAFETY: the caller holds `a` and `b`. The scratch has room for a result of each part, and
        // for the elements of indices after them: `Cut::new` limits the parts of an axis, and an
        // assertion in `over_all` limits the number of its blocks.
        unsafe { first.launch(device, Sides { result: scratch, values: behind, ..sides }, stream) }?;
        let (from, indices) = if behind == 0 { (scratch, 0) } else { (behind, scratch) };
        let sides = Sides { a: from, b: from, indices, result, values: 0 };
        // SAFETY: the scratch holds the results of the first launch, which comes before on the
        // stream. The second was planned for elements that start there: on 16 bytes over all, and
        // anywhere along an axis. The caller holds `result`, which has room for the second's one
        // part.
        unsafe { second.launch(device, sides, stream) }
    }
}

placed! {
    ReduceParams: |own, sides: Sides| Self { a: sides.a, b: sides.b, partials: sides.result, ..own };
    ReduceRowsParams: |own, sides: Sides| Self { a: sides.a, result: sides.result, values: sides.values, ..own };
    ReduceColumnsParams: |own, sides: Sides| {
        Self { a: sides.a, places: sides.indices, result: sides.result, values: sides.values, ..own }
    };
}
