//! The launch of each strategy, by its parameters, and what a launch adds to them.

use std::fmt;

use super::Affine;
use crate::abi::{
    AffineElementsParams, AffineQuadsParams, AffineTileParams, AffineValues, NormalizeParams, PackedQuadsParams,
};
use crate::error::counted;
use crate::ops::plan::{AnyStep, Step, placed};

/// A launch, by its kernel's parameters. They are large: a plan is copied, and made without
/// allocating.
#[expect(clippy::large_enum_variant, reason = "a plan is copied, and made without allocating")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Launch {
    Images(Step<NormalizeParams>),
    Tile(Step<AffineTileParams>),
    Quads(Step<AffineQuadsParams>),
    Elements(Step<AffineElementsParams>),
}

/// The values that a launch adds to a plan: the addresses of the storages, factors and offsets.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Added {
    pub(super) src: u64,
    pub(super) dst: u64,
    pub(super) affine: Affine<u64>,
    /// Bytes from the first channel's values in device memory to the last's.
    pub(super) last: u64,
}

impl Added {
    /// Adds factors and offsets to the planned values. With a negative step the last channel comes
    /// first.
    fn place(&self, planned: AffineValues) -> AffineValues {
        match self.affine {
            Affine::Uniform { factor, offset } => {
                AffineValues { factor: factor.to_bits(), offset: offset.to_bits(), step: 0, ..planned }
            }
            Affine::PerChannel { factors, offsets, .. } => {
                let first = if planned.step < 0 { self.last } else { 0 };
                let [factors, offsets] = [factors, offsets].map(|values| values.wrapping_add(first));
                AffineValues { factors, offsets, ..planned }
            }
            Affine::Normalized { .. } => planned,
        }
    }
}

placed! {
    NormalizeParams: |own, added: Added| {
        let [factors, offsets] = match added.affine {
            Affine::Normalized { by, .. } => by.bits(),
            _ => [own.factors, own.offsets],
        };
        let (src, dst) = (added.src.wrapping_add(own.src), added.dst.wrapping_add(own.dst));
        Self { src, dst, factors, offsets, ..own }
    };
    AffineTileParams: |own, added: Added| {
        let (src, dst) = (added.src.wrapping_add(own.src), added.dst.wrapping_add(own.dst));
        Self { src, dst, values: added.place(own.values), ..own }
    };
    AffineQuadsParams: |own, added: Added| {
        Self { quads: own.quads.at([added.src, added.dst]), values: added.place(own.values), ..own }
    };
    AffineElementsParams: |own, added: Added| {
        Self { elements: own.elements.at([added.src, added.dst]), values: added.place(own.values), ..own }
    };
}

impl Launch {
    /// Returns what all launches share.
    pub(super) fn step(&self) -> &dyn AnyStep<Added> {
        match self {
            Self::Images(step) => step,
            Self::Tile(step) => step,
            Self::Quads(step) => step,
            Self::Elements(step) => step,
        }
    }
}

impl fmt::Display for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Images(Step { entry, shape, params }) => {
                let images = counted(params.images, "image");
                write!(f, "{entry}: {images} of {}, {shape}", counted(params.pixels, "pixel"))
            }
            Self::Elements(Step { entry, shape, params }) => {
                let len = counted(params.elements.len, "element");
                write!(f, "{entry}: {len} along {}, {shape}", counted(params.elements.rank, "axis"))
            }
            Self::Quads(Step { entry, shape, params: AffineQuadsParams { quads, .. } }) => {
                let PackedQuadsParams { src_side, dst_side, .. } = quads;
                let (runs, len) = (counted(src_side.runs, "run"), counted(src_side.len, "element"));
                write!(f, "{entry}: tiles of {runs} of {len}, stored as {} of {}, {shape}", dst_side.runs, dst_side.len)
            }
            Self::Tile(Step { entry, shape, params: AffineTileParams { rows, cols, rank, axes, .. } }) => {
                let images: u64 = axes[..*rank as usize].iter().map(|axis| axis.extent.value).product();
                write!(f, "{entry}: {images} of {rows} x {cols} elements, {shape}")
            }
        }
    }
}
