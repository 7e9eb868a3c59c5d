//! The elements of a range that lie outside of its vectors.

use crate::abi::Span;

/// Returns the element outside of all vectors that a lane moves, with `lanes` elements a vector.
#[inline(always)]
pub fn single(span: &Span, lanes: u64, lane: u64) -> Option<u64> {
    let within = span.quads * lanes;
    let element = if lane < span.first { lane } else { lane + within };
    (element < span.len).then_some(element)
}
