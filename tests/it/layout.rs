//! The algebra of layouts against an oracle that keeps the offset of every index in a list.

use std::collections::HashSet;
use std::ops::Bound::{Excluded, Unbounded};

use proptest::prelude::*;
use warpstride::ErrorKind;
use warpstride::layout::{Layout, MAX_RANK, Reshape};

/// Every index of a shape, in C order.
fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![Vec::new()], |found, &extent| {
        found.iter().flat_map(|index| (0..extent).map(move |last| [index.as_slice(), &[last]].concat())).collect()
    })
}

/// An array of offsets into the storage, in C order.
#[derive(Debug, Clone)]
struct Offsets {
    shape: Vec<usize>,
    offsets: Vec<usize>,
}

impl Offsets {
    fn of(layout: &Layout) -> Self {
        let offsets = indices(layout.shape()).iter().map(|index| layout.offset_of(index).unwrap()).collect();
        Self { shape: layout.shape().to_vec(), offsets }
    }

    fn at(&self, index: &[usize]) -> usize {
        let place = index.iter().zip(&self.shape).fold(0, |place, (at, extent)| place * extent + at);
        self.offsets[place]
    }

    /// The array of `shape` whose element at an index is this one's at `from(index)`.
    fn gather(&self, shape: Vec<usize>, from: impl Fn(&[usize]) -> Vec<usize>) -> Self {
        let offsets = indices(&shape).iter().map(|index| self.at(&from(index))).collect();
        Self { shape, offsets }
    }

    fn reshaped(&self, shape: &[usize]) -> Self {
        Self { shape: shape.to_vec(), offsets: self.offsets.clone() }
    }

    /// Returns whether some offset and strides describe the array.
    fn has_strides(&self) -> bool {
        let origin = vec![0; self.shape.len()];
        if self.offsets.is_empty() {
            return true;
        }
        let stride = |axis: usize| {
            let mut next = origin.clone();
            next[axis] = 1;
            if self.shape[axis] > 1 { self.at(&next) as isize - self.at(&origin) as isize } else { 0 }
        };
        let strides: Vec<isize> = (0..self.shape.len()).map(stride).collect();
        indices(&self.shape).iter().all(|index| {
            let walk: isize = index.iter().zip(&strides).map(|(&at, stride)| at as isize * stride).sum();
            self.at(index) as isize == self.at(&origin) as isize + walk
        })
    }
}

/// An operation by numbers that are reduced to what the array at hand has.
#[derive(Debug, Clone)]
enum Op {
    Permute(Vec<u32>),
    T,
    Slice(usize, usize, usize, isize),
    Reverse(usize),
    Broadcast(usize, bool),
    SplitAt(usize, usize, bool),
    Index(usize, usize),
    Insert(usize),
    Remove(usize),
    Diagonal(usize, usize),
    Merge(usize, usize),
    SplitAxis(usize, usize),
    Reshape(Vec<usize>),
    Coalesce,
}

fn op() -> impl Strategy<Value = Op> {
    let n = || 0usize..8;
    prop_oneof![
        proptest::collection::vec(any::<u32>(), MAX_RANK).prop_map(Op::Permute),
        Just(Op::T),
        (n(), n(), n(), prop_oneof![-3isize..=-1, 1isize..=3]).prop_map(|(a, s, e, step)| Op::Slice(a, s, e, step)),
        n().prop_map(Op::Reverse),
        (n(), any::<bool>()).prop_map(|(extent, front)| Op::Broadcast(extent, front)),
        (n(), n(), any::<bool>()).prop_map(|(axis, mid, second)| Op::SplitAt(axis, mid, second)),
        (n(), n()).prop_map(|(axis, index)| Op::Index(axis, index)),
        n().prop_map(Op::Insert),
        n().prop_map(Op::Remove),
        (n(), n()).prop_map(|(a, b)| Op::Diagonal(a, b)),
        (n(), n()).prop_map(|(a, b)| Op::Merge(a, b)),
        (n(), n()).prop_map(|(axis, divisor)| Op::SplitAxis(axis, divisor)),
        proptest::collection::vec(1usize..5, 0..4).prop_map(Op::Reshape),
        Just(Op::Coalesce),
    ]
}

