//! The list of strategies that permute: the first that takes the work gives the launch.

use std::fmt;

use super::strategies::{
    boxes, copy, elements, fields, packed, patch, ragged_tile, rows, small_matrix, stacked, vector_tile,
};
use super::task::Task;
use crate::abi::{
    BoxesParams, CopyParams, ElementsParams, FieldsParams, PackedParams, PackedQuadsParams, PatchParams, RowsParams,
    StackedTileParams, TransposeParams, VectorTileParams,
};
use crate::ops::plan::{AnyStep, Placed, Step, placed};
pub(super) use crate::ops::plan::{Decline, at_least, at_most, found};

/// The answer of a strategy: the reason to take a task, or to decline it.
pub(super) type Considered = Result<&'static str, Decline>;

/// One way to permute: a kernel, or a few with one description, and the work they are best for.
pub(super) struct Strategy {
    /// Its name in explanations.
    pub(super) name: &'static str,
    /// Takes the task: writes the launch in place, because it is large, and returns the reason. Or
    /// declines the task and writes nothing.
    pub(super) consider: fn(&Task<'_>, &mut Option<Launch>) -> Considered,
}

/// Every strategy, in the order in which they look at a task.
///
/// Special shapes come first: copies of bytes, long runs, and small arrays. Tiles that gather whole
/// vectors follow; they decline structs of few fields, which come next with stacks of small
/// matrices. Boxes and tiles of several axes take sources in steps, and what tiles of one axis per
/// side would move in short runs; those take the rest. `elements` takes everything.
pub(super) static STRATEGIES: [Strategy; 13] = [
    Strategy { name: "copy", consider: copy::consider },
    Strategy { name: "rows", consider: rows::consider },
    Strategy { name: "patch", consider: patch::consider },
    Strategy { name: "small_matrix", consider: small_matrix::consider },
    Strategy { name: "packed_quads", consider: packed::quads::consider },
    Strategy { name: "fields", consider: fields::consider },
    Strategy { name: "stacked", consider: stacked::consider },
    Strategy { name: BOXES, consider: boxes::consider },
    Strategy { name: "packed_stepped", consider: packed::stepped::consider },
    Strategy { name: "packed", consider: packed::consider },
    Strategy { name: "vector_tile", consider: vector_tile::consider },
    Strategy { name: "ragged_tile", consider: ragged_tile::consider },
    Strategy { name: "elements", consider: elements::consider },
];

/// One way to do a task: a strategy, and one of its launches.
///
/// Its text is the name of the strategy, and behind it the number of the launch if it is not the
/// one that [`Strategy::consider`] gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    strategy: u8,
    launch: u8,
}

impl Way {
    /// Returns all ways: each strategy's own, in their order, and the boxes by rank.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let own = (0..STRATEGIES.len() as u8).map(|strategy| Self { strategy, launch: 0 });
        let boxes = STRATEGIES.iter().position(|strategy| strategy.name == BOXES);
        let ranked =
            move |strategy| (1..=boxes::KEPT as u8).map(move |launch| Self { strategy: strategy as u8, launch });
        own.chain(boxes.into_iter().flat_map(ranked))
    }

    /// Returns the way that a text names.
    pub(super) fn named(text: &str) -> Option<Self> {
        let (name, launch) = text.split_once(' ').unwrap_or((text, "0"));
        let launch: u8 = launch.parse().ok()?;
        Self::all().find(|way| way.name() == name && way.launch == launch)
    }

    /// Writes the launch of a task, and returns the reason; or declines it and writes nothing.
    pub(super) fn consider(self, task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
        let Some(rank) = usize::from(self.launch).checked_sub(1) else {
            return (STRATEGIES[usize::from(self.strategy)].consider)(task, launch);
        };
        *launch = Some(boxes::ranked(task, rank)?);
        Ok("the plan is to move these boxes")
    }

    /// Returns the name of the strategy.
    pub(super) fn name(self) -> &'static str {
        STRATEGIES[usize::from(self.strategy)].name
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.launch {
            0 => f.write_str(self.name()),
            launch => write!(f, "{} {launch}", self.name()),
        }
    }
}

/// The strategy that has several launches for a task.
const BOXES: &str = "boxes";

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
            Self::Stacked(step) => step,
            Self::Packed(step) => step,
            Self::PackedQuads(step) => step,
            Self::Tile(step) => step,
            Self::Elements(step) => step,
            Self::Boxes(step) => step,
        }
    }
}

/// A [`Step`] with a source and a destination that a plan can print, whatever its parameters.
pub(super) trait Shown: AnyStep<[u64; 2]> + fmt::Display {}

impl<S: AnyStep<[u64; 2]> + fmt::Display> Shown for S {}

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

placed_with_span!(VectorTileParams, PackedParams.tiles, PackedQuadsParams.tiles);
