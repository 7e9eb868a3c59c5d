//! Reductions along one axis, and operations that need a whole row, of every number type, by raw
//! addresses, against the host's.

use std::cmp::Ordering;

use approx::assert_relative_eq;
use warpstride::device::Device;
use warpstride::element::DType;
use warpstride::error::{ErrorKind, Result};
use warpstride::ops::{self, MeanVariancePlan, Phase, Reduction, Scratch, SoftmaxPlan, Target};

use crate::arithmetic::{Bf16, F16, F32, F64, Kind, at, of_every_kind, random, reduce, reduce_at};
use crate::backend::{Setup, cases};
use crate::failures::refusal;
use crate::matrices::Random;
use crate::permutes::device;
use crate::rows_shared::{launch_moments, launch_softmax, moments_are_right, softmax_is_right};

cases! {
    Any sums_along_an_axis_of_whole_numbers_are_exact,
    Any extremes_along_an_axis_are_found_with_their_places,
    Any the_first_of_several_is_the_greatest_and_nan_is_greater,
    Any sums_along_an_axis_are_the_same_every_time,
    Any views_are_reduced_along_each_of_their_axes,
    Any softmax_is_near_that_in_double_precision,
    Any softmax_of_many_terms_is_within_its_bound,
    Any softmax_of_what_is_infinite,
    Any a_row_with_no_number_becomes_none_in_every_type,
    Any variance_of_many_far_from_zero_does_not_cancel,
    Any extremes_along_an_axis_are_nan_where_one_is,
    Any rows_become_their_softmax_in_place,
    Any mean_and_variance_are_near_those_in_double_precision,
    Any an_axis_of_no_elements_has_a_sum_alone,
    Any what_has_no_such_axis_is_refused,
    Any results_over_other_operands_are_refused,
}

/// `[outer, n, inner]` for every path: rows that share a block, rows of one, rows in parts; columns
/// of vectors and of elements, columns that share a block, columns in parts, last blocks with fewer
/// columns; axes of length one and zero.
pub(crate) const EXTENTS: [[usize; 3]; 17] = [
    [5, 1, 1],
    [700, 3, 1],
    [300, 33, 1],
    [9, 1000, 1],
    [3, 5001, 1],
    [2, 70_000, 1],
    [1, 100_003, 1],
    [4, 1, 7],
    [3, 9, 64],
    [2, 100, 37],
    [50, 7, 3],
    [2, 300, 256],
    [1, 300, 200],
    [1, 20_011, 24],
    [1, 40_000, 3],
    [3, 0, 2],
    [0, 4, 2],
];

/// Launches every kernel of this file, on few elements.
pub(crate) fn launch_all(device: &Device, numbers: &mut Random) {
    of_every_kind!(sums(device, &[[3, 100, 1], [2, 9, 64]]));
    of_every_kind!(extremes(device, numbers, &[[3, 100, 1], [2, 9, 64], [1, 40_000, 3]]));
    of_every_kind!(softmaxes(device, numbers, &[[3, 100], [2, 20_000]]));
    of_every_kind!(moments(device, numbers, &[[3, 100], [2, 40_000]]));
}

/// Applies `join` to an iterator over the numbers of each column.
pub(crate) fn by_column<T: Copy, R>(
    numbers: &[T],
    [outer, n, inner]: [usize; 3],
    join: impl Fn(&mut dyn Iterator<Item = T>) -> R,
) -> Vec<R> {
    let column = |block: usize, lane: usize| (0..n).map(move |place| numbers[(block * n + place) * inner + lane]);
    (0..outer)
        .flat_map(|block| (0..inner).map(move |lane| (block, lane)))
        .map(|(b, l)| join(&mut column(b, l)))
        .collect()
}

pub(crate) fn values<K: Kind>(elements: &[K::Bits]) -> Vec<f64> {
    elements.iter().map(|&element| K::value(element)).collect()
}

