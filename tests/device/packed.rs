//! Tiles of several axes: parts of axes at their ends, of both sides and of one, on every
//! alignment, reversed, broadcast and among other elements, compared with the oracle.

use warpstride::device::Device;
use warpstride::layout::Layout;
use warpstride::ops::{self, Align, PermutePlan, Plan, Target, TileShape};

use crate::backend::{Setup, cases};
use crate::long::short_or_long;
use crate::matrices::{Random, Sample, at_every_width};
use crate::naive;
use crate::permutes::{check, device, family};

cases! {
    Any axes_end_within_a_tile,
    Any one_axis_ends_the_runs_of_both_sides,
    Any many_short_axes_in_any_order,
    Any axes_backwards_and_broadcast,
    Any parts_of_larger_arrays,
    Any narrow_elements_from_and_to_every_misalignment,
    Any random_axes_of_any_extents_from_and_to_anywhere,
    Any tiles_beyond_31_bits,
}

/// Copies, and returns whether `packed` did it.
fn packed<T: Sample>(device: &Device, src: Layout, dst: Layout, random: &mut Random) -> bool {
    family(check::<T>(device, src, dst, random)) == "packed"
}

/// Copies a C-order array with its axes in another order to C order.
fn permuted<T: Sample>(device: &Device, shape: &[usize], axes: &[usize], random: &mut Random) -> bool {
    let src = Layout::row_major(shape).unwrap().permuted_axes(axes).unwrap();
    packed::<T>(device, src, Layout::row_major(src.shape()).unwrap(), random)
}

/// At every width but 16 bytes, whose small arrays have whole vectors, at least a third of these go
/// to `packed`.
fn axes_end_within_a_tile(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let mut taken = 0;
        let shapes = [[7, 13, 9, 11], [33, 6, 5, 17], [5, 31, 3, 29], [65, 3, 2, 67], [3, 67, 71, 3], [2, 90, 5, 63]];
        for shape in shapes {
            for axes in [[3, 2, 1, 0], [3, 1, 0, 2], [2, 0, 3, 1]] {
                taken += usize::from(permuted::<T>(device, &shape, &axes, random));
            }
        }
        assert!(taken >= shapes.len() || size_of::<T>() == 16, "{}: packed was taken {taken} times", T::DTYPE);
    }
    at_every_width!(run(&device(setup), &mut Random::new(60)));
}

fn one_axis_ends_the_runs_of_both_sides(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        for shape in [[700, 3, 7], [301, 9, 5], [50, 31, 33], [21, 63, 17], [130, 19, 23]] {
            let taken = permuted::<T>(device, &shape, &[0, 2, 1], random);
            // Wide elements of small matrices move one by one, or as the fields of structs.
            assert!(taken || size_of::<T>() >= 4, "{}: {shape:?}", T::DTYPE);
        }
    }
    at_every_width!(run(&device(setup), &mut Random::new(61)));
}

fn many_short_axes_in_any_order(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let mut taken = 0;
        for _ in 0..24 {
            let shape: Vec<usize> = (0..6).map(|_| 2 + random.below(6)).collect();
            taken += usize::from(permuted::<T>(device, &shape, &random.order(6), random));
        }
        assert!(taken >= 12, "{}: packed was taken {taken} times of 24", T::DTYPE);
    }
    at_every_width!(run(&device(setup), &mut Random::new(62)));
}

fn axes_backwards_and_broadcast(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let shape = [9, 5, 7, 13];
        let mut taken = 0;
        for axes in [[3, 2, 1, 0], [2, 3, 0, 1], [0, 3, 2, 1]] {
            let source = Layout::row_major(&shape).unwrap().permuted_axes(&axes).unwrap();
            let dst = Layout::row_major(source.shape()).unwrap();
            for reversed in 0..16 {
                let backwards = |layout: Layout| {
                    let some = (0..4).filter(|axis| reversed >> axis & 1 != 0);
                    some.fold(layout, |layout, axis| layout.reverse(axis).unwrap())
                };
                taken += usize::from(packed::<T>(device, backwards(source), dst, random));
                packed::<T>(device, source, backwards(dst), random);
            }
            let repeated = Layout::row_major(&[9, 1, 7, 13]).unwrap().broadcast(&shape).unwrap();
            packed::<T>(device, repeated.permuted_axes(&axes).unwrap(), dst, random);
        }
        assert!(taken >= 12 || size_of::<T>() == 16, "{}: packed was taken {taken} times of 48", T::DTYPE);
    }
    at_every_width!(run(&device(setup), &mut Random::new(63)));
}

