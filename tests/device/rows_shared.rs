//! Rows that several blocks share, of softmax, mean and variance, against double precision.

use std::thread;

use approx::assert_relative_eq;
use warpstride::device::Device;
use warpstride::element::DType;
use warpstride::error::{ErrorKind, Result};
use warpstride::ops::{self, MeanVariancePlan, Phase, SoftmaxPlan, Target};
use warpstride::{Plan, Stream};

use crate::arithmetic::{Bf16, F16, F32, F64, Kind, at, handle, of_every_kind, random};
use crate::axes::values;
use crate::backend::{Setup, cases};
use crate::failures::refusal;
use crate::long::short_or_long;
use crate::matrices::Random;
use crate::permutes::device;

cases! {
    Any teams_take_turns_and_blocks_take_several_parts,
    Any rows_on_both_sides_of_what_a_block_holds_are_right,
    Any full_grids_on_two_streams_come_to_an_end,
    Any a_plan_for_a_larger_device_is_refused,
}

/// The multiprocessors of the plans, which every GPU has, and the blocks that run on them at once.
const FEW: u32 = 4;
const AT_ONCE: usize = 2 * FEW as usize;

/// Queues the softmax of rows at these addresses.
///
/// # Safety
///
/// As [`SoftmaxPlan::launch_raw`].
pub(crate) unsafe fn launch_softmax(device: &Device, plan: &SoftmaxPlan, [src, dst]: [u64; 2]) -> Result<()> {
    let scratch = device.alloc::<u8>(plan.scratch_bytes() as usize)?;
    // SAFETY: as the caller promises; the scratch is freed in the order of the stream.
    unsafe { plan.launch_raw(device, src, dst, at(&scratch, 0), handle(device)) }
}

/// Queues mean and variance of rows at this address.
///
/// # Safety
///
/// As [`MeanVariancePlan::launch_raw`].
pub(crate) unsafe fn launch_moments(
    device: &Device,
    plan: &MeanVariancePlan,
    src: u64,
    results: [u64; 2],
) -> Result<()> {
    let scratch = device.alloc::<u8>(plan.scratch_bytes() as usize)?;
    // SAFETY: as the caller promises; the scratch is freed in the order of the stream.
    unsafe { plan.launch_raw(device, src, results, at(&scratch, 0), handle(device)) }
}

/// Returns the rounding of a result: for halves that of their own type, else some roundings of the
/// computed type. Double precision has more, because the host's sums have roundings, too.
fn rounding<K: Kind>() -> f64 {
    match K::DTYPE {
        DType::F16 => f64::powi(2.0, -11),
        DType::Bf16 => f64::powi(2.0, -8),
        DType::F32 => 16.0 * f64::powi(2.0, -24),
        _ => 128.0 * f64::powi(2.0, -53),
    }
}

/// Sums the terms of numbers, in parts, so that few roundings follow each other.
fn sum_of(numbers: &[f64], term: impl Fn(f64) -> f64) -> f64 {
    numbers.chunks(256).map(|part| part.iter().map(|&number| term(number)).sum::<f64>()).sum()
}

/// Asserts that these are the softmax of a row.
fn assert_softmax<K: Kind>(numbers: &[f64], found: &[K::Bits]) {
    let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total = sum_of(numbers, |number| (number - most).exp());
    // Halves below the least normal number have fewer bits.
    let epsilon = if size_of::<K::Bits>() == 2 { 1.001 * f64::powi(2.0, -25) } else { 0.0 };
    for (number, &found) in numbers.iter().zip(found) {
        let expected = (number - most).exp() / total;
        assert_relative_eq!(K::value(found), expected, max_relative = rounding::<K>(), epsilon = epsilon);
    }
}

