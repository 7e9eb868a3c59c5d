use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Maps each byte of the destination's storage to its source, by the layouts.
fn moves(src: &Layout, dst: &Layout, width: usize) -> BTreeMap<usize, usize> {
    let ends = src.offsets().into_iter().zip(dst.offsets());
    let bytes = ends.flat_map(|(from, to)| (0..width).map(move |byte| (to * width + byte, from * width + byte)));
    bytes.collect()
}

/// Maps the same by the canonical axes.
fn walk(canonical: &Canonical) -> BTreeMap<usize, usize> {
    let mut ends = vec![(canonical.src_start, canonical.dst_start)];
    for axis in canonical.axes() {
        let along = |start: usize, stride: isize, at: usize| start.checked_add_signed(stride * at as isize).unwrap();
        let step = |&(src, dst): &(usize, usize)| {
            (0..axis.extent).map(move |at| (along(src, axis.src, at), along(dst, axis.dst, at)))
        };
        ends = ends.iter().flat_map(step).collect();
    }
    assert_eq!(ends.len(), canonical.len());
    let width = canonical.width;
    ends.iter().flat_map(|&(src, dst)| (0..width).map(move |byte| (dst * width + byte, src * width + byte))).collect()
}

/// The placement of an axis on one side: step, gap after it, whether backwards, whether broadcast.
type Place = (usize, usize, bool, bool);

/// Returns a layout with these placements of its axes; the last of `order` is the innermost.
fn layout(shape: &[usize], places: &[Place], order: &[usize], start: usize) -> Layout {
    let (mut strides, mut offset, mut reach) = (vec![0; shape.len()], start, 1);
    for &axis in order.iter().rev() {
        let (step, gap, backwards, broadcast) = places[axis];
        if broadcast {
            continue;
        }
        let stride = (reach * step) as isize;
        offset += if backwards { (shape[axis] - 1) * reach * step } else { 0 };
        strides[axis] = if backwards { -stride } else { stride };
        reach *= shape[axis] * step + gap;
    }
    Layout::new(shape, &strides, offset, start + reach).unwrap()
}

fn place(broadcast: bool) -> impl Strategy<Value = Place> {
    let gap = prop_oneof![4 => Just(0usize), 1 => 1usize..5];
    (prop_oneof![4 => Just(1usize), 1 => 2usize..4], gap, prop::bool::weighted(0.2), prop::bool::weighted(0.15))
        .prop_map(move |(step, gap, backwards, repeated)| (step, gap, backwards, repeated && broadcast))
}

fn sides() -> impl Strategy<Value = (Layout, Layout)> {
    let extent = || prop_oneof![1 => Just(1usize), 3 => 2usize..5, 1 => Just(8usize)];
    prop::collection::vec((extent(), place(true), place(false)), 0..=5).prop_flat_map(|axes| {
        let order = Just((0..axes.len()).collect::<Vec<_>>());
        let either = || prop_oneof![order.clone(), order.clone().prop_shuffle()];
        (Just(axes), either(), either(), 0usize..9, 0usize..9).prop_map(|(axes, src_order, dst_order, src, dst)| {
            let shape: Vec<usize> = axes.iter().map(|axis| axis.0).collect();
            let (of_src, of_dst): (Vec<_>, Vec<_>) = axes.iter().map(|axis| (axis.1, axis.2)).unzip();
            (layout(&shape, &of_src, &src_order, src), layout(&shape, &of_dst, &dst_order, dst))
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_comes_from_where_the_layouts_say((src, dst) in sides(), power in 0u32..5) {
        let width = 1 << power;
        let canonical = Canonical::new(&src, &dst, width);
        prop_assert_eq!(walk(&canonical), moves(&src, &dst, width));
        let axes = canonical.axes();
        prop_assert!(axes.iter().all(|axis| axis.extent > 1 && axis.dst > 0), "{:?}", axes);
        prop_assert!(axes.is_sorted_by(|inner, outer| inner.dst < outer.dst), "{:?}", axes);
        let ends = |axis: &Axis| (axis.src * axis.extent as isize, axis.dst * axis.extent as isize);
        let fused = axes.windows(2).all(|pair| ends(&pair[0]) != (pair[1].src, pair[1].dst));
        prop_assert!(fused, "two of {:?} could be one", axes);
    }

    #[test]
    fn wider_elements_are_the_same_bytes_and_aligned(
        (src, dst) in sides(), power in 0u32..5, align in 0u32..5,
    ) {
        let width = 1 << power;
        let align = (width as u64).max(1 << align);
        let narrow = Canonical::new(&src, &dst, width);
        let wide = narrow.widened(align);
        prop_assert_eq!(walk(&wide), walk(&narrow));
        prop_assert!(wide.width >= width && wide.width <= 16.min(align as usize).max(width));
        // No axis can be fused or widened once more.
        prop_assert_eq!(wide.widened(align), wide);
        prop_assert!(wide.axes().iter().all(|axis| axis.extent > 1));
    }

    #[test]
    fn the_same_work_has_the_same_axes((src, dst) in sides(), turn in any::<prop::sample::Index>()) {
        let canonical = Canonical::new(&src, &dst, 4);
        prop_assert_eq!(Canonical::new(&src.t(), &dst.t(), 4), canonical);
        if src.rank() > 0 {
            let axis = turn.index(src.rank());
            let backwards = |layout: Layout| layout.reverse(axis).unwrap();
            prop_assert_eq!(Canonical::new(&backwards(src), &backwards(dst), 4), canonical);
            let halves = |layout: Layout| layout.split_axis(axis, &[src.shape()[axis] / 2, 2]);
            if let (Ok(src), Ok(dst)) = (halves(src), halves(dst)) {
                prop_assert_eq!(Canonical::new(&src, &dst, 4), canonical);
            }
        }
        if src.rank() < MAX_RANK {
            let longer = |layout: Layout| layout.insert_axis(0).unwrap();
            prop_assert_eq!(Canonical::new(&longer(src), &longer(dst), 4), canonical);
        }
    }
}

#[test]
fn images_to_planes_have_two_axes() {
    // NHWC to NCHW: height and width stay together.
    let images = Layout::row_major(&[8, 20, 30, 3]).unwrap().permuted_axes(&[0, 3, 1, 2]).unwrap();
    let canonical = Canonical::new(&images, &Layout::row_major(&[8, 3, 20, 30]).unwrap(), 1);
    let [pixels, channels, images] = [(600, 3, 1), (3, 1, 600), (8, 1800, 1800)];
    let axis = |(extent, src, dst)| Axis { extent, src, dst };
    assert_eq!(canonical.axes(), [pixels, channels, images].map(axis));
}

#[test]
fn strides_that_overflow_are_not_fused() {
    let far = (isize::MAX / 4) & !1;
    let src = Layout::new(&[2, 4], &[1, far], 0, isize::MAX as usize).unwrap();
    let dst = Layout::row_major(&[2, 4]).unwrap();
    assert_eq!(Canonical::new(&src, &dst, 1).axes().len(), 2);
}
