//! Turns numbers into offsets along several axes.

use crate::abi::{Axis, Divisor, Fold};
use crate::index::Index;

/// Offsets in elements from the starts of both sides.
#[derive(Clone, Copy)]
pub struct Offsets<I> {
    /// The offset in the source.
    pub src: I,
    /// The offset in the destination.
    pub dst: I,
}

/// Returns the offsets of the elements with these numbers. The first of the `rank` axes is the
/// innermost.
///
/// Each axis is written out: a parameter that is indexed at run time would be copied to local
/// memory first.
#[inline(always)]
pub fn offsets<I: Index, const N: usize, const AXES: usize>(
    numbers: [I; N],
    axes: &[Axis; AXES],
    rank: u64,
) -> [Offsets<I>; N] {
    let mut rest = numbers;
    let mut offsets = [Offsets { src: I::new(0), dst: I::new(0) }; N];
    macro_rules! walk {
        ($($axis:literal)*) => {
            'walk: {$(
                if AXES <= $axis || rank <= $axis {
                    break 'walk;
                }
                step(&axes[$axis], &mut rest, &mut offsets);
            )*}
        };
    }
    walk!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    offsets
}

/// Steps along one axis by the least digit of each number, and leaves the other digits.
#[inline(always)]
fn step<I: Index, const N: usize>(axis: &Axis, rest: &mut [I; N], offsets: &mut [Offsets<I>; N]) {
    let extent = I::truncate(axis.extent.value);
    let (src, dst) = (I::truncate(axis.src_stride as u64), I::truncate(axis.dst_stride as u64));
    for i in 0..N {
        let quotient = rest[i].divide(&axis.extent);
        let position = rest[i] - quotient * extent;
        offsets[i].src = offsets[i].src + position * src;
        offsets[i].dst = offsets[i].dst + position * dst;
        rest[i] = quotient;
    }
}

/// Returns the remainder of a division.
#[inline(always)]
pub fn remainder<I: Index>(number: I, quotient: I, by: &Divisor) -> I {
    number - quotient * I::truncate(by.value)
}

/// Returns the offset of a row, in elements from row 0.
#[inline(always)]
pub fn fold<I: Index>(row: I, rows: &Fold) -> I {
    let outer = row.divide(&rows.inner);
    let inner = remainder(row, outer, &rows.inner);
    inner * I::truncate(rows.inner_stride as u64) + outer * I::truncate(rows.outer_stride as u64)
}
