//! What every strategy looks at: the work in its canonical form, and what the plan may know of it.

use std::cell::OnceCell;

use super::strategies::tile::Tiling;
use super::strategy::{Decline, found};
use crate::abi::{EntryId, Family, Index};
use crate::ops::canonical::Canonical;
use crate::ops::tuning::{self, Permutes, TileShape, Tuning};
use crate::ops::{Align, Target, numbering};

/// The work that a plan is for. Two layouts, two alignments and a target alone decide it.
#[derive(Debug, Clone)]
pub(super) struct Task<'a> {
    /// The work in elements of the layouts' width.
    pub(super) canonical: &'a Canonical,
    /// Alignment of the source's storage.
    pub(super) src_align: Align,
    /// Alignment of the destination's storage.
    pub(super) dst_align: Align,
    /// The architecture that the plan is for.
    pub(super) target: Target,
    /// Its tuning policy.
    pub(super) tuning: &'static Tuning,
    /// Which kernels may do it.
    pub(super) choice: Choice,
    widened: OnceCell<Widened>,
    tiling: OnceCell<Result<Tiling, Decline>>,
}

/// Which kernels a plan may choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// Every kernel, with the target's tiles, which are cut to be full.
    Any,
    /// The kernels for large arrays, whatever the size, with this shape of a tile, or without
    /// tiles.
    Large(Option<TileShape>),
}

/// The work in the widest elements that both sides keep together.
#[derive(Debug, Clone)]
pub(super) struct Widened {
    /// The work.
    pub(super) canonical: Canonical,
    /// The number of its elements.
    pub(super) len: usize,
    /// The arithmetic that is wide enough for them.
    pub(super) index: Index,
}

impl<'a> Task<'a> {
    pub(super) fn new(
        canonical: &'a Canonical,
        [src_align, dst_align]: [Align; 2],
        target: Target,
        choice: Choice,
    ) -> Self {
        let tuning = Tuning::of(target);
        let (widened, tiling) = (OnceCell::new(), OnceCell::new());
        Self { canonical, src_align, dst_align, target, tuning, choice, widened, tiling }
    }

    /// The work in the widest elements that both sides keep together.
    pub(super) fn widened(&self) -> &Widened {
        self.widened.get_or_init(|| {
            let canonical = self.canonical.widened(self.src_align, self.dst_align);
            let (len, index) = (canonical.len(), numbering::index(&canonical));
            Widened { canonical, len, index }
        })
    }

    /// How tiles of one axis a side would be cut, if they are worth it. Several strategies ask.
    pub(super) fn tiling(&self) -> &Result<Tiling, Decline> {
        self.tiling.get_or_init(|| Tiling::new(self))
    }

    /// The shape of a tile of such elements.
    pub(super) fn tile_shape(&self, width: usize) -> Option<TileShape> {
        match self.choice {
            Choice::Any => TileShape::of(self.target).iter().find(|shape| shape.width() == width).copied(),
            Choice::Large(shape) => shape,
        }
    }

    /// Whether small arrays have kernels of their own, and tiles that would be empty are cut
    /// otherwise.
    pub(super) fn may_adapt(&self) -> bool {
        self.choice == Choice::Any
    }

    /// The constants of permutes.
    pub(super) fn permutes(&self) -> &'static Permutes {
        &self.tuning.permutes
    }

    /// Bytes of one side's elements.
    pub(super) fn bytes(&self) -> usize {
        self.canonical.len() * self.canonical.width
    }

    /// The lesser of the two alignments, in bytes.
    pub(super) fn align(&self) -> usize {
        self.src_align.min(self.dst_align).bytes() as usize
    }

    /// The family's kernel for elements of that width, with hints to the L2 cache where they are
    /// for an array of this size; a decline where the family has none.
    pub(super) fn kernel(&self, family: Family, width: usize, index: Index) -> Result<EntryId, Decline> {
        Ok(self.hinted(self.unhinted(family, width, index)?))
    }

    /// The same without hints.
    pub(super) fn unhinted(&self, family: Family, width: usize, index: Index) -> Result<EntryId, Decline> {
        let gap = "there is no such kernel for elements of this width";
        found(family.entry(width, index), "kernels for elements of this width", gap)
    }

    /// The entry with hints to the L2 cache, where they are for so many bytes, or for large arrays.
    pub(super) fn hinted(&self, entry: EntryId) -> EntryId {
        let bytes = if self.may_adapt() { self.bytes() as u64 } else { u64::MAX };
        tuning::hinted(entry, bytes, self.target)
    }
}

/// The largest power of two that divides these bits, which stand for bytes.
pub(super) fn power_of_two(bits: usize) -> usize {
    bits & bits.wrapping_neg()
}
