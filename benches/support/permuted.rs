//! The permute on the host that results are compared with.

use warpstride::layout::Layout;

/// Returns the elements of a layout in C order.
pub(crate) fn permuted<T: Copy>(elements: &[T], layout: &Layout) -> Vec<T> {
    let mut places = vec![layout.offset() as isize];
    for (&extent, &stride) in layout.shape().iter().zip(layout.strides()) {
        places = places.iter().flat_map(|place| (0..extent as isize).map(move |at| place + at * stride)).collect();
    }
    places.into_iter().map(|place| elements[place as usize]).collect()
}
