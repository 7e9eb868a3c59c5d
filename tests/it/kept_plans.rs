//! A kept plan launches on the views that it was planned for, and refuses all others, because its
//! kernels trust it.

use warpstride::ops::{
    CastPlan, DotPlan, Elementwise, ElementwisePlan, FillPlan, MeanVariancePlan, Operands, Phase, Reduction,
    ReductionPlan, Scratch, SoftmaxPlan, Target, TransposePlan, Variant,
};
use warpstride::{Backend, DType, Device, DeviceBuffer, Result, View, ViewMut};

const START: Phase = Phase::ALIGNED;

fn device() -> Device {
    Device::open(Backend::Soft).expect("the software GPU is always there")
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
fn plans_of_contiguous_arrays_refuse_others() {
    let target = Target::of(&device());
    let starts = Operands { dst: START, a: START, b: START };
    let plan = ElementwisePlan::new(Elementwise::Mul, DType::F32, 12, starts, target).unwrap();
    only_on_the_planned(|src, dst, device| plan.launch(2.0, &[src], dst, device.default_stream()));
    let plan = CastPlan::new((START, DType::F32), (START, DType::F32), 12, target).unwrap();
    only_on_the_planned(|src, dst, device| plan.launch(src, dst, device.default_stream()));
    let plan = FillPlan::new(DType::F32, 12, START).unwrap();
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
    let source = device.zeros::<f32>(12).unwrap();
    let mut result = device.zeros::<f32>(12).unwrap();
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
    let source = device.zeros::<f32>(12).unwrap();
    let mut result = device.zeros::<f32>(12).unwrap();
    let layout = |shape: &[usize; 2]| *source.view(shape).unwrap().layout();
    let plan = TransposePlan::new(&layout(&[3, 4]), &layout(&[4, 3]), 4, Variant::Padded).unwrap();
    for [rows, cols] in [[3, 4], [2, 6], [4, 3]] {
        let (from, to) = (source.view(&[rows, cols]).unwrap(), result.view_mut(&[cols, rows]).unwrap());
        assert_eq!(plan.launch(from, to, device.default_stream()).is_ok(), rows == 3, "{rows} x {cols}");
    }
}
