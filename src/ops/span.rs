//! Contiguous operands: what is wrong with them, and where their quads lie.

use super::{check_aligned, check_apart};
use crate::abi::Span;
use crate::element::Element;
use crate::error::{Error, ErrorKind, Result};
use crate::layout::Layout;

/// Bytes of a quad.
const QUAD: u64 = 16;

/// The quads of `len` elements of `width` bytes from each of these addresses, which are multiples of it.
pub(super) fn span(len: u64, width: u64, addresses: &[u64]) -> Span {
    common_span(len, QUAD / width, addresses.iter().map(|&address| (address, width)))
}

/// The runs of `count` elements that start on as many bytes as they have, at the same elements of all sides: each an address and
/// the width of its elements, which the address is a multiple of. A run of the side with the widest is a quad.
pub(super) fn common_span(len: u64, count: u64, sides: impl IntoIterator<Item = (u64, u64)>) -> Span {
    let mut firsts = sides.into_iter().map(|(address, width)| (count - address / width % count) % count);
    let first = firsts.next().unwrap_or(0);
    if firsts.any(|other| other != first) {
        return Span { len, first: 0, quads: 0 };
    }
    let first = first.min(len);
    Span { len, first, quads: (len - first) / count }
}

/// Lanes that a span needs: one a quad, and one an element outside of them.
pub(super) fn lanes(span: &Span, width: u64) -> u64 {
    span.quads.max(span.len - span.quads * (QUAD / width))
}

/// Whether two operands have one shape.
pub(super) fn check_shapes(one: &Layout, other: &Layout) -> Result<()> {
    if one.shape() == other.shape() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Layout,
        format!(
            "the operands have shapes {:?} and {:?}; give views of one shape (split_axis, broadcast and contiguous help)",
            one.shape(),
            other.shape()
        ),
    ))
}

/// Bytes from the start of a storage to its first element, where the elements lie in C order without gaps.
pub(super) fn start<T: Element>(layout: &Layout) -> Result<u64> {
    if layout.is_standard_layout() {
        return Ok((layout.offset() * size_of::<T>()) as u64);
    }
    Err(Error::new(
        ErrorKind::Layout,
        format!(
            "an operand of shape {:?} has strides {:?}; arithmetic takes elements in C order without gaps: copy it first \
             (contiguous, copy_into)",
            layout.shape(),
            layout.strides()
        ),
    ))
}

/// What can be seen to be wrong with the raw addresses of a source and a destination of so many bytes: not a multiple of their
/// elements' width, or one over the other.
pub(super) fn check_addresses([src, dst]: [(u64, u64); 2], bytes: [u128; 2]) -> Result<()> {
    check_aligned(&[("source", src.0, src.1), ("destination", dst.0, dst.1)])?;
    let [from, to] = [src.0, dst.0].map(u128::from);
    check_apart(from..from + bytes[0], to..to + bytes[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quads_start_at_the_first_boundary_that_all_have() {
        assert_eq!(span(100, 4, &[256, 512]), Span { len: 100, first: 0, quads: 25 });
        assert_eq!(span(100, 4, &[260, 516]), Span { len: 100, first: 3, quads: 24 });
        assert_eq!(span(100, 4, &[260, 512]), Span { len: 100, first: 0, quads: 0 });
        assert_eq!(span(2, 4, &[260]), Span { len: 2, first: 2, quads: 0 });
        assert_eq!(common_span(100, 4, [(3, 1), (12, 4)]), Span { len: 100, first: 1, quads: 24 });
        assert_eq!(common_span(100, 4, [(3, 1), (16, 4)]), Span { len: 100, first: 0, quads: 0 });
        assert_eq!(span(0, 8, &[264]), Span { len: 0, first: 0, quads: 0 });
    }

    #[test]
    fn lanes_reach_every_element() {
        assert_eq!(lanes(&Span { len: 100, first: 3, quads: 24 }, 4), 24);
        assert_eq!(lanes(&Span { len: 9, first: 3, quads: 1 }, 4), 5);
        assert_eq!(lanes(&Span { len: 100, first: 0, quads: 0 }, 4), 100);
    }
}
