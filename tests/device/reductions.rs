//! Reductions along any axes of views of any layout, against the host's.

use std::fmt::Debug;

use warpstride::ErrorKind;
use warpstride::element::Number;
use warpstride::memory::DeviceBuffer;
use warpstride::ops::{self, Scratch};
use warpstride::{Device, Layout};

use crate::backend::{Setup, cases};
use crate::binary::{drawn_layout, drawn_shape, indices};
use crate::failures::refusal;
use crate::long::short_or_long;
use crate::matrices::Random;
use crate::permutes::device;

cases! {
    Any views_are_reduced_along_drawn_axes,
    Any means_and_variances_take_any_axes,
    Any a_transposed_matrix_is_read_where_it_lies,
    Any one_result_may_have_any_shape_of_one_element,
    Any axes_that_do_not_fit_are_refused,
    Any results_that_do_not_fit_are_refused_before_anything_is_queued,
}

/// Small whole numbers, whose sums every type holds.
fn elements<T>(random: &mut Random, len: usize, of: fn(u8) -> T) -> Vec<T> {
    (0..len).map(|_| of(random.below(7) as u8)).collect()
}

/// Draws axes of a shape, each at most once, in any order.
fn drawn_axes(random: &mut Random, rank: usize) -> Vec<usize> {
    let mut axes: Vec<usize> = (0..rank).filter(|_| random.coin()).collect();
    if random.coin() {
        axes.reverse();
    }
    axes
}

/// Returns the shape without these axes, and for each of its indices in C order the elements that
/// are reduced to one.
fn parts<T: Copy>(elements: &[T], layout: &Layout, axes: &[usize]) -> (Vec<usize>, Vec<Vec<T>>) {
    let stays: Vec<usize> = (0..layout.rank()).filter(|axis| !axes.contains(axis)).collect();
    let shape: Vec<usize> = stays.iter().map(|&axis| layout.shape()[axis]).collect();
    let mut parts = vec![Vec::new(); shape.iter().product()];
    for index in indices(layout.shape()) {
        let part = stays.iter().fold(0, |part, &axis| part * layout.shape()[axis] + index[axis]);
        parts[part].push(elements[layout.offset_of(&index).unwrap()]);
    }
    (shape, parts)
}

fn views_are_reduced_along_drawn_axes(setup: &Setup) {
    let (device, mut random) = (device(setup), Random::new(95));
    for _ in 0..short_or_long(100, 2000) {
        drawn::<f32>(&device, &mut random, f32::from, |sum, of| sum == of.iter().sum::<f32>());
        drawn::<f64>(&device, &mut random, f64::from, |sum, of| sum == of.iter().sum::<f64>());
        drawn::<u16>(&device, &mut random, u16::from, |sum, of| sum == of.iter().map(|&x| u64::from(x)).sum::<u64>());
    }
}

fn drawn<T: Number + PartialOrd + Debug>(
    device: &Device,
    random: &mut Random,
    of: fn(u8) -> T,
    is_sum: fn(T::Sum, &[T]) -> bool,
) {
    let shape = drawn_shape(random);
    let layout = drawn_layout(random, &shape);
    let numbers = elements(random, layout.storage_len(), of);
    let buffer: DeviceBuffer<T> = device.upload(&numbers).unwrap();
    let view = buffer.view_with(layout).unwrap();
    let axes = drawn_axes(random, shape.len());
    let (kept, parts) = parts(&numbers, &layout, &axes);
    let what = format!("{layout:?} along {axes:?}");
    let sum = ops::sum(view, &axes[..]).unwrap();
    assert_eq!(sum.shape(), kept, "{what}");
    let sums = sum.to_vec().unwrap();
    assert!(sums.iter().zip(&parts).all(|(&sum, of)| is_sum(sum, of)), "sums of {what}: {sums:?}");
    let all = ops::sum(view, None).unwrap().item().unwrap();
    assert!(is_sum(all, &parts.concat()), "the sum of all of {what}");
    if parts.iter().any(Vec::is_empty) || parts.is_empty() {
        return;
    }
    let least = |of: &Vec<T>| of.iter().copied().reduce(|x, y| if y < x { y } else { x }).unwrap();
    let greatest = |of: &Vec<T>| of.iter().copied().reduce(|x, y| if y > x { y } else { x }).unwrap();
    let found = [ops::min(view, &axes[..]), ops::max(view, &axes[..])].map(|found| found.unwrap().to_vec().unwrap());
    let expected = [parts.iter().map(least).collect::<Vec<T>>(), parts.iter().map(greatest).collect()];
    assert_eq!(found, expected, "extremes of {what}");
    let first = |of: &Vec<T>| of.iter().position(|&x| x == greatest(of)).unwrap() as u64;
    if let [axis] = axes[..] {
        let expected: Vec<u64> = parts.iter().map(first).collect();
        assert_eq!(ops::argmax(view, axis).unwrap().to_vec().unwrap(), expected, "argmax of {what}");
    }
    let all: Vec<T> = indices(&shape).map(|index| numbers[layout.offset_of(&index).unwrap()]).collect();
    assert_eq!(ops::argmax(view, None).unwrap().item().unwrap(), first(&all), "argmax of all of {what}");
}

