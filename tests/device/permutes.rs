//! Permutes and copies from any layout to any layout, compared with the oracle.

use std::collections::BTreeMap;

use warpstride::device::Device;
use warpstride::driver::trace::{Call, Trace};
use warpstride::launch_shape::MAX_SHARED_BYTES;
use warpstride::layout::Layout;
use warpstride::ops::{self, Align, PermutePlan, Plan, Target, TileShape};
use warpstride::{ErrorKind, abi};

use crate::backend::{Setup, cases, exact};
use crate::failures::refusal;
use crate::long::short_or_long;
use crate::matrices::{Random, Sample, at_every_width};
use crate::naive;

cases! {
    Any random_layouts_at_every_width,
    Any permuted_and_contiguous_buffers_are_in_c_order,
    Any every_launch_by_boxes_leaves_its_streams_counter_at_zero,
    Any boxes_have_more_shared_memory_than_a_kernel_gets_unasked,
    Any boxes_leave_a_destination_between_the_elements_of_the_source_alone,
    SoftwareGpu("on a GPU it would write the user's file") plans_are_measured_by_times_alone,
    Any raw_addresses_that_overlap_or_are_misaligned_are_refused,
}

pub(crate) fn device(setup: &Setup) -> Device {
    exact(&setup.driver)
}

/// Returns the plans of the same work that move boxes, whatever other kernels would do.
pub(crate) fn by_boxes(plan: PermutePlan) -> impl Iterator<Item = PermutePlan> {
    plan.ways().into_iter().filter(|plan| family(plan.entry()) == "boxes")
}

/// A launch that found another number would leave boxes out.
fn every_launch_by_boxes_leaves_its_streams_counter_at_zero(setup: &Setup) {
    let device = device(setup);
    let src = Layout::row_major(&[33, 11, 4, 5, 7, 3]).unwrap().permuted_axes(&[5, 0, 2, 3, 4, 1]).unwrap();
    let (dst, align, target) = (Layout::row_major(src.shape()).unwrap(), Align::ALLOCATION, Target::of(&device));
    let plan = PermutePlan::new(&src, align, &dst, align, size_of::<u16>(), target).unwrap();
    let plans: Vec<PermutePlan> = by_boxes(plan).collect();
    assert!(plans.len() > 1, "several boxes fit");
    let numbers: Vec<u16> = (0..src.len()).map(|number| number as u16).collect();
    let (source, mut expected) = (device.upload(&numbers).unwrap(), vec![0; src.len()]);
    naive::copy(&numbers, &src, &mut expected, &dst);
    let others = [device.stream().unwrap(), device.stream().unwrap()];
    for plan in &plans {
        for stream in [device.default_stream(), &others[0], &others[1], &others[0]] {
            let mut result = device.zeros::<u16>(src.len()).unwrap();
            let (from, to) = (source.view_with(src).unwrap(), result.view_mut_with(dst).unwrap());
            plan.launch(from, to, stream).unwrap();
            assert!(result.download().unwrap() == expected, "{plan}");
        }
    }
}

/// A GPU refuses such a launch, unless its program asked for the memory before.
fn boxes_have_more_shared_memory_than_a_kernel_gets_unasked(setup: &Setup) {
    let device = device(setup);
    for (shape, axes) in [([29, 198, 1643], [1, 0, 2]), ([370, 1395, 26], [2, 1, 0])] {
        let src = Layout::row_major(&shape).unwrap().permuted_axes(&axes).unwrap();
        let (dst, align) = (Layout::row_major(src.shape()).unwrap(), Align::ALLOCATION);
        let plan = PermutePlan::new(&src, align, &dst, align, 1, Target::new((9, 0))).unwrap();
        let mut plans: Vec<PermutePlan> = by_boxes(plan).collect();
        plans.retain(|plan| plan.shape().unwrap().dynamic_shared > MAX_SHARED_BYTES);
        assert!(!plans.is_empty(), "no box of {shape:?} needs more");
        let numbers: Vec<u8> = (0..src.len()).map(|number| (number % 251) as u8).collect();
        let (source, mut expected) = (device.upload(&numbers).unwrap(), vec![0; src.len()]);
        naive::copy(&numbers, &src, &mut expected, &dst);
        for plan in &plans {
            let mut result = device.zeros::<u8>(src.len()).unwrap();
            let (from, to) = (source.view_with(src).unwrap(), result.view_mut_with(dst).unwrap());
            plan.launch(from, to, device.default_stream()).unwrap();
            assert!(result.download().unwrap() == expected, "{plan}");
        }
    }
}

