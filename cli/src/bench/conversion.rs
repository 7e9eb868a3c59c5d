//! Work that moves elements, or makes other elements of them.

use anyhow::Result;
use bytemuck::Pod;
use rayon::prelude::*;
use warpstride::element::{DType, Element};
use warpstride::error::Error;
use warpstride::layout::Layout;
use warpstride::ops::{
    self, Affine, AffinePlan, Align, CastPlan, Channels, Indexed, IndexedPlan, Normalization, PermutePlan, Phase, Plan,
    Target,
};
use warpstride::roofline::measure::Rotation;
use warpstride::stream::Stream;
use warpstride::view::{View, ViewMut};

use super::arithmetic::Computed;
use super::measure::{ColdRuns, Work, one_to_one};
use crate::{permuted_layouts, reference};

/// Channels of images at most.
pub(super) const CHANNELS: usize = 4;
/// Mean and deviation of the channels of ImageNet's pictures, by which networks are mostly fed, and
/// one more of each.
const MEAN: [f64; CHANNELS] = [0.485, 0.456, 0.406, 0.5];
const DEVIATION: [f64; CHANNELS] = [0.229, 0.224, 0.225, 0.25];

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
    let mut arrays = ColdRuns::new(rotation, elements, expected.len())?;
    arrays.begin(&expected)?;
    copied(arrays, expected, [layout, &result], view, move |array| array.split_axis(0, result.shape()))
}

/// Copies a view of an array into a view of another. `layouts` are those of the views, and `from`
/// and `into` make them of the arrays on the device, which come as one axis. No byte of `elements`
/// is 0: the result begins as zeros, and what lies between its elements stays so.
pub(super) fn between<'w, T: Element + Pod>(
    rotation: Rotation,
    elements: &[T],
    [layout, result]: &[Layout; 2],
    from: impl for<'v> Fn(View<'v, T>) -> Result<View<'v, T>, Error> + 'w,
    into: impl for<'v> Fn(ViewMut<'v, T>) -> Result<ViewMut<'v, T>, Error> + 'w,
) -> Result<Box<dyn Work + 'w>> {
    let expected = reference::placed(reference::in_c_order(elements, layout)?, result)?;
    let arrays = ColdRuns::new(rotation, elements, expected.len())?;
    copied(arrays, expected, [layout, result], from, into)
}

/// The work of both, which makes the result `expected`.
fn copied<'w, T: Element + Pod>(
    arrays: ColdRuns<T>,
    expected: Vec<T>,
    [layout, result]: [&Layout; 2],
    from: impl for<'v> Fn(View<'v, T>) -> Result<View<'v, T>, Error> + 'w,
    into: impl for<'v> Fn(ViewMut<'v, T>) -> Result<ViewMut<'v, T>, Error> + 'w,
) -> Result<Box<dyn Work + 'w>> {
    let (align, target) = (Align::ALLOCATION, Target::of(arrays.rotation.device()));
    // Sets begin at other places, and each has a plan of its own, with the same kernel.
    let kernel = PermutePlan::new(layout, align, result, align, size_of::<T>(), target)?.entry();
    let launch =
        move |array: View<'_, T>, to: ViewMut<'_, T>, stream: &Stream| ops::copy_into(from(array)?, into(to)?, stream);
    let is_right = move |found: &[T]| reference::are_equal(found, &expected);
    Ok(one_to_one(Box::new(arrays), kernel, launch, is_right))
}

/// Normalises images to planes.
pub(super) fn normalized<'a, T: Computed>(rotation: Rotation, shape: &'a [usize]) -> Result<Box<dyn Work + 'a>> {
    let [n, h, w, c] = shape.try_into()?;
    let normalization = Normalization::new(1.0 / 255.0, &MEAN[..c], &DEVIATION[..c])?;
    let bytes = reference::random::<u8>(n * h * w * c)?;
    let pixels = h * w;
    // The result of each byte in each channel.
    let table: Vec<T> = (0..c)
        .flat_map(|channel| {
            let normalization = &normalization;
            (0..=255).filter_map(move |byte| normalization.apply(channel, byte))
        })
        .map(|value| T::nearest(value.into()))
        .collect();
    let images = Layout::row_major(shape)?.permuted_axes(&[0, 3, 1, 2])?;
    let planes = Layout::row_major(&[n, c, h, w])?;
    let align = Align::ALLOCATION;
    let (from, to) = ((&images, align, DType::U8), (&planes, align, T::DTYPE));
    let kernel = AffinePlan::new(from, to, Channels::WithLaunch(1), Target::of(rotation.device()))?.entry();
    let arrays = ColdRuns::new(rotation, &bytes, bytes.len())?;
    let launch = move |source: View<'_, u8>, result: ViewMut<'_, T>, stream: &Stream| {
        ops::normalize_into(source.split_axis(0, shape)?, &normalization, result.split_axis(0, &[n, c, h, w])?, stream)
    };
    let is_right = move |found: &[T]| {
        reference::all(found.len(), &|at| {
            let (image, channel, pixel) = (at / pixels / c, at / pixels % c, at % pixels);
            found[at] == table[256 * channel + usize::from(bytes[(image * pixels + pixel) * c + channel])]
        })
    };
    Ok(one_to_one(Box::new(arrays), kernel, launch, is_right))
}

