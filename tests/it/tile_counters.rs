//! What the software GPU counts of the tile kernels.

use warpstride::counters::Counters;
use warpstride::device::{Backend, Device};
use warpstride::element::Element;
use warpstride::layout::Layout;
use warpstride::ops::{self, Affine, AffinePlan, Align, PermutePlan, Plan, Target, TileShape};

/// What one transpose counts of `rows` x `cols` elements from element `from` on, whose rows are
/// `gap` elements apart, to a result that starts `to` elements into its buffer; and the kernel that
/// did it, which is one for large arrays unless `small`.
fn count<T: Element>(
    zero: T,
    device: &Device,
    [rows, cols]: [usize; 2],
    [from, to, gap]: [usize; 3],
    small: bool,
) -> (Option<&'static str>, Counters) {
    let pitches = [cols + gap, rows + gap];
    let lens = [from + rows * pitches[0], to + cols * pitches[1]];
    let src = device.upload(&vec![zero; lens[0]]).expect("it fits");
    let mut dst = device.zeros::<T>(lens[1]).expect("it fits");
    let source = Layout::new(&[rows, cols], &[pitches[0] as isize, 1], from, lens[0]).expect("rows of that pitch");
    let result = Layout::new(&[rows, cols], &[1, pitches[1] as isize], to, lens[1]).expect("columns of that pitch");
    let align = Align::ALLOCATION;
    let (target, width) = (Target::of(device), size_of::<T>());
    let plan = if small {
        PermutePlan::new(&source, align, &result, align, width, target)
    } else {
        PermutePlan::tuned(&source, align, &result, align, width, target, &TileShape::of(target))
    };
    let before = device.counters().expect("nothing fails").expect("it counts");
    let (source, result) = (src.view_with(source).expect("it fits"), dst.view_mut_with(result).expect("it fits"));
    if small {
        ops::copy_into(source, result, device.default_stream()).expect("it runs");
    } else {
        ops::copy_into_tuned(source, result, &TileShape::of(target), device.default_stream()).expect("it runs");
    }
    (plan.expect("a plan").entry(), device.counters().expect("nothing fails").expect("it counts") - before)
}

fn of_width(
    width: usize,
    device: &Device,
    shape: [usize; 2],
    starts: [usize; 3],
    small: bool,
) -> (Option<&'static str>, Counters) {
    match width {
        1 => count(0_u8, device, shape, starts, small),
        2 => count(0_u16, device, shape, starts, small),
        4 => count(0_u32, device, shape, starts, small),
        8 => count(0_u64, device, shape, starts, small),
        _ => count([0_f64; 2], device, shape, starts, small),
    }
}

const WIDTHS: [usize; 5] = [1, 2, 4, 8, 16];

#[test]
fn vector_tiles_meet_no_bank_conflict() {
    let device = Device::open(Backend::Soft).expect("the software GPU is always there");
    for width in WIDTHS {
        let lanes = 16 / width;
        for quads in [
            [16, 16],
            [32, 32],
            [17, 33],
            [40, 24],
            [1, 700],
            [700, 1],
            [2, 300],
            [300, 2],
            [4, 128],
            [128, 4],
            [9, 64],
            [64, 7],
        ] {
            let shape = quads.map(|quads| (quads * lanes).max(2));
            for starts in [[0; 3], [lanes, 2 * lanes, lanes]] {
                let (entry, got) = of_width(width, &device, shape, starts, false);
                let case = format!("{shape:?} of {width} bytes, {starts:?}, by {entry:?}: {got:?}");
                // A few fields of structs may go by quads.
                let is_tile = |entry: &str| entry.starts_with("vector_tile");
                let few = shape.iter().any(|&fields| fields <= 64);
                assert!(entry.is_some_and(|entry| is_tile(entry) || few && entry.contains("leave_quads")), "{case}");
                assert!(got.shared_load.wavefronts > 0 && got.shared_store.wavefronts > 0, "{case}");
                assert_eq!(got.bank_conflicts(), 0, "{case}");
            }
        }
    }
}

/// Elements of 16 bytes always start on quads, but on sectors only every other does; that matters
/// from 16 MiB on.
#[test]
fn large_matrices_of_quads_off_sectors_meet_no_bank_conflict() {
    let device = Device::open(Backend::Soft).expect("the software GPU is always there");
    for (width, shape) in [(16, [1031, 1025]), (4, [2060, 2052])] {
        let (entry, got) = of_width(width, &device, shape, [0; 3], false);
        assert!(entry.is_some_and(|entry| entry.starts_with("ragged_tile")), "{shape:?} by {entry:?}");
        assert!(got.shared_load.wavefronts > 0 && got.shared_store.wavefronts > 0, "{shape:?}: {got:?}");
        assert_eq!(got.bank_conflicts(), 0, "{shape:?} by {entry:?}: {got:?}");
    }
}