fn edited<R>(list: &[usize], edit: impl FnOnce(&mut Vec<usize>) -> R) -> Vec<usize> {
    let mut list = list.to_vec();
    edit(&mut list);
    list
}

/// Applies one operation to both; operations that the array does not have leave it as it is.
#[expect(clippy::too_many_lines, reason = "a table: a line or a few for each operation")]
fn apply(op: &Op, layout: Layout, array: Offsets) -> (Layout, Offsets) {
    let (shape, rank) = (array.shape.clone(), array.shape.len());
    let without = |axis: usize| edited(&shape, |shape| shape.remove(axis));
    let with = |axis: usize, extent: usize| edited(&shape, |shape| shape[axis] = extent);
    let insert = |index: &[usize], axis: usize, at: usize| edited(index, |index| index.insert(axis, at));
    match *op {
        Op::T => {
            let reversed = shape.iter().rev().copied().collect();
            (layout.t(), array.gather(reversed, |index| index.iter().rev().copied().collect()))
        }
        Op::Permute(ref keys) => {
            let mut axes: Vec<usize> = (0..rank).collect();
            axes.sort_by_key(|&axis| keys[axis]);
            let permuted = axes.iter().map(|&axis| shape[axis]).collect();
            let from = |index: &[usize]| {
                let mut old = vec![0; rank];
                axes.iter().zip(index).for_each(|(&axis, &at)| old[axis] = at);
                old
            };
            (layout.permuted_axes(&axes).unwrap(), array.gather(permuted, from))
        }
        Op::Coalesce => {
            let coalesced = layout.coalesced();
            assert!(coalesced.rank() <= layout.rank());
            (coalesced, array.reshaped(coalesced.shape()))
        }
        Op::Reshape(ref leading) => {
            let product: usize = leading.iter().product();
            if !array.offsets.len().is_multiple_of(product) {
                return (layout, array);
            }
            let shape = [leading.as_slice(), &[array.offsets.len() / product]].concat();
            let wanted = array.reshaped(&shape);
            match layout.reshape(&shape).unwrap() {
                Reshape::View(view) => (view, wanted),
                Reshape::NeedsCopy => {
                    assert!(!wanted.has_strides(), "{layout:?} has a view of shape {shape:?}");
                    (layout, array)
                }
            }
        }
        Op::Insert(axis) if rank < 6 => {
            let axis = axis % (rank + 1);
            (layout.insert_axis(axis).unwrap(), array.reshaped(&insert(&shape, axis, 1)))
        }
        Op::Broadcast(extent, front) if rank < 6 && array.offsets.len() < 500 => {
            let repeat = |&own: &usize| if own == 1 { extent } else { own };
            let new = if front { vec![extent] } else { vec![] };
            let wide: Vec<usize> = new.iter().copied().chain(shape.iter().map(repeat)).collect();
            let from = |index: &[usize]| {
                index[new.len()..].iter().zip(&shape).map(|(&at, &own)| if own == 1 { 0 } else { at }).collect()
            };
            (layout.broadcast(&wide).unwrap(), array.gather(wide.clone(), from))
        }
        _ if rank == 0 => (layout, array),
        Op::Slice(axis, a, b, step) => {
            let axis = axis % rank;
            let (a, b) = (a % (shape[axis] + 1), b % (shape[axis] + 1));
            let (start, end) = (a.min(b), a.max(b));
            let mut kept: Vec<usize> = (start..end).collect();
            if step < 0 {
                kept.reverse();
            }
            let kept: Vec<usize> = kept.into_iter().step_by(step.unsigned_abs()).collect();
            let from = |index: &[usize]| edited(index, |index| index[axis] = kept[index[axis]]);
            (layout.slice(axis, start..end, step).unwrap(), array.gather(with(axis, kept.len()), from))
        }
        Op::Reverse(axis) => {
            let axis = axis % rank;
            let from = |index: &[usize]| edited(index, |index| index[axis] = shape[axis] - 1 - index[axis]);
            (layout.reverse(axis).unwrap(), array.gather(shape.clone(), from))
        }
        Op::SplitAt(axis, mid, second) => {
            let axis = axis % rank;
            let mid = mid % (shape[axis] + 1);
            let halves = layout.split_at(axis, mid).unwrap();
            let (half, from, extent) = if second { (halves.1, mid, shape[axis] - mid) } else { (halves.0, 0, mid) };
            (half, array.gather(with(axis, extent), |index| edited(index, |index| index[axis] += from)))
        }
        Op::Index(axis, at) if shape[axis % rank] > 0 => {
            let axis = axis % rank;
            let at = at % shape[axis];
            (layout.index_axis(axis, at).unwrap(), array.gather(without(axis), |index| insert(index, axis, at)))
        }
        Op::Remove(axis) => {
            let axis = axis % rank;
            match layout.remove_axis(axis) {
                Ok(removed) => (removed, array.reshaped(&without(axis))),
                Err(error) => {
                    assert!(shape[axis] != 1, "{error}");
                    (layout, array)
                }
            }
        }
        Op::Diagonal(a, b) if a % rank != b % rank => {
            let (a, b) = (a % rank, b % rank);
            let mut rest = without(a.max(b));
            rest.remove(a.min(b));
            rest.push(shape[a].min(shape[b]));
            let from = |index: &[usize]| {
                let (&last, others) = index.split_last().unwrap();
                insert(&insert(others, a.min(b), last), a.max(b), last)
            };
            (layout.diagonal(a, b).unwrap(), array.gather(rest, from))
        }
        Op::Merge(outer, inner) if outer % rank != inner % rank => {
            let (outer, inner) = (outer % rank, inner % rank);
            let mut merged = with(inner, shape[outer] * shape[inner]);
            merged.remove(outer);
            let place = if outer < inner { inner - 1 } else { inner };
            let from = |index: &[usize]| {
                let old = edited(index, |index| index[place] %= shape[inner]);
                insert(&old, outer, index[place] / shape[inner])
            };
            let wanted = array.gather(merged, from);
            match layout.merge_axes(outer, inner) {
                Ok(merged) => (merged, wanted),
                Err(error) => {
                    assert!(layout.is_empty() || !wanted.has_strides(), "{error}");
                    (layout, array)
                }
            }
        }
        Op::SplitAxis(axis, divisor) if divisor > 0 && shape[axis % rank] % divisor == 0 && rank < 6 => {
            let axis = axis % rank;
            let extents = [shape[axis] / divisor, divisor];
            let split = insert(&with(axis, extents[0]), axis + 1, divisor);
            (layout.split_axis(axis, &extents).unwrap(), array.reshaped(&split))
        }
        _ => (layout, array),
    }
}

