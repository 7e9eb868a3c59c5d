//! Defines the operations on host memory, one element at a time: the oracle of every test.

use warpstride::layout::Layout;

/// `dst[c, r] = src[r, c]`.
pub(crate) fn transpose<T: Copy>(src: &[T], src_layout: &Layout, dst: &mut [T], dst_layout: &Layout) {
    for r in 0..src_layout.shape()[0] {
        for c in 0..src_layout.shape()[1] {
            let from = src_layout.offset_of(&[r, c]).expect("an index of the source");
            let to = dst_layout.offset_of(&[c, r]).expect("an index of the destination");
            dst[to] = src[from];
        }
    }
}

/// `dst[i, j, ...] = src[i, j, ...]`.
pub(crate) fn copy<T: Copy>(src: &[T], src_layout: &Layout, dst: &mut [T], dst_layout: &Layout) {
    let shape = src_layout.shape();
    let mut index = vec![0; shape.len()];
    for _ in 0..src_layout.len() {
        let from = src_layout.offset_of(&index).expect("an index of the source");
        let to = dst_layout.offset_of(&index).expect("an index of the destination");
        dst[to] = src[from];
        for axis in (0..shape.len()).rev() {
            index[axis] = (index[axis] + 1) % shape[axis];
            if index[axis] != 0 {
                break;
            }
        }
    }
}

/// Returns the layout of the bytes of elements.
pub(crate) fn bytes(layout: &Layout, width: usize) -> Layout {
    let shape = [layout.shape(), &[width]].concat();
    let strides: Vec<isize> = layout.strides().iter().map(|stride| stride * width as isize).chain([1]).collect();
    Layout::new(&shape, &strides, layout.offset() * width, layout.storage_len() * width).unwrap()
}
