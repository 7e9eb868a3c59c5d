//! The task that every strategy looks at: the work in its canonical form, and the plan's choices.

use std::cell::OnceCell;

use super::choose::Way;
use super::class::Class;
use super::launch::{Decline, found};
use crate::abi::{EntryId, Family, Index};
use crate::layout::walk::Canonical;
use crate::ops::sectors::sectors;
use crate::ops::tuning::{Permutes, TileShape, Tuning};
use crate::ops::units::SECTOR;
use crate::ops::{Align, Target, numbering};

/// The work of a plan. Only two layouts, two alignments and a target decide it.
#[derive(Debug, Clone)]
pub(super) struct Task<'a> {
    /// The work in elements of the layouts' width.
    pub(super) canonical: &'a Canonical,
    /// Alignment of the source's storage.
    pub(super) src_align: Align,
    /// Alignment of the destination's storage.
    pub(super) dst_align: Align,
    /// The GPU that the plan is for.
    pub(super) target: Target,
    /// Its tuning policy.
    pub(super) tuning: Tuning,
    /// The kernels that the plan may use.
    pub(super) choice: Choice,
    /// True if a kernel may read the bytes between the elements of the source.
    pub(super) may_read_gaps: bool,
    widened: OnceCell<Widened>,
    traffic: OnceCell<f64>,
}

/// The kernels that a plan may choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// Every kernel, with the target's tiles, whose shape may adapt to the array.
    Any,
    /// Tiles of this shape where they take the work, and no tiles without one. Other work goes by
    /// the kernels that suit its size, but by none for small arrays.
    Large(Option<TileShape>),
    /// The kernels for large arrays, as if this one were large, with the target's tiles, whose
    /// shape may adapt to the array.
    AsIfLarge,
    /// This way, or any where it declines.
    Way(Way),
}

/// The work in the widest elements that are contiguous on both sides.
#[derive(Debug, Clone)]
pub(super) struct Widened {
    /// The work.
    pub(super) canonical: Canonical,
    /// The number of its elements.
    pub(super) len: usize,
    /// The narrowest arithmetic that indexes them.
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
        let (widened, traffic) = (OnceCell::new(), OnceCell::new());
        Self { canonical, src_align, dst_align, target, tuning, choice, may_read_gaps: true, widened, traffic }
    }

    /// Returns the same task, for kernels that may read gaps of the source, or may not.
    pub(super) fn reading_gaps(self, may_read_gaps: bool) -> Self {
        Self { may_read_gaps, ..self }
    }

    /// Returns the work in the widest elements that are contiguous on both sides.
    pub(super) fn widened(&self) -> &Widened {
        self.widened.get_or_init(|| {
            let canonical = self.canonical.widened(self.align() as u64);
            let (len, index) = (canonical.len(), numbering::index(&canonical));
            Widened { canonical, len, index }
        })
    }

    /// Returns the class of the work.
    pub(super) fn class(&self) -> Class {
        Class::of(&self.widened().canonical, self.permutes().fields.most)
    }

    /// Returns the bytes of the sectors that hold the elements of both sides, relative to those of
    /// the elements: at least 1. No kernel moves less.
    pub(super) fn traffic(&self) -> f64 {
        *self.traffic.get_or_init(|| {
            let Widened { canonical, len, .. } = self.widened();
            let axes = canonical.axes().iter();
            let src = sectors(axes.clone().map(|axis| (axis.extent, axis.src)), canonical.width);
            let dst = sectors(axes.map(|axis| (axis.extent, axis.dst)), canonical.width);
            let elements = (len * canonical.width) as f64;
            ((src as f64 + dst as f64) * SECTOR as f64 / (2.0 * elements)).max(1.0)
        })
    }

    /// Returns the shape of a tile of elements of this width.
    pub(super) fn tile_shape(&self, width: usize) -> Option<TileShape> {
        match self.choice {
            Choice::Any | Choice::AsIfLarge | Choice::Way(_) => self.tuning.tile_shape(width),
            Choice::Large(shape) => shape,
        }
    }

    /// Returns whether small arrays may use their own kernels.
    pub(super) fn may_be_small(&self) -> bool {
        matches!(self.choice, Choice::Any | Choice::Way(_))
    }

    /// Returns whether the plan is to measure tiles of a given shape.
    pub(super) fn has_given_tiles(&self) -> bool {
        matches!(self.choice, Choice::Large(Some(_)))
    }

    /// Returns whether tiles may take another shape if most of one would be empty.
    pub(super) fn may_adapt(&self) -> bool {
        !matches!(self.choice, Choice::Large(_))
    }

    /// Returns the constants of permutes.
    pub(super) fn permutes(&self) -> &Permutes {
        &self.tuning.permutes
    }

    /// Returns the bytes of one side's elements. A plan that is made as if the array were large
    /// takes it for the largest.
    pub(super) fn bytes(&self) -> usize {
        let bytes = self.canonical.len() * self.canonical.width;
        if self.choice == Choice::AsIfLarge { usize::MAX } else { bytes }
    }

    /// Returns the lesser of the two alignments, in bytes.
    pub(super) fn align(&self) -> usize {
        self.src_align.min(self.dst_align).bytes() as usize
    }

    /// Returns the family's kernel for elements of this width, with hints to the L2 cache if the
    /// array is large enough. Declines if the family has none.
    pub(super) fn kernel(&self, family: Family, width: usize, index: Index) -> Result<EntryId, Decline> {
        Ok(self.hinted(self.unhinted(family, width, index)?))
    }

    /// Returns the same kernel without hints.
    pub(super) fn unhinted(&self, family: Family, width: usize, index: Index) -> Result<EntryId, Decline> {
        let gap = "there is no such kernel for elements of this width";
        found(family.entry(width, index), "kernels for elements of this width", gap)
    }

    /// Returns the entry with hints to the L2 cache if the array is large enough or the plan is to
    /// measure kernels for large arrays.
    pub(super) fn hinted(&self, entry: EntryId) -> EntryId {
        let bytes = if let Choice::Large(_) = self.choice { u64::MAX } else { self.bytes() as u64 };
        self.tuning.hinted(entry, bytes, self.target)
    }
}
