//! Permutes and copies from any layout to any layout, compared with the oracle.

use std::collections::BTreeMap;

use warpstride::device::Device;
use warpstride::layout::Layout;
use warpstride::memory::DeviceBuffer;
use warpstride::ops::{self, Align, PermutePlan, Plan, Target, TileShape};
use warpstride::{ErrorKind, abi};

use crate::backend::{Setup, cases, exact};
use crate::long::short_or_long;
use crate::matrices::{Random, Sample, at_every_width};
use crate::naive;

cases! {
    Any random_layouts_at_every_width,
    Any sixteen_axes_of_two_in_any_order,
    Any few_elements_and_none,
    Any permuted_and_contiguous_buffers_are_in_c_order,
    Any raw_addresses_of_any_alignment,
    Any raw_addresses_that_overlap_or_are_misaligned_are_refused,
    Any offsets_beyond_31_bits,
}

pub(crate) fn device(setup: &Setup) -> Device {
    exact(&setup.driver)
}

/// Copies on the device and by the oracle, and compares all bytes of the destination's storage,
/// including those outside of its elements. Returns the entry for large arrays that did it;
/// [`check_small`] also copies by the kernels for small ones.
pub(crate) fn check<T: Sample>(
    device: &Device,
    src_layout: Layout,
    dst_layout: Layout,
    random: &mut Random,
) -> Option<&'static str> {
    let [large, _] = check_small::<T>(device, src_layout, dst_layout, random);
    large
}

/// Every device that we support can run plans for this target.
pub(crate) const OLDEST: Target = Target::new(abi::OLDEST);

/// Checks as [`check`] does, and returns two entries: that for large arrays, and that for the
/// array's size if it is another. The entry of the oldest device for large arrays runs too.
pub(crate) fn check_small<T: Sample>(
    device: &Device,
    src_layout: Layout,
    dst_layout: Layout,
    random: &mut Random,
) -> [Option<&'static str>; 2] {
    let (align, target, width) = (Align::ALLOCATION, Target::of(device), size_of::<T>());
    let tuned = |target| {
        PermutePlan::tuned(&src_layout, align, &dst_layout, align, width, target, &TileShape::of(target)).unwrap()
    };
    let (large, oldest) = (tuned(target), tuned(OLDEST));
    let small = PermutePlan::new(&src_layout, align, &dst_layout, align, width, target).unwrap();
    let (source, before, expected) = operands::<T>(device, src_layout, dst_layout, random);
    let mut plans = vec![large];
    for plan in [small, oldest] {
        if !plans.contains(&plan) {
            plans.push(plan);
        }
    }
    for plan in plans {
        let mut result = device.upload(&before).unwrap();
        let (from, to) = (source.view_with(src_layout).unwrap(), result.view_mut_with(dst_layout).unwrap());
        if plan == large {
            ops::copy_into_tuned(from, to, &TileShape::of(target), device.default_stream()).unwrap();
        } else if plan == small {
            ops::copy_into(from, to, device.default_stream()).unwrap();
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
    [large.entry(), if small == large { None } else { small.entry() }]
}

/// Returns random elements for a source, on the device, and for a destination, and the destination
/// after the copy by the oracle.
fn operands<T: Sample>(
    device: &Device,
    src_layout: Layout,
    dst_layout: Layout,
    random: &mut Random,
) -> (DeviceBuffer<T>, Vec<T>, Vec<T>) {
    let src: Vec<T> = random.elements(src_layout.storage_len());
    let before: Vec<T> = random.elements(dst_layout.storage_len());
    let mut expected = before.clone();
    naive::copy(&src, &src_layout, &mut expected, &dst_layout);
    (device.upload(&src).unwrap(), before, expected)
}

/// Copies by the kernels for large arrays, as if this one were large, for this device's target and
/// for the oldest, and compares as [`check`] does. Returns the entry for this device's.
pub(crate) fn check_as_if_large<T: Sample>(
    device: &Device,
    src_layout: Layout,
    dst_layout: Layout,
    random: &mut Random,
) -> Option<&'static str> {
    let (align, width) = (Align::ALLOCATION, size_of::<T>());
    let plans = [Target::of(device), OLDEST]
        .map(|target| PermutePlan::new(&src_layout, align, &dst_layout, align, width, target).unwrap().as_if_large());
    let (source, before, expected) = operands::<T>(device, src_layout, dst_layout, random);
    for plan in plans {
        let mut result = device.upload(&before).unwrap();
        let (from, to) = (source.view_with(src_layout).unwrap(), result.view_mut_with(dst_layout).unwrap());
        plan.launch(from, to, device.default_stream()).unwrap();
        let agrees = result.download().unwrap() == expected;
        assert!(agrees, "{}: {src_layout:?} to {dst_layout:?} by {plan}", T::DTYPE);
    }
    plans[0].entry()
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
        for entry in check_small::<T>(device, src, dst, random) {
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
        ("packed", 40),
        ("rows", 40),
        ("vector_tile", 40),
        ("ragged_tile", 40),
        ("deinterleave", 120),
        ("interleave", 160),
        ("deinterleave_quads", 1000),
        ("interleave_quads", 1000),
        ("", 200),
    ] {
        let taken = kernels.get(kernel).copied().unwrap_or_default();
        assert!(taken >= pairs / one_in, "{kernel:?} was taken for {taken} pairs of {pairs}: {kernels:?}");
    }
}

fn sixteen_axes_of_two_in_any_order(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let shape = [2; 16];
        let packed = |random: &mut Random| Layout::row_major(&shape).unwrap().permuted_axes(&random.order(16)).unwrap();
        let (src, dst) = (packed(random), packed(random));
        check::<T>(device, src, dst, random);
    }
    let device = device(setup);
    at_every_width!(run(&device, &mut Random::new(21)));
}

