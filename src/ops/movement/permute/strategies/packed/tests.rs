use super::*;
use crate::abi::{PackedSide, PackedTiles};
use crate::layout::Layout;
use crate::layout::walk::Canonical;
use crate::ops::movement::permute::task::{Choice, Task};
use crate::ops::{Align, Target};

const ALIGNS: [Align; 2] = [Align::ALLOCATION; 2];
const TARGET: Target = Target::new((9, 0));

fn canonical(shape: &[usize], axes: &[usize], width: usize) -> Canonical {
    let src = Layout::row_major(shape).unwrap().permuted_axes(axes).unwrap();
    let dst = Layout::row_major(src.shape()).unwrap();
    Canonical::new(&src, &dst, width)
}

/// Returns the task without tiles of one axis per side.
fn task(canonical: &Canonical) -> Task<'_> {
    Task::new(canonical, ALIGNS, TARGET, Choice::Large(None))
}

fn plan(canonical: &Canonical) -> Option<PackedParams> {
    let mut launch = None;
    consider(&task(canonical), &mut launch).ok()?;
    match launch? {
        Launch::Packed(step) => Some(step.params),
        _ => None,
    }
}

fn params(shape: &[usize], axes: &[usize], width: usize) -> PackedParams {
    plan(&canonical(shape, axes, width)).unwrap()
}

/// Returns the tile that a block takes.
fn grown(shape: &[usize], axes: &[usize], width: usize) -> Packing {
    let canonical = canonical(shape, axes, width);
    let task = task(&canonical);
    let packing = Packing::forwards(&task.widened().canonical).ok().unwrap();
    packing.grown(ALIGNS, &task.permutes().packed).0
}

#[test]
fn runs_of_both_sides_grow_over_short_axes() {
    for (shape, axes, width) in [
        (&[24, 22, 20, 24, 22, 20][..], &[5, 3, 1, 4, 2, 0][..], 1),
        (&[16, 17, 18, 19, 20, 21], &[5, 4, 3, 2, 1, 0], 2),
        (&[24, 25, 26, 27, 28], &[4, 2, 0, 3, 1], 4),
        (&[13, 11, 9, 12, 14], &[4, 3, 2, 1, 0], 8),
    ] {
        let PackedParams { src_side, dst_side, .. } = params(shape, axes, width);
        for side in [src_side, dst_side] {
            assert!(side.inner_rank > 1 && side.len * width as u64 >= 64, "{shape:?} of {width} bytes: {side:?}");
        }
        assert_eq!(src_side.len * src_side.runs, dst_side.len * dst_side.runs, "{shape:?}");
    }
}

#[test]
fn small_matrices_go_side_by_side() {
    let PackedParams { src_side, dst_side, tiles: PackedTiles { chunk, .. }, .. } =
        params(&[40_000, 32, 31], &[0, 2, 1], 2);
    assert_eq!((src_side.len, src_side.runs), (992, 6));
    assert_eq!((dst_side.len, dst_side.runs), (992, 6));
    assert_eq!(chunk, [6, 1]);
}

/// The source's nearest axis also ends the destination's run, of which each index holds 4, 16 and
/// 128 elements. Parts that suit the destination alone would begin between sectors of the source.
#[test]
fn parts_of_an_axis_suit_the_sectors_of_both_runs() {
    for (shape, width, inner) in
        [(&[39, 4, 321_840][..], 4, 4), (&[64, 16, 8192], 8, 16), (&[8, 128, 3392], 1, 128), (&[100, 8, 56_160], 4, 8)]
    {
        let mut packing = Packing::new(&canonical(shape, &[0, 2, 1], width)).ok().unwrap();
        packing.grow([6 * inner * 255; 2], [1, 1], ALIGNS, VECTOR);
        let axis = packing.src.axes[0];
        let (taken, extent) = (packing.taken[axis], packing.axes[axis].extent);
        assert!(packing.taken[packing.dst.axes[0]] == inner && taken < extent, "{shape:?}: {:?}", packing.taken);
        assert_eq!(taken * width % 32, 0, "{shape:?}: {taken} of {extent}");
    }
}

/// The destination's rows start between sectors: f64 255 x 256 x 257 reached 0.93 of the copy with
/// runs twice as long there, and 0.80 with equal ones.
#[test]
fn runs_are_longer_on_the_side_that_is_off_sectors() {
    for (shape, axes, width, [src, dst]) in
        [(&[255, 256, 257][..], &[1, 2, 0][..], 8, [32, 64]), (&[512, 512, 511], &[2, 1, 0], 1, [192, 64])]
    {
        let packing = grown(shape, axes, width);
        assert_eq!([packing.run(&packing.src), packing.run(&packing.dst)], [src, dst], "{shape:?} of {width} bytes");
    }
}

#[test]
fn words_keep_their_alignment_and_their_runs_apart_in_shared_memory() {
    for (shape, axes, width) in [
        (&[511, 64, 129][..], &[2, 1, 0][..], 1),
        (&[700, 33, 31], &[0, 2, 1], 1),
        (&[33, 65, 27, 29], &[3, 1, 0, 2], 1),
        (&[33, 65, 27, 29], &[3, 1, 0, 2], 2),
        (&[16, 17, 18, 19], &[3, 2, 1, 0], 2),
    ] {
        let PackedSide { outer_rank, outer, len, .. } = params(shape, axes, width).src_side;
        for digit in &outer[..outer_rank as usize] {
            let bytes = digit.stride * width as i64;
            assert_eq!((i64::from(digit.room) - bytes) % 4, 0, "{shape:?} of {width} bytes: {digit:?}");
            let apart = if bytes % 4 == 0 { 0 } else { 3 };
            assert!(u64::from(digit.room) >= len * width as u64 + apart, "{shape:?} of {width} bytes: {digit:?}");
        }
    }
}

#[test]
fn lanes_that_gather_from_aligned_runs_share_no_bank() {
    for (shape, axes, width) in [
        (&[40_000, 32, 32][..], &[0, 2, 1][..], 2),
        (&[65_536, 16, 16], &[0, 2, 1], 2),
        (&[200_000, 8, 8], &[0, 2, 1], 1),
        (&[24, 25, 26, 27, 28], &[4, 2, 0, 3, 1], 4),
        (&[384, 512, 640], &[2, 1, 0], 2),
        (&[48, 50, 52, 54], &[3, 2, 1, 0], 16),
        (&[255, 256, 257], &[2, 1, 0], 8),
    ] {
        let packing = grown(shape, axes, width);
        let (room, turn) = packing.arrangement([true, true], 4);
        assert_eq!(packing.conflicts(&packing.words(&room), turn), 0, "{shape:?} of {width} bytes: {room:?}");
    }
}

#[test]
fn what_gaps_on_both_sides_leave_of_a_tile_is_worth_a_block() {
    for (rows, [src_pitch, dst_pitch], cols, is_worth) in
        [(200_000, [4, 4], 3, false), (60_000, [15, 17], 13, false), (60_000, [15, 13], 13, true)]
    {
        let part = |pitch: usize| Layout::row_major(&[rows, pitch]).unwrap().slice(1, ..cols, 1).unwrap();
        let packed = plan(&Canonical::new(&part(src_pitch), &part(dst_pitch), 1));
        assert_eq!(packed.is_some(), is_worth, "{cols} of {src_pitch} to {cols} of {dst_pitch}");
    }
}
