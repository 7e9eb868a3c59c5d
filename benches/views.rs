//! Measures operations on views: fills, reductions along axes, operations on rows, casts, images,
//! affine maps, and rows by their indices.
//!
//! On a CUDA device it measures device time with a cold L2 cache, and GB/s read and written.
//! Without one it measures the software GPU, in elements a second and not in bytes. `warpstride
//! bench OP` measures one operation beside a copy and the ceilings.

#[allow(dead_code, reason = "without a GPU there is no device time")]
mod support;

use std::time::Duration;

use criterion::measurement::{Measurement, WallTime};
use criterion::{Bencher, BenchmarkGroup, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use half::f16;
use warpstride::Result;
use warpstride::device::{Backend, Device};
use warpstride::element::{DType, Element};
use warpstride::memory::DeviceBuffer;
use warpstride::ops::{self, Affine, Normalization, Scratch};
use warpstride::roofline::criterion::DeviceTime;
use warpstride::roofline::record::{Group, Subject};

/// Rows and columns on a GPU: each array is several times its L2 cache, so no run finds its data
/// there.
const ON_GPU: [usize; 2] = [1 << 14, 1 << 14];
/// The same on the software GPU.
const ON_SOFT: [usize; 2] = [1 << 7, 1 << 8];

/// Times a run on a device.
type Time<M> = fn(&mut Bencher<'_, M>, &Device, &Subject, &mut dyn FnMut() -> Result<()>);

/// Arrays of ones, of `rows` by `cols`, and the function that times runs on them.
struct Bench<'a, M: Measurement> {
    group: BenchmarkGroup<'a, M>,
    device: Device,
    shape: [usize; 2],
    time: Time<M>,
    /// Makes a throughput from bytes and elements.
    throughput: fn(u64, u64) -> Throughput,
}

impl<M: Measurement> Bench<'_, M> {
    fn len(&self) -> usize {
        self.shape.iter().product()
    }

    fn ones<T: Element>(&self, one: T) -> Result<DeviceBuffer<T>> {
        self.device.upload(&vec![one; self.len()])
    }

    /// Times runs. The caller has run once before, and checks the result afterwards.
    fn case(&mut self, subject: &Subject, mut run: impl FnMut() -> Result<()>) {
        let Self { device, time, .. } = self;
        let (device, time) = (device.clone(), *time);
        self.group.throughput((self.throughput)(subject.bytes, self.len() as u64));
        self.group.bench_function(subject.name(), |bencher| time(bencher, &device, subject, &mut run));
    }

    /// An operation on the whole array that reads and writes so many bytes.
    fn subject(&self, group: Group, op: &str, dtype: DType, bytes: [usize; 2]) -> Subject {
        Subject::new(group, op, dtype, &self.shape, bytes.map(|bytes| bytes as u64))
    }

    fn all(&mut self) -> Result<()> {
        self.fill()?;
        self.along_axes()?;
        self.on_rows()?;
        self.conversions()?;
        self.by_indices()
    }

    fn fill(&mut self) -> Result<()> {
        let (device, len) = (self.device.clone(), self.len());
        let mut to = device.zeros::<f32>(len)?;
        ops::fill_into(1.0, to.view_mut(&[len])?, device.default_stream())?;
        check("fill", &to, 1.0)?;
        let subject = self.subject(Group::Stream, "fill", DType::F32, [0, 4 * len]);
        self.case(&subject, || ops::fill_into(1.0, to.view_mut(&[len])?, device.default_stream()));
        Ok(())
    }

    fn along_axes(&mut self) -> Result<()> {
        let (device, shape) = (self.device.clone(), self.shape);
        let (ones, mut scratch) = (self.ones(1.0_f32)?, Scratch::new(&device)?);
        for axis in [0, 1] {
            let results = shape[1 - axis];
            let (mut sums, mut places) = (device.zeros::<f32>(results)?, device.zeros::<u64>(results)?);
            let mut sum = || {
                let to = sums.view_mut(&[results])?;
                ops::sum_into(ones.view(&shape)?, axis, &mut scratch, to, device.default_stream())
            };
            sum()?;
            let along = |subject| Subject { axes: Some(vec![axis]), ..subject };
            let bytes = [4 * self.len(), 4 * results];
            let subject = along(self.subject(Group::Axis, "sum", DType::F32, bytes));
            self.case(&subject, &mut sum);
            check("sum", &sums, shape[axis] as f32)?;
            let mut argmax = || {
                let to = places.view_mut(&[results])?;
                ops::argmax_into(ones.view(&shape)?, axis, &mut scratch, to, device.default_stream())
            };
            argmax()?;
            let bytes = [4 * self.len(), 8 * results];
            let subject = along(self.subject(Group::Axis, "argmax", DType::F32, bytes));
            self.case(&subject, &mut argmax);
            check("argmax", &places, 0)?;
        }
        Ok(())
    }

    fn on_rows(&mut self) -> Result<()> {
        let (device, shape @ [rows, cols]) = (self.device.clone(), self.shape);
        let (ones, mut to) = (self.ones(1.0_f32)?, device.zeros::<f32>(self.len())?);
        let mut softmax = || ops::softmax_into(ones.view(&shape)?, to.view_mut(&shape)?, device.default_stream());
        softmax()?;
        let subject = self.subject(Group::Axis, "softmax", DType::F32, [4 * self.len(); 2]);
        self.case(&subject, &mut softmax);
        check("softmax", &to, 1.0 / cols as f32)?;
        let (mut means, mut variances) = (device.zeros::<f32>(rows)?, device.zeros::<f32>(rows)?);
        let mut moments = || {
            let results = (means.view_mut(&[rows])?, variances.view_mut(&[rows])?);
            ops::mean_variance_into(ones.view(&shape)?, 1, results.0, results.1, device.default_stream())
        };
        moments()?;
        let subject = self.subject(Group::Axis, "mean-variance", DType::F32, [4 * self.len(), 8 * rows]);
        self.case(&subject, &mut moments);
        check("mean", &means, 1.0)?;
        check("variance", &variances, 0.0)
    }

    fn conversions(&mut self) -> Result<()> {
        let (device, shape @ [rows, cols], len) = (self.device.clone(), self.shape, self.len());
        let (ones, mut halves) = (self.ones(1.0_f32)?, device.zeros::<f16>(len)?);
        let mut cast = || ops::cast_into(ones.view(&[len])?, halves.view_mut(&[len])?, device.default_stream());
        cast()?;
        let of_floats = |subject| Subject { from: Some(DType::F32), ..subject };
        let subject = of_floats(self.subject(Group::Conversion, "cast", DType::F16, [4 * len, 2 * len]));
        self.case(&subject, &mut cast);
        check("cast", &halves, f16::ONE)?;
        let mut affine = || {
            let affine = Affine::Uniform { factor: 2.0, offset: 1.0 };
            ops::affine_into(ones.view(&shape)?.t(), affine, halves.view_mut(&[cols, rows])?, device.default_stream())
        };
        affine()?;
        let subject = of_floats(self.subject(Group::Permute, "affine", DType::F16, [4 * len, 2 * len]));
        self.case(&Subject { axes: Some(vec![1, 0]), ..subject }, &mut affine);
        check("affine", &halves, f16::from_f32(3.0))?;
        drop((ones, halves));
        let (bytes, mut planes) = (self.ones(1_u8)?, device.zeros::<f32>(len)?);
        let normalization = Normalization::new(1.0, &[0.0; 4], &[0.5; 4])?;
        let (images, normal) = ([1, rows, cols / 4, 4], [1, 4, rows, cols / 4]);
        let mut normalize = || {
            let to = planes.view_mut(&normal)?;
            ops::normalize_into(bytes.view(&images)?, &normalization, to, device.default_stream())
        };
        normalize()?;
        let subject = Subject::new(Group::Conversion, "normalize", DType::F32, &images, [len as u64, 4 * len as u64]);
        self.case(&Subject { from: Some(DType::U8), ..subject }, &mut normalize);
        check("normalize", &planes, 2.0)
    }

    fn by_indices(&mut self) -> Result<()> {
        let (device, shape @ [rows, _]) = (self.device.clone(), self.shape);
        let (ones, mut to) = (self.ones(1.0_f32)?, device.zeros::<f32>(self.len())?);
        let indices = device.upload(&(0..rows as u32).rev().collect::<Vec<_>>())?;
        let bytes = [4 * self.len() + 4 * rows, 4 * self.len()];
        let [gathered, scattered] =
            ["gather", "scatter"].map(|op| self.subject(Group::Conversion, op, DType::F32, bytes));
        let mut gather = || {
            let result = to.view_mut(&shape)?;
            ops::gather_rows(ones.view(&shape)?, indices.view(&[rows])?, result, device.default_stream())
        };
        gather()?;
        self.case(&gathered, &mut gather);
        check("gather", &to, 1.0)?;
        ops::fill_into(0.0, to.view_mut(&shape)?, device.default_stream())?;
        let mut scatter = || {
            let result = to.view_mut(&shape)?;
            ops::scatter_rows(ones.view(&shape)?, indices.view(&[rows])?, result, device.default_stream())
        };
        scatter()?;
        self.case(&scattered, &mut scatter);
        check("scatter", &to, 1.0)
    }
}

