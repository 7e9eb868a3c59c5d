//! A kept plan launches on the views that it was planned for, and refuses all others, because its
//! kernels trust it.

use warpstride::ops::{
    Affine, AffinePlan, Align, CastPlan, Channels, DotPlan, Elementwise, ElementwisePlan, FillPlan, InPlacePlan,
    Indexed, IndexedPlan, IteratePlan, MeanVariancePlan, Normalization, Phase, Reduction, ReductionPlan, Scratch,
    SoftmaxPlan, Target, TransposePlan, Variant,
};
use warpstride::{Backend, DType, Device, DeviceBuffer, Layout, Result, View, ViewMut};

const START: Phase = Phase::ALIGNED;

fn device() -> Device {
    Device::open(Backend::Soft).expect("the software GPU is always there")
}

fn floats(device: &Device, len: usize) -> [DeviceBuffer<f32>; 2] {
    [(); 2].map(|()| device.zeros(len).unwrap())
}

fn part(buffer: &DeviceBuffer<f32>, start: usize, len: usize) -> View<'_, f32> {
    buffer.view(&[16]).unwrap().slice(0, start..start + len, 1).unwrap()
}

fn part_mut(buffer: &mut DeviceBuffer<f32>, start: usize, len: usize) -> ViewMut<'_, f32> {
    buffer.view_mut(&[16]).unwrap().slice(0, start..start + len, 1).unwrap()
}

/// Launches on 12 floats from the start of both buffers, for which the plan is, and then on others.
fn only_on_the_planned(launch: impl Fn(View<'_, f32>, ViewMut<'_, f32>, &Device) -> Result<()>) {
    let (here, there) = (device(), device());
    let (source, elsewhere) = (here.zeros::<f32>(16).unwrap(), there.zeros::<f32>(16).unwrap());
    let mut result = here.zeros::<f32>(16).unwrap();
    launch(part(&source, 0, 12), part_mut(&mut result, 0, 12), &here).unwrap();
    for (from, from_len, to, to_len) in [(1, 12, 0, 12), (0, 12, 1, 12), (0, 8, 0, 8), (0, 13, 0, 13), (0, 12, 0, 8)] {
        let outcome = launch(part(&source, from, from_len), part_mut(&mut result, to, to_len), &here);
        assert!(outcome.is_err(), "{from_len} from {from} to {to_len} from {to}");
    }
    assert!(launch(part(&elsewhere, 0, 12), part_mut(&mut result, 0, 12), &here).is_err(), "another device");
    assert!(launch(part(&source, 0, 12), part_mut(&mut result, 0, 12), &there).is_err(), "another device's stream");
}

#[test]
fn plans_of_arithmetic_launch_on_arrays() {
    let device = device();
    let (target, stream) = (Target::of(&device), device.default_stream());
    let [mut a, b] = [[1.0_f32, 2.0, 3.0, 4.0], [4.0; 4]].map(|numbers| device.array(&[2, 2], &numbers).unwrap());
    let mut result = device.alloc_array::<f32>(&[2, 2]).unwrap();
    let mut scratch = Scratch::new(&device).unwrap();
    let plan = ElementwisePlan::new(Elementwise::Triad, DType::F32, 4, [START; 2], START, target).unwrap();
    plan.launch(1.0, &[&a, &b], &mut result, stream).unwrap();
    assert_eq!(result.to_vec().unwrap(), [5.0, 6.0, 7.0, 8.0]);
    FillPlan::new(DType::F32, 4, START, target).unwrap().launch(1.0_f32, &mut a, stream).unwrap();
    SoftmaxPlan::new(DType::F32, [2, 2], [START; 2], target).unwrap().launch(&a, &mut result, stream).unwrap();
    assert_eq!(result.to_vec().unwrap(), [0.5; 4]);
    let [mut mean, mut variance] = [(); 2].map(|()| device.alloc_array::<f32>(&[2]).unwrap());
    let plan = MeanVariancePlan::new(DType::F32, [2, 2], START, target).unwrap();
    plan.launch(&b, &mut mean, &mut variance, stream).unwrap();
    assert_eq!([mean.to_vec().unwrap(), variance.to_vec().unwrap()], [[4.0; 2], [0.0; 2]]);
    let plan = ReductionPlan::new(Reduction::Sum, DType::F32, &[2, 2], Some(1), START, target).unwrap();
    plan.launch(&b, &mut scratch, &mut mean, stream).unwrap();
    assert_eq!(mean.to_vec().unwrap(), [8.0; 2]);
    let mut product = device.alloc_array::<f32>(&[]).unwrap();
    DotPlan::new(DType::F32, 4, [START; 2]).unwrap().launch(&a, &b, &mut scratch, &mut product, stream).unwrap();
    assert_eq!(product.to_vec().unwrap(), [16.0]);
}