fn check(layout: &Layout, array: &Offsets) {
    assert_eq!(layout.shape(), array.shape);
    assert_eq!(Offsets::of(layout).offsets, array.offsets, "{layout:?}");
    assert_eq!(layout.len(), array.offsets.len());
    assert_eq!(layout.is_empty(), array.offsets.is_empty());
    let (least, greatest) = (array.offsets.iter().min(), array.offsets.iter().max());
    let distinct: HashSet<usize> = array.offsets.iter().copied().collect();
    let range = layout.storage_range();
    match (least, greatest) {
        (Some(&least), Some(&greatest)) => assert_eq!(range, least..greatest + 1, "{layout:?}"),
        _ => assert!(range.is_empty()),
    }
    assert!(range.end <= layout.storage_len());
    assert_eq!(layout.overlaps_itself(), distinct.len() < array.offsets.len(), "{layout:?}");
    let packed = array.offsets.windows(2).all(|pair| pair[1] == pair[0] + 1);
    assert_eq!(layout.is_standard_layout(), packed, "{layout:?}");
    let dense = distinct.len() == array.offsets.len() && distinct.len() == range.len();
    assert_eq!(layout.is_contiguous(), dense, "{layout:?}");
    // The parts make the same layout again: no operation leaves the invariants.
    let again = Layout::new(layout.shape(), layout.strides(), layout.offset(), layout.storage_len());
    assert_eq!(again.as_ref(), Ok(layout));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn operations_agree_with_the_oracle(
        shape in proptest::collection::vec(prop_oneof![15 => 1usize..5, 1 => Just(0)], 0..=5),
        fortran in any::<bool>(),
        ops in proptest::collection::vec(op(), 0..8),
    ) {
        let make = if fortran { Layout::column_major } else { Layout::row_major };
        let mut layout = make(&shape).unwrap();
        let mut array = Offsets::of(&layout);
        check(&layout, &array);
        for op in &ops {
            (layout, array) = apply(op, layout, array);
            check(&layout, &array);
        }
    }

    #[test]
    fn parts_are_taken_exactly_when_they_fit(
        axes in proptest::collection::vec((0usize..4, -6isize..7), 0..4),
        offset in 0usize..20,
        len in 0usize..30,
    ) {
        let (shape, strides): (Vec<usize>, Vec<isize>) = axes.into_iter().unzip();
        let reaches = |index: &Vec<usize>| {
            offset as isize + index.iter().zip(&strides).map(|(&at, stride)| at as isize * stride).sum::<isize>()
        };
        let fits = offset <= len && indices(&shape).iter().map(reaches).all(|at| (0..len as isize).contains(&at));
        prop_assert_eq!(Layout::new(&shape, &strides, offset, len).is_ok(), fits);
    }
}