/// Elements from the buffer's start to the operands: on a vector, and off it.
const STARTS: [usize; 2] = [0, 3];

fn sums_along_an_axis_of_whole_numbers_are_exact(setup: &Setup) {
    let device = device(setup);
    of_every_kind!(sums(&device, &EXTENTS));
}

fn sums<K: Kind>(device: &Device, all: &[[usize; 3]]) {
    for &extents in all {
        let len = extents.iter().product::<usize>();
        // The values are so small that every partial sum is a number of 24 bits.
        let elements: Vec<_> = (0..len + 8).map(|i| K::nearest((i * 5 % 7) as f64 - 3.0)).collect();
        let source = device.upload(&elements).unwrap();
        for start in STARTS {
            let found: Vec<f64> = reduce::<K, K::Sum>(device, Reduction::Sum, (&source, start), &extents, Some(1))
                .into_iter()
                .map(K::sum)
                .collect();
            let expected = by_column(&values::<K>(&elements[start..]), extents, |column| column.sum::<f64>());
            assert!(found == expected, "the sums of {extents:?} {:?} from {start}", K::DTYPE);
        }
    }
}

fn extremes_along_an_axis_are_nan_where_one_is(setup: &Setup) {
    let device = device(setup);
    // Along rows, short and in parts, and down columns, of vectors and of elements.
    for [outer, n, inner] in [[3, 10, 1], [1, 100_000, 1], [2, 300, 8], [1, 5000, 3]] {
        for place in [0, n / 2, n - 1] {
            let mut numbers = vec![1.0_f32; outer * n * inner];
            numbers[place * inner] = f32::NAN;
            let source = device.upload(&numbers).unwrap();
            for reduction in [Reduction::Min, Reduction::Max] {
                let found: Vec<f32> = reduce::<F32, f32>(&device, reduction, (&source, 0), &[outer, n, inner], Some(1));
                assert!(found[0].is_nan() && found[1..].iter().all(|&value| value == 1.0), "{place} of {n}: {found:?}");
            }
        }
    }
}

fn extremes_along_an_axis_are_found_with_their_places(setup: &Setup) {
    let (device, mut numbers) = (device(setup), Random::new(80));
    let some: Vec<_> = EXTENTS.into_iter().filter(|&[_, n, _]| n > 0).collect();
    of_every_kind!(extremes(&device, &mut numbers, &some));
}

fn extremes<K: Kind>(device: &Device, numbers: &mut Random, all: &[[usize; 3]]) {
    for &extents in all {
        let elements = random::<K>(numbers, extents.iter().product::<usize>() + 8);
        let source = device.upload(&elements).unwrap();
        for start in STARTS {
            let numbers = values::<K>(&elements[start..]);
            for (reduction, join) in [(Reduction::Min, f64::min as fn(f64, f64) -> f64), (Reduction::Max, f64::max)] {
                let found = values::<K>(&reduce::<K, K::Bits>(device, reduction, (&source, start), &extents, Some(1)));
                let expected = by_column(&numbers, extents, |column| column.reduce(join).unwrap());
                assert!(found == expected, "{reduction} of {extents:?} {:?} from {start}", K::DTYPE);
            }
            let found: Vec<u64> = reduce::<K, u64>(device, Reduction::ArgMax, (&source, start), &extents, Some(1));
            let expected = by_column(&numbers, extents, first_greatest);
            assert!(found == expected, "places in {extents:?} {:?} from {start}", K::DTYPE);
        }
    }
}

/// Returns the index of the first of the greatest; NaN is greater than any number.
pub(crate) fn first_greatest<T: Copy + PartialOrd>(column: &mut dyn Iterator<Item = T>) -> u64 {
    let mut best = None;
    for (place, value) in column.enumerate() {
        // NaN alone is in no order with itself.
        let is_better =
            |best: T| best.partial_cmp(&best).is_some() && value.partial_cmp(&best).is_none_or(Ordering::is_gt);
        if best.is_none_or(|(_, best)| is_better(best)) {
            best = Some((place as u64, value));
        }
    }
    best.expect("no axis is empty").0
}

