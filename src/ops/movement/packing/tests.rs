use super::*;
use crate::layout::Layout;
use crate::layout::walk::Canonical;
use crate::ops::tuning::Tuning;
use crate::ops::{Target, numbering};

const ALIGNS: [Align; 2] = [Align::ALLOCATION; 2];

fn canonical(shape: &[usize], axes: &[usize], width: usize) -> Canonical {
    let src = Layout::row_major(shape).unwrap().permuted_axes(axes).unwrap();
    let dst = Layout::row_major(src.shape()).unwrap();
    Canonical::new(&src, &dst, width)
}

fn params(shape: &[usize], axes: &[usize], width: usize) -> PackedQuadsParams {
    let canonical = canonical(shape, axes, width);
    let (constants, index) = (Tuning::of(Target::new((9, 0))).permutes.quads, numbering::index(&canonical));
    let mut packing = Packing::new(&canonical, [width; 2]).ok().unwrap();
    packing.grow_quads(&constants, ALIGNS);
    packing.cut(&canonical, index, ALIGNS, &constants, None).ok().unwrap().params
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
        let mut packing = Packing::new(&canonical(shape, &[0, 2, 1], width), [width; 2]).ok().unwrap();
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

/// Bytes become halves: the source's runs are measured in its width, the destination's in its own.
#[test]
fn each_side_has_the_vectors_of_its_own_width() {
    let canonical = canonical(&[64, 96], &[1, 0], 1);
    let constants = Tuning::of(Target::new((9, 0))).permutes.quads;
    let mut packing = Packing::new(&canonical, [1, 2]).ok().unwrap();
    packing.grow_quads(&constants, ALIGNS);
    let marked = Marked { axis: Some(0) };
    let Cut { params, .. } = packing.cut(&canonical, Index::Narrow, ALIGNS, &constants, Some(marked)).ok().unwrap();
    let PackedQuadsParams { src_side, dst_side, step, .. } = params;
    assert_eq!((src_side.quads.value * 16, dst_side.quads.value * 16), (src_side.len, 2 * dst_side.len));
    // Neighbours of the destination are the next channel.
    assert_eq!(step >> CHANNEL_SHIFT, 1);
}

#[test]
fn a_vector_lies_between_runs_whose_places_share_a_bank() {
    for (shape, width, is_apart) in
        [(&[64, 3025, 256][..], 2, true), (&[64, 3025, 255], 2, false), (&[64, 3025, 4], 2, false)]
    {
        let canonical = canonical(shape, &[0, 2, 1], width);
        let constants = Tuning::of(Target::new((9, 0))).permutes.quads;
        let mut packing = Packing::new(&canonical, [width; 2]).ok().unwrap();
        packing.grow_quads(&constants, ALIGNS);
        let aligned = packing.grains(ALIGNS)[0] >= VECTOR;
        let (tight, (between, lanes)) = (packing.room(aligned, 0), packing.spread(aligned, &constants));
        assert_eq!(between, if is_apart { VECTOR } else { 0 }, "{shape:?}");
        assert!(!is_apart || lanes.ways < Lanes::of(&packing, &tight).ways, "{shape:?}");
    }
}

/// Structs of 8 bytes, whose fields become runs that start anywhere.
#[test]
fn lanes_gather_across_runs_whose_places_share_a_bank() {
    for (shape, width, is_across) in [
        ([64, 237_249, 8], 1, true),
        ([4, 20_011, 8], 1, true),
        ([4, 20_011, 8], 2, true),
        ([1, 15_413_735, 16], 1, false),
        ([64, 237_249, 3], 1, false),
    ] {
        let canonical = canonical(&shape, &[0, 2, 1], width);
        let constants = Tuning::of(Target::new((9, 0))).permutes.quads;
        let mut packing = Packing::new(&canonical, [width; 2]).ok().unwrap();
        packing.grow_quads(&constants, ALIGNS);
        let aligned = packing.grains(ALIGNS)[0] >= VECTOR;
        let (tight, (_, lanes)) = (packing.room(aligned, 0), packing.spread(aligned, &constants));
        assert_eq!(lanes.across > 1, is_across, "{shape:?} of {width} bytes");
        assert!(!is_across || 2 * lanes.ways <= Lanes::of(&packing, &tight).ways, "{shape:?} of {width} bytes");
        let across = params(&shape, &[0, 2, 1], width).across.value;
        assert_eq!(across, lanes.across as u64, "{shape:?} of {width} bytes");
    }
}