/// Asserts that the softmax of random rows is right, where source and destination start some
/// elements behind the start of a buffer. Returns the plan.
pub(crate) fn softmax_is_right<K: Kind>(
    device: &Device,
    target: Target,
    numbers: &mut Random,
    [rows, n]: [usize; 2],
    [from, to]: [usize; 2],
) -> SoftmaxPlan {
    // From -8 to 8.
    let elements: Vec<_> =
        random::<K>(numbers, rows * n + 8).into_iter().map(|element| K::nearest(4.0 * K::value(element))).collect();
    let [source, result] = [(); 2].map(|()| device.upload(&elements).unwrap());
    let sides = [at(&source, from), at(&result, to)];
    let plan = SoftmaxPlan::new(K::DTYPE, [rows, n].map(|extent| extent as u64), sides.map(Phase::of), target).unwrap();
    // SAFETY: both buffers have this number of elements, and live until the download.
    unsafe { launch_softmax(device, &plan, sides) }.unwrap();
    let found = result.download().unwrap();
    assert!(found[..to] == elements[..to] && found[to + rows * n..] == elements[to + rows * n..], "{rows} x {n}");
    for row in 0..rows {
        assert_softmax::<K>(&values::<K>(&elements[from + row * n..][..n]), &found[to + row * n..]);
    }
    plan
}

/// Asserts that mean and variance of random rows are right, which start some elements behind the
/// start of a buffer. Returns the plan.
pub(crate) fn moments_are_right<K: Kind>(
    device: &Device,
    target: Target,
    numbers: &mut Random,
    [rows, n]: [usize; 2],
    start: usize,
) -> MeanVariancePlan {
    // Far from zero, so that the squares of the elements would cancel.
    let elements: Vec<_> =
        random::<K>(numbers, rows * n + 8).into_iter().map(|element| K::nearest(100.0 + K::value(element))).collect();
    let source = device.upload(&elements).unwrap();
    let [mean, variance] = [(); 2].map(|()| device.alloc::<K::Sum>(rows).unwrap());
    let (from, results) = (at(&source, start), [mean.address(), variance.address()]);
    let plan = MeanVariancePlan::new(K::DTYPE, [rows, n].map(|extent| extent as u64), Phase::of(from), target).unwrap();
    // SAFETY: the buffers have this number of elements and results, and live until the downloads.
    unsafe { launch_moments(device, &plan, from, results) }.unwrap();
    let (mean, variance) = (mean.download().unwrap(), variance.download().unwrap());
    // For single precision: some roundings of 2^-24 of the mean, whose square is negligible in the
    // variance.
    let tolerance = if size_of::<K::Sum>() == 8 { 1e-14 } else { 2e-6 };
    for row in 0..rows {
        let numbers = values::<K>(&elements[start + row * n..][..n]);
        let expected = sum_of(&numbers, |number| number) / n as f64;
        assert_relative_eq!(K::sum(mean[row]), expected, max_relative = tolerance);
        let squares = sum_of(&numbers, |number| (number - expected).powi(2));
        let epsilon = (100.0 * tolerance).powi(2);
        assert_relative_eq!(K::sum(variance[row]), squares / n as f64, max_relative = 1e-4, epsilon = epsilon);
    }
    plan
}

/// A plan for few multiprocessors shows on every GPU what needs more rows, or longer ones, there.
fn teams_take_turns_and_blocks_take_several_parts(setup: &Setup) {
    fn check<K: Kind>(device: &Device) {
        // The most elements of a part.
        let most = if size_of::<K::Bits>() == 8 { 5120 } else { 16_384 };
        let (mut target, mut numbers) = (Target::of(device), Random::new(91));
        target.multiprocessors = FEW;
        for (rows, parts, blocks) in [(3 * AT_ONCE / 2 + 1, 2, AT_ONCE), (3, 2 * AT_ONCE + 1, AT_ONCE - 2)] {
            let n = (parts - 1) * most + 11;
            let plan = softmax_is_right::<K>(device, target, &mut numbers, [rows, n], [1, 1]);
            assert!(plan.explain().reason.contains(&format!("{parts} parts")), "{plan}");
            assert_eq!(plan.shape().unwrap().grid[0] as usize, blocks, "{plan}");
        }
    }
    of_every_kind!(check(&device(setup)));
}