fn plans_are_measured_by_times_alone(setup: &Setup) {
    let device = device(setup);
    let dst = Layout::row_major(&[64, 48]).unwrap();
    let (align, target) = (Align::ALLOCATION, Target::of(&device));
    let plan = PermutePlan::new(&dst.t(), align, &dst.t(), align, 4, target).unwrap();
    refusal(plan.measure(&device)).of(ErrorKind::Unavailable).says("software GPU");
    assert_eq!(Target::of(&device), target);
}

/// A box reads whole rows of this array, where the elements of the destination lie too. So such a
/// launch goes by a kernel that reads nothing but elements.
fn boxes_leave_a_destination_between_the_elements_of_the_source_alone(setup: &Setup) {
    let (trace, device) = setup.traced(&setup.driver);
    let [rows, cols] = [96, 96];
    let numbers: Vec<u16> = (0..rows * 3 * cols).map(|number| number as u16).collect();
    let whole = Layout::row_major(&[rows, 3 * cols]).unwrap();
    let (steps, dst) = whole.split_at(1, 2 * cols).unwrap();
    let src = steps.slice(1, .., 2).unwrap().t();
    let (align, target) = (Align::ALLOCATION, Target::of(&device));
    let plan = PermutePlan::new(&src, align, &dst, align, size_of::<u16>(), target).unwrap().as_if_large();
    assert!(plan.entry().unwrap().starts_with("boxes"), "{plan}");

    let (mut array, stream) = (device.upload(&numbers).unwrap(), device.default_stream());
    let (from, to) = array.view_mut_with(whole).unwrap().split_at(1, 2 * cols).unwrap();
    plan.launch(from.view().slice(1, .., 2).unwrap().t(), to, stream).unwrap();
    let mut expected = numbers.clone();
    naive::copy(&numbers, &src, &mut expected, &dst);
    assert!(array.download().unwrap() == expected, "{plan}");
    assert!(matches!(&loaded(&trace)[..], [kernel] if !kernel.starts_with("boxes")));

    // The same layouts of two arrays share nothing.
    let (source, mut result) = (device.upload(&numbers).unwrap(), device.upload(&numbers).unwrap());
    plan.launch(source.view_with(src).unwrap(), result.view_mut_with(dst).unwrap(), stream).unwrap();
    assert!(result.download().unwrap() == expected, "{plan}");
    assert_eq!(loaded(&trace)[1..], [plan.entry().unwrap()]);
}

/// Returns the entries that launches loaded, in the order in which they were first launched.
fn loaded(trace: &Trace) -> Vec<String> {
    let name = |call| if let Call::Function { name, .. } = call { Some(name) } else { None };
    trace.calls().into_iter().filter_map(name).collect()
}

/// Every device that we support can run plans for this target.
pub(crate) const OLDEST: Target = Target::new(abi::OLDEST);

/// Copies on the device and by the oracle, and compares all bytes of the destination's storage,
/// including those outside of its elements. Returns the entries of the plans: that for large
/// arrays, and those for the array's size and as if it were large, if they are others. The plan of
/// the oldest device for large arrays runs too.
fn check<T: Sample>(
    device: &Device,
    src_layout: Layout,
    dst_layout: Layout,
    random: &mut Random,
) -> Vec<Option<&'static str>> {
    let (align, target, width) = (Align::ALLOCATION, Target::of(device), size_of::<T>());
    let tuned = |target| {
        PermutePlan::tuned(&src_layout, align, &dst_layout, align, width, target, &TileShape::of(target)).unwrap()
    };
    let (large, oldest) = (tuned(target), tuned(OLDEST));
    let small = PermutePlan::new(&src_layout, align, &dst_layout, align, width, target).unwrap();
    let (src, before): (Vec<T>, Vec<T>) =
        (random.elements(src_layout.storage_len()), random.elements(dst_layout.storage_len()));
    let (source, mut expected) = (device.upload(&src).unwrap(), before.clone());
    naive::copy(&src, &src_layout, &mut expected, &dst_layout);
    let mut plans = vec![large];
    for plan in [small, small.as_if_large()] {
        if !plans.contains(&plan) {
            plans.push(plan);
        }
    }
    let entries = plans.iter().map(Plan::entry).collect();
    if !plans.contains(&oldest) {
        plans.push(oldest);
    }
    for plan in plans {
        let mut result = device.upload(&before).unwrap();
        let (from, to) = (source.view_with(src_layout).unwrap(), result.view_mut_with(dst_layout).unwrap());
        if plan == small {
            ops::copy_into(from, to, device.default_stream()).unwrap();
        } else if plan == large {
            ops::copy_into_tuned(from, to, &TileShape::of(target), device.default_stream()).unwrap();
        } else {
            let stream = device.default_stream();
            // SAFETY: both buffers hold the layouts, are aligned as allocations are, and live until
            // the stream is synchronised.
            unsafe { plan.launch_raw(device, source.address(), result.address(), stream.handle()) }.unwrap();
            stream.synchronize().unwrap();
        }
        let agrees = result.download().unwrap() == expected;
        assert!(agrees, "{}: {src_layout:?} to {dst_layout:?} by {plan}", T::DTYPE);
    }
    entries
}

