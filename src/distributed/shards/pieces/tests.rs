use super::*;
use crate::distributed::{Redistribution, Split};

fn plan(shape: &[usize], from: &str, order: &[usize], to: &str) -> Redistribution {
    let result: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
    let (from, to) = (Split::parse(shape, from).unwrap(), Split::parse(&result, to).unwrap());
    Redistribution::new(&from, order.to_vec(), &to, 4).unwrap()
}

fn ways(plan: &Redistribution, limit: u64) -> Vec<(u64, bool, bool)> {
    let of = &plan.moves_from(0)[0];
    let told = |piece: &Piece| (piece.bytes, piece.is_packed(), piece.is_unpacked());
    pieces(of, plan.axes(), 4, Sizes::Most(limit)).iter().map(told).collect()
}

#[test]
fn what_lies_side_by_side_is_not_copied() {
    let same = |from, to| ways(&plan(&[8, 6], from, &[0, 1], to), 1 << 20);
    assert_eq!(same("0:2", "1:2"), [(48, true, false)], "columns of rows");
    assert_eq!(same("0:2", "0:4"), [(48, false, false)], "rows");
    assert_eq!(same("1:2", ""), [(96, false, true)], "a part to its place in the whole");
    assert_eq!(same("", "1:2"), [(96, true, false)], "the whole to a part");
    assert_eq!(ways(&plan(&[8, 6], "0:2", &[1, 0], "0:2"), 1 << 20), [(48, true, true)], "a transpose of two ranks");
    assert_eq!(ways(&plan(&[8, 6], "1:2", &[1, 0], ""), 1 << 20), [(96, true, false)], "columns become rows");
    assert_eq!(ways(&plan(&[8, 6], "0:2", &[1, 0], ""), 1 << 20), [(96, false, true)], "rows become columns");
}

#[test]
fn pieces_have_each_element_once() {
    for sizes in [1, 4, 12, 40, 100, 1 << 20].map(Sizes::Most).into_iter().chain([Sizes::Growing { peers: 2 }]) {
        let limit = if let Sizes::Most(bytes) = sizes { bytes } else { LARGEST };
        for (from, order, to) in [("0:2", [2, 0, 1], "1:3"), ("1:3", [1, 0, 2], ""), ("", [0, 1, 2], "2:2")] {
            let plan = plan(&[4, 5, 6], from, &order, to);
            for of in (0..plan.ranks()).flat_map(|rank| plan.moves_from(rank)) {
                let all = pieces(&of, plan.axes(), 4, sizes);
                let is_small =
                    |piece: &Piece| piece.bytes <= limit.max(4) || (!piece.is_packed() && !piece.is_unpacked());
                assert!(all.iter().all(|piece| is_small(piece) && piece.bytes == 4 * piece.src.len() as u64));
                assert_eq!(all.iter().map(|piece| piece.bytes).sum::<u64>(), of.bytes);
                let mut pairs: Vec<_> =
                    all.iter().flat_map(|piece| offsets(&piece.src).zip(offsets(&piece.dst))).collect();
                let mut wanted: Vec<_> = offsets(&of.src).zip(offsets(&of.dst)).collect();
                pairs.sort_unstable();
                wanted.sort_unstable();
                assert_eq!(pairs, wanted, "{plan} by {sizes:?}");
            }
        }
    }
}

/// The offsets of the elements, the last axis fastest.
fn offsets(layout: &Layout) -> impl Iterator<Item = usize> {
    (0..layout.len()).map(move |number| {
        let (mut rest, mut index) = (number, vec![0; layout.shape().len()]);
        for (at, &extent) in index.iter_mut().zip(layout.shape()).rev() {
            *at = rest % extent;
            rest /= extent;
        }
        layout.offset_of(&index).unwrap()
    })
}

#[test]
fn pieces_grow_and_shrink() {
    let sizes = |bytes: u64, peers| growing(bytes << 20, peers);
    assert_eq!(sizes(191, 1), [1]);
    assert_eq!(sizes(192, 1), [1, 4, 1]);
    assert_eq!(sizes(1024, 1), [1, 4, 16, 4, 1]);
    assert_eq!((sizes(191, 7), growing(0, 1)), (vec![1, 4, 16, 4, 1], vec![1]));
    // The middle one of 3 GiB is divided into four.
    assert_eq!(sizes(5 << 10, 1), [4, 16, 64, 64, 64, 64, 64, 64, 16, 4]);
    assert!(growing(u64::MAX, 4096).len() < 5000);
    let plan = plan(&[1 << 15, 1 << 15], "0:2", &[1, 0], "0:2");
    let bytes = |piece: &Piece| piece.bytes >> 20;
    let all = pieces(&plan.moves_from(0)[0], plan.axes(), 4, Sizes::Growing { peers: 1 });
    // The largest one is too large for a message, and travels as two.
    assert_eq!(all.iter().map(|piece| piece.step).collect::<Vec<_>>(), [0, 1, 2, 2, 3, 4]);
    assert_eq!(all.iter().map(bytes).collect::<Vec<_>>(), [36, 160, 448, 180, 160, 40]);
    assert_eq!(all.iter().map(|piece| piece.bytes).sum::<u64>(), 1 << 30);
}

#[test]
fn pieces_that_nothing_copies_are_large() {
    let plan = plan(&[1 << 15, 1 << 15], "0:2", &[0, 1], "");
    let rows = |count: u64| (count << 17, false, false);
    assert_eq!(ways(&plan, 1 << 20), [rows(3584), rows(3584), rows(3584), rows(3584), rows(2048)]);
}