fn the_first_of_several_is_the_greatest_and_nan_is_greater(setup: &Setup) {
    fn check<K: Kind>(device: &Device) {
        for extents in [[3, 1000, 1], [2, 300, 8], [2, 300, 3], [1, 100_003, 1], [1, 40_000, 3]] {
            let [_, n, inner] = extents;
            let len = extents.iter().product::<usize>();
            let (first, second) = (n / 3, n - 2);
            for [early, late, rest] in [
                [2.0, 2.0, 1.0],
                [f64::NAN, f64::NAN, 1.0],
                [f64::INFINITY, f64::NAN, 1.0],
                [f64::NEG_INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY],
                [0.0, -0.0, -1.0],
            ] {
                let number = |i: usize| match i / inner % n {
                    place if place == first => early,
                    place if place == second => late,
                    _ => rest,
                };
                let elements: Vec<_> = (0..len).map(|i| K::nearest(number(i))).collect();
                let source = device.upload(&elements).unwrap();
                let found: Vec<u64> = reduce::<K, u64>(device, Reduction::ArgMax, (&source, 0), &extents, Some(1));
                let expected = by_column(&values::<K>(&elements), extents, first_greatest);
                assert!(found == expected, "{early} and {late} in {extents:?} {:?}: {found:?}", K::DTYPE);
            }
        }
    }
    let device = device(setup);
    of_every_kind!(check(&device));
    let numbers: Vec<f32> = (0..3000).map(|i| (i % 1999) as f32).collect();
    let buffer = device.upload(&numbers).unwrap();
    assert_eq!(ops::argmax(buffer.view(&[30, 100]).unwrap(), None).unwrap().to_vec().unwrap(), [1998]);
}

fn sums_along_an_axis_are_the_same_every_time(setup: &Setup) {
    let (device, mut numbers) = (device(setup), Random::new(81));
    for extents in [[2, 70_000, 1], [1, 20_011, 24]] {
        let len = extents.iter().product::<usize>();
        let elements: Vec<f32> = (0..len).map(|_| 1.0 + numbers.below(1000) as f32 / 1000.0).collect();
        let source = device.upload(&elements).unwrap();
        let [one, other] =
            [(); 2].map(|()| reduce::<F32, f32>(&device, Reduction::Sum, (&source, 0), &extents, Some(1)));
        assert!(one == other, "{extents:?}");
        let expected = by_column(&values::<F32>(&elements), extents, |column| column.sum::<f64>());
        for (&found, expected) in one.iter().zip(expected) {
            // A thread joins a few of them in sequence, and the threads' values are joined
            // separately: some roundings of 2^-24 each.
            assert_relative_eq!(f64::from(found), expected, max_relative = 4e-6);
        }
    }
}

fn views_are_reduced_along_each_of_their_axes(setup: &Setup) {
    let device = device(setup);
    let numbers: Vec<f32> = (0..2 * 3 * 4 * 5).map(|i| (i * 7 % 31) as f32).collect();
    let buffer = device.upload(&numbers).unwrap();
    let shape = [2, 3, 4, 5];
    let view = buffer.view(&shape).unwrap();
    for axis in 0..4 {
        let product = |extents: &[usize]| extents.iter().product::<usize>();
        let extents = [product(&shape[..axis]), shape[axis], product(&shape[axis + 1..])];
        let columns = values::<F32>(&numbers);
        let expected: Vec<f32> = by_column(&columns, extents, |column| column.sum::<f64>() as f32);
        assert_eq!(ops::sum(view, axis).unwrap().to_vec().unwrap(), expected);
        let expected: Vec<f32> = by_column(&columns, extents, |column| column.fold(f64::INFINITY, f64::min) as f32);
        assert_eq!(ops::min(view, axis).unwrap().to_vec().unwrap(), expected);
        let expected: Vec<f32> = by_column(&columns, extents, |column| column.fold(0.0, f64::max) as f32);
        assert_eq!(ops::max(view, axis).unwrap().to_vec().unwrap(), expected);
        let expected = by_column(&columns, extents, first_greatest);
        assert_eq!(ops::argmax(view, axis).unwrap().to_vec().unwrap(), expected);
    }
}