/// Bytes between the elements of the destination must stay, and those between the source's are not
/// read: the storages end with the elements.
fn parts_of_larger_arrays(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let whole = [11, 10, 9, 14];
        let part = |layout: Layout| {
            let layout = layout.slice(0, 1..10, 1).unwrap().slice(1, 2..9, 1).unwrap();
            layout.slice(3, 1..12, 1).unwrap()
        };
        let mut taken = 0;
        for axes in [[3, 2, 1, 0], [3, 0, 2, 1], [2, 1, 3, 0], [0, 2, 3, 1]] {
            let gapless = Layout::row_major(&[9, 7, 9, 11]).unwrap();
            let parted = part(Layout::row_major(&whole).unwrap());
            let order = |layout: Layout| layout.permuted_axes(&axes).unwrap();
            taken += usize::from(packed::<T>(
                device,
                order(parted),
                Layout::row_major(order(parted).shape()).unwrap(),
                random,
            ));
            taken += usize::from(packed::<T>(
                device,
                Layout::row_major(order(parted).shape()).unwrap(),
                order(parted),
                random,
            ));
            taken += usize::from(packed::<T>(
                device,
                order(gapless),
                Layout::row_major(order(gapless).shape()).unwrap(),
                random,
            ));
        }
        assert!(taken >= 4, "{}: packed was taken {taken} times of 12", T::DTYPE);
    }
    at_every_width!(run(&device(setup), &mut Random::new(64)));
}

/// Copies views that start this number of bytes into their storages, checks the bytes around them,
/// and returns the kernel for large arrays that did it.
fn copied_from(
    device: &Device,
    width: usize,
    [src_layout, dst_layout]: [&Layout; 2],
    [from, to]: [usize; 2],
    random: &mut Random,
) -> &'static str {
    let src: Vec<u8> = random.elements(from + src_layout.storage_len() * width);
    let mut expected: Vec<u8> = random.elements(to + dst_layout.storage_len() * width);
    let (source, result) = (device.upload(&src).unwrap(), device.upload(&expected).unwrap());
    let (src_bytes, dst_bytes) = (naive::bytes(src_layout, width), naive::bytes(dst_layout, width));
    naive::copy(&src[from..], &src_bytes, &mut expected[to..], &dst_bytes);
    let (src, dst) = (source.address() + from as u64, result.address() + to as u64);
    let (src_align, dst_align, target) = (Align::of(src), Align::of(dst), Target::of(device));
    let tiles = &TileShape::of(target);
    let plan = PermutePlan::tuned(src_layout, src_align, dst_layout, dst_align, width, target, tiles).unwrap();
    let stream = device.default_stream();
    // SAFETY: both buffers hold the layouts after these offsets, and live until the stream is
    // synchronised.
    unsafe { plan.launch_raw(device, src, dst, stream.handle()) }.unwrap();
    stream.synchronize().unwrap();
    let agrees = result.download().unwrap() == expected;
    assert!(agrees, "{src_layout:?} to {dst_layout:?} of {width} bytes, from {from} to {to}: {plan}");
    family(plan.entry())
}

fn narrow_elements_from_and_to_every_misalignment(setup: &Setup) {
    let (device, mut random, mut taken) = (device(setup), Random::new(65), 0);
    for width in [1, 2] {
        for shape in [[12, 15, 33, 1], [12, 16, 32, 1], [6, 8, 9, 12], [5, 7, 9, 11]] {
            for axes in [[0, 2, 1, 3], [3, 2, 1, 0], [3, 1, 2, 0]] {
                let src = Layout::row_major(&shape).unwrap().permuted_axes(&axes).unwrap();
                let dst = Layout::row_major(src.shape()).unwrap();
                for starts in [[0, 0], [1, 0], [0, 1], [2, 3], [3, 2]] {
                    let starts = starts.map(|start| start * width);
                    taken += usize::from(copied_from(&device, width, [&src, &dst], starts, &mut random) == "packed");
                }
            }
        }
    }
    assert!(taken >= 80, "packed was taken {taken} times of 120");
}

