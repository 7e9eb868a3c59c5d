//! Contiguous operands: where their vectors lie, and the checks of a launch.

use std::ops::Range;

use crate::abi::Span;
use crate::element::DType;
use crate::error::{Error, Result, counted};
use crate::ops::operand::{Operand, bytes_from, check_aligned};
use crate::ops::units::VECTOR;

/// The start of contiguous elements: the remainder of their address modulo 256 bytes.
///
/// Operations on contiguous arrays move vectors of 16 bytes if all operands have vectors at the
/// same elements. So their plans depend on starts, while plans for layouts depend on an
/// [`Align`](crate::ops::Align).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Phase(u8);

impl Phase {
    /// The start of an allocation, and so of every [`DeviceBuffer`](crate::memory::DeviceBuffer).
    pub const ALIGNED: Self = Self(0);

    /// Returns the start of elements at an address.
    pub const fn of(address: u64) -> Self {
        Self(address as u8)
    }

    /// Returns the bytes from the last multiple of 256.
    pub(crate) const fn bytes(self) -> u64 {
        self.0 as u64
    }

    /// Returns the bytes from the last multiple of a smaller power of two.
    const fn modulo(self, bytes: u16) -> Self {
        Self((self.0 as u16 % bytes) as u8)
    }
}

/// The bytes of a vector: most plans depend on starts modulo these.
const MODULO: u16 = VECTOR as u16;

/// The contiguous elements that a plan was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Contiguous {
    pub(super) dtype: DType,
    pub(super) len: u64,
    start: Phase,
    /// The start is known modulo this number of bytes: a vector's 16, or 256.
    modulo: u16,
}

impl Contiguous {
    /// Describes `len` elements with this start.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the start is not a multiple of an element.
    pub(super) fn new(which: &str, dtype: DType, len: u64, start: Phase) -> Result<Self> {
        let width = dtype.width() as u64;
        if start.bytes().is_multiple_of(width) {
            return Ok(Self { dtype, len, start: start.modulo(MODULO), modulo: MODULO });
        }
        Err(Error::argument(format!(
            "the {which} starts {} behind a multiple of 256, which cuts an element of {dtype}; give a start at a \
                 multiple of {width}",
            counted(start.bytes(), "byte")
        )))
    }

    /// Returns the same elements for a plan that depends on the whole start.
    pub(super) fn exactly(self, start: Phase) -> Self {
        Self { start, modulo: 256, ..self }
    }

    /// Returns the bytes of the elements, at most 2^64 - 1.
    pub(super) fn bytes(&self) -> u64 {
        self.len.saturating_mul(self.dtype.width() as u64)
    }

    /// Returns the bytes of the elements if the first is at this address.
    pub(super) fn range(&self, address: u64) -> Range<u128> {
        bytes_from(address, u128::from(self.len) * self.dtype.width() as u128)
    }

    /// Returns the start.
    pub(super) fn start(&self) -> Phase {
        self.start
    }

    /// Returns the bytes from the start of a view's storage to its first element, if the view
    /// matches the plan.
    ///
    /// # Errors
    ///
    /// `Layout` if the view has gaps, or its type, length or start is not the planned one.
    pub(super) fn in_view(&self, operand: &Operand<'_>) -> Result<u64> {
        let start = operand.first_byte()?;
        let (len, phase) = (operand.layout.len() as u64, Phase::of(start).modulo(self.modulo));
        if operand.dtype == self.dtype && len == self.len && (phase == self.start || len == 0) {
            return Ok(start);
        }
        Err(Error::layout(format!(
            "the {} has {}, and the plan was made for {}; make a plan for this {}",
            operand.name,
            self.described(operand.dtype, len, phase),
            self.described(self.dtype, self.len, self.start),
            operand.name
        )))
    }

    /// Checks that an address has the planned start.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it does not.
    pub(super) fn check_address(&self, which: &str, address: u64) -> Result<()> {
        check_aligned(&[(which, address, self.dtype.width() as u64)])?;
        let phase = Phase::of(address).modulo(self.modulo);
        if phase == self.start || self.len == 0 {
            return Ok(());
        }
        Err(Error::argument(format!(
            "the {which}'s address {address:#x} lies {} behind a multiple of {}, and the plan was made for {}; make a \
                 plan for this address",
            counted(phase.bytes(), "byte"),
            self.modulo,
            self.start.bytes()
        )))
    }

    fn described(&self, dtype: DType, len: u64, phase: Phase) -> String {
        let (len, bytes) = (counted(len, "element"), counted(phase.bytes(), "byte"));
        format!("{len} of {dtype} that start {bytes} behind a multiple of {}", self.modulo)
    }
}

/// Returns the start of a view's elements.
pub(super) fn phase(operand: &Operand<'_>) -> Result<Phase> {
    operand.first_byte().map(Phase::of)
}

/// Returns the vectors of `len` elements of `width` bytes with these starts.
pub(super) fn span(len: u64, width: u64, starts: &[Phase]) -> Span {
    common_span(len, VECTOR as u64 / width, starts.iter().map(|&start| (start, width)))
}

/// Returns the runs of `count` elements that start on a multiple of their own bytes, at the same
/// elements of all sides. Each side gives a start and the width of its elements, which divides the
/// start. A run of the side with the widest elements is a vector.
pub(super) fn common_span(len: u64, count: u64, sides: impl IntoIterator<Item = (Phase, u64)>) -> Span {
    let mut firsts = sides.into_iter().map(|(start, width)| (count - start.bytes() / width % count) % count);
    let first = firsts.next().unwrap_or(0);
    if firsts.any(|other| other != first) {
        return Span { len, first: 0, quads: 0 };
    }
    let first = first.min(len);
    Span { len, first, quads: (len - first) / count }
}

/// Returns the lanes that a span needs: one per run of `count` elements, and one per element
/// outside of runs.
pub(super) fn lanes(span: &Span, count: u64) -> u64 {
    span.quads.max(span.len - span.quads * count)
}

/// Says why a plan for a span moves this number of bytes at once.
pub(super) fn reason(span: &Span) -> String {
    match span.quads {
        0 => "element by element, because the operands have no vectors at the same elements".into(),
        vectors => format!("by {} of {VECTOR} bytes, which start alike on all sides", counted(vectors, "vector")),
    }
}

#[cfg(test)]
mod tests;
