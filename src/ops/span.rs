//! Contiguous operands: what is wrong with them, and where their quads lie.

use crate::abi::Span;

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