/// Checks that every element equals the expected one.
fn check<T: Element>(name: &str, found: &DeviceBuffer<T>, expected: T) -> Result<()> {
    assert!(found.download()?.iter().all(|&element| element == expected), "{name} of ones is not {expected:?}");
    Ok(())
}

/// Takes few samples, because each consists of many runs.
fn brief<M: Measurement>(mut group: BenchmarkGroup<'_, M>) -> BenchmarkGroup<'_, M> {
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(400));
    group
}

fn on_gpu(c: &mut Criterion<DeviceTime>, device: Device) -> Result<()> {
    let time: Time<DeviceTime> =
        |bencher, device, subject, run| bencher.iter_custom(|runs| support::time(device, subject, runs, &mut *run));
    let group = brief(c.benchmark_group("views cold"));
    let throughput = |bytes, _| Throughput::BytesDecimal(bytes);
    Bench { group, device: device.clone(), shape: ON_GPU, time, throughput }.all()?;
    support::write("views", &device);
    Ok(())
}

fn on_soft(c: &mut Criterion) -> Result<()> {
    let device = Device::open(Backend::Soft)?;
    let time: Time<WallTime> =
        |bencher, device, _, run| bencher.iter(|| run().and_then(|()| device.synchronize()).expect("it runs"));
    let group = brief(c.benchmark_group("views on the software GPU"));
    let throughput = |_, elements| Throughput::Elements(elements);
    Bench { group, device, shape: ON_SOFT, time, throughput }.all()
}

fn views(c: &mut Criterion) {
    let done = match Device::open(Backend::Cuda(0)) {
        Ok(device) => {
            let time = DeviceTime::new(&device);
            on_gpu(&mut Criterion::default().configure_from_args().with_measurement(time), device)
        }
        Err(error) => {
            println!("no GB/s, and no time of a GPU: {error}");
            on_soft(c)
        }
    };
    done.expect("the device has room for the arrays, and runs");
}

criterion_group!(benches, views);
criterion_main!(benches);
