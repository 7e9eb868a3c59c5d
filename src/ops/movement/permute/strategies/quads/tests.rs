use super::*;
use crate::layout::Layout;
use crate::layout::walk::Canonical;
use crate::ops::Target;
use crate::ops::movement::permute::task::Choice;

const ALIGNS: [Align; 2] = [Align::ALLOCATION; 2];

fn canonical(shape: &[usize], axes: &[usize], width: usize) -> Canonical {
    let src = Layout::row_major(shape).unwrap().permuted_axes(axes).unwrap();
    let dst = Layout::row_major(src.shape()).unwrap();
    Canonical::new(&src, &dst, width)
}

fn params(shape: &[usize], axes: &[usize], width: usize) -> PackedQuadsParams {
    let canonical = canonical(shape, axes, width);
    let mut launch = None;
    consider(&Task::new(&canonical, ALIGNS, Target::new((9, 0)), Choice::AsIfLarge), &mut launch).ok().unwrap();
    match launch {
        Some(Launch::Quads(step)) => step.params,
        _ => unreachable!("this strategy launches its own kernel"),
    }
}

#[test]
fn runs_of_both_sides_grow_over_short_axes() {
    for (shape, axes, width) in [
        (&[24, 22, 20, 24, 22, 20][..], &[5, 3, 1, 4, 2, 0][..], 1),
        (&[16, 17, 18, 19, 20, 21], &[5, 4, 3, 2, 1, 0], 2),
        (&[24, 25, 26, 27, 28], &[4, 2, 0, 3, 1], 4),
        (&[12, 6, 5, 6, 7], &[4, 3, 2, 1, 0], 8),
    ] {
        let PackedQuadsParams { src_side, dst_side, .. } = params(shape, axes, width);
        for (side, axis) in [(src_side, shape[shape.len() - 1]), (dst_side, shape[axes[shape.len() - 1]])] {
            let is_long = side.len > axis as u64 && side.len * width as u64 >= 64;
            assert!(is_long, "{shape:?} of {width} bytes: {side:?}");
        }
        assert_eq!(src_side.len * src_side.runs, dst_side.len * dst_side.runs, "{shape:?}");
    }
}

#[test]
fn small_matrices_go_side_by_side() {
    let PackedQuadsParams { src_side, dst_side, tiles, .. } = params(&[40_000, 32, 31], &[0, 2, 1], 2);
    assert_eq!((src_side.len, src_side.runs), (992 * 8, 1));
    assert_eq!((dst_side.len, dst_side.runs), (992 * 8, 1));
    assert_eq!(tiles.chunk, [8, 1]);
}

/// The source's nearest axis also ends the destination's run, of which each index holds 4, 16 and
/// 128 elements. Parts that suit the destination alone would begin between sectors of the source.
#[test]
fn parts_of_an_axis_suit_the_sectors_of_both_runs() {
    for (shape, width, inner) in
        [(&[39, 4, 321_840][..], 4, 4), (&[64, 16, 8192], 8, 16), (&[8, 128, 3392], 1, 128), (&[100, 8, 56_160], 4, 8)]
    {
        let mut packing = Packing::new(&canonical(shape, &[0, 2, 1], width)).ok().unwrap();
        packing.grow([6 * inner * 255; 2], [1, 1], ALIGNS);
        let axis = packing.src.axes[0];
        let (taken, extent) = (packing.taken[axis], packing.axes[axis].extent);
        assert!(packing.taken[packing.dst.axes[0]] == inner && taken < extent, "{shape:?}: {:?}", packing.taken);
        assert_eq!(taken * width % 32, 0, "{shape:?}: {taken} of {extent}");
    }
}

#[test]
fn vectors_keep_their_alignment_and_their_runs_apart_in_shared_memory() {
    for (shape, axes, width) in [
        (&[511, 64, 129][..], &[2, 1, 0][..], 1),
        (&[33, 65, 27, 29], &[3, 1, 0, 2], 1),
        (&[33, 65, 27, 29], &[3, 1, 0, 2], 2),
        (&[16, 17, 18, 19], &[3, 2, 1, 0], 2),
    ] {
        let QuadSide { outer_rank, outer, len, .. } = params(shape, axes, width).src_side;
        assert!(outer_rank > 0, "{shape:?} of {width} bytes has one run");
        for digit in &outer[..outer_rank as usize] {
            let bytes = digit.stride * width as i64;
            assert_eq!((i64::from(digit.room) - bytes) % 16, 0, "{shape:?} of {width} bytes: {digit:?}");
            let apart = if bytes % 16 == 0 { 0 } else { 15 };
            assert!(u64::from(digit.room) >= len * width as u64 + apart, "{shape:?} of {width} bytes: {digit:?}");
        }
    }
}