/// Rows for every path: short, held by a block, too long for that; whole vectors and others.
/// Rows that a group holds, and from 33,000 on rows that blocks share: more rows than a small GPU
/// has teams, parts of several lengths, and more parts than it has blocks.
const ROWS: [[usize; 2]; 11] = [
    [5, 1],
    [40, 3],
    [7, 64],
    [9, 129],
    [3, 1000],
    [2, 4099],
    [2, 16_384],
    [1, 33_000],
    [9, 33_001],
    [2, 150_001],
    [0, 4],
];

fn softmax_is_near_that_in_double_precision(setup: &Setup) {
    let (device, mut numbers) = (device(setup), Random::new(82));
    of_every_kind!(softmaxes(&device, &mut numbers, &ROWS));
}

/// Plans the softmax of rows at these addresses, and queues it.
///
/// # Safety
///
/// As [`SoftmaxPlan::launch_raw`].
unsafe fn softmax_at(device: &Device, dtype: DType, shape: [u64; 2], src: u64, dst: u64) -> Result<()> {
    let plan = SoftmaxPlan::new(dtype, shape, [src, dst].map(Phase::of), Target::of(device))?;
    // SAFETY: as the caller promises.
    unsafe { launch_softmax(device, &plan, [src, dst]) }
}

/// Plans mean and variance of rows at this address, and queues them.
///
/// # Safety
///
/// As [`MeanVariancePlan::launch_raw`].
unsafe fn moments_at(device: &Device, dtype: DType, shape: [u64; 2], src: u64, results: [u64; 2]) -> Result<()> {
    let plan = MeanVariancePlan::new(dtype, shape, Phase::of(src), Target::of(device))?;
    // SAFETY: as the caller promises.
    unsafe { launch_moments(device, &plan, src, results) }
}

fn softmaxes<K: Kind>(device: &Device, numbers: &mut Random, all: &[[usize; 2]]) {
    for &shape in all {
        for starts in [[0, 0], [3, 3], [1, 2]] {
            softmax_is_right::<K>(device, Target::of(device), numbers, shape, starts);
        }
    }
}

/// Rows whose roundings would add up if sums were made in sequence, or scaled at every element.
fn softmax_of_many_terms_is_within_its_bound(setup: &Setup) {
    let (device, mut random) = (device(setup), Random::new(87));
    let ramp = |step: f32| (0..1 << 19).map(|place| place as f32 * step).collect::<Vec<_>>();
    let alike = |len: usize| (0..len).map(|place| if place == 0 { 0.0 } else { -0.4144 }).collect();
    let uniform = (0..1 << 19).map(|_| random.below(1 << 16) as f32 / 4096.0 - 8.0).collect();
    // With rows that a group holds, and rows that blocks share.
    for (row, roundings) in [
        (alike(16_384), 48.0),
        (alike(100_000), 96.0),
        (ramp(1e-6), 96.0),
        (ramp(1e-7), 96.0),
        (ramp(-1e-6), 96.0),
        (ramp(1e-3), 96.0),
        (uniform, 96.0),
    ] {
        let source = device.upload(&row).unwrap();
        let found = ops::softmax(source.view(&[1, row.len()]).unwrap()).unwrap().to_vec().unwrap();
        let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let below = |number: f32| f64::from(number) - f64::from(most);
        let total: f64 = row.iter().map(|&number| below(number).exp()).sum();
        for (place, (&number, &found)) in row.iter().zip(&found).enumerate() {
            let expected = below(number).exp() / total;
            let bound = (roundings + 2.0 * below(number).abs()) * f64::powi(2.0, -24) * expected + f64::powi(2.0, -149);
            assert!((f64::from(found) - expected).abs() < bound, "{found} of {number} at {place}, expected {expected}");
        }
    }
}