fn few_elements_and_none(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        for shape in [&[][..], &[0], &[1], &[1, 1, 1], &[3, 0, 5], &[1, 7], &[2, 1, 3], &[1025], &[1023, 1], &[3, 5, 7]]
        {
            let c_order = Layout::row_major(shape).unwrap();
            let backwards = (0..shape.len()).fold(c_order, |layout, axis| layout.reverse(axis).unwrap());
            for src in [c_order, backwards, Layout::column_major(shape).unwrap()] {
                check::<T>(device, src, c_order, random);
            }
        }
    }
    let device = device(setup);
    at_every_width!(run(&device, &mut Random::new(22)));
}

fn permuted_and_contiguous_buffers_are_in_c_order(setup: &Setup) {
    let device = device(setup);
    let elements: Vec<u16> = (0..24).collect();
    let source = device.upload(&elements).unwrap();
    let view = source.view(&[2, 3, 4]).unwrap();
    let permuted = ops::permute(view, &[2, 0, 1]).unwrap().to_vec().unwrap();
    let expected: Vec<u16> = (0..24).map(|at| at % 6 / 3 * 12 + at % 3 * 4 + at / 6).collect();
    assert_eq!(permuted, expected);
    let column = view.index_axis(2, 3).unwrap().index_axis(0, 1).unwrap();
    assert_eq!(ops::contiguous(column).unwrap().to_vec().unwrap(), [15, 19, 23]);
    assert_eq!(ops::contiguous(column.broadcast(&[2, 3]).unwrap()).unwrap().len(), 6);
    let error = ops::permute(view, &[0, 0, 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}

/// Only the addresses say how the storages are aligned.
fn raw_addresses_of_any_alignment(setup: &Setup) {
    let device = device(setup);
    let mut random = Random::new(23);
    let stream = device.default_stream();
    for (from, to) in [(0, 0), (1, 0), (0, 1), (2, 6), (4, 12), (8, 24), (16, 48), (3, 16)] {
        for (src_layout, dst_layout) in [
            (Layout::row_major(&[480]).unwrap(), Layout::row_major(&[480]).unwrap()),
            (Layout::row_major(&[10, 64]).unwrap().slice(1, ..48, 1).unwrap(), Layout::row_major(&[10, 48]).unwrap()),
            (Layout::column_major(&[10, 48]).unwrap(), Layout::row_major(&[10, 48]).unwrap()),
        ] {
            let src: Vec<u8> = random.elements(1024);
            let mut expected: Vec<u8> = random.elements(1024);
            let (source, result) = (device.upload(&src).unwrap(), device.upload(&expected).unwrap());
            naive::copy(&src[from..], &src_layout, &mut expected[to..], &dst_layout);
            let (src, dst) = (source.address() + from as u64, result.address() + to as u64);
            // SAFETY: both buffers hold the layouts after these offsets, and live until the stream
            // is synchronised.
            unsafe { ops::copy_into_raw(&device, src, &src_layout, dst, &dst_layout, 1, stream.handle()) }.unwrap();
            stream.synchronize().unwrap();
            assert!(result.download().unwrap() == expected, "{src_layout:?} from {from} to {to}");
        }
    }
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
        let error = raw(src, dst, &matrix, width).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains(names), "{error}");
    }
    device.synchronize().unwrap();
}

/// Rows that lie more than 2^31 elements apart: the ends of one buffer or, on the software GPU,
/// whose memory is small but whose allocations lie far apart, two buffers. They are written and
/// read, forwards and backwards.
fn offsets_beyond_31_bits(setup: &Setup) {
    let device = device(setup);
    let elements: Vec<u8> = Random::new(24).elements(66);
    let lens = if setup.is_soft() { vec![33, 33] } else { vec![(1 << 31) + 5 + 33] };
    let held: Vec<_> = lens.into_iter().map(|len| device.alloc::<u8>(len).unwrap()).collect();
    let (least, greatest) = held.iter().fold((u64::MAX, 0), |(least, greatest), buffer| {
        (least.min(buffer.address()), greatest.max(buffer.address() + buffer.len() as u64 - 33))
    });
    let distance = (greatest - least) as usize;
    let far = Layout::new(&[2, 33], &[distance as isize, 1], 0, distance + 33).unwrap();
    let near = Layout::row_major(&[2, 33]).unwrap();
    let (source, result) = (device.upload(&elements).unwrap(), device.alloc::<u8>(66).unwrap());
    let handle = device.default_stream().handle();
    for (there, far, back) in
        [(near, far, near), (near.reverse(0).unwrap(), far, near), (near.t(), far.t().reverse(1).unwrap(), near.t())]
    {
        let plan = PermutePlan::new(&far, Align::of(least), &back, Align::ALLOCATION, 1, Target::of(&device)).unwrap();
        assert!(plan.entry().unwrap().ends_with("_wide"), "{plan}: the rows lie only {distance} elements apart");
        // SAFETY: both rows and the source are live until the download below.
        unsafe { ops::copy_into_raw(&device, source.address(), &there, least, &far, 1, handle) }.unwrap();
        // SAFETY: as above.
        unsafe { ops::copy_into_raw(&device, least, &far, result.address(), &back, 1, handle) }.unwrap();
        device.synchronize().unwrap();
        let mut expected = vec![0; 66];
        naive::copy(&elements, &there, &mut expected, &back);
        assert_eq!(result.download().unwrap(), expected, "{plan}");
    }
}
