//! The layout and the plan of a permute, and the permute on the host that results are compared
//! with.

use warpstride::element::DType;
use warpstride::error::Result;
use warpstride::layout::Layout;
use warpstride::ops::{Align, PermutePlan, Target};

/// Returns an array in C order with its axes in the order of the result.
pub(crate) fn source(shape: &[usize], axes: &[usize]) -> Layout {
    let layout = Layout::row_major(shape).and_then(|layout| layout.permuted_axes(axes));
    layout.unwrap_or_else(|error| panic!("{shape:?} by {axes:?}: {error}"))
}

/// Plans a permute between whole allocations, to C order.
pub(crate) fn plan(source: &Layout, dtype: DType, target: Target) -> Result<PermutePlan> {
    let result = Layout::row_major(source.shape())?;
    PermutePlan::new(source, Align::ALLOCATION, &result, Align::ALLOCATION, dtype.width(), target)
}

/// Returns the elements of a layout in C order.
pub(crate) fn permuted<T: Copy>(elements: &[T], layout: &Layout) -> Vec<T> {
    let mut places = vec![layout.offset() as isize];
    for (&extent, &stride) in layout.shape().iter().zip(layout.strides()) {
        places = places.iter().flat_map(|place| (0..extent as isize).map(move |at| place + at * stride)).collect();
    }
    places.into_iter().map(|place| elements[place as usize]).collect()
}