fn rows_become_their_softmax_in_place(setup: &Setup) {
    let (device, mut random) = (device(setup), Random::new(88));
    for n in [3, 1000, 16_384, 20_000, 200_000] {
        let numbers: Vec<f32> = (0..2 * n + 1).map(|_| random.below(1 << 12) as f32 / 512.0).collect();
        for start in [0, 1] {
            let [source, own] = [(); 2].map(|()| device.upload(&numbers).unwrap());
            let result = device.upload(&numbers).unwrap();
            for (from, to) in [(&source, &result), (&own, &own)] {
                let (from, to) = (at(from, start), at(to, start));
                // SAFETY: both have this number of elements, and live until the downloads.
                unsafe { softmax_at(&device, F32::DTYPE, [2, n as u64], from, to) }.unwrap();
            }
            assert!(result.download().unwrap() == own.download().unwrap(), "{n} from {start}");
        }
    }
}

fn softmax_of_what_is_infinite(setup: &Setup) {
    let device = device(setup);
    for n in [8, 20_000] {
        let softmax = |numbers: &[f32]| {
            let buffer = device.upload(numbers).unwrap();
            ops::softmax(buffer.view(&[1, n]).unwrap()).unwrap().to_vec().unwrap()
        };
        let mut numbers = vec![f32::NEG_INFINITY; n];
        assert!(softmax(&numbers).iter().all(|value| value.is_nan()));
        numbers[n - 2] = 1000.0;
        numbers[3] = 1000.0;
        let found = softmax(&numbers);
        assert!((0..n).all(|i| found[i] == if i == 3 || i == n - 2 { 0.5 } else { 0.0 }), "{n}");
        numbers[5] = f32::NAN;
        assert!(softmax(&numbers).iter().all(|value| value.is_nan()));
        numbers[5] = f32::INFINITY;
        assert!(softmax(&numbers).iter().all(|value| value.is_nan()));
        // Values underflow gradually on the way down to zero.
        let steps: Vec<f32> = (0..n).map(|i| -(i.min(110) as f32)).collect();
        let total: f64 = steps.iter().map(|&step| f64::from(step).exp()).sum();
        for (&step, value) in steps.iter().zip(softmax(&steps)) {
            assert_relative_eq!(f64::from(value), f64::from(step).exp() / total, max_relative = 1e-5, epsilon = 2e-45);
        }
    }
}

fn a_row_with_no_number_becomes_none_in_every_type(setup: &Setup) {
    of_every_kind!(no_number(&device(setup)));
}

fn no_number<K: Kind>(device: &Device) {
    // A group holds the first, and blocks share the second.
    for n in [64, 20_000] {
        for place in [0, n - 1] {
            let mut row = vec![K::nearest(1.0); n];
            row[place] = K::nearest(f64::NAN);
            let [source, result] = [(); 2].map(|()| device.upload(&row).unwrap());
            let (from, to) = (at(&source, 0), at(&result, 0));
            // SAFETY: both have this number of elements, and live until the download.
            unsafe { softmax_at(device, K::DTYPE, [1, n as u64], from, to) }.unwrap();
            assert!(result.download().unwrap().into_iter().all(|bits| K::value(bits).is_nan()), "{n}, {place}");
        }
    }
}

fn mean_and_variance_are_near_those_in_double_precision(setup: &Setup) {
    let (device, mut numbers) = (device(setup), Random::new(83));
    of_every_kind!(moments(&device, &mut numbers, &ROWS));
}