#[test]
fn plans_of_contiguous_arrays_refuse_others() {
    let target = Target::of(&device());
    let plan = ElementwisePlan::new(Elementwise::Mul, DType::F32, 12, [START; 2], START, target).unwrap();
    only_on_the_planned(|src, dst, device| plan.launch(2.0, &[src], dst, device.default_stream()));
    let plan = CastPlan::new((START, DType::F32), (START, DType::F32), 12, target).unwrap();
    only_on_the_planned(|src, dst, device| plan.launch(src, dst, device.default_stream()));
    let plan = IteratePlan::new(12, [START; 2]).unwrap();
    only_on_the_planned(|src, dst, device| plan.launch(0.5, 1.0, 3, src, dst, device.default_stream()));
    let plan = FillPlan::new(DType::F32, 12, START, target).unwrap();
    let device = device();
    let mut buffer = device.zeros::<f32>(16).unwrap();
    for (start, len) in [(0, 12), (1, 12), (0, 11)] {
        let outcome = plan.launch(1.0_f32, part_mut(&mut buffer, start, len), device.default_stream());
        assert_eq!(outcome.is_ok(), (start, len) == (0, 12), "{len} from {start}");
    }
    let mut numbers = device.zeros::<u32>(12).unwrap();
    assert!(plan.launch(1_u32, numbers.view_mut(&[12]).unwrap(), device.default_stream()).is_err(), "another type");
}

#[test]
fn plans_of_rows_refuse_other_rows() {
    let device = device();
    let (target, stream) = (Target::of(&device), device.default_stream());
    let [source, mut result] = floats(&device, 12);
    let plan = SoftmaxPlan::new(DType::F32, [3, 4], [START; 2], target).unwrap();
    for shape in [[3, 4], [2, 6], [4, 3]] {
        let outcome = plan.launch(source.view(&shape).unwrap(), result.view_mut(&shape).unwrap(), stream);
        assert_eq!(outcome.is_ok(), shape == [3, 4], "{shape:?}");
    }
    let plan = MeanVariancePlan::new(DType::F32, [3, 4], START, target).unwrap();
    let (mut mean, mut variance) = (device.zeros::<f32>(16).unwrap(), device.zeros::<f32>(16).unwrap());
    for (shape, rows) in [([3, 4], 3), ([2, 6], 2), ([6, 2], 6), ([3, 4], 2)] {
        let (to, and) = (part_mut(&mut mean, 0, rows), part_mut(&mut variance, 0, rows));
        let outcome = plan.launch(source.view(&shape).unwrap(), to, and, stream);
        assert_eq!(outcome.is_ok(), shape == [3, 4] && rows == 3, "{shape:?} to {rows}");
    }
}

#[test]
fn reductions_refuse_other_extents_and_results() {
    let device = device();
    let (target, stream) = (Target::of(&device), device.default_stream());
    let source = device.zeros::<f32>(12).unwrap();
    let mut scratch = Scratch::new(&device).unwrap();
    let mut result = device.zeros::<f32>(16).unwrap();
    let plan = ReductionPlan::new(Reduction::Sum, DType::F32, &[3, 4], Some(1), START, target).unwrap();
    for (shape, results) in [([3, 4], 3), ([3, 4], 4), ([4, 3], 4), ([6, 2], 6)] {
        let to = part_mut(&mut result, 0, results);
        let outcome = plan.launch(source.view(&shape).unwrap(), &mut scratch, to, stream);
        assert_eq!(outcome.is_ok(), shape == [3, 4] && results == 3, "{shape:?} to {results}");
    }
    let mut indices = device.zeros::<u64>(3).unwrap();
    let to = indices.view_mut(&[3]).unwrap();
    assert!(plan.launch(source.view(&[3, 4]).unwrap(), &mut scratch, to, stream).is_err(), "another type of results");
    let plan = DotPlan::new(DType::F32, 12, [START; 2]).unwrap();
    for (len, results) in [(12, 1), (8, 1), (12, 2)] {
        let a = source.view(&[12]).unwrap().slice(0, ..len, 1).unwrap();
        let outcome = plan.launch(a, a, &mut scratch, part_mut(&mut result, 0, results), stream);
        assert_eq!(outcome.is_ok(), (len, results) == (12, 1), "{len} to {results}");
    }
}

