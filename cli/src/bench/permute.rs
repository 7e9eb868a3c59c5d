//! Work that moves elements and leaves them as they are.

use anyhow::Result;
use bytemuck::Pod;
use warpstride::element::Element;
use warpstride::error::Error;
use warpstride::layout::Layout;
use warpstride::ops::{self, Align, PermutePlan, Plan, Target};
use warpstride::roofline::measure::Rotation;
use warpstride::stream::Stream;
use warpstride::view::{View, ViewMut};

use super::measure::{ColdRuns, Work, one_to_one};
use crate::reference;

/// Copies a view of an array into C order. `layout` is that of the view of `elements`, and `view`
/// makes it of the array on the device, which comes as one axis.
pub(super) fn in_c_order<'w, T: Element + Pod>(
    rotation: Rotation,
    elements: &[T],
    layout: &Layout,
    view: impl for<'v> Fn(View<'v, T>) -> Result<View<'v, T>, Error> + 'w,
) -> Result<Box<dyn Work + 'w>> {
    let result = Layout::row_major(layout.shape())?;
    let expected = reference::in_c_order(elements, layout)?;
    let (align, target) = (Align::ALLOCATION, Target::of(rotation.device()));
    // Sets begin at other places, and each has a plan of its own, with the same kernel.
    let kernel = PermutePlan::new(layout, align, &result, align, size_of::<T>(), target)?.entry();
    let mut arrays = ColdRuns::new(rotation, elements, expected.len())?;
    arrays.begin(&expected)?;
    let launch = move |array: View<'_, T>, to: ViewMut<'_, T>, stream: &Stream| {
        let from = view(array)?;
        ops::copy_into(from, to.split_axis(0, from.shape())?, stream)
    };
    let is_right = move |found: &[T]| reference::are_equal(found, &expected);
    Ok(one_to_one(Box::new(arrays), kernel, launch, is_right))
}
