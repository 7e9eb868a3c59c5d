//! Measures permutes that users run (`cli/src/bench/cases.json`).
//!
//! On a CUDA device it measures device time, and GB/s read and written. It always measures
//! planning, which needs no device. `scripts/compare-peers` measures the same cases beside peers.

#[path = "support/permuted.rs"]
mod permuted;
#[allow(dead_code, reason = "without a GPU there is no device time")]
mod support;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use permuted::permuted;
use serde::Deserialize;
use warpstride::Result;
use warpstride::device::{Backend, Device};
use warpstride::element::{DType, Element};
use warpstride::layout::Layout;
use warpstride::ops::{self, PermutePlan, Target};
use warpstride::roofline::criterion::DeviceTime;
use warpstride::roofline::measure::{RotatingBuffer, Rotation};
use warpstride::roofline::record::{Group, Subject};

#[derive(Deserialize)]
struct Case {
    name: String,
    dtype: DType,
    shape: Vec<usize>,
    axes: Vec<usize>,
}

impl Case {
    fn all() -> Vec<Self> {
        serde_json::from_str(include_str!("../cli/src/bench/cases.json")).expect("cases")
    }

    fn subject(&self) -> Subject {
        let bytes = (self.source().len() * self.dtype.width()) as u64;
        let subject = Subject::new(Group::Permute, "permute", self.dtype, &self.shape, [bytes; 2]);
        Subject { axes: Some(self.axes.clone()), ..subject }
    }

    fn source(&self) -> Layout {
        permuted::source(&self.shape, &self.axes)
    }

    fn plan(&self, target: Target) -> Result<PermutePlan> {
        permuted::plan(&self.source(), self.dtype, target)
    }
}

/// A case on the arrays of a rotation.
struct Runs<T: Element> {
    rotation: Rotation,
    sources: RotatingBuffer<T>,
    results: RotatingBuffer<T>,
}

impl<T: Element + PartialEq> Runs<T> {
    /// Verifies the permute of such elements.
    fn new(device: &Device, case: &Case, element: fn(usize) -> T) -> Result<Self> {
        let len = case.source().len();
        let elements: Vec<T> = (0..len).map(element).collect();
        let rotation = Rotation::new(device, &[size_of_val(&*elements); 2]);
        let mut runs = Self { sources: rotation.upload(&elements)?, results: rotation.zeros(len)?, rotation };
        runs.run(case)?;
        let result = runs.results.download_first(len)?;
        assert!(result == permuted(&elements, &case.source()), "{}: elements are in the wrong place", case.name);
        Ok(runs)
    }

    fn run(&mut self, case: &Case) -> Result<()> {
        let set = self.rotation.advance();
        let source = self.sources.view(set)?.split_axis(0, &case.shape)?.permuted_axes(&case.axes)?;
        let result = self.results.view_mut(set)?.split_axis(0, source.shape())?;
        ops::copy_into(source, result, self.rotation.device().default_stream())
    }
}

fn on_device<T: Element + PartialEq>(
    c: &mut Criterion<DeviceTime>,
    device: &Device,
    case: &Case,
    element: fn(usize) -> T,
) {
    let runs = Runs::new(device, case, element);
    let mut timed = runs.unwrap_or_else(|error| panic!("{}: {error}", case.name));
    let mut group = c.benchmark_group("permute cold");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(500));
    group.throughput(Throughput::BytesDecimal(2 * (case.source().len() * size_of::<T>()) as u64));
    group.bench_function(&case.name, |bencher| {
        bencher.iter_custom(|runs| support::time(device, &case.subject(), runs, || timed.run(case)))
    });
    group.finish();
}

fn planning(c: &mut Criterion, case: &Case) {
    let target = Target::new((9, 0));
    let mut group = c.benchmark_group("plan");
    group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(500));
    group.bench_function(&case.name, |bencher| bencher.iter(|| black_box(black_box(case).plan(target))));
    group.finish();
}

fn permutes(c: &mut Criterion) {
    match Device::open(Backend::Cuda(0)) {
        Ok(device) => {
            let c = &mut Criterion::default().configure_from_args().with_measurement(DeviceTime::new(&device));
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
            support::write("permute", &device);
        }
        Err(error) => println!("no permute is timed, only planning: {error}"),
    }
    for case in Case::all() {
        planning(c, &case);
    }
}

criterion_group!(permute, permutes);
criterion_main!(permute);