fn means_and_variances_take_any_axes(setup: &Setup) {
    let (device, mut random) = (device(setup), Random::new(96));
    for _ in 0..short_or_long(100, 2000) {
        let shape = drawn_shape(&mut random);
        let layout = drawn_layout(&mut random, &shape);
        let numbers = elements(&mut random, layout.storage_len(), f64::from);
        let buffer = device.upload(&numbers).unwrap();
        let view = buffer.view_with(layout).unwrap();
        let axes = drawn_axes(&mut random, shape.len());
        let (kept, parts) = parts(&numbers, &layout, &axes);
        let mean = |of: &Vec<f64>| of.iter().sum::<f64>() / of.len() as f64;
        let means = ops::mean(view, &axes[..]).unwrap();
        assert_eq!(means.shape(), kept);
        let expected: Vec<f64> = parts.iter().map(mean).collect();
        // The mean of no elements is NaN.
        let same = |(x, y): (&f64, &f64)| x == y || x.is_nan() && y.is_nan();
        let found = means.to_vec().unwrap();
        assert!(found.iter().zip(&expected).all(same), "{layout:?} along {axes:?}: {found:?}, not {expected:?}");
        if parts.iter().any(Vec::is_empty) {
            refusal(ops::mean_variance(view, &axes[..])).of(ErrorKind::InvalidArgument);
            continue;
        }
        let (means, variances) = ops::mean_variance(view, &axes[..]).unwrap();
        assert_eq!([means.shape(), variances.shape()], [&kept[..]; 2]);
        for ((found, variance), of) in means.to_vec().unwrap().iter().zip(variances.to_vec().unwrap()).zip(&parts) {
            let expected = of.iter().map(|x| (x - mean(of)).powi(2)).sum::<f64>() / of.len() as f64;
            let are_near = (found - mean(of)).abs() < 1e-12 && (variance - expected).abs() < 1e-12;
            assert!(are_near, "{layout:?} along {axes:?}: {found} and {variance}, not {} and {expected}", mean(of));
        }
    }
    let halves = device.array(&[2, 2], &[1.0_f32, 2.0, 3.0, 6.0]).unwrap();
    assert_eq!(ops::mean(&halves, None).unwrap().item().unwrap(), 3.0);
}

/// Without a copy, it moves what the sum down the columns moves.
fn a_transposed_matrix_is_read_where_it_lies(setup: &Setup) {
    let device = device(setup);
    let Some(before) = device.counters().unwrap() else { return };
    let matrix = device.array(&[64, 256], &[1.0_f32; 64 * 256]).unwrap();
    assert_eq!(ops::sum(&matrix, 0).unwrap().to_vec().unwrap(), [64.0; 256]);
    let between = device.counters().unwrap().unwrap();
    assert_eq!(ops::sum(matrix.view().t(), 1).unwrap().to_vec().unwrap(), [64.0; 256]);
    let after = device.counters().unwrap().unwrap();
    assert_eq!(after - between, between - before);
}

fn one_result_may_have_any_shape_of_one_element(setup: &Setup) {
    let device = device(setup);
    let stream = device.default_stream();
    let matrix = device.array(&[2, 2], &[1.0_f32, 2.0, 3.0, 6.0]).unwrap();
    let mut scratch = Scratch::new(&device).unwrap();
    for shape in [&[][..], &[1], &[1, 1]] {
        let [mut mean, mut variance, mut sum] = [(); 3].map(|()| device.alloc_array::<f32>(shape).unwrap());
        for view in [matrix.view(), matrix.view().t(), matrix.view().reverse(0).unwrap()] {
            ops::mean_variance_into(view, None, &mut mean, &mut variance, stream).unwrap();
            assert_eq!((mean.item().unwrap(), variance.item().unwrap()), (3.0, 3.5), "{shape:?}");
            ops::mean_into(view, None, &mut scratch, &mut mean, stream).unwrap();
            ops::sum_into(view, None, &mut scratch, &mut sum, stream).unwrap();
            assert_eq!((mean.item().unwrap(), sum.item().unwrap()), (3.0, 12.0), "{shape:?}");
        }
    }
}