fn variance_of_many_far_from_zero_does_not_cancel(setup: &Setup) {
    let (device, mut random) = (device(setup), Random::new(89));
    // A group holds the first, and blocks share the second.
    for n in [16_384, 1 << 19] {
        let near = |random: &mut Random| 1e6 + random.below(17) as f32 / 16.0 - 0.5;
        let noise: Vec<f32> = (0..n).map(|_| near(&mut random)).collect();
        let with = |numbers: &[f32], place: usize, one: f32| {
            let mut numbers = numbers.to_vec();
            numbers[place] = one;
            numbers
        };
        let threes = vec![3.0; n];
        for numbers in [
            with(&noise, 0, -3e6),
            with(&threes, 0, 1e8),
            with(&threes, 5, 1e8),
            with(&threes, n - 1, -1e6),
            vec![1_000_000.3; n],
            noise,
        ] {
            let source = device.upload(&numbers).unwrap();
            let (mean, variance) = ops::mean_variance(source.view(&[1, n]).unwrap(), 1).unwrap();
            let (mean, variance) = (mean.to_vec().unwrap()[0], variance.to_vec().unwrap()[0]);
            let expected = numbers.iter().copied().map(f64::from).sum::<f64>() / n as f64;
            let squares: f64 = numbers.iter().map(|&number| (f64::from(number) - expected).powi(2)).sum();
            assert_relative_eq!(f64::from(mean), expected, max_relative = f64::powi(2.0, -20));
            assert_relative_eq!(f64::from(variance), squares / n as f64, max_relative = 1e-5);
        }
        // As in NumPy, the mean is infinite if an element is infinite or the sum is not finite, and
        // no difference from it is a number.
        let of_one = [f32::INFINITY, f32::NAN].into_iter().flat_map(|one| [0, 7, n - 1].map(|place| (place, one)));
        let rows = of_one.map(|(place, one)| (with(&threes, place, one), one));
        for (numbers, expected) in rows.chain([(vec![f32::MAX; n], f32::INFINITY)]) {
            let source = device.upload(&numbers).unwrap();
            let (mean, variance) = ops::mean_variance(source.view(&[1, n]).unwrap(), 1).unwrap();
            let (mean, variance) = (mean.to_vec().unwrap()[0], variance.to_vec().unwrap()[0]);
            let is_right = mean.to_bits() == expected.to_bits() || mean.is_nan() && expected.is_nan();
            assert!(is_right, "{mean} where it is {expected}");
            assert!(variance.is_nan(), "{variance} where the mean is {expected}");
        }
    }
}

fn moments<K: Kind>(device: &Device, numbers: &mut Random, all: &[[usize; 2]]) {
    for &shape in all {
        for start in STARTS {
            moments_are_right::<K>(device, Target::of(device), numbers, shape, start);
        }
    }
}

/// The answers are those of NumPy 2.4.6, by shape and axis: whether `min`, `max` and `argmax` give
/// an array, which has no elements then, and the number of sums.
fn an_axis_of_no_elements_has_a_sum_alone(setup: &Setup) {
    let device = device(setup);
    let nothing = device.alloc::<f32>(0).unwrap();
    // Results between two axes would have more bytes than can be addressed.
    let large = nothing.view(&[1 << 60, 2, 0]).unwrap();
    assert_eq!(ops::sum(large, [0, 2]).unwrap().to_vec().unwrap(), [0.0; 2]);
    for (shape, axis, has_least, sums) in [
        (&[0, 3][..], Some(0), false, 3),
        (&[3, 0], Some(1), false, 3),
        (&[0, 0], Some(0), false, 0),
        (&[0, 0], Some(1), false, 0),
        (&[0, 2, 0], Some(0), false, 0),
        (&[2, 0, 0], Some(1), false, 0),
        (&[0], Some(0), false, 1),
        (&[0], None, false, 1),
        (&[0, 0], None, false, 1),
        (&[2, 0], Some(0), true, 0),
        (&[0, 3], Some(1), true, 0),
        (&[0, 2, 0], Some(1), true, 0),
    ] {
        let view = nothing.view(shape).unwrap();
        assert_eq!(ops::sum(view, axis).unwrap().to_vec().unwrap(), vec![0.0; sums], "{shape:?}, {axis:?}");
        for least in [ops::min(view, axis), ops::max(view, axis)] {
            match least {
                Ok(least) => assert!(has_least && least.is_empty(), "{shape:?}, {axis:?}"),
                Err(error) => assert!(!has_least && error.kind() == ErrorKind::InvalidArgument, "{shape:?}: {error}"),
            }
        }
        assert_eq!(ops::argmax(view, axis).map(|places| places.len()).ok(), has_least.then_some(0), "{shape:?}");
    }
}

