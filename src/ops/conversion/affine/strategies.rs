//! The list of strategies that map elements: the first that takes the work does it.

mod elements;
mod images;
mod tiles;

use std::fmt;

use super::axes::Axes;
use super::{Affine, Channels};
use crate::abi::{AffineElementsParams, AffineTileParams, AffineValues, Divisor, NormalizeParams, affine_type};
use crate::element::DType;
use crate::error::{Result, counted};
use crate::layout::Layout;
use crate::layout::walk::Axis;
use crate::ops::plan::{AnyStep, Decline, Step, at_most, placed};
use crate::ops::units::VECTOR;
use crate::ops::{Align, Target};

/// The task that every strategy looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) axes: Axes,
    /// The types of source and destination.
    types: [DType; 2],
    /// The largest power of two of bytes, up to a vector's, that divides the starts of both
    /// storages.
    align: usize,
    /// The images, if values are launch parameters and the layouts describe images.
    images: Option<images::Images>,
    /// The number of channels whose values are launch parameters.
    with_launch: usize,
    target: Target,
}

impl Task {
    pub(super) fn new(
        [src, dst]: [&Layout; 2],
        aligns: [Align; 2],
        types: [DType; 2],
        channels: Channels,
        target: Target,
    ) -> Result<Self> {
        let axes = Axes::new(src, dst, channels.axis())?;
        let align = VECTOR.min(aligns[0].min(aligns[1]).bytes() as usize);
        let (images, with_launch) = match channels {
            Channels::WithLaunch(axis) => (images::Images::of([src, dst], aligns, types, axis), src.shape()[axis]),
            _ => (None, 0),
        };
        Ok(Self { axes, types, align, images, with_launch, target })
    }

    /// Declines values that are launch parameters, for the kernels of any layout.
    fn check_in_memory(&self) -> Result<(), Decline> {
        let reason = "its kernels read factors and offsets from device memory, and these are launch parameters";
        at_most(self.with_launch, 0, WITH_LAUNCH, reason)
    }

    fn widths(&self) -> [usize; 2] {
        self.types.map(DType::width)
    }

    /// Returns the kernels' numbers for the types, which the plan has checked.
    fn codes(&self) -> [u64; 2] {
        self.types.map(|dtype| affine_type(dtype).unwrap_or_default())
    }
}

/// A way to map elements.
pub(super) struct Strategy {
    pub(super) name: &'static str,
    /// Why it takes its work.
    pub(super) about: &'static str,
    /// Plans the work, or says why it declines.
    pub(super) plan: fn(&Task) -> Result<Launch, Decline>,
}

/// The strategies, in the order in which they look at the work.
pub(super) const STRATEGIES: [Strategy; 4] = [
    Strategy {
        name: "images",
        about: "images of bytes become planes, and their values are launch parameters",
        plan: images::plan,
    },
    Strategy {
        name: "tiles of vectors",
        about: "the sides are contiguous along different axes, in whole vectors",
        plan: tiles::vectors,
    },
    Strategy { name: "padded tiles", about: "the sides are contiguous along different axes", plan: tiles::padded },
    Strategy { name: "elements", about: "element by element, in the destination's order", plan: elements::plan },
];

/// The quantity that distinguishes images from the work of the other strategies.
const WITH_LAUNCH: &str = "channels whose values are launch parameters";

/// A launch, by its kernel's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Launch {
    Images(Step<NormalizeParams>),
    Tile(Step<AffineTileParams>),
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
            Self::Elements(step) => step,
        }
    }
}

/// Returns the values that all launches share: the number of elements, or of images, that follow
/// each other with one channel, and the number of channels, at least 1.
fn channels(axes: &[Axis], channel: Option<usize>, reversed: bool, divisor: fn(u64) -> Divisor) -> AffineValues {
    let (inner, count) =
        channel.map_or((1, 1), |at| (axes[..at].iter().map(|axis| axis.extent).product::<usize>(), axes[at].extent));
    let [inner, channels] = [inner, count].map(|number| divisor(number as u64));
    let step = if reversed { -1 } else { 1 };
    AffineValues { factor: 0, offset: 0, factors: 0, offsets: 0, step, inner, channels }
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
            Self::Tile(Step { entry, shape, params: AffineTileParams { rows, cols, rank, axes, .. } }) => {
                let images: u64 = axes[..*rank as usize].iter().map(|axis| axis.extent.value).product();
                write!(f, "{entry}: {images} of {rows} x {cols} elements, {shape}")
            }
        }
    }
}
