use proptest::prelude::*;

use super::*;
use crate::error::ErrorKind;

/// The address of the destination's storage; the source's is 0.
const DESTINATION: u64 = 1 << 40;
const STORAGES: [Place; 2] = [Place::Device(0), Place::Device(DESTINATION)];

/// Returns the bytes of the destination after the boxes of a plan were copied.
fn copied(boxes: &Boxes, src: &[u8], dst: &mut [u8]) {
    for part in boxes.iter(STORAGES) {
        for (slice, row) in (0..part.depth).flat_map(|slice| (0..part.height).map(move |row| (slice, row))) {
            let at = |side: Pitched, storage: u64| {
                let Place::Device(start) = side.place else { panic!("{side:?} is the device's") };
                (start - storage) as usize + row * side.row_pitch + slice * side.slice_pitch
            };
            let (from, to) = (at(part.src, 0), at(part.dst, DESTINATION));
            dst[to..to + part.width].copy_from_slice(&src[from..from + part.width]);
        }
    }
}

/// Copies element by element.
fn naive(src: (&Layout, &[u8]), dst: (&Layout, &mut [u8]), width: usize) {
    for (from, to) in src.0.offsets().into_iter().zip(dst.0.offsets()) {
        dst.1[to * width..][..width].copy_from_slice(&src.1[from * width..][..width]);
    }
}

/// A view of an array by permuting, slicing and reversing its axes.
fn view(shape: &[usize], order: &[usize], cuts: &[(usize, bool)]) -> Layout {
    let padded: Vec<usize> = shape.iter().zip(cuts).map(|(&extent, &(more, _))| extent + more).collect();
    let mut stored = vec![0; shape.len()];
    order.iter().enumerate().for_each(|(place, &axis)| stored[place] = padded[axis]);
    let mut back = vec![0; shape.len()];
    order.iter().enumerate().for_each(|(place, &axis)| back[axis] = place);
    let mut layout = Layout::row_major(&stored).unwrap().permuted_axes(&back).unwrap();
    for (axis, (&extent, &(more, reversed))) in shape.iter().zip(cuts).enumerate() {
        layout = layout.slice(axis, more..more + extent, 1).unwrap();
        if reversed {
            layout = layout.reverse(axis).unwrap();
        }
    }
    layout
}

proptest! {
    #[test]
    fn a_plan_copies_what_a_naive_copy_does(
        (shape, order, cuts) in prop::collection::vec(0_usize..5, 0..5).prop_flat_map(|shape| {
            let rank = shape.len();
            let order = Just((0..rank).collect::<Vec<_>>()).prop_shuffle();
            let cut = (prop_oneof![Just(0_usize), Just(1)], prop::bool::weighted(0.2));
            let cuts = prop::collection::vec(cut, rank);
            (Just(shape), [order.clone(), order], [cuts.clone(), cuts])
        }),
        in_order in any::<bool>(),
        width in prop_oneof![Just(1_usize), Just(4), Just(16)],
    ) {
        let sorted: Vec<usize> = (0..shape.len()).collect();
        let orders = if in_order { [&sorted; 2] } else { [&order[0], &order[1]] };
        let [src, dst] = [0, 1].map(|side| view(&shape, orders[side], &cuts[side]));
        let source: Vec<u8> = (0..src.storage_len() * width).map(|at| (at * 7 % 251) as u8).collect();
        let mut expected = vec![255; dst.storage_len() * width];
        naive((&src, &source), (&dst, &mut expected), width);
        match Boxes::plan(&src, &dst, width) {
            Ok(boxes) => {
                let mut found = vec![255; dst.storage_len() * width];
                copied(&boxes, &source, &mut found);
                prop_assert_eq!(found, expected);
                prop_assert_eq!(boxes.bytes(), src.len() * width);
            }
            Err(error) => {
                let reversed = cuts.concat().iter().any(|cut| cut.1);
                // One index of the innermost axes: columns, which are rows of one element.
                let column = |cuts: &[(usize, bool)]| {
                    shape.iter().zip(cuts).rev().take_while(|&(&extent, _)| extent == 1).any(|(_, cut)| cut.0 > 0)
                };
                let columns = cuts.iter().any(|cuts| column(cuts));
                prop_assert!(!in_order || reversed || columns, "{}", error);
            }
        }
    }
}

fn plan(src: &Layout, dst: &Layout) -> Vec<Copy3d> {
    Boxes::plan(src, dst, 4).unwrap().iter(STORAGES).collect()
}

#[test]
fn contiguous_arrays_are_one_row() {
    let whole = Layout::row_major(&[3, 4, 5]).unwrap();
    let [src, dst] = STORAGES.map(|place| Pitched { place, row_pitch: 0, slice_pitch: 0 });
    assert_eq!(plan(&whole, &whole), [Copy3d { dst, src, width: 240, height: 1, depth: 1 }]);
    // Both backwards: the same elements.
    let back = whole.reverse(0).unwrap();
    assert_eq!(plan(&back, &back).len(), 1);
    assert_eq!(plan(&whole.t(), &whole.t())[0].width, 240);
    assert_eq!(plan(&whole.slice(0, 3.., 1).unwrap(), &whole.slice(0, 3.., 1).unwrap()), []);
    assert_eq!(plan(&Layout::row_major(&[]).unwrap(), &Layout::row_major(&[]).unwrap())[0].width, 4);
}

#[test]
fn parts_are_one_box_and_columns_are_rows_of_one_element() {
    let part = Layout::row_major(&[6, 8, 10]).unwrap().slice(1, 2..5, 1).unwrap().slice(2, ..7, 1).unwrap();
    let packed = Layout::row_major(&[6, 3, 7]).unwrap();
    let dst = Pitched { place: STORAGES[1], row_pitch: 28, slice_pitch: 84 };
    let src = Pitched { place: Place::Device(80), row_pitch: 40, slice_pitch: 320 };
    assert_eq!(plan(&part, &packed), [Copy3d { dst, src, width: 28, height: 3, depth: 6 }]);
    let column = Layout::row_major(&[9, 5]).unwrap().index_axis(1, 2).unwrap();
    let found = plan(&column, &Layout::row_major(&[9]).unwrap());
    assert_eq!((found.len(), found[0].width, found[0].height), (1, 4, 9));
}

#[test]
fn a_transpose_is_refused_and_so_are_too_many_boxes() {
    let whole = Layout::row_major(&[30, 40]).unwrap();
    let error = Boxes::plan(&whole.t(), &Layout::row_major(&[40, 30]).unwrap(), 4).unwrap_err();
    assert!(error.kind() == ErrorKind::Layout && error.to_string().contains("ops::copy_into"), "{error}");
    let rows = Layout::row_major(&[MAX_BOXES + 1, 2]).unwrap();
    assert!(Boxes::plan(&rows.reverse(0).unwrap(), &rows, 1).is_err());
    let fewer = rows.slice(0, 1.., 1).unwrap();
    assert_eq!(Boxes::plan(&fewer.reverse(0).unwrap(), &fewer, 1).unwrap().iter(STORAGES).count(), MAX_BOXES);
    assert_eq!(Boxes::plan(&rows, &fewer, 1).unwrap_err().kind(), ErrorKind::Layout);
    let huge = Layout::new(&[2], &[1 << 40], 0, 1 << 62).unwrap();
    assert_eq!(Boxes::plan(&huge, &huge, 16).unwrap_err().kind(), ErrorKind::Layout);
}