#[test]
fn a_plan_of_a_transpose_refuses_other_matrices() {
    let device = device();
    let [source, mut result] = floats(&device, 12);
    let layout = |shape: &[usize; 2]| *source.view(shape).unwrap().layout();
    let plan = TransposePlan::new(&layout(&[3, 4]), &layout(&[4, 3]), 4, Variant::Padded).unwrap();
    for [rows, cols] in [[3, 4], [2, 6], [4, 3]] {
        let (from, to) = (source.view(&[rows, cols]).unwrap(), result.view_mut(&[cols, rows]).unwrap());
        assert_eq!(plan.launch(from, to, device.default_stream()).is_ok(), rows == 3, "{rows} x {cols}");
    }
}

/// Returns a source of 12 floats from `start` on, of `shape` with its axes in the order `axes`, and
/// a destination of the same shape in C order.
fn permuted<'a>(
    (source, start): (&'a DeviceBuffer<f32>, usize),
    shape: [usize; 2],
    axes: [usize; 2],
    (result, to): (&'a mut DeviceBuffer<f32>, usize),
) -> (View<'a, f32>, ViewMut<'a, f32>) {
    let from = part(source, start, 12).split_axis(0, &shape).unwrap().permuted_axes(&axes).unwrap();
    let to = part_mut(result, to, 12).split_axis(0, from.shape()).unwrap();
    (from, to)
}

#[test]
fn a_plan_of_an_affine_map_refuses_other_work() {
    let device = device();
    let (target, stream) = (Target::of(&device), device.default_stream());
    let [source, mut result] = floats(&device, 16);
    let side = |layout: Layout| (layout, Align::ALLOCATION, DType::F32);
    let flat = Layout::row_major(&[16]).unwrap().slice(0, 0..12, 1).unwrap();
    let ((layout, align, dtype), uniform) = (side(flat), Channels::Uniform);
    let plan = AffinePlan::new((&layout, align, dtype), (&layout, align, dtype), uniform, target).unwrap();
    only_on_the_planned(|src, dst, device| plan.launch(src, Affine::scale(2.0), dst, device.default_stream()));

    let (from, to) = permuted((&source, 0), [4, 3], [1, 0], (&mut result, 0));
    let (src, dst) = (side(*from.layout()), side(*to.layout()));
    let plan = AffinePlan::new((&src.0, src.1, src.2), (&dst.0, dst.1, dst.2), uniform, target).unwrap();
    for (start, shape, axes, at) in [
        (0, [4, 3], [1, 0], 0),
        (1, [4, 3], [1, 0], 0),
        (0, [4, 3], [1, 0], 1),
        (0, [3, 4], [0, 1], 0),
        (0, [3, 4], [1, 0], 0),
        (0, [6, 2], [1, 0], 0),
    ] {
        let (from, to) = permuted((&source, start), shape, axes, (&mut result, at));
        let outcome = plan.launch(from, Affine::scale(2.0), to, stream);
        let is_planned = (start, shape, axes, at) == (0, [4, 3], [1, 0], 0);
        assert_eq!(outcome.is_ok(), is_planned, "{shape:?} by {axes:?} from {start} to {at}");
    }
    let doubles = device.zeros::<f64>(12).unwrap();
    let mut results = device.zeros::<f64>(12).unwrap();
    let from = doubles.view(&[4, 3]).unwrap().t();
    let outcome = plan.launch(from, Affine::scale(2.0), results.view_mut(&[3, 4]).unwrap(), stream);
    assert!(outcome.is_err(), "other types");
}

#[test]
fn a_plan_of_channels_refuses_others() {
    let device = device();
    let (target, stream) = (Target::of(&device), device.default_stream());
    let (source, values) = (device.zeros::<f32>(16).unwrap(), device.zeros::<f32>(16).unwrap());
    let mut result = device.zeros::<f32>(16).unwrap();
    let (from, to) = permuted((&source, 0), [4, 3], [1, 0], (&mut result, 0));
    let (align, dtype) = (Align::ALLOCATION, DType::F32);
    let plan =
        AffinePlan::new((from.layout(), align, dtype), (to.layout(), align, dtype), Channels::InMemory(0), target);
    let plan = plan.unwrap();
    let given = |axis, [factors, offsets]: [usize; 2]| Affine::PerChannel {
        axis,
        factors: part(&values, 0, factors),
        offsets: part(&values, 4, offsets),
    };
    for (affine, is_planned) in [
        (given(0, [3, 3]), true),
        (given(0, [4, 3]), false),
        (given(0, [3, 2]), false),
        (given(1, [3, 3]), false),
        (given(1, [4, 4]), false),
        (Affine::scale(2.0), false),
    ] {
        let (from, to) = permuted((&source, 0), [4, 3], [1, 0], (&mut result, 0));
        assert_eq!(plan.launch(from, affine, to, stream).is_ok(), is_planned, "{affine:?}");
    }
}

#[test]
fn a_plan_of_images_refuses_others() {
    let device = device();
    let (target, stream) = (Target::of(&device), device.default_stream());
    let bytes = device.zeros::<u8>(25).unwrap();
    let mut result = device.zeros::<f32>(25).unwrap();
    let normalization =
        |channels: usize| Normalization::new(1.0, &[0.0; 4][..channels], &[1.0; 4][..channels]).unwrap();
    let images = |start: usize, [n, h, w, c]: [usize; 4]| {
        let images = bytes.view(&[25]).unwrap().slice(0, start..start + 24, 1).unwrap();
        images.split_axis(0, &[n, h, w, c]).unwrap().permuted_axes(&[0, 3, 1, 2]).unwrap()
    };
    let planned = images(0, [1, 2, 4, 3]);
    let (from, align) = (*planned.layout(), Align::ALLOCATION);
    let to = Layout::row_major(&[25]).unwrap().slice(0, 0..24, 1).unwrap().split_axis(0, planned.shape()).unwrap();
    let channels = Channels::WithLaunch(1);
    let plan = AffinePlan::new((&from, align, DType::U8), (&to, align, DType::F32), channels, target).unwrap();
    let by = |axis, channels| Affine::Normalized { axis, by: normalization(channels) };
    for (source, start, affine, is_planned) in [
        (images(0, [1, 2, 4, 3]), 0, by(1, 3), true),
        // The same pixels in rows of another length.
        (images(0, [1, 4, 2, 3]), 0, by(1, 3), true),
        (images(0, [1, 2, 4, 3]), 0, by(1, 2), false),
        (images(0, [1, 2, 4, 3]), 0, by(2, 3), false),
        (images(0, [1, 2, 4, 3]), 0, Affine::scale(1.0), false),
        (images(1, [1, 2, 4, 3]), 0, by(1, 3), false),
        (images(0, [1, 2, 4, 3]), 1, by(1, 3), false),
        (images(0, [2, 2, 2, 3]), 0, by(1, 3), false),
        (images(0, [1, 3, 4, 2]), 0, by(1, 2), false),
        (images(0, [1, 3, 4, 2]), 0, by(1, 3), false),
    ] {
        let to = result.view_mut(&[25]).unwrap().slice(0, start..start + 24, 1).unwrap();
        let to = to.split_axis(0, source.shape()).unwrap();
        let shown = format!("{source:?} to {start} {affine:?}");
        assert_eq!(plan.launch(source, affine, to, stream).is_ok(), is_planned, "{shown}");
    }
    let layout = Layout::row_major(&[1, 3, 2, 4]).unwrap();
    let planes = bytes.view_with(layout).unwrap();
    assert!(plan.launch(planes, by(1, 3), result.view_mut_with(layout).unwrap(), stream).is_err(), "planes to planes");
}

#[test]
fn a_plan_of_a_transpose_in_place_refuses_other_matrices() {
    let (device, elsewhere) = (device(), device());
    let stream = device.default_stream();
    let plan = InPlacePlan::new(&Layout::row_major(&[3, 4]).unwrap(), 4).unwrap();
    let mut none = device.zeros::<u8>(0).unwrap();
    for shape in [[3, 4], [4, 3], [2, 6], [1, 12]] {
        let mut matrix = device.array(&shape, &[0.0_f32; 12]).unwrap();
        let outcome = plan.launch(&mut matrix, none.view_mut(&[0]).unwrap(), stream);
        assert_eq!(outcome.is_ok(), shape == [3, 4], "{shape:?}");
    }
    let mut longer = device.zeros::<f32>(16).unwrap();
    let inner = part_mut(&mut longer, 1, 12).split_axis(0, &[3, 4]).unwrap();
    assert!(plan.launch(inner, none.view_mut(&[0]).unwrap(), stream).is_err(), "another start");
    let mut bytes = device.array(&[3, 4], &[0_u16; 12]).unwrap();
    assert!(plan.launch(&mut bytes, none.view_mut(&[0]).unwrap(), stream).is_err(), "another width");
    let mut theirs = elsewhere.array(&[3, 4], &[0.0_f32; 12]).unwrap();
    assert!(plan.launch(&mut theirs, none.view_mut(&[0]).unwrap(), stream).is_err(), "another device");

    // Lines too long for shared memory.
    let mut matrix = device.alloc_array::<f32>(&[3, 100_000]).unwrap();
    let plan = InPlacePlan::new(matrix.layout(), 4).unwrap();
    let bytes = plan.scratch_bytes();
    let mut scratch = device.zeros::<u8>(bytes + 1).unwrap();
    for (start, len) in [(0, 0), (0, bytes - 1), (1, bytes)] {
        let room = scratch.view_mut(&[bytes + 1]).unwrap().slice(0, start..start + len, 1).unwrap();
        assert!(plan.launch(&mut matrix, room, stream).is_err(), "a scratch of {len} from {start}");
    }
    let mut room = elsewhere.zeros::<u8>(bytes).unwrap();
    let room = room.view_mut(&[bytes]).unwrap();
    assert!(plan.launch(&mut matrix, room, stream).is_err(), "a scratch on another device");
}

#[test]
fn plans_of_indexed_rows_refuse_other_rows() {
    let (device, elsewhere) = (device(), device());
    let stream = device.default_stream();
    let [source, mut result] = floats(&device, 16);
    let indices = device.zeros::<u32>(4).unwrap();
    let of = |count: usize| indices.view(&[4]).unwrap().slice(0, ..count, 1).unwrap();
    let (wide, theirs) = (device.zeros::<i64>(2).unwrap(), elsewhere.zeros::<u32>(2).unwrap());
    for way in [Indexed::Gather, Indexed::Scatter] {
        // Two rows of four floats, taken from three or put into three.
        let plan = IndexedPlan::new(way, 3, 2, 16, DType::U32, Align::ALLOCATION).unwrap();
        let sides = |[three, two]: [usize; 2]| if way == Indexed::Gather { [three, two] } else { [two, three] };
        let planned = ([3, 2], [4, 4], 2, [0, 0]);
        for case in [
            planned,
            ([2, 2], [4, 4], 2, [0, 0]),
            ([3, 3], [4, 4], 2, [0, 0]),
            ([3, 3], [4, 4], 3, [0, 0]),
            ([3, 2], [4, 4], 3, [0, 0]),
            ([3, 2], [2, 2], 2, [0, 0]),
            ([3, 2], [4, 2], 2, [0, 0]),
            ([3, 2], [4, 4], 2, [1, 0]),
            ([3, 2], [4, 4], 2, [0, 1]),
        ] {
            let (rows, row, count, starts) = case;
            let [from, to] = sides(rows);
            let src = part(&source, starts[0], from * row[0]).split_axis(0, &[from, row[0]]).unwrap();
            let dst = part_mut(&mut result, starts[1], to * row[1]).split_axis(0, &[to, row[1]]).unwrap();
            assert_eq!(plan.launch(src, of(count), dst, stream).is_ok(), case == planned, "{way:?} {case:?}");
        }
        let [from, to] = sides([3, 2]);
        let src = part(&source, 0, from * 4).split_axis(0, &[from, 4]).unwrap();
        let mut dst = device.alloc_array::<f32>(&[to, 4]).unwrap();
        assert!(plan.launch(src, wide.view(&[2]).unwrap(), &mut dst, stream).is_err(), "another type of indices");
        assert!(plan.launch(src, theirs.view(&[2]).unwrap(), &mut dst, stream).is_err(), "indices on another device");
        assert!(plan.launch(src, of(2), &mut dst, elsewhere.default_stream()).is_err(), "another device's stream");
    }
}