/// Converts elements to another type.
pub(super) fn casted<'a, S: Element + From<u8>, D: Element + From<u8>>(
    rotation: Rotation,
    len: usize,
) -> Result<Box<dyn Work + 'a>> {
    let bytes = reference::random::<u8>(len)?;
    let (from, to) = ((Phase::ALIGNED, S::DTYPE), (Phase::ALIGNED, D::DTYPE));
    let plan = CastPlan::new(from, to, len as u64, Target::of(rotation.device()))?;
    let kernel = plan.entry();
    let arrays = ColdRuns::new(rotation, &small_elements::<S>(&bytes), len)?;
    let launch =
        move |source: View<'_, S>, result: ViewMut<'_, D>, stream: &Stream| plan.launch(source, result, stream);
    let is_right = move |found: &[D]| reference::all(len, &|at| found[at] == D::from(bytes[at] & 127));
    Ok(one_to_one(Box::new(arrays), kernel, launch, is_right))
}

/// Takes rows by their indices, or puts them.
pub(super) fn moved<'a, T: Element + Pod>(
    rotation: Rotation,
    [count, row]: [usize; 2],
    is_put: bool,
) -> Result<Box<dyn Work + 'a>> {
    let elements = reference::random::<T>(count * row)?;
    let mut indices: Vec<u32> = (0..count as u32).collect();
    // Fisher and Yates.
    for (at, bits) in reference::random::<u64>(count)?.into_iter().enumerate() {
        indices.swap(at, (bits % (at as u64 + 1)) as usize);
    }
    let on_device = rotation.device().upload(&indices)?;
    // The row of the source that each row of the result comes from.
    let mut from = indices;
    if is_put {
        for (at, to) in from.clone().into_iter().enumerate() {
            from[to as usize] = at as u32;
        }
    }
    let (way, row_bytes) = (if is_put { Indexed::Scatter } else { Indexed::Gather }, (row * size_of::<T>()) as u64);
    let plan = IndexedPlan::new(way, count as u64, count as u64, row_bytes, DType::U32, Align::ALLOCATION)?;
    let kernel = plan.entry();
    let arrays = ColdRuns::new(rotation, &elements, elements.len())?;
    let launch = move |source: View<'_, T>, result: ViewMut<'_, T>, stream: &Stream| {
        let (source, result) = (source.split_axis(0, &[count, row])?, result.split_axis(0, &[count, row])?);
        plan.launch(source, on_device.view(&[count])?, result, stream)
    };
    let is_right = move |found: &[T]| {
        reference::all(found.len(), &|at| {
            let expected = elements[from[at / row] as usize * row + at % row];
            bytemuck::bytes_of(&found[at]) == bytemuck::bytes_of(&expected)
        })
    };
    Ok(one_to_one(Box::new(arrays), kernel, launch, is_right))
}

/// Permutes, scales, shifts and converts.
pub(super) fn mapped<'a, S: Element + From<u8>, D: Computed>(
    rotation: Rotation,
    shape: &'a [usize],
    axes: &'a [usize],
    channels: Option<usize>,
) -> Result<Box<dyn Work + 'a>> {
    let device = rotation.device().clone();
    let [from, to]: [Layout; 2] = permuted_layouts(shape, axes)?;
    let align = Align::ALLOCATION;
    let sides = ((&from, align, S::DTYPE), (&to, align, D::DTYPE));
    let kernel = AffinePlan::new(sides.0, sides.1, channels, Target::of(&device))?.entry();
    let mut bytes = reference::random::<u8>(from.len())?;
    bytes.iter_mut().for_each(|byte| *byte &= 127);
    let arrays = ColdRuns::new(rotation, &small_elements::<S>(&bytes), to.len())?;
    let bytes = reference::permuted(&bytes, shape, axes)?;
    // The result's channels, and the elements of one channel that follow each other.
    let (count, inner) =
        channels.map_or((1, 1), |axis| (to.shape()[axis], to.shape()[axis + 1..].iter().product::<usize>()));
    let is_right = move |found: &[D]| {
        reference::all(found.len(), &|at| {
            let (factor, offset) = values(at / inner.max(1) % count.max(1));
            found[at] == D::mapped(bytes[at], factor, offset)
        })
    };
    let (factors, offsets): (Vec<f32>, Vec<f32>) = (0..count).map(values).unzip();
    let (factors, offsets) = (device.upload(&factors)?, device.upload(&offsets)?);
    let launch = move |source: View<'_, S>, result: ViewMut<'_, D>, stream: &Stream| {
        let source = source.split_axis(0, shape)?.permuted_axes(axes)?;
        let result = result.split_axis(0, source.shape())?;
        let affine = match channels {
            None => {
                let (factor, offset) = values(0);
                Affine::Uniform { factor: factor.into(), offset: offset.into() }
            }
            Some(axis) => {
                Affine::PerChannel { axis, factors: factors.view(&[count])?, offsets: offsets.view(&[count])? }
            }
        };
        ops::affine_into(source, affine, result, stream)
    };
    Ok(one_to_one(Box::new(arrays), kernel, launch, is_right))
}

/// The factor and the offset of a channel.
fn values(channel: usize) -> (f32, f32) {
    (1.0 / (3.0 + (channel % 61) as f32), (channel % 13) as f32 / -7.0)
}

/// Returns an element of each byte's lower seven bits, which all types have.
fn small_elements<S: Element + From<u8>>(bytes: &[u8]) -> Vec<S> {
    bytes.par_iter().map(|byte| S::from(byte & 127)).collect()
}