/// Returns the kernel of an entry, whatever its width and index, or an empty name without a launch.
pub(crate) fn family(entry: Option<&'static str>) -> &'static str {
    let entry = entry.unwrap_or_default();
    entry.rsplit_once("_b").map_or(entry, |(family, _)| family)
}

/// One pair in four is matrices, or batches of them, that are large enough for tiles.
fn random_layouts_at_every_width(setup: &Setup) {
    fn run<T: Sample>(device: &Device, most: usize, random: &mut Random, kernels: &mut BTreeMap<&str, usize>) {
        let shape = if random.below(4) == 0 { random.matrices(most.max(1 << 14)) } else { random.shape(most) };
        let (src, dst) = (random.readable_array(&shape), random.array(&shape));
        for entry in check::<T>(device, src, dst, random) {
            *kernels.entry(family(entry)).or_default() += 1;
        }
    }
    let device = device(setup);
    let (mut random, mut kernels) = (Random::new(20), BTreeMap::new());
    // The short form has a tenth on the software GPU.
    let (pairs, most) = if setup.is_soft() { (short_or_long(2_000, 20_000), 1 << 10) } else { (5_000, 1 << 18) };
    for _ in 0..pairs / 5 {
        at_every_width!(run(&device, most, &mut random, &mut kernels));
    }
    println!("{kernels:?}");
    // At least one pair in this number, about half of the real rate: a kernel that the planner
    // loses must be missed.
    for (kernel, one_in) in [
        ("copy", 20),
        ("patch", 5),
        ("elements", 5),
        ("packed_quads", 6),
        ("boxes", 60),
        ("rows", 40),
        ("vector_tile", 40),
        ("ragged_tile", 40),
        ("deinterleave", 600),
        ("interleave", 300),
        ("deinterleave_quads", 1000),
        ("interleave_quads", 1000),
        ("", 200),
    ] {
        let taken = kernels.get(kernel).copied().unwrap_or_default();
        assert!(taken >= pairs / one_in, "{kernel:?} was taken for {taken} pairs of {pairs}: {kernels:?}");
    }
}

fn permuted_and_contiguous_buffers_are_in_c_order(setup: &Setup) {
    let device = device(setup);
    let elements: Vec<u16> = (0..24).collect();
    let source = device.upload(&elements).unwrap();
    let view = source.view(&[2, 3, 4]).unwrap();
    let permuted = ops::permute(view, [2, 0, 1]).unwrap().to_vec().unwrap();
    let expected: Vec<u16> = (0..24).map(|at| at % 6 / 3 * 12 + at % 3 * 4 + at / 6).collect();
    assert_eq!(permuted, expected);
    let column = view.index_axis(2, 3).unwrap().index_axis(0, 1).unwrap();
    assert_eq!(ops::contiguous(column).unwrap().to_vec().unwrap(), [15, 19, 23]);
    assert_eq!(ops::contiguous(column.broadcast(&[2, 3]).unwrap()).unwrap().len(), 6);
    refusal(ops::permute(view, [0, 0, 1])).of(ErrorKind::InvalidArgument);
}

fn raw_addresses_that_overlap_or_are_misaligned_are_refused(setup: &Setup) {
    let device = device(setup);
    let memory = device.zeros::<u32>(128).unwrap();
    let (matrix, none) = (Layout::row_major(&[8, 8]).unwrap(), Layout::row_major(&[0, 8]).unwrap());
    let raw = |src: u64, dst: u64, layout: &Layout, width: usize| {
        let (src, dst) = (memory.address() + src, memory.address() + dst);
        // SAFETY: the buffer lives until the stream is synchronised; a refused call queues nothing.
        unsafe {
            ops::copy_into_raw(&device, src, layout, dst, &layout.t().t(), width, device.default_stream().handle())
        }
    };
    assert_eq!(raw(0, 256, &matrix, 4), Ok(()));
    assert_eq!(raw(256, 0, &matrix, 4), Ok(()));
    assert_eq!(raw(1, 1, &none, 4), Ok(()), "no elements lie anywhere");
    for (src, dst, width, names) in [
        (0, 252, 4, "overlap"),
        (252, 0, 4, "overlap"),
        (0, 0, 4, "overlap"),
        (2, 256, 4, "not aligned"),
        (0, 256, 0, "0 bytes"),
    ] {
        refusal(raw(src, dst, &matrix, width)).of(ErrorKind::InvalidArgument).says(names);
    }
    device.synchronize().unwrap();
}
