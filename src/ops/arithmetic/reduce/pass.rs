//! One launch of a reduction.

use crate::abi::{EntryId, ReduceColumnsParams, ReduceParams, ReduceRowsParams};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::error::Result;
use crate::launch_shape::LaunchShape;
use crate::ops::plan::{Placed, Step};

/// The addresses of a launch; those that it does not use are ignored.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::ops) struct Sides {
    /// The elements.
    pub(super) a: u64,
    /// The other elements of a dot product.
    pub(super) b: u64,
    /// An index for each element, instead of its own; 0 for none.
    pub(super) indices: u64,
    /// The results.
    pub(super) result: u64,
    /// Room for the elements that indices point at; 0 for none.
    pub(super) values: u64,
}

/// A launch, by its kernel's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// All elements to one value a block.
    All(Step<ReduceParams>),
    /// The last axis.
    Rows(Step<ReduceRowsParams>),
    /// Another axis, or the results of parts.
    Columns(Step<ReduceColumnsParams>),
}

impl Pass {
    pub(super) fn entry(&self) -> EntryId {
        match self {
            Self::All(step) => step.entry,
            Self::Rows(step) => step.entry,
            Self::Columns(step) => step.entry,
        }
    }

    pub(super) fn shape(&self) -> LaunchShape {
        match self {
            Self::All(step) => step.shape,
            Self::Rows(step) => step.shape,
            Self::Columns(step) => step.shape,
        }
    }

    /// # Safety
    ///
    /// The sides have the planned elements and room for the results of every part, live until the
    /// launch has run; other work on them is ordered.
    unsafe fn launch(&self, device: &Device, sides: Sides, stream: StreamHandle) -> Result<()> {
        match self {
            // SAFETY: as the caller promises, and vectors are loaded only where they are aligned.
            Self::All(step) => unsafe { step.launch(device, sides, stream) },
            // SAFETY: as above; blocks are of whole groups of threads.
            Self::Rows(step) => unsafe { step.launch(device, sides, stream) },
            // SAFETY: as for all elements.
            Self::Columns(step) => unsafe { step.launch(device, sides, stream) },
        }
    }
}

/// The launches of a reduction: where there are two, the first leaves the results of parts in the
/// scratch memory, and the second joins them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Passes {
    pub(super) first: Pass,
    pub(super) second: Option<Pass>,
    /// The bytes of the parts' indices, which lie before their elements in the scratch; 0 where the
    /// results are no indices.
    pub(super) indices: u64,
}

impl Passes {
    pub(super) fn count(&self) -> u64 {
        1 + u64::from(self.second.is_some())
    }

    /// Queues them: `a` (and `b`) to `result`.
    ///
    /// # Safety
    ///
    /// As [`Pass::launch`]; the scratch has the room that the plan counted with.
    pub(super) unsafe fn launch(
        &self,
        device: &Device,
        [a, b, result, scratch]: [u64; 4],
        stream: StreamHandle,
    ) -> Result<()> {
        let sides = Sides { a, b, result, ..Sides::default() };
        let Some(second) = &self.second else {
            // SAFETY: as the caller promises.
            return unsafe { self.first.launch(device, sides, stream) };
        };
        let behind = if self.indices == 0 { 0 } else { scratch + self.indices };
        // SAFETY: as the caller promises; the scratch has room for every part.
        unsafe { self.first.launch(device, Sides { result: scratch, values: behind, ..sides }, stream) }?;
        let (from, indices) = if behind == 0 { (scratch, 0) } else { (behind, scratch) };
        let sides = Sides { a: from, b: from, indices, result, values: 0 };
        // SAFETY: the results of the parts, which the first launch leaves and the stream orders, to
        // those of the caller.
        unsafe { second.launch(device, sides, stream) }
    }
}

impl Placed for ReduceParams {
    type Operands = Sides;

    fn at(self, sides: Sides) -> Self {
        Self { a: sides.a, b: sides.b, partials: sides.result, ..self }
    }
}

impl Placed for ReduceRowsParams {
    type Operands = Sides;

    fn at(self, sides: Sides) -> Self {
        Self { a: sides.a, result: sides.result, values: sides.values, ..self }
    }
}

impl Placed for ReduceColumnsParams {
    type Operands = Sides;

    fn at(self, sides: Sides) -> Self {
        Self { a: sides.a, places: sides.indices, result: sides.result, values: sides.values, ..self }
    }
}