#[test]
fn orders_of_axes() {
    let c = Layout::row_major(&[2, 3, 4]).unwrap();
    assert_eq!(c.strides(), [12, 4, 1]);
    let f = Layout::column_major(&[2, 3, 4]).unwrap();
    assert_eq!(f.strides(), [1, 2, 6]);
    assert_eq!(f.t(), Layout::row_major(&[4, 3, 2]).unwrap());
    assert_eq!(Layout::row_major(&[]).unwrap().len(), 1);
    assert_eq!(Layout::row_major(&[5, 0]).unwrap().len(), 0);
}

#[test]
fn what_overflows_is_refused() {
    let huge = usize::MAX / 2 + 1;
    for shape in [&[huge][..], &[1 << 32, 1 << 32], &[0, huge], &[0, 1 << 32, 1 << 32]] {
        assert_eq!(Layout::row_major(shape).unwrap_err().kind(), ErrorKind::Layout, "{shape:?}");
        assert_eq!(Layout::column_major(shape).unwrap_err().kind(), ErrorKind::Layout, "{shape:?}");
    }
    assert!(Layout::row_major(&[isize::MAX as usize]).is_ok());
    for (shape, strides) in [
        (&[1usize][..], &[isize::MIN][..]),
        (&[3], &[isize::MAX]),
        (&[2, 2], &[isize::MAX, 1]),
        (&[2, 2], &[isize::MAX, -1]),
    ] {
        let error = Layout::new(shape, strides, 0, isize::MAX as usize).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Layout, "{error}");
    }
    assert!(Layout::new(&[0], &[1], 1, usize::MAX).is_err());
    let one = Layout::row_major(&[1]).unwrap();
    assert_eq!(one.broadcast(&[1 << 32, 1 << 32]).unwrap_err().kind(), ErrorKind::Layout);
    let none = Layout::row_major(&[0]).unwrap();
    assert_eq!(none.reshape(&[0, 1 << 32, 1 << 32]).unwrap_err().kind(), ErrorKind::Layout);
    assert_eq!(none.split_axis(0, &[0, 1 << 32, 1 << 32]).unwrap_err().kind(), ErrorKind::Layout);
}