#[test]
fn ragged_tiles_meet_no_bank_conflict() {
    let device = Device::open(Backend::Soft).expect("the software GPU is always there");
    for width in [1, 2, 4, 8] {
        let lanes = 16 / width;
        for quads in
            [[16, 16], [32, 32], [17, 33], [40, 24], [2, 700], [700, 2], [3, 300], [300, 3], [4, 128], [128, 4]]
        {
            let shape = quads.map(|quads| quads * lanes - 1);
            for starts in [[0; 3], [1, 0, 0], [0, 1, 0], [1, 1, 2], [0, 3, 1], [lanes, 5, lanes + 1]] {
                let (entry, got) = of_width(width, &device, shape, starts, false);
                let case = format!("{shape:?} of {width} bytes, {starts:?}, by {entry:?}: {got:?}");
                // Up to 64 rows or columns are the fields of structs, where rows lie one behind the
                // other.
                let packed = starts[2] == 0 && shape.iter().any(|&extent| extent <= 64);
                let fields = |entry: &str| entry.contains("interleave") && packed;
                assert!(entry.is_some_and(|entry| entry.starts_with("ragged_tile") || fields(entry)), "{case}");
                assert!(got.shared_load.wavefronts > 0 && got.shared_store.wavefronts > 0, "{case}");
                assert_eq!(got.bank_conflicts(), 0, "{case}");
            }
        }
    }
}

#[test]
fn tiles_of_small_matrices_meet_no_bank_conflict() {
    let device = Device::open(Backend::Soft).expect("the software GPU is always there");
    for (width, shape) in [
        (1, [1024, 1024]),
        (1, [2048, 640]),
        (2, [1024, 512]),
        (2, [520, 1048]),
        (4, [512, 256]),
        (4, [300, 388]),
        (8, [256, 256]),
        (8, [202, 286]),
        (16, [128, 256]),
        (16, [150, 171]),
    ] {
        for (starts, kernel) in [([0; 3], "small_tile"), ([1; 3], if width == 16 { "small_tile" } else { "staggered" })]
        {
            let (entry, got) = of_width(width, &device, shape, starts, true);
            let case = format!("{shape:?} of {width} bytes, {starts:?}, by {entry:?}: {got:?}");
            assert!(entry.is_some_and(|entry| entry.starts_with(kernel)), "{case}");
            assert!(got.shared_load.wavefronts > 0 && got.shared_store.wavefronts > 0, "{case}");
            assert_eq!(got.bank_conflicts(), 0, "{case}");
        }
    }
}

/// Batches of small aligned matrices.
#[test]
fn batches_of_small_matrices_meet_no_bank_conflict() {
    fn run<T: Element>(zero: T, device: &Device, shape: &[usize], axes: &[usize], kernel: &str) {
        let len = shape.iter().product();
        let src = device.upload(&vec![zero; len]).expect("it fits");
        let mut dst = device.zeros::<T>(len).expect("it fits");
        let source = Layout::row_major(shape).and_then(|layout| layout.permuted_axes(axes)).expect("a permutation");
        let result = Layout::row_major(source.shape()).expect("a shape");
        let (align, target, width) = (Align::ALLOCATION, Target::of(device), size_of::<T>());
        let tiles = &TileShape::of(target);
        let plan = PermutePlan::tuned(&source, align, &result, align, width, target, tiles).expect("a plan");
        let before = device.counters().expect("nothing fails").expect("it counts");
        let (source, result) = (src.view_with(source).expect("it fits"), dst.view_mut_with(result).expect("it fits"));
        ops::copy_into_tuned(source, result, tiles, device.default_stream()).expect("it runs");
        let got = device.counters().expect("nothing fails").expect("it counts") - before;
        let case = format!("{shape:?} by {axes:?} of {} bytes, {plan}: {got:?}", size_of::<T>());
        assert!(plan.entry().is_some_and(|entry| entry.starts_with(kernel)), "{case}");
        assert!(got.shared_load.wavefronts > 0, "{case}");
        let met = if kernel == "packed" { got.shared_load.bank_conflicts } else { got.bank_conflicts() };
        assert_eq!(met, 0, "{case}");
    }
    let device = Device::open(Backend::Soft).expect("the software GPU is always there");
    run(0_u8, &device, &[2048, 8, 8], &[0, 2, 1], "packed");
    run(0_u16, &device, &[2048, 8, 8], &[0, 2, 1], "packed");
    run(0_u16, &device, &[512, 16, 16], &[0, 2, 1], "stacked_tile");
    run(0_u16, &device, &[512, 8, 16], &[0, 2, 1], "stacked_tile");
    run(0_u16, &device, &[512, 24, 8], &[0, 2, 1], "stacked_tile");
    run(0_u8, &device, &[512, 16, 16], &[0, 2, 1], "stacked_tile");
    run(0_u8, &device, &[512, 16, 48], &[0, 2, 1], "stacked_tile");
    run(0_u16, &device, &[128, 32, 32], &[0, 2, 1], "stacked_tile");
    run(0_u8, &device, &[64, 64, 64], &[0, 2, 1], "stacked_tile");
    run(0_u32, &device, &[128, 32, 32], &[0, 2, 1], "stacked_tile");
    run(0_u64, &device, &[128, 16, 16], &[0, 2, 1], "stacked_tile");
}

