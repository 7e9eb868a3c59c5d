//! The plan of a copy by the copy engine: boxes of rows.
//!
//! A copy engine moves rows of contiguous bytes; one call takes rows a pitch apart, in slices a
//! pitch apart. [`Boxes::plan`] finds the fewest such boxes that hold the elements of two layouts,
//! or says why such an engine cannot make the copy. It is pure and calls no driver.

#![forbid(unsafe_code)]

use crate::driver::{Copy3d, Pitched, Place};
use crate::error::{Result, counted, require};
use crate::layout::Layout;
use crate::layout::walk::{Axis, Canonical};

/// Most boxes of one copy. Each costs a call of the driver, some microseconds, so for more of them
/// a kernel is faster by far.
const MAX_BOXES: usize = 4096;

/// The boxes of a copy, all of one shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Boxes {
    /// Elements of a row.
    row: usize,
    height: Axis,
    depth: Axis,
    /// The walk from one box to the next.
    along: Canonical,
}

impl Boxes {
    /// Plans the copy of elements of `width` bytes between two layouts. The destination must not
    /// overlap itself.
    ///
    /// # Errors
    ///
    /// `Layout` if the shapes differ, if a storage has more bytes than can be addressed, or if the
    /// elements lie in too many rows.
    pub(super) fn plan(src: &Layout, dst: &Layout, width: usize) -> Result<Self> {
        check(src, dst, width)?;
        let walk = Canonical::new(src, dst, width);
        let row = walk.together();
        let rows = if row > 1 { walk.without([0; 2]) } else { walk };
        let places = places_of_rows(rows.axes(), row);
        let [height, depth] = places.map(|place| rows.axes().get(place).copied().unwrap_or(Axis::ONE));
        let along = rows.without(places);
        require!(
            along.len() <= if row == 1 { 1 } else { MAX_BOXES },
            Layout,
            "{} and {:?} would take {} copies, in rows of {}; copy a contiguous array between host and device, and \
             reorder its elements on the device (ops::copy_into)",
            src.described(),
            dst.strides(),
            along.len(),
            counted(row, "element")
        );
        Ok(Self { row, height, depth, along })
    }

    /// Returns the number of bytes.
    pub(super) fn bytes(&self) -> usize {
        self.row * self.along.width * self.height.extent * self.depth.extent * self.along.len()
    }

    /// Returns the boxes between storages that start at these places, the source's first.
    pub(super) fn iter(&self, [from, to]: [Place; 2]) -> impl Iterator<Item = Copy3d> + '_ {
        let Canonical { width, src_start, dst_start, .. } = self.along;
        (0..self.along.len()).map(move |number| {
            let (mut src, mut dst, mut rest) = (src_start, dst_start, number);
            for axis in self.along.axes().iter().rev() {
                let index = (rest % axis.extent) as isize;
                rest /= axis.extent;
                // The layouts' invariants keep every index within the storage.
                src = src.wrapping_add_signed(index * axis.src);
                dst = dst.wrapping_add_signed(index * axis.dst);
            }
            let side = |storage: Place, first: usize, stride: fn(&Axis) -> isize| {
                let [row_pitch, slice_pitch] = [&self.height, &self.depth].map(|axis| stride(axis) as usize * width);
                Pitched { place: storage.offset(first * width), row_pitch, slice_pitch }
            };
            Copy3d {
                dst: side(to, dst, |axis| axis.dst),
                src: side(from, src, |axis| axis.src),
                width: self.row * width,
                height: self.height.extent,
                depth: self.depth.extent,
            }
        })
    }
}

/// Returns the places of the axes of a box of rows of `row` elements: its height, and its depth if
/// one call of the driver copies all slices. A place past all axes stands for none. It takes the
/// pair with the most rows.
fn places_of_rows(axes: &[Axis], row: usize) -> [usize; 2] {
    let is_pitch = |axis: &Axis| axis.src >= row as isize && axis.dst >= row as isize;
    // The driver counts the pitch of slices in rows, which a slice holds all.
    let whole = |slice: isize, pitch: isize, rows: usize| slice % pitch == 0 && slice / pitch >= rows as isize;
    let (mut most, mut places) = (0, [axes.len(); 2]);
    for (at, height) in axes.iter().enumerate().rev().filter(|(_, axis)| is_pitch(axis)) {
        let holds =
            |slice: &Axis| whole(slice.src, height.src, height.extent) && whole(slice.dst, height.dst, height.extent);
        let slices = axes.iter().enumerate().rev().filter(|&(other, slice)| other != at && holds(slice));
        let depth = slices.max_by_key(|(_, slice)| slice.extent);
        let rows = height.extent * depth.map_or(1, |(_, depth)| depth.extent);
        if rows > most {
            (most, places) = (rows, [at, depth.map_or(axes.len(), |(at, _)| at)]);
        }
    }
    places
}

fn check(src: &Layout, dst: &Layout, width: usize) -> Result<()> {
    require!(
        src.shape() == dst.shape(),
        Layout,
        "the source has shape {:?} and the destination {:?}; copy between equal shapes",
        src.shape(),
        dst.shape()
    );
    for layout in [src, dst] {
        require!(
            layout.storage_len().checked_mul(width).is_some_and(|bytes| bytes <= isize::MAX as usize),
            Layout,
            "a storage of {} of {} has more bytes than can be addressed; use a smaller one",
            counted(layout.storage_len(), "element"),
            counted(width, "byte")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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
}
