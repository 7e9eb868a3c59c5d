//! Measures permutes that users run (`benches/cases.json`).
//!
//! On a CUDA device it measures device time, and GB/s read and written. It always measures
//! planning, which needs no device. `scripts/compare-peers` measures the same cases beside peers.

#[allow(dead_code, reason = "without a GPU there is no device time")]
mod support;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use serde::Deserialize;
use warpstride::Result;
use warpstride::device::{Backend, Device};
use warpstride::element::{DType, Element};
use warpstride::layout::Layout;
use warpstride::memory::DeviceBuffer;
use warpstride::ops::{self, Align, PermutePlan, Target};
use warpstride::roofline::measure;

use support::DeviceTime;

#[derive(Deserialize)]
struct Case {
    name: String,
    dtype: DType,
    shape: Vec<usize>,
    axes: Vec<usize>,
}

impl Case {
    fn all() -> Vec<Self> {
        serde_json::from_str(include_str!("cases.json")).expect("cases")
    }

    fn source(&self) -> Layout {
        let layout = Layout::row_major(&self.shape).and_then(|layout| layout.permuted_axes(&self.axes));
        layout.unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    fn plan(&self, target: Target) -> Result<PermutePlan> {
        let source = self.source();
        let result = Layout::row_major(source.shape())?;
        PermutePlan::new(&source, Align::ALLOCATION, &result, Align::ALLOCATION, self.dtype.width(), target)
    }
}

/// Buffers of a case that runs take in turn, so that no run finds its data in the cache.
struct Rotation<T> {
    pairs: Vec<(DeviceBuffer<T>, DeviceBuffer<T>)>,
    turn: usize,
}

/// Returns the elements of a layout in C order.
fn permuted<T: Copy>(elements: &[T], layout: &Layout) -> Vec<T> {
    let mut places = vec![layout.offset() as isize];
    for (&extent, &stride) in layout.shape().iter().zip(layout.strides()) {
        places = places.iter().flat_map(|place| (0..extent as isize).map(move |at| place + at * stride)).collect();
    }
    places.into_iter().map(|place| elements[place as usize]).collect()
}

impl<T: Element + PartialEq> Rotation<T> {
    /// Fills the buffers by `element`, and verifies one permute.
    fn new(device: &Device, case: &Case, element: fn(usize) -> T) -> Result<Self> {
        let len = case.source().len();
        let sets = measure::cold_sets(2 * (len * size_of::<T>()) as u64, device.info().l2_bytes);
        let elements: Vec<T> = (0..len).map(element).collect();
        let pairs = (0..sets).map(|_| Ok((device.upload(&elements)?, device.alloc(len)?))).collect::<Result<_>>()?;
        let mut rotation = Self { pairs, turn: 0 };
        rotation.run(device, case)?;
        let result = rotation.pairs[0].1.download()?;
        assert!(result == permuted(&elements, &case.source()), "{}: elements are in the wrong place", case.name);
        Ok(rotation)
    }

    fn run(&mut self, device: &Device, case: &Case) -> Result<()> {
        let turn = self.turn % self.pairs.len();
        self.turn += 1;
        let (source, result) = &mut self.pairs[turn];
        let source = source.view(&case.shape)?.permuted_axes(&case.axes)?;
        ops::copy_into(source, result.view_mut(source.shape())?, device.default_stream())
    }
}

fn on_device<T: Element + PartialEq>(
    c: &mut Criterion<DeviceTime>,
    device: &Device,
    case: &Case,
    element: fn(usize) -> T,
) {
    let rotation = Rotation::new(device, case, element);
    let mut rotation = rotation.unwrap_or_else(|error| panic!("{}: {error}", case.name));
    let mut group = c.benchmark_group("permute cold");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(500));
    group.throughput(Throughput::BytesDecimal(2 * (case.source().len() * size_of::<T>()) as u64));
    group.bench_function(&case.name, |bencher| {
        bencher.iter_custom(|runs| support::time(device, &case.name, runs, || rotation.run(device, case)))
    });
    group.finish();
}

fn planning(c: &mut Criterion, case: &Case) {
    let target = Target { compute_capability: (9, 0) };
    let mut group = c.benchmark_group("plan");
    group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(500));
    group.bench_function(&case.name, |bencher| bencher.iter(|| black_box(black_box(case).plan(target))));
    group.finish();
}

fn permutes(c: &mut Criterion) {
    match Device::open(Backend::Cuda(0)) {
        Ok(device) => {
            let c = &mut Criterion::default().configure_from_args().with_measurement(DeviceTime(device.clone()));
            for case in Case::all() {
                match case.dtype.width() {
                    // Narrow elements repeat with an odd period, so that a shift by a power of two
                    // shows.
                    1 => on_device(c, &device, &case, |at| (at % 251) as u8),
                    2 => on_device(c, &device, &case, |at| (at % 65_521) as u16),
                    4 => on_device(c, &device, &case, |at| at as u32),
                    8 => on_device(c, &device, &case, |at| at as u64),
                    _ => on_device(c, &device, &case, |at| [at as f64, -1.0]),
                }
            }
        }
        Err(error) => println!("no permute is timed, only planning: {error}"),
    }
    for case in Case::all() {
        planning(c, &case);
    }
}

criterion_group!(permute, permutes);
criterion_main!(permute);