/// Counts of a transpose from one type to another of `rows` x `cols` elements, whose rows are `gap`
/// elements apart on both sides.
fn affine<S: Element, D: Element>(
    zeros: (S, D),
    device: &Device,
    [rows, cols]: [usize; 2],
    gap: usize,
    kernel: &str,
) -> (String, Counters) {
    let pitches = [cols + gap, rows + gap];
    let src = device.upload(&vec![zeros.0; rows * pitches[0]]).expect("it fits");
    let mut dst = device.upload(&vec![zeros.1; cols * pitches[1]]).expect("it fits");
    let source = Layout::new(&[rows, cols], &[pitches[0] as isize, 1], 0, src.len()).expect("rows of that pitch");
    let result = Layout::new(&[rows, cols], &[1, pitches[1] as isize], 0, dst.len()).expect("columns of that pitch");
    let (align, target) = (Align::ALLOCATION, Target::of(device));
    let plan = AffinePlan::new((&source, align, S::DTYPE), (&result, align, D::DTYPE), None, target).expect("a plan");
    let before = device.counters().expect("nothing fails").expect("it counts");
    let (from, to) = (src.view_with(source).expect("it fits"), dst.view_mut_with(result).expect("it fits"));
    ops::affine_into(from, Affine::scale(2.0), to, device.default_stream()).expect("it runs");
    let got = device.counters().expect("nothing fails").expect("it counts") - before;
    let case = format!("{rows} x {cols} of {} to {}, {plan}: {got:?}", S::DTYPE, D::DTYPE);
    assert!(plan.entry().is_some_and(|entry| entry.starts_with(kernel)), "{case}");
    assert!(got.shared_load.wavefronts > 0 && got.shared_store.wavefronts > 0, "{case}");
    assert_eq!(got.bank_conflicts(), 0, "{case}");
    (case, got)
}

#[test]
fn tiles_of_two_types_meet_no_bank_conflict_and_access_each_sector_once() {
    fn run<S: Element, D: Element>(zeros: (S, D), device: &Device) {
        let (lanes, rows) = (16 / size_of::<S>(), 16 / size_of::<D>());
        for quads in [[16, 16], [32, 32], [6, 34], [40, 24], [256, 2], [2, 256], [4, 64], [10, 66], [64, 8]] {
            let shape = [quads[1] * rows, quads[0] * lanes];
            let (case, got) = affine(zeros, device, shape, 0, "affine_tile");
            let elements = shape[0] * shape[1];
            let sectors = [elements * size_of::<S>(), elements * size_of::<D>()].map(|bytes| bytes as u64 / 32);
            assert_eq!([got.global_load.sectors, got.global_store.sectors], sectors, "{case}");
        }
        for shape in [[64, 64], [129, 65], [40, 333]] {
            affine(zeros, device, shape, 1, "affine_padded");
        }
    }
    let device = Device::open(Backend::Soft).expect("the software GPU is always there");
    run((0_u8, 0.0_f32), &device);
    run((0.0_f32, 0.0_f32), &device);
    run((0.0_f64, 0.0_f64), &device);
    #[cfg(feature = "half")]
    {
        let half = (half::f16::ZERO, half::bf16::ZERO);
        run((0_u8, half.0), &device);
        run((half.0, 0.0_f32), &device);
        run(half, &device);
        run((0.0_f32, half.1), &device);
    }
}