/// Returns two layouts of 2 to 6 axes of odd and even extents; the source's axes are in any order,
/// some backwards or a part of a longer axis.
pub(crate) fn random_axes(most: usize, random: &mut Random) -> [Layout; 2] {
    let rank = 2 + random.below(5);
    let mut shape = vec![1; rank];
    for axis in random.order(rank) {
        let left = most / shape.iter().product::<usize>();
        shape[axis] = 1 + random.below(left.clamp(1, if rank == 2 { 300 } else { 40 }));
    }
    let array = |shape: &[usize], random: &mut Random| {
        let gap = if random.below(4) == 0 { random.below(rank) } else { rank };
        let whole: Vec<usize> = (0..rank).map(|axis| shape[axis] + if axis == gap { 3 } else { 0 }).collect();
        let mut layout = Layout::row_major(&whole).unwrap();
        for (axis, &extent) in shape.iter().enumerate() {
            layout = layout.slice(axis, ..extent, 1).unwrap();
            layout = if random.below(6) == 0 { layout.reverse(axis).unwrap() } else { layout };
        }
        layout
    };
    let src = array(&shape, random);
    let order = random.order(rank);
    let src = src.permuted_axes(&order).unwrap();
    let dst = array(src.shape(), random);
    [src, dst]
}

/// All widths, from and to any element.
fn random_axes_of_any_extents_from_and_to_anywhere(setup: &Setup) {
    let (device, mut random, mut taken) = (device(setup), Random::new(67), 0);
    // The short form has three of eight on the software GPU.
    let (layouts, most) = if setup.is_soft() { (short_or_long(150, 400), 6_000) } else { (2_000, 200_000) };
    for _ in 0..layouts {
        let width = 1 << random.below(5);
        let [src, dst] = random_axes(most, &mut random);
        let starts = [0; 2].map(|_| if random.coin() { 0 } else { random.below(16) * width });
        taken += usize::from(copied_from(&device, width, [&src, &dst], starts, &mut random) == "packed");
    }
    assert!(taken >= layouts / 4, "packed was taken {taken} times of {layouts}");
}

/// Two arrays more than 2^31 elements apart, as in `permutes::offsets_beyond_31_bits`.
fn tiles_beyond_31_bits(setup: &Setup) {
    const SHAPE: [usize; 3] = [31, 5, 33];
    const LEN: usize = 31 * 5 * 33;
    let device = device(setup);
    let lens = if setup.is_soft() { vec![LEN; 2] } else { vec![(1 << 31) + (1 << 20) + LEN] };
    let held: Vec<_> = lens.into_iter().map(|len| device.alloc::<u8>(len).unwrap()).collect();
    let (least, greatest) = held.iter().fold((u64::MAX, 0), |(least, greatest), buffer| {
        (least.min(buffer.address()), greatest.max(buffer.address() + (buffer.len() - LEN) as u64))
    });
    let elements: Vec<u8> = Random::new(66).elements(2 * LEN);
    let (source, handle) = (device.upload(&elements).unwrap(), device.default_stream().handle());
    let near = Layout::row_major(&[&[2][..], &SHAPE].concat()).unwrap().permuted_axes(&[0, 3, 2, 1]).unwrap();
    let apart = (greatest - least) as usize;
    let far = Layout::new(near.shape(), &[apart as isize, 155, 31, 1], 0, apart + LEN).unwrap();
    for (src, dst) in [(&far, &near), (&near, &far)] {
        let plan = PermutePlan::new(src, Align::of(least), dst, Align::of(least), 1, Target::of(&device)).unwrap();
        assert_eq!(plan.entry(), Some("packed_b8_wide"), "{plan}, {apart} apart");
    }
    let result = device.zeros::<u8>(2 * LEN).unwrap();
    // SAFETY: all of it is live until the download below.
    unsafe { ops::copy_into_raw(&device, source.address(), &near, least, &far, 1, handle) }.unwrap();
    // SAFETY: as above.
    unsafe { ops::copy_into_raw(&device, least, &far, result.address(), &near, 1, handle) }.unwrap();
    device.synchronize().unwrap();
    assert!(result.download().unwrap() == elements, "{apart} apart");
}
