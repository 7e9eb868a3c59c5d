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
    each(src_layout, dst_layout, |_, from, to| dst[to] = src[from]);
}

/// Copies elements of `width` bytes.
pub(crate) fn copy_bytes(src: &[u8], src_layout: &Layout, dst: &mut [u8], dst_layout: &Layout, width: usize) {
    let mut copy = |from: usize, to: usize| dst[to * width..][..width].copy_from_slice(&src[from * width..][..width]);
    each(src_layout, dst_layout, |_, from, to| copy(from, to));
}

/// Visits every index, in C order, and its offsets in two layouts.
pub(crate) fn each(src_layout: &Layout, dst_layout: &Layout, mut element: impl FnMut(&[usize], usize, usize)) {
    let shape = src_layout.shape();
    let mut index = vec![0; shape.len()];
    for _ in 0..src_layout.len() {
        let from = src_layout.offset_of(&index).expect("an index of the source");
        element(&index, from, dst_layout.offset_of(&index).expect("an index of the destination"));
        for axis in (0..shape.len()).rev() {
            index[axis] = (index[axis] + 1) % shape[axis];
            if index[axis] != 0 {
                break;
            }
        }
    }
}
