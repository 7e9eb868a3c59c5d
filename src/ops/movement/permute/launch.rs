//! The launch of each strategy, by its parameters.

use std::fmt;

use crate::abi::{
    BoxesParams, CopyParams, ElementsParams, FieldsParams, PackedQuadsParams, PatchParams, RowsParams, TransposeParams,
    VectorTileParams,
};
use crate::ops::plan::{AnyStep, Placed, Step, placed};
pub(super) use crate::ops::plan::{Decline, at_least, at_most, found};

/// The launch of a strategy, by its parameters. They are large: a plan is copied, and made without
/// allocating.
#[expect(clippy::large_enum_variant, reason = "a plan is copied, and made without allocating")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Launch {
    Copy(Step<CopyParams>),
    Rows(Step<RowsParams>),
    Patch(Step<PatchParams>),
    Matrix(Step<TransposeParams>),
    Fields(Step<FieldsParams>),
    Quads(Step<PackedQuadsParams>),
    Tile(Step<VectorTileParams>),
    Elements(Step<ElementsParams>),
    Boxes(Step<BoxesParams>),
}

impl Launch {
    /// Returns what all launches share.
    pub(super) fn step(&self) -> &dyn Shown {
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

/// A [`Step`] with a source and a destination that a plan can print, whatever its parameters.
pub(super) trait Shown: AnyStep<[u64; 2]> + fmt::Display {}

impl<S: AnyStep<[u64; 2]> + fmt::Display> Shown for S {}

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