fn axes_that_do_not_fit_are_refused(setup: &Setup) {
    let device = device(setup);
    let cube = device.array(&[2, 3, 4], &[1.0_f32; 24]).unwrap();
    refusal(ops::sum(&cube, [0, 3])).of(ErrorKind::Layout).says("no axis 3");
    refusal(ops::mean(&cube, [1, 1])).of(ErrorKind::Layout).says("axis 1").says("twice");
    refusal(ops::max(cube.view().slice(1, ..0, 1).unwrap(), [0, 1]))
        .of(ErrorKind::InvalidArgument)
        .says("no max of no elements: shape [2, 0, 4] has none along axes [0, 1]");
    let none = cube.view().slice(1, ..0, 1).unwrap();
    refusal(ops::min(none.t(), [0, 1])).says("shape [4, 0, 2] has none along axes [0, 1]");
    refusal(ops::argmax(none, 1)).says("no argmax of no elements: shape [2, 0, 4] has none along axis 1");
    refusal(ops::argmax(none, None)).says("shape [2, 0, 4] has none along axes [0, 1, 2]");
    refusal(ops::mean_variance(none, [1, 2]))
        .of(ErrorKind::InvalidArgument)
        .says("no mean and variance of no elements: shape [2, 0, 4] has none along axes [1, 2]");
    refusal(ops::mean_variance(&cube, 5)).of(ErrorKind::Layout).says("no axis 5");
    let (mut wrong, mut scratch) = (device.alloc_array::<f32>(&[2]).unwrap(), Scratch::new(&device).unwrap());
    let stream = device.default_stream();
    refusal(ops::sum_into(&cube, [0, 2], &mut scratch, &mut wrong, stream)).of(ErrorKind::Layout).says("[3]");
    refusal(ops::mean_into(&cube, 1, &mut scratch, &mut wrong, stream)).of(ErrorKind::Layout).says("[2, 4]");
    let mut same = device.alloc_array::<f32>(&[2]).unwrap();
    refusal(ops::mean_variance_into(&cube, [0, 1], &mut wrong, &mut same, stream)).says("the mean has shape [4]");
    refusal(ops::mean_variance_into(&cube, None, &mut wrong, &mut same, stream))
        .of(ErrorKind::Layout)
        .says("the mean of all elements is one value, and its view has shape [2]; give one element");
    refusal(ops::sum_into(cube.view().t(), None, &mut scratch, &mut wrong, stream))
        .says("the sum of all elements is one value");
    assert_eq!(ops::sum(&cube, [0, 2]).unwrap().to_vec().unwrap(), [8.0; 3]);
    let same = ops::sum(&cube, &[][..]).unwrap();
    assert_eq!((same.shape(), same.to_vec().unwrap()), (&[2, 3, 4][..], vec![1.0; 24]));
}

fn results_that_do_not_fit_are_refused_before_anything_is_queued(setup: &Setup) {
    let (trace, device) = setup.traced(&setup.driver);
    let elsewhere = self::device(setup);
    let stream = device.default_stream();
    let cube = device.array(&[2, 3, 4], &[1.0_f32; 24]).unwrap();
    // The operations copy the elements of this view first.
    let gaps = cube.view().slice(2, .., 2).unwrap();
    let (mut wide, mut result) = (device.zeros::<f32>(6).unwrap(), device.alloc_array::<f32>(&[3]).unwrap());
    let mut foreign = elsewhere.alloc_array::<f32>(&[3]).unwrap();
    let mut scratch = Scratch::new(&device).unwrap();
    let before = trace.calls().len();
    let mut apart = wide.view_mut(&[3, 2]).unwrap().index_axis(1, 0).unwrap();
    let refused = [
        ops::sum_into(gaps, [0, 2], &mut scratch, apart.view_mut(), stream),
        ops::sum_into(&cube, [0, 2], &mut scratch, apart.view_mut(), stream),
        ops::mean_into(gaps, [0, 2], &mut scratch, apart.view_mut(), stream),
        ops::mean_variance_into(gaps, [0, 2], apart.view_mut(), &mut result, stream),
        ops::mean_variance_into(gaps, [0, 2], &mut result, apart.view_mut(), stream),
    ];
    for (refused, name) in refused.into_iter().zip(["destination", "destination", "destination", "mean", "variance"]) {
        refusal(refused)
            .of(ErrorKind::Layout)
            .says(&format!("the elements of the {name} of shape [3] have strides [2]"))
            .says("write to a new array (alloc_array), and copy that to this view (copy_into)");
    }
    for refused in [
        ops::sum_into(gaps, [0, 2], &mut scratch, &mut foreign, stream),
        ops::mean_variance_into(gaps, [0, 2], &mut result, &mut foreign, stream),
    ] {
        refusal(refused).of(ErrorKind::InvalidArgument);
    }
    assert_eq!(trace.calls().len(), before, "{:?}", &trace.calls()[before..]);
}
