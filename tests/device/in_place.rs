//! Transposes in place, compared with the oracle: square matrices of any layout, others in C order.

use warpstride::device::Device;
use warpstride::layout::Layout;
use warpstride::ops::{self, InPlacePlan, Plan};

use crate::backend::{Setup, cases};
use crate::failures::refusal;
use crate::long::is_long;
use crate::matrices::{Random, Sample, at_every_width, c_order};
use crate::naive;
use crate::permutes::device;
use crate::transposes::in_layers;

cases! {
    Any square_matrices_of_every_size_and_width,
    Any square_matrices_of_any_layout,
    Any square_matrices_of_a_batch,
    Any more_square_matrices_than_a_grid_has_in_y,
    Any rectangles_of_every_shape_and_width,
    Any rectangles_of_a_batch,
    Any rows_too_long_for_shared_memory_go_through_the_scratch,
    Any columns_too_long_for_shared_memory_go_through_the_scratch,
    Any what_is_not_transposed_in_place_is_refused,
    Any raw_addresses_and_their_scratch,
    SoftwareGpu("it counts bank conflicts") tiles_of_square_matrices_meet_no_bank_conflict,
    SoftwareGpu("it counts sectors") square_matrices_are_read_and_written_once,
}

/// Returns the storage of `layout` after its matrices, the last two axes, are transposed to
/// `result`.
pub(crate) fn expected<T: Sample>(before: &[T], layout: &Layout, result: &Layout) -> Vec<T> {
    let mut after = before.to_vec();
    if layout.rank() == 2 {
        naive::transpose(before, layout, &mut after, result);
    } else {
        for batch in 0..layout.shape()[0] {
            let [from, to] = [layout, result].map(|layout| layout.index_axis(0, batch).unwrap());
            naive::transpose(before, &from, &mut after, &to);
        }
    }
    after
}

/// Transposes on the device and by the oracle, and compares all bytes of the storage, including
/// those between the elements.
pub(crate) fn check<T: Sample>(device: &Device, layout: Layout, random: &mut Random) {
    let plan = InPlacePlan::new(&layout, size_of::<T>()).unwrap();
    let before: Vec<T> = random.elements(layout.storage_len());
    let mut buffer = device.upload(&before).unwrap();
    let view = buffer.view_mut_with(layout).unwrap();
    let result = *ops::transpose_in_place(view, device.default_stream()).unwrap().layout();
    let (mut turned, last) = (layout.shape().to_vec(), layout.rank() - 1);
    turned.swap(last - 1, last);
    assert_eq!(result.shape(), turned);
    let agrees = buffer.download().unwrap() == expected(&before, &layout, &result);
    assert!(agrees, "{plan}: {layout:?} of {}", T::DTYPE);
}

fn square_matrices_of_every_size_and_width(setup: &Setup) {
    let (device, mut random) = (device(setup), Random::new(1));
    for n in [0, 1, 2, 31, 32, 33, 63, 64, 65, 100, 128, 129, 193, 257] {
        at_every_width!(check(&device, c_order(&[n, n]), &mut random));
    }
}

fn square_matrices_of_any_layout(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let n = random.extent();
        let layout = random.layout([n, n]);
        check::<T>(device, layout, random);
    }
    let (device, mut random) = (device(setup), Random::new(2));
    for _ in 0..24 {
        at_every_width!(run(&device, &mut random));
    }
}

fn square_matrices_of_a_batch(setup: &Setup) {
    let (device, mut random) = (device(setup), Random::new(3));
    for [batches, n] in [[1, 5], [7, 3], [3, 65], [2, 100], [0, 4]] {
        let whole = c_order(&[batches, n, n + 3]);
        let pitched = whole.slice(2, 1..n + 1, 1).unwrap();
        // The batch between rows and columns, and backwards.
        let between = c_order(&[n, batches, n]).permuted_axes(&[1, 0, 2]).unwrap().reverse(0).unwrap();
        for layout in [c_order(&[batches, n, n]), pitched, between] {
            at_every_width!(check(&device, layout, &mut random));
        }
    }
}

/// 65 537 matrices: the last two lie in the grid's second layer. The short form launches five
/// instead, in layers of three.
fn more_square_matrices_than_a_grid_has_in_y(setup: &Setup) {
    let many = c_order(&[65_537, 2, 2]);
    let plan = InPlacePlan::new(&many, size_of::<u16>()).unwrap();
    assert!(plan.to_string().contains("grid 1 x 65535 x 2 "), "{plan}");
    if is_long() {
        return check::<u16>(&device(setup), many, &mut Random::new(4));
    }
    check::<u16>(&in_layers(setup), c_order(&[5, 2, 2]), &mut Random::new(4));
}

fn rectangles_of_every_shape_and_width(setup: &Setup) {
    let (device, mut random) = (device(setup), Random::new(5));
    let shapes = [
        [0, 5],
        [1, 7],
        [7, 1],
        [2, 3],
        [3, 2],
        [2, 4],
        [4, 6],
        [6, 4],
        [8, 64],
        [17, 31],
        [32, 33],
        [33, 32],
        [64, 96],
        [96, 36],
        [100, 101],
        [3, 1000],
        [1000, 3],
        [997, 2],
        [5, 640],
        [120, 250],
    ];
    for shape in shapes {
        at_every_width!(check(&device, c_order(&shape), &mut random));
    }
    for _ in 0..24 {
        let shape = [random.extent(), random.extent()];
        at_every_width!(check(&device, c_order(&shape), &mut random));
    }
}

