//! Computes every element of contiguous arrays, with BabelStream's names and byte counts (Deakin et
//! al. 2018).
//!
//! Halves are computed in single precision and rounded once; other types in their own, with a
//! rounding for each product and each sum. So a CPU that does the same gets the same bits.

mod plan;

pub use plan::ElementwisePlan;
pub(in crate::ops::arithmetic) use plan::shape;

use crate::abi::{AXPY, Family, MUL, NSTREAM, TRIAD};
use crate::array::DeviceArray;
use crate::element::Float;
use crate::error::Result;
use crate::names::written_by_name;
use crate::ops::Target;
use crate::ops::operand::{Operand, in_new_array};
use crate::ops::span::phase;
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// An operation on one or two arrays, element by element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Elementwise {
    /// `dst = scalar * a`: BabelStream's name of [`scale`].
    Mul,
    /// `dst = a + scalar * b`
    Triad,
    /// `dst = dst + (a + scalar * b)`
    NStream,
    /// `dst = dst + scalar * a`
    Axpy,
}

impl Elementwise {
    /// Every operation.
    #[doc(hidden)]
    pub const ALL: [Self; 4] = [Self::Mul, Self::Triad, Self::NStream, Self::Axpy];

    /// Returns the name, the number of arrays that it reads, that of sources, and the kernels.
    const fn row(self) -> (&'static str, u64, usize, Family) {
        match self {
            Self::Mul => ("mul", 1, 1, MUL),
            Self::Triad => ("triad", 2, 2, TRIAD),
            Self::NStream => ("nstream", 3, 2, NSTREAM),
            Self::Axpy => ("axpy", 2, 1, AXPY),
        }
    }

    /// Returns the name on the command line and in reports.
    #[doc(hidden)]
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// Returns the number of arrays that it reads; it writes one.
    #[doc(hidden)]
    pub fn reads(self) -> u64 {
        self.row().1
    }

    /// Returns the number of sources besides the destination.
    #[doc(hidden)]
    pub fn sources(self) -> usize {
        self.row().2
    }

    fn family(self) -> Family {
        self.row().3
    }
}

written_by_name!(Elementwise);

/// Computes `scalar * a` into a new buffer, on the default stream. [`mul`](crate::ops::mul())
/// takes two arrays too, and any layouts.
///
/// # Errors
///
/// As [`scale_into`]; `OutOfMemory` if the result does not fit.
#[track_caller]
pub fn scale<'a, T: Float>(scalar: T, a: impl Into<View<'a, T>>) -> Result<DeviceArray<T>> {
    let a = a.into();
    in_new_array(a.device(), a.shape(), |dst, stream| scale_into(scalar, a, dst, stream))
}

/// Computes `a + scalar * b` into a new buffer, on the default stream.
///
/// # Errors
///
/// As [`scale`].
#[track_caller]
pub fn triad<'a, T: Float>(a: impl Into<View<'a, T>>, scalar: T, b: impl Into<View<'a, T>>) -> Result<DeviceArray<T>> {
    let (a, b) = (a.into(), b.into());
    in_new_array(a.device(), a.shape(), |dst, stream| triad_into(a, scalar, b, dst, stream))
}

/// Queues `dst = scalar * a` on `stream`. Moves `2 n` elements.
///
/// # Errors
///
/// `Layout` if the shapes differ or an operand does not lie in C order without gaps;
/// `InvalidArgument` if the operands and the stream are not on one device; else the driver's error.
pub fn scale_into<'a, T: Float>(
    scalar: T,
    a: impl Into<View<'a, T>>,
    dst: impl Into<ViewMut<'a, T>>,
    stream: &Stream,
) -> Result<()> {
    queue(Elementwise::Mul, scalar.to_f64(), &[a.into()], dst.into(), stream)
}

/// Queues `dst = a + scalar * b` on `stream`. Moves `3 n` elements.
///
/// # Errors
///
/// As [`scale_into`].
pub fn triad_into<'a, T: Float>(
    a: impl Into<View<'a, T>>,
    scalar: T,
    b: impl Into<View<'a, T>>,
    dst: impl Into<ViewMut<'a, T>>,
    stream: &Stream,
) -> Result<()> {
    queue(Elementwise::Triad, scalar.to_f64(), &[a.into(), b.into()], dst.into(), stream)
}

/// Queues `dst = dst + (a + scalar * b)` on `stream`. Moves `4 n` elements.
///
/// # Errors
///
/// As [`scale_into`].
pub fn nstream_into<'a, T: Float>(
    a: impl Into<View<'a, T>>,
    scalar: T,
    b: impl Into<View<'a, T>>,
    dst: impl Into<ViewMut<'a, T>>,
    stream: &Stream,
) -> Result<()> {
    queue(Elementwise::NStream, scalar.to_f64(), &[a.into(), b.into()], dst.into(), stream)
}

/// Queues `dst = dst + scalar * a` on `stream`. Moves `3 n` elements.
///
/// # Errors
///
/// As [`scale_into`].
pub fn axpy_into<'a, T: Float>(
    scalar: T,
    a: impl Into<View<'a, T>>,
    dst: impl Into<ViewMut<'a, T>>,
    stream: &Stream,
) -> Result<()> {
    queue(Elementwise::Axpy, scalar.to_f64(), &[a.into()], dst.into(), stream)
}

/// Plans and launches.
fn queue<T: Float>(
    operation: Elementwise,
    scalar: f64,
    sources: &[View<'_, T>],
    dst: ViewMut<'_, T>,
    stream: &Stream,
) -> Result<()> {
    let start = |at: usize| phase(&Operand::read("source", &sources[at.min(sources.len() - 1)]));
    let to_start = phase(&Operand::written("destination", &dst))?;
    let (starts, target) = ([start(0)?, start(1)?], Target::of(dst.device()));
    let plan = ElementwisePlan::new(operation, T::DTYPE, dst.len() as u64, starts, to_start, target)?;
    plan.launch(scalar, sources, dst, stream)
}
