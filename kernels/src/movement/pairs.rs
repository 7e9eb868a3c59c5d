//! Moves several pairs of a source and a destination in one launch, by the bodies for one pair.
//!
//! A launch for each pair costs more than a small pair takes. Each pair has blocks of its own, and
//! a GPU begins them in the order of the pairs.

use super::copy::copy;
use super::elements::elements_along;
use super::patch::patch_of;
use super::small_tile::small_tile;
use super::tile::tile_at;
use crate::abi::{
    CopyPairsParams, CopyParams, ElementsPairsParams, PAIRS, PAIRS_AXES, Pair, PatchPairsParams, PatchParams,
    TransposePairsParams, TransposeParams,
};
use crate::block::Staggered;
use crate::index::axes::remainder;
use crate::index::{Index, Narrow};
use crate::thread::cache::Unhinted;
use crate::thread::quad::Lanes;
use crate::thread::{self, Word};

/// Returns the pair with this number, bit by bit.
///
/// A parameter that is indexed at run time would be copied to local memory first, and a comparison
/// with each number would become a jump by a table.
#[inline(always)]
fn pair(number: u32, first: Pair, others: &[Pair; PAIRS - 1]) -> Pair {
    let [b, c, d, e, f, g, h] = *others;
    let of_two = |bit: u32, zero: Pair, one: Pair| if number >> bit & 1 == 0 { zero } else { one };
    let [low, high] = [[first, b, c, d], [e, f, g, h]].map(|[zero, one, two, three]| {
        let [even, odd] = [of_two(0, zero, one), of_two(0, two, three)];
        of_two(1, even, odd)
    });
    of_two(2, low, high)
}

/// See [`copy`].
///
/// # Safety
///
/// As [`copy`] for each pair, whose destinations share no byte with each other and with a source.
#[inline(always)]
pub unsafe fn copy_pairs(params: CopyPairsParams) {
    let first = params.first;
    let Pair { src, dst } = pair(thread::block_z(), Pair { src: first.src, dst: first.dst }, &params.others);
    // SAFETY: as the caller promises.
    unsafe { copy::<Unhinted>(CopyParams { src, dst, ..first }) }
}

/// See [`elements`](super::elements()).
///
/// # Safety
///
/// As [`copy_pairs`], for this body.
#[inline(always)]
pub unsafe fn elements_pairs<W: Word, const STEPS: usize>(params: ElementsPairsParams) {
    let Pair { src, dst } = pair(thread::block_z(), params.first, &params.others);
    // SAFETY: as the caller promises.
    unsafe {
        elements_along::<W, Narrow, Unhinted, STEPS, PAIRS_AXES>([src, dst], params.len, params.rank, &params.axes)
    }
}

/// See [`patch`](super::patch()).
///
/// # Safety
///
/// As [`copy_pairs`], for this body.
#[inline(always)]
pub unsafe fn patch_pairs<W: Word>(params: PatchPairsParams) {
    let (first, layer) = (params.first, Narrow::new(thread::block_z()));
    let number = layer.divide(&params.images);
    let image = remainder(layer, number, &params.images);
    let Pair { src, dst } = pair(number.low(), Pair { src: first.src, dst: first.dst }, &params.others);
    // SAFETY: as the caller promises.
    unsafe { patch_of::<W>(PatchParams { src, dst, ..first }, image) }
}

/// Returns the parameters of the pair of this block.
#[inline(always)]
fn transpose(params: TransposePairsParams) -> TransposeParams {
    let first = params.first;
    let Pair { src, dst } = pair(thread::block_z(), Pair { src: first.src, dst: first.dst }, &params.others);
    TransposeParams { src, dst, ..first }
}

/// See [`tile`](super::tile()).
///
/// # Safety
///
/// As [`copy_pairs`], for this body.
#[inline(always)]
pub unsafe fn staggered_pairs<W: Word>(params: TransposePairsParams) {
    let position = (Narrow::new(thread::block_y()), Narrow::new(thread::block_x()));
    // SAFETY: as the caller promises.
    unsafe { tile_at::<W, Narrow, Staggered>(transpose(params), position) }
}

/// See [`small_tile`].
///
/// # Safety
///
/// As [`copy_pairs`], for this body.
#[inline(always)]
pub unsafe fn small_tile_pairs<W: Word + Lanes, const LANES: usize>(params: TransposePairsParams) {
    // SAFETY: as the caller promises.
    unsafe { small_tile::<W, LANES>(transpose(params)) }
}