fn rectangles_of_a_batch(setup: &Setup) {
    let (device, mut random) = (device(setup), Random::new(6));
    for shape in [[5, 2, 3], [3, 12, 18], [600, 4, 6], [2, 50, 21], [4, 1, 9], [0, 2, 3]] {
        at_every_width!(check(&device, c_order(&shape), &mut random));
    }
    // A part of a larger buffer.
    check::<u16>(&device, c_order(&[9, 6, 10]).slice(0, 2..7, 1).unwrap(), &mut random);
}

fn rows_too_long_for_shared_memory_go_through_the_scratch(setup: &Setup) {
    let (device, mut random) = (device(setup), Random::new(7));
    let spills = |layout: &Layout, width| {
        let plan = InPlacePlan::new(layout, width).unwrap();
        let spilled = plan.entries().filter(|entry| entry.starts_with("spill_lines")).count();
        assert!(spilled == 1 && plan.scratch_bytes() > 0, "{plan}");
    };
    for shape in [&[3, 49_200][..], &[49_153, 2], &[2, 2, 49_160]] {
        spills(&c_order(shape), 1);
        check::<u8>(&device, c_order(shape), &mut random);
    }
    for shape in [&[4, 3074][..], &[3073, 5], &[3, 2, 3080]] {
        spills(&c_order(shape), 16);
        check::<[f64; 2]>(&device, c_order(shape), &mut random);
    }
    // More rows than the scratch can hold.
    let layout = c_order(&[70, 12_300]);
    let plan = InPlacePlan::new(&layout, 4).unwrap();
    assert!(plan.launches() > 4, "{plan}");
    check::<u32>(&device, layout, &mut random);
}

fn columns_too_long_for_shared_memory_go_through_the_scratch(setup: &Setup) {
    let layout = c_order(&[1538, 1537]);
    let plan = InPlacePlan::new(&layout, 1).unwrap();
    assert!(plan.entries().any(|entry| entry.starts_with("spill_lines")), "{plan}");
    check::<u8>(&device(setup), layout, &mut Random::new(8));
}

fn what_is_not_transposed_in_place_is_refused(setup: &Setup) {
    let device = device(setup);
    let mut buffer = device.zeros::<u32>(24).unwrap();
    for (layout, names) in [
        (c_order(&[24]), "[24]"),
        (c_order(&[1, 2, 3, 4]), "[1, 2, 3, 4]"),
        (c_order(&[4, 6]).t(), "strides [1, 6]"),
        (c_order(&[4, 6]).slice(1, ..5, 1).unwrap(), "strides [6, 1]"),
        (c_order(&[4, 6]).reverse(0).unwrap(), "strides [-6, 1]"),
    ] {
        let view = buffer.view_mut_with(layout).unwrap();
        refusal(ops::transpose_in_place(view, device.default_stream())).of(warpstride::ErrorKind::Layout).says(names);
    }
    let repeated = c_order(&[1, 3]).broadcast(&[3, 3]).unwrap();
    refusal(InPlacePlan::new(&repeated, 4)).says("reach an element twice");
    refusal(InPlacePlan::new(&c_order(&[3, 3]), 3)).says("3 bytes");
}

fn raw_addresses_and_their_scratch(setup: &Setup) {
    let device = device(setup);
    let layout = c_order(&[3, 24_600]);
    let plan = InPlacePlan::new(&layout, 2).unwrap();
    let elements: Vec<u16> = Random::new(9).elements(layout.len());
    let matrix = device.upload(&elements).unwrap();
    let scratch = device.alloc::<u8>(plan.scratch_bytes()).unwrap();
    let raw = |matrix: u64, scratch: u64| {
        let stream = device.default_stream().handle();
        // SAFETY: both buffers live until the stream is synchronised; a refused call queues
        // nothing.
        unsafe { ops::transpose_in_place_raw(&device, matrix, &layout, 2, scratch, stream) }
    };
    raw(matrix.address(), scratch.address()).unwrap();
    device.default_stream().synchronize().unwrap();
    assert!(matrix.download().unwrap() == expected(&elements, &layout, &c_order(&[24_600, 3])));
    refusal(raw(matrix.address(), matrix.address() + 100)).says("overlap");
    refusal(raw(matrix.address() + 1, scratch.address())).says("the matrix's address");
    refusal(raw(matrix.address(), scratch.address() + 1)).says("the scratch's address");
}

/// Returns the counters of the transpose in place of an `n` x `n` matrix.
fn count<T: Sample>(device: &Device, n: usize) -> warpstride::counters::Counters {
    let mut buffer = device.zeros::<T>(n * n).unwrap();
    let before = device.counters().unwrap().unwrap();
    ops::transpose_in_place(buffer.view_mut(&[n, n]).unwrap(), device.default_stream()).unwrap();
    device.counters().unwrap().unwrap() - before
}

fn tiles_of_square_matrices_meet_no_bank_conflict(setup: &Setup) {
    fn run<T: Sample>(device: &Device) {
        for n in [100, 128, 257] {
            let got = count::<T>(device, n);
            assert!(got.shared_load.wavefronts > 0);
            assert_eq!(got.bank_conflicts(), 0, "{n} x {n} of {}: {got:?}", T::DTYPE);
        }
    }
    let device = device(setup);
    at_every_width!(run(&device));
}

fn square_matrices_are_read_and_written_once(setup: &Setup) {
    fn run<T: Sample>(device: &Device) {
        let got = count::<T>(device, 192);
        let sectors = (192 * 192 * size_of::<T>() / 32) as u64;
        assert_eq!([got.global_load.sectors, got.global_store.sectors], [sectors; 2], "{}: {got:?}", T::DTYPE);
    }
    let device = device(setup);
    at_every_width!(run(&device));
}
