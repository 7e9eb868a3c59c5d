//! Positions along several axes, by one number.

use crate::abi::{Axis, Divisor, Fold, MAX_AXES};
use crate::index::Index;

/// Offsets in elements from the starts of both sides.
#[derive(Clone, Copy)]
pub struct Offsets<I> {
    /// In the source.
    pub src: I,
    /// In the destination.
    pub dst: I,
}

/// Where the elements of these numbers lie. The first of the `rank` axes is the innermost.
///
/// Spelled out axis by axis: a parameter whose place is computed at run time would be copied to
/// local memory first.
#[inline(always)]
pub fn offsets<I: Index, const N: usize>(numbers: [I; N], axes: &[Axis; MAX_AXES], rank: u64) -> [Offsets<I>; N] {
    let mut rest = numbers;
    let mut offsets = [Offsets { src: I::new(0), dst: I::new(0) }; N];
    macro_rules! walk {
        ($($axis:literal)*) => {
            'walk: {$(
                if rank <= $axis {
                    break 'walk;
                }
                step(&axes[$axis], &mut rest, &mut offsets);
            )*}
        };
    }
    walk!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    offsets
}

/// Goes along one axis by the least digit of each number, and leaves the others.
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

/// What a division leaves.
#[inline(always)]
pub fn remainder<I: Index>(number: I, quotient: I, by: &Divisor) -> I {
    number - quotient * I::truncate(by.value)
}

/// Where a row lies, in elements from row 0.
#[inline(always)]
pub fn fold<I: Index>(row: I, rows: &Fold) -> I {
    let outer = row.divide(&rows.inner);
    let inner = remainder(row, outer, &rows.inner);
    inner * I::truncate(rows.inner_stride as u64) + outer * I::truncate(rows.outer_stride as u64)
}