fn rows_on_both_sides_of_what_a_block_holds_are_right(setup: &Setup) {
    fn check<K: Kind>(device: &Device) {
        // A group of threads holds a row of so many elements, and blocks share one of more.
        let [softmax, moments] = match size_of::<K::Bits>() {
            2 => [16_391, 32_775],
            4 => [16_387, 16_387],
            _ => [5121, 4097],
        };
        let (target, mut numbers) = (Target::of(device), Random::new(92));
        let mut starts = vec![0, 1, 16 / size_of::<K::Bits>() - 1];
        starts.dedup();
        for start in starts {
            for more in [0, 1] {
                let plan = softmax_is_right::<K>(device, target, &mut numbers, [2, softmax + more], [start; 2]);
                assert_eq!(plan.entry().unwrap().starts_with("softmax_parts"), more > 0, "{plan}");
                let plan = moments_are_right::<K>(device, target, &mut numbers, [2, moments + more], start);
                assert_eq!(plan.entry().unwrap().starts_with("moments_of_parts"), more > 0, "{plan}");
            }
        }
    }
    of_every_kind!(check(&device(setup)));
}

/// The blocks of either launch fill the device, and wait for each other.
fn full_grids_on_two_streams_come_to_an_end(setup: &Setup) {
    // Rows of two parts: a multiprocessor runs both.
    let (device, n) = (setup.device(), 16_388);
    let target = Target::of(&device);
    // Plans for the software GPU are made for four, whatever the host has.
    let rows = if target.multiprocessors == 0 { 4 } else { target.multiprocessors as usize };
    // The software GPU runs one launch at a time, and the short form few of them.
    let rounds = if setup.is_soft() { short_or_long(1, 10) } else { 10 };
    let run = |seed: u64, stream: &Stream| {
        let elements = random::<F32>(&mut Random::new(seed), rows * n);
        let source = device.array(&[rows, n], &elements).unwrap();
        let mut result = device.alloc_array::<f32>(&[rows, n]).unwrap();
        for _ in 0..rounds {
            for _ in 0..5 {
                ops::softmax_into(&source, &mut result, stream).unwrap();
            }
            let found = result.to_vec().unwrap();
            for (row, found) in elements.chunks(n).zip(found.chunks(n)) {
                assert_softmax::<F32>(&values::<F32>(row), found);
            }
        }
    };
    let starts = [Phase::ALIGNED; 2];
    let plan = SoftmaxPlan::new(DType::F32, [rows, n].map(|extent| extent as u64), starts, target).unwrap();
    assert_eq!(plan.shape().unwrap().grid[0] as usize, 2 * rows, "{plan}");
    let streams = [(); 2].map(|()| device.stream().unwrap());
    thread::scope(|scope| {
        scope.spawn(|| run(93, &streams[0]));
        run(94, &streams[1]);
    });
}

fn a_plan_for_a_larger_device_is_refused(setup: &Setup) {
    let device = setup.open(setup.roomy()).unwrap();
    // Rows of two parts, of halves so that they take few bytes: no device runs all blocks at once.
    let shape @ [rows, n] = [4200, 16_392];
    let [source, result] = [(); 2].map(|()| device.alloc::<u16>((rows * n) as usize).unwrap());
    let mut target = Target::of(&device);
    target.multiprocessors = 1 << 16;
    let plan = SoftmaxPlan::new(DType::F16, shape, [Phase::ALIGNED; 2], target).unwrap();
    // SAFETY: both buffers have this number of elements.
    let launched = unsafe { launch_softmax(&device, &plan, [source.address(), result.address()]) };
    refusal(launched).of(ErrorKind::InvalidArgument).says("`Target::of`");
    // The device is as good as before.
    softmax_is_right::<F32>(&device, Target::of(&device), &mut Random::new(95), [1, 20_000], [0, 0]);
}
