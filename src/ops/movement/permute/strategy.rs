//! The list of strategies that permute: the first that takes the work gives the launch.

use std::fmt;

use super::strategies;
use super::task::Task;
use crate::abi::{
    CopyParams, ElementsParams, FieldsParams, PackedParams, PackedQuadsParams, PatchParams, RowsParams,
    StackedTileParams, TransposeParams, VectorTileParams,
};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::error::Result;
use crate::launch_shape::LaunchShape;
pub(super) use crate::ops::plan::{Decline, at_least, at_most, found};
use crate::ops::plan::{Placed, Step};

/// One way to permute: a kernel, or a few with one description, and the work they are best for.
pub(super) trait Strategy: Sync {
    /// Its name in explanations.
    fn name(&self) -> &'static str;

    /// Takes the task: writes the launch in place, because it is large, and returns the reason. Or
    /// declines the task and writes nothing.
    fn consider(&self, task: &Task<'_>, launch: &mut Option<Launch>) -> Result<&'static str, Decline>;
}

/// Every strategy, in the order in which they look at a task.
///
/// Special shapes come first: copies of bytes, long runs, small arrays, structs, and stacks of
/// small matrices. Tiles follow, those of several axes where one axis per side is too short.
/// `elements` takes everything.
pub(super) static STRATEGIES: [&dyn Strategy; 12] = [
    &strategies::copy::Copy,
    &strategies::rows::Rows,
    &strategies::patch::Patch,
    &strategies::small_matrix::SmallMatrix,
    &strategies::packed::PackedQuads,
    &strategies::packed::PackedStepped,
    &strategies::fields::Fields,
    &strategies::stacked::Stacked,
    &strategies::packed::Packed,
    &strategies::vector_tile::VectorTile,
    &strategies::ragged_tile::RaggedTile,
    &strategies::elements::Elements,
];

/// The launch of a strategy, by its parameters. They are large: a plan is copied, and made without
/// allocating.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Launch {
    Copy(Step<CopyParams>),
    Rows(Step<RowsParams>),
    Patch(Step<PatchParams>),
    Matrix(Step<TransposeParams>),
    Fields(Step<FieldsParams>),
    Stacked(Step<StackedTileParams>),
    Packed(Step<PackedParams>),
    PackedQuads(Step<PackedQuadsParams>),
    Tile(Step<VectorTileParams>),
    Elements(Step<ElementsParams>),
}

impl Launch {
    /// Returns what all launches share.
    pub(super) fn step(&self) -> &dyn AnyStep {
        match self {
            Self::Copy(step) => step,
            Self::Rows(step) => step,
            Self::Patch(step) => step,
            Self::Matrix(step) => step,
            Self::Fields(step) => step,
            Self::Stacked(step) => step,
            Self::Packed(step) => step,
            Self::PackedQuads(step) => step,
            Self::Tile(step) => step,
            Self::Elements(step) => step,
        }
    }
}

/// A [`Step`] with a source and a destination, whatever its parameters.
pub(super) trait AnyStep: fmt::Display {
    /// Returns the kernel's name.
    fn entry(&self) -> &'static str;

    /// Returns the launch's shape.
    fn shape(&self) -> LaunchShape;

    /// Queues the launch on storages at these addresses.
    ///
    /// # Safety
    ///
    /// As [`Step::launch`].
    unsafe fn queue(&self, device: &Device, operands: [u64; 2], stream: StreamHandle) -> Result<()>;
}

impl<P: Placed<Operands = [u64; 2]>> AnyStep for Step<P>
where
    Self: fmt::Display,
{
    fn entry(&self) -> &'static str {
        self.entry.name()
    }

    fn shape(&self) -> LaunchShape {
        self.shape
    }

    unsafe fn queue(&self, device: &Device, operands: [u64; 2], stream: StreamHandle) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.launch(device, operands, stream) }
    }
}

/// Implements [`Placed`] for parameters whose only addresses are `src` and `dst`, which count from
/// the starts of the storages.
macro_rules! placed {
    ($($params:ty),*) => {$(
        impl Placed for $params {
            type Operands = [u64; 2];

            fn at(self, [src, dst]: [u64; 2]) -> Self {
                Self { src: src.wrapping_add(self.src), dst: dst.wrapping_add(self.dst), ..self }
            }
        }
    )*};
}

placed!(CopyParams, RowsParams, PatchParams, TransposeParams, FieldsParams, StackedTileParams, ElementsParams);

/// Implements [`Placed`] for parameters that also hold, in a field of theirs if one is named, the
/// addresses of a source without gaps, or 0 for one with gaps.
macro_rules! placed_with_span {
    ($($params:ident $(. $field:ident)?),*) => {$(
        impl Placed for $params {
            type Operands = [u64; 2];

            // In place, because the parameters are large.
            #[inline]
            fn at(mut self, [src, dst]: [u64; 2]) -> Self {
                let held = &mut self$(.$field)?;
                if held.src_end != 0 {
                    held.src_start = src.wrapping_add(held.src_start);
                    held.src_end = src.wrapping_add(held.src_end);
                }
                held.src = src.wrapping_add(held.src);
                held.dst = dst.wrapping_add(held.dst);
                self
            }
        }
    )*};
}

placed_with_span!(VectorTileParams, PackedParams.tiles, PackedQuadsParams.tiles);
