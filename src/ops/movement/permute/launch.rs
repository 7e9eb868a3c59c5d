//! The launch of each strategy: what a plan keeps of the kernel's parameters.
//!
//! Parameters have lists of up to 16 axes with their divisors, and take up to 1.6 KB. The plan has
//! the axes already, so it keeps what a strategy chose, and a launch writes the parameters. That
//! takes 20 to 320 ns (benches/record/experiments.md), for kernels that move arrays of megabytes.

use std::fmt::{self, Display};

use super::strategies::{boxes, elements, fields, quads, rows, tile};
use crate::abi::{
    BoxesParams, CopyParams, ElementsParams, FieldsParams, PackedQuadsParams, PatchParams, RowsParams, TransposeParams,
    VectorTileParams,
};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::error::Result;
use crate::launch_shape::LaunchShape;
use crate::layout::walk::Canonical;
use crate::ops::Align;
pub(super) use crate::ops::plan::{Decline, at_least, at_most, found};
use crate::ops::plan::{Placed, Step, placed};
use crate::stream::Stream;

/// The launch of a strategy, by its recipe. A plan is copied, and made without allocating.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Launch {
    Copy(Step<CopyParams>),
    Rows(Step<rows::Recipe>),
    Patch(Step<PatchParams>),
    Matrix(Step<TransposeParams>),
    Fields(Step<fields::Recipe>),
    Quads(Step<quads::Recipe>),
    Tile(Step<tile::Recipe>),
    Elements(Step<elements::Recipe>),
    Boxes(Step<boxes::Recipe>),
}

/// The layouts of a plan, from which its launches write their parameters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layouts<'a> {
    /// The work in elements of the layouts' width.
    pub(super) canonical: &'a Canonical,
    /// Alignments of the source's and of the destination's storage.
    pub(super) aligns: [Align; 2],
}

impl Layouts<'_> {
    /// Returns the work in the widest elements that are contiguous on both sides.
    pub(super) fn widened(&self) -> Canonical {
        let [src, dst] = self.aligns;
        self.canonical.widened(src.min(dst).bytes())
    }
}

/// The part of a kernel's parameters that a plan keeps: all of them where they are few, or else
/// those that the layouts do not tell.
pub(super) trait Recipe {
    /// The kernel's parameters.
    type Params: Placed<Operands = [u64; 2]>;

    /// Writes the parameters, whose addresses count from the starts of the storages.
    fn params(&self, layouts: &Layouts<'_>) -> Self::Params;
}

/// Parameters that are their own recipe, because they are few.
macro_rules! kept_whole {
    ($($params:ident),+) => {$(
        impl Recipe for $params {
            type Params = Self;

            #[inline]
            fn params(&self, _: &Layouts<'_>) -> Self {
                *self
            }
        }
    )+};
}

kept_whole!(CopyParams, PatchParams, TransposeParams);

impl Launch {
    /// Returns what all launches share.
    pub(super) fn step(&self) -> &dyn AnyLaunch {
        match self {
            Self::Copy(step) => step,
            Self::Rows(step) => step,
            Self::Patch(step) => step,
            Self::Matrix(step) => step,
            Self::Fields(step) => step,
            Self::Quads(step) => step,
            Self::Tile(step) => step,
            Self::Elements(step) => step,
            Self::Boxes(step) => step,
        }
    }
}

/// A [`Step`] with a source and a destination that a plan can queue and print, whatever its recipe.
pub(super) trait AnyLaunch {
    /// Returns the kernel's name.
    fn entry(&self) -> &'static str;

    /// Returns the launch's shape.
    fn shape(&self) -> LaunchShape;

    /// Queues the launch on sides at these addresses.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the device does not allow the shape or is older than the entry needs;
    /// else the driver's error.
    ///
    /// # Safety
    ///
    /// As [`Device::launch`], for the parameters that [`Placed::at`] gives. The recipe was made for
    /// these layouts.
    unsafe fn queue(&self, layouts: &Layouts<'_>, device: &Device, sides: [u64; 2], stream: StreamHandle)
    -> Result<()>;

    /// Queues the launch as [`AnyLaunch::queue`] does, on a stream of ours, whose work counter the
    /// kernel may use.
    ///
    /// # Errors
    ///
    /// As [`AnyLaunch::queue`].
    ///
    /// # Safety
    ///
    /// As [`AnyLaunch::queue`], for the parameters that [`Placed::counted`] gives then.
    unsafe fn queue_on(&self, layouts: &Layouts<'_>, device: &Device, sides: [u64; 2], stream: &Stream) -> Result<()>;

    /// Prints the launch.
    fn print(&self, layouts: &Layouts<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

impl<R: Recipe> AnyLaunch for Step<R>
where
    Step<R::Params>: Display,
{
    fn entry(&self) -> &'static str {
        self.entry.name()
    }

    fn shape(&self) -> LaunchShape {
        self.shape
    }

    unsafe fn queue(
        &self,
        layouts: &Layouts<'_>,
        device: &Device,
        sides: [u64; 2],
        stream: StreamHandle,
    ) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { device.launch(self.entry, &self.shape, &self.params.params(layouts).at(sides), stream) }
    }

    unsafe fn queue_on(&self, layouts: &Layouts<'_>, device: &Device, sides: [u64; 2], stream: &Stream) -> Result<()> {
        let params = self.params.params(layouts).at(sides).counted(|| stream.work_counter());
        // SAFETY: as the caller promises.
        unsafe { device.launch(self.entry, &self.shape, &params, stream.handle()) }
    }

    fn print(&self, layouts: &Layouts<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Step { entry: self.entry, shape: self.shape, params: self.params.params(layouts) }.fmt(f)
    }
}

placed!(CopyParams, RowsParams, PatchParams, TransposeParams, FieldsParams, ElementsParams);

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

impl Placed for BoxesParams {
    type Operands = [u64; 2];

    #[inline]
    fn at(mut self, [src, dst]: [u64; 2]) -> Self {
        self.src_start = src.wrapping_add(self.src_start);
        self.src_end = src.wrapping_add(self.src_end);
        self.src = src.wrapping_add(self.src);
        self.dst = dst.wrapping_add(self.dst);
        self
    }

    #[inline]
    fn counted(mut self, counter: impl FnOnce() -> u64) -> Self {
        self.counter = counter();
        self
    }
}

placed_with_span!(VectorTileParams, PackedQuadsParams.tiles);
