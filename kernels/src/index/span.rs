//! The elements of a range that lie outside of its quads.

use crate::abi::Span;

/// The element outside of all quads that a lane has, of `lanes` elements a quad.
#[inline(always)]
pub fn single(span: &Span, lanes: u64, lane: u64) -> Option<u64> {
    let within = span.quads * lanes;
    let element = if lane < span.first { lane } else { lane + within };
    (element < span.len).then_some(element)
}
