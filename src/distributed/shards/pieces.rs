//! Cuts a copy between two ranks into pieces that travel as messages.

use crate::distributed::Move;
use crate::layout::Layout;

/// A piece of a copy. Its bytes lie side by side while they travel, in the order of its axes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) bytes: u64,
    /// The elements in the storage of the source's part.
    pub(super) src: Layout,
    /// The elements in the storage of the result's part.
    pub(super) dst: Layout,
}

impl Piece {
    /// Returns whether the elements are copied side by side before they are sent.
    pub(super) fn is_packed(&self) -> bool {
        !self.src.is_standard_layout()
    }

    /// Returns whether the elements are copied to their places after they have arrived.
    pub(super) fn is_unpacked(&self) -> bool {
        !self.dst.is_standard_layout()
    }
}

/// The most bytes of a message that is neither packed nor unpacked. Larger ones are a known source
/// of trouble in libraries that count in 32 bits.
const LARGEST: u64 = 448 << 20;

/// Cuts a copy into pieces of at most `limit` bytes, or of one element. `order` has the axes of the
/// source in the order of the result. Both ranks of the copy make the same pieces.
///
/// The elements travel in the order of the result, and the source's rank packs them so, unless they
/// lie side by side in the source and not in the result: then the result's rank sorts them.
pub(super) fn pieces(of: &Move, order: &[usize], width: usize, limit: u64) -> Vec<Piece> {
    let mut inverse = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &axis)| inverse[axis] = at);
    let in_source = [of.src, of.dst].map(|layout| layout.permuted_axes(&inverse).expect("the order was checked"));
    let travels_as_source = in_source[0].is_standard_layout() && !of.dst.is_standard_layout();
    let [src, dst] = if travels_as_source { in_source } else { [of.src, of.dst] };
    let whole = Piece { bytes: of.bytes, src, dst };
    let limit = if whole.is_packed() || whole.is_unpacked() { limit } else { LARGEST };
    let mut pieces = Vec::new();
    cut(whole, 0, width as u64, limit, &mut pieces);
    pieces
}

/// Cuts a piece along its slowest axis, and what is too large still along the next ones: so pieces
/// of elements that lie side by side do, too.
fn cut(piece: Piece, axis: usize, width: u64, limit: u64, pieces: &mut Vec<Piece>) {
    let Some(&extent) = piece.src.shape().get(axis).filter(|_| piece.bytes > limit) else {
        pieces.push(piece);
        return;
    };
    let of_one = piece.bytes / extent as u64;
    let step = (limit / of_one.max(1)).clamp(1, extent as u64) as usize;
    for start in (0..extent).step_by(step) {
        let range = start..(start + step).min(extent);
        let slice = |layout: Layout| layout.slice(axis, range.clone(), 1).expect("the range lies within the axis");
        let (src, dst) = (slice(piece.src), slice(piece.dst));
        cut(Piece { bytes: src.len() as u64 * width, src, dst }, axis + 1, width, limit, pieces);
    }
}

#[cfg(test)]
mod tests {
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
        pieces(of, plan.axes(), 4, limit).iter().map(told).collect()
    }

    #[test]
    fn what_lies_side_by_side_is_not_copied() {
        let same = |from, to| ways(&plan(&[8, 6], from, &[0, 1], to), 1 << 20);
        assert_eq!(same("0:2", "1:2"), [(48, true, false)], "columns of rows");
        assert_eq!(same("0:2", "0:4"), [(48, false, false)], "rows");
        assert_eq!(same("1:2", ""), [(96, false, true)], "a part to its place in the whole");
        assert_eq!(same("", "1:2"), [(96, true, false)], "the whole to a part");
        assert_eq!(
            ways(&plan(&[8, 6], "0:2", &[1, 0], "0:2"), 1 << 20),
            [(48, true, true)],
            "a transpose of two ranks"
        );
        assert_eq!(ways(&plan(&[8, 6], "1:2", &[1, 0], ""), 1 << 20), [(96, true, false)], "columns become rows");
        assert_eq!(ways(&plan(&[8, 6], "0:2", &[1, 0], ""), 1 << 20), [(96, false, true)], "rows become columns");
    }

    #[test]
    fn pieces_have_each_element_once() {
        for limit in [1, 4, 12, 40, 100, 1 << 20] {
            for (from, order, to) in [("0:2", [2, 0, 1], "1:3"), ("1:3", [1, 0, 2], ""), ("", [0, 1, 2], "2:2")] {
                let plan = plan(&[4, 5, 6], from, &order, to);
                for of in (0..plan.ranks()).flat_map(|rank| plan.moves_from(rank)) {
                    let all = pieces(&of, plan.axes(), 4, limit);
                    let is_small =
                        |piece: &Piece| piece.bytes <= limit.max(4) || (!piece.is_packed() && !piece.is_unpacked());
                    assert!(all.iter().all(|piece| is_small(piece) && piece.bytes == 4 * piece.src.len() as u64));
                    assert_eq!(all.iter().map(|piece| piece.bytes).sum::<u64>(), of.bytes);
                    let mut pairs: Vec<_> =
                        all.iter().flat_map(|piece| offsets(&piece.src).zip(offsets(&piece.dst))).collect();
                    let mut wanted: Vec<_> = offsets(&of.src).zip(offsets(&of.dst)).collect();
                    pairs.sort_unstable();
                    wanted.sort_unstable();
                    assert_eq!(pairs, wanted, "{plan} by {limit}");
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
    fn pieces_that_nothing_copies_are_large() {
        let plan = plan(&[1 << 15, 1 << 15], "0:2", &[0, 1], "");
        let rows = |count: u64| (count << 17, false, false);
        assert_eq!(ways(&plan, 1 << 20), [rows(3584), rows(3584), rows(3584), rows(3584), rows(2048)]);
    }
}
