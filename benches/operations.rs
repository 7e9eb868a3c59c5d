//! Measures the element-wise operations and the reductions.
//!
//! On a CUDA device it measures device time with a cold L2 cache, and GB/s of the bytes that
//! BabelStream counts. Without one it measures the software GPU, in elements a second and not in
//! bytes. `warpstride bench OP` measures one operation beside a copy and the ceilings.

#[allow(dead_code, reason = "without a GPU there is no device time")]
mod support;

use std::time::Duration;

use criterion::measurement::Measurement;
use criterion::{BenchmarkGroup, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use half::{bf16, f16};
use warpstride::device::{Backend, Device};
use warpstride::element::DType;
use warpstride::error::Result;
use warpstride::memory::DeviceBuffer;
use warpstride::ops::{DotPlan, Elementwise, ElementwisePlan, Phase, Reduction, ReductionPlan, Scratch, Target};
use warpstride::roofline::criterion::DeviceTime;
use warpstride::roofline::measure::{RotatingBuffer, Rotation};
use warpstride::roofline::record::{Group, Subject};

/// Bytes of an array on a GPU: several times its L2 cache.
const ON_GPU: usize = 1 << 28;
/// Bytes of an array on the software GPU.
const ON_SOFT: usize = 1 << 18;

const NUMBERS: [(DType, &str); 4] =
    [(DType::F16, "f16"), (DType::Bf16, "bf16"), (DType::F32, "f32"), (DType::F64, "f64")];

#[derive(Clone, Copy)]
enum Operation {
    Elementwise(Elementwise),
    Reduction(Reduction),
    Dot,
}

impl Operation {
    fn all() -> impl Iterator<Item = Self> {
        let reductions = [Reduction::Sum, Reduction::Min, Reduction::Max].map(Self::Reduction);
        Elementwise::ALL.into_iter().map(Self::Elementwise).chain(reductions).chain([Self::Dot])
    }

    fn name(self) -> &'static str {
        match self {
            Self::Elementwise(operation) => operation.name(),
            Self::Reduction(reduction) => reduction.name(),
            Self::Dot => "dot",
        }
    }

    /// Returns the number of arrays that are read, and of arrays that are written.
    fn arrays(self) -> [u64; 2] {
        match self {
            Self::Elementwise(operation) => [operation.reads(), 1],
            Self::Reduction(_) => [1, 0],
            Self::Dot => [2, 0],
        }
    }

    fn subject(self, arrays: &Arrays) -> Subject {
        let bytes = self.arrays().map(|count| count * arrays.arrays[0].len() as u64);
        Subject::new(Group::Stream, self.name(), arrays.number, &[arrays.len], bytes)
    }

    /// Returns the result for `len` ones, with a scalar of a half.
    fn of_ones(self, len: usize) -> f64 {
        match self {
            Self::Elementwise(Elementwise::Mul) => 0.5,
            Self::Elementwise(Elementwise::Triad | Elementwise::Axpy) => 1.5,
            Self::Elementwise(Elementwise::NStream) => 2.5,
            Self::Reduction(Reduction::Sum) | Self::Dot => len as f64,
            Self::Reduction(_) => 1.0,
        }
    }
}

/// Returns the bytes of a number.
fn bytes(number: DType, value: f64) -> Vec<u8> {
    match number {
        DType::F16 => f16::from_f64(value).to_le_bytes().into(),
        DType::Bf16 => bf16::from_f64(value).to_le_bytes().into(),
        DType::F32 => (value as f32).to_le_bytes().into(),
        _ => value.to_le_bytes().into(),
    }
}

/// Arrays of ones on a rotation.
struct Arrays {
    device: Device,
    number: DType,
    rotation: Rotation,
    arrays: [RotatingBuffer<u8>; 3],
    result: DeviceBuffer<u8>,
    scratch: DeviceBuffer<u8>,
    len: usize,
}

impl Arrays {
    fn new(device: &Device, number: DType, room: usize) -> Result<Self> {
        let ones = bytes(number, 1.0).repeat(room / number.width());
        // Some operations touch one array.
        let rotation = Rotation::new(device, &[room]);
        let array = || rotation.upload(&ones);
        let arrays = [array()?, array()?, array()?];
        let (result, scratch) = (device.alloc(8)?, device.alloc(Scratch::BYTES)?);
        let len = room / number.width();
        Ok(Self { device: device.clone(), number, rotation, arrays, result, scratch, len })
    }