#[test]
fn strides_that_never_count_may_be_anything() {
    let strange = Layout::new(&[1, 2], &[isize::MAX, 1], 0, 2).unwrap();
    assert!(strange.is_standard_layout() && strange.is_contiguous() && !strange.overlaps_itself());
    for layout in [
        strange.reverse(0).unwrap(),
        strange.slice(0, .., 7).unwrap(),
        strange.broadcast(&[5, 2]).unwrap(),
        strange.merge_axes(0, 1).unwrap(),
        strange.diagonal(0, 1).unwrap(),
        strange.split_axis(0, &[1, 1]).unwrap(),
        strange.coalesced(),
    ] {
        check(&layout, &Offsets::of(&layout));
    }
    // The last stride but for its extent of 1 would be 2 * 2^62.
    let long = Layout::new(&[1 << 62], &[-1], (1 << 62) - 1, 1 << 62).unwrap();
    assert_eq!(long.slice(0, .., 2).unwrap().split_axis(0, &[1, 1 << 61]).unwrap().strides()[1], -2);
}

#[test]
fn errors_name_the_operands() {
    let layout = Layout::row_major(&[2, 3]).unwrap();
    let cases = [
        (layout.permuted_axes(&[0, 0]), ErrorKind::InvalidArgument, "axes [0, 0]"),
        (layout.permuted_axes(&[0]), ErrorKind::InvalidArgument, "axes [0]"),
        (layout.permuted_axes(&[0, 2]), ErrorKind::InvalidArgument, "[2, 3]"),
        (layout.slice(2, .., 1), ErrorKind::InvalidArgument, "axis 2"),
        (layout.slice(1, 2..4, 1), ErrorKind::InvalidArgument, "range 2..4 is not within axis 1 of shape"),
        (layout.slice(1, 2..4, 1), ErrorKind::InvalidArgument, "3 indices"),
        (layout.slice(1, 4.., 1), ErrorKind::InvalidArgument, "range 4.. is"),
        (layout.slice(1, (Excluded(4), Unbounded), 1), ErrorKind::InvalidArgument, "range 5.. is"),
        (layout.slice(1, ..5, 1), ErrorKind::InvalidArgument, "range ..5 is"),
        (layout.slice(1, 1..=3, 1), ErrorKind::InvalidArgument, "range 1..=3 is"),
        (layout.slice(1, ..=usize::MAX, 1), ErrorKind::InvalidArgument, "range ..=18446744073709551615 is"),
        (layout.slice(1, .., 0), ErrorKind::InvalidArgument, "step of 0"),
        (layout.index_axis(0, 2), ErrorKind::InvalidArgument, "index 2"),
        (layout.broadcast(&[2, 2]), ErrorKind::Layout, "[2, 2]"),
        (layout.broadcast(&[3]), ErrorKind::Layout, "[3]"),
        (layout.insert_axis(3), ErrorKind::InvalidArgument, "at 3"),
        (layout.remove_axis(1), ErrorKind::InvalidArgument, "3 indices"),
        (layout.diagonal(1, 1), ErrorKind::InvalidArgument, "axis 1"),
        (layout.merge_axes(0, 0), ErrorKind::InvalidArgument, "axis 0"),
        (layout.merge_axes(1, 0), ErrorKind::Layout, "axes 1 and 0"),
        (layout.split_axis(1, &[2, 2]), ErrorKind::Layout, "[2, 2]"),
        (layout.split_axis(1, &[1; MAX_RANK]), ErrorKind::InvalidArgument, "17 axes"),
        (layout.split_at(0, 3).map(|halves| halves.0), ErrorKind::InvalidArgument, "axis 0"),
        (layout.reshape(&[4]).map(|_| layout), ErrorKind::Layout, "[4]"),
        (Layout::row_major(&[1; MAX_RANK + 1]), ErrorKind::InvalidArgument, "17 axes"),
        (Layout::new(&[2], &[1, 1], 0, 2), ErrorKind::InvalidArgument, "2 strides"),
        (Layout::new(&[2], &[-1], 0, 2), ErrorKind::Layout, "-1 to 0"),
    ];
    for (outcome, kind, names) in cases {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(names), "{error}");
    }
}