fn what_has_no_such_axis_is_refused(setup: &Setup) {
    let device = device(setup);
    let buffer = device.upload(&[1.0_f32; 12]).unwrap();
    let view = buffer.view(&[3, 4]).unwrap();
    refusal(ops::sum(view, 2)).of(ErrorKind::Layout).says("[3, 4] has no axis 2");
    refusal(ops::max(view.slice(1, ..0, 1).unwrap(), 1)).says("no max of no elements");
    assert_eq!(ops::sum(view.slice(0, ..0, 1).unwrap(), 0).unwrap().to_vec().unwrap(), [0.0; 4]);
    assert!(ops::argmax(view.slice(0, ..0, 1).unwrap(), 1).unwrap().is_empty());
    refusal(ops::softmax(view.t())).says("contiguous");
    let mut wrong = device.zeros::<f32>(4).unwrap();
    let mut scratch = Scratch::new(&device).unwrap();
    let stream = device.default_stream();
    refusal(ops::min_into(view, 1, &mut scratch, wrong.view_mut(&[4]).unwrap(), stream)).says("shape [3]");
    refusal(ops::softmax_into(view, wrong.view_mut(&[4]).unwrap(), stream)).says("[3, 4] and [4]");
    refusal(ops::mean_variance(view.slice(1, ..0, 1).unwrap(), 1)).says("shape [3, 0] has none along axis 1");
    let from = buffer.address();
    // SAFETY: refused before any work is queued.
    refusal(unsafe { softmax_at(&device, F32::DTYPE, [3, 4], from, from + 16) }).says("overlap");
    let apart = wrong.address();
    for (results, operands) in [
        ([from + 44, apart], ["the source", "the mean"]),
        ([apart, from], ["the source", "the variance"]),
        ([apart, apart + 8], ["the mean", "the variance"]),
    ] {
        // SAFETY: refused before any work is queued.
        let error = unsafe { moments_at(&device, F32::DTYPE, [3, 4], from, results) };
        refusal(error).says("overlap").says(operands[0]).says(operands[1]);
    }
}

fn results_over_other_operands_are_refused(setup: &Setup) {
    let device = device(setup);
    let (array, room) = (device.zeros::<f32>(100_000).unwrap(), device.alloc::<u8>(2 * Scratch::BYTES).unwrap());
    let (a, scratch) = (array.address(), room.address());
    let result = scratch + Scratch::BYTES as u64;
    let rows = |rows: usize| [rows, array.len() / rows];
    for (shape, axis, operands, names) in [
        (rows(1000), Some(1), [a, a + 4, scratch], ["the array", "the result"]),
        (rows(1000), Some(0), [a, a + 399_996, scratch], ["the array", "the result"]),
        (rows(1), None, [a, result, a + 16], ["the array", "the scratch"]),
        (rows(1), Some(1), [a, scratch + 16, scratch], ["the result", "the scratch"]),
    ] {
        // SAFETY: refused before anything is queued.
        let error = unsafe { reduce_at(&device, (Reduction::Sum, DType::F32), &shape, axis, operands) };
        refusal(error).says("overlap").says(names[0]).says(names[1]);
    }
    // One launch leaves the scratch alone.
    // SAFETY: array and results are as long as the shape says, and live until the stream is done.
    unsafe { reduce_at(&device, (Reduction::Sum, DType::F32), &rows(1000), Some(1), [a, result, a]) }.unwrap();
    device.default_stream().synchronize().unwrap();
}