    fn run(&mut self, operation: Operation) -> Result<()> {
        let set = self.rotation.advance();
        let [c, a, b] = self.arrays.each_ref().map(|array| array.address(set));
        let (stream, len) = (self.device.default_stream().handle(), self.len as u64);
        let target = Target::of(&self.device);
        match operation {
            Operation::Elementwise(operation) => {
                let starts = [a, b].map(Phase::of);
                let plan = ElementwisePlan::new(operation, self.number, len, starts, Phase::of(c), target)?;
                // SAFETY: three arrays of `len` numbers, which live as long as `self`, on one
                // stream.
                unsafe { plan.launch_raw(&self.device, 0.5, [a, b], c, stream) }
            }
            Operation::Reduction(reduction) => {
                let (result, scratch) = (self.result.address(), self.scratch.address());
                let plan = ReductionPlan::new(reduction, self.number, &[self.len], None, Phase::of(a), target)?;
                // SAFETY: as above, with room for a result and the scratch.
                unsafe { plan.launch_raw(&self.device, a, result, scratch, stream) }
            }
            Operation::Dot => {
                let (result, scratch) = (self.result.address(), self.scratch.address());
                let plan = DotPlan::new(self.number, len, [a, b].map(Phase::of))?;
                // SAFETY: as above.
                unsafe { plan.launch_raw(&self.device, [a, b], result, scratch, stream) }
            }
        }
    }

    /// Runs once on the first arrays, and compares the result with the expected one.
    fn verify(&mut self, operation: Operation) -> Result<()> {
        self.rotation.restart();
        // Earlier operations have changed it.
        let ones = self.arrays[1].download_first(self.arrays[1].len())?;
        self.arrays[0].upload_first(&ones)?;
        self.run(operation)?;
        self.device.synchronize()?;
        let expected = operation.of_ones(self.len);
        let right = match operation {
            Operation::Elementwise(_) => {
                let one = bytes(self.number, expected);
                self.arrays[0].download_first(self.arrays[0].len())?.chunks(one.len()).all(|element| element == one)
            }
            Operation::Reduction(Reduction::Sum) | Operation::Dot if self.number != DType::F64 => {
                self.result.download()?[..4] == (expected as f32).to_le_bytes()
            }
            _ => self.result.download()?.starts_with(&bytes(self.number, expected)),
        };
        assert!(right, "{} of ones is not {expected}", operation.name());
        Ok(())
    }
}

/// Takes few samples, because each consists of many runs.
fn brief<M: Measurement>(group: &mut BenchmarkGroup<'_, M>) {
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(400));
}

fn on_gpu(c: &mut Criterion<DeviceTime>, device: &Device) {
    for (number, name) in NUMBERS {
        let mut arrays = Arrays::new(device, number, ON_GPU).expect("the GPU has room for 3 arrays of 256 MiB");
        let mut group = c.benchmark_group(format!("{name} cold"));
        brief(&mut group);
        for operation in Operation::all() {
            arrays.verify(operation).expect("it runs");
            group.throughput(Throughput::BytesDecimal(operation.subject(&arrays).bytes));
            group.bench_function(operation.name(), |bencher| {
                let subject = operation.subject(&arrays);
                bencher.iter_custom(|runs| support::time(device, &subject, runs, || arrays.run(operation)));
            });
        }
        group.finish();
    }
    support::write("operations", device);
}

fn on_soft(c: &mut Criterion) {
    let device = Device::open(Backend::Soft).expect("the software GPU is always there");
    for (number, name) in NUMBERS {
        let mut arrays = Arrays::new(&device, number, ON_SOFT).expect("the host has room");
        let mut group = c.benchmark_group(format!("{name} on the software GPU"));
        brief(&mut group);
        for operation in Operation::all() {
            arrays.verify(operation).expect("it runs");
            group.throughput(Throughput::Elements(arrays.len as u64));
            group.bench_function(operation.name(), |bencher| {
                bencher.iter(|| arrays.run(operation).and_then(|()| device.synchronize()).expect("it runs"));
            });
        }
        group.finish();
    }
}

fn operations(c: &mut Criterion) {
    match Device::open(Backend::Cuda(0)) {
        Ok(device) => {
            on_gpu(&mut Criterion::default().configure_from_args().with_measurement(DeviceTime::new(&device)), &device)
        }
        Err(error) => {
            println!("no GB/s, and no time of a GPU: {error}");
            on_soft(c);
        }
    }
}

criterion_group!(benches, operations);
criterion_main!(benches);
