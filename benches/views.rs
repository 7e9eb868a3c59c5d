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
use warpstride::element::Element;
use warpstride::memory::DeviceBuffer;
use warpstride::ops::{self, Affine, Normalization, Scratch};

use support::DeviceTime;

/// Rows and columns on a GPU: each array is several times its L2 cache, so no run finds its data
/// there.
const ON_GPU: [usize; 2] = [1 << 14, 1 << 14];
/// The same on the software GPU.
const ON_SOFT: [usize; 2] = [1 << 7, 1 << 8];

/// Times a run on a device.
type Time<M> = fn(&mut Bencher<'_, M>, &Device, &str, &mut dyn FnMut() -> Result<()>);

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
    fn case(&mut self, name: &str, bytes: usize, mut run: impl FnMut() -> Result<()>) {
        let Self { device, time, .. } = self;
        let (device, time) = (device.clone(), *time);
        self.group.throughput((self.throughput)(bytes as u64, self.len() as u64));
        self.group.bench_function(name, |bencher| time(bencher, &device, name, &mut run));
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
        ops::fill(1.0, to.view_mut(&[len])?, device.default_stream())?;
        check("fill", &to, 1.0)?;
        self.case("fill f32", 4 * len, || ops::fill(1.0, to.view_mut(&[len])?, device.default_stream()));
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
                ops::sum_axis_into(ones.view(&shape)?, axis, to, &mut scratch, device.default_stream())
            };
            sum()?;
            self.case(&format!("sum along {axis} f32"), 4 * (self.len() + results), &mut sum);
            check("sum", &sums, shape[axis] as f32)?;
            let mut argmax = || {
                let to = places.view_mut(&[results])?;
                ops::argmax_axis_into(ones.view(&shape)?, axis, to, &mut scratch, device.default_stream())
            };
            argmax()?;
            self.case(&format!("argmax along {axis} f32"), 4 * self.len() + 8 * results, &mut argmax);
            check("argmax", &places, 0)?;
        }
        Ok(())
    }

    fn on_rows(&mut self) -> Result<()> {
        let (device, shape @ [rows, cols]) = (self.device.clone(), self.shape);
        let (ones, mut to) = (self.ones(1.0_f32)?, device.zeros::<f32>(self.len())?);
        let mut softmax = || ops::softmax_into(ones.view(&shape)?, to.view_mut(&shape)?, device.default_stream());
        softmax()?;
        self.case("softmax f32", 8 * self.len(), &mut softmax);
        check("softmax", &to, 1.0 / cols as f32)?;
        let (mut means, mut variances) = (device.zeros::<f32>(rows)?, device.zeros::<f32>(rows)?);
        let mut moments = || {
            let results = (means.view_mut(&[rows])?, variances.view_mut(&[rows])?);
            ops::mean_variance_into(ones.view(&shape)?, results.0, results.1, device.default_stream())
        };
        moments()?;
        self.case("mean-variance f32", 4 * self.len() + 8 * rows, &mut moments);
        check("mean", &means, 1.0)?;
        check("variance", &variances, 0.0)
    }

    fn conversions(&mut self) -> Result<()> {
        let (device, shape @ [rows, cols], len) = (self.device.clone(), self.shape, self.len());
        let (ones, mut halves) = (self.ones(1.0_f32)?, device.zeros::<f16>(len)?);
        let mut cast = || ops::cast(ones.view(&[len])?, halves.view_mut(&[len])?, device.default_stream());
        cast()?;
        self.case("cast f32 to f16", 6 * len, &mut cast);
        check("cast", &halves, f16::ONE)?;
        let mut affine = || {
            let affine = Affine::Uniform { factor: 2.0, offset: 1.0 };
            ops::affine_into(ones.view(&shape)?.t(), affine, halves.view_mut(&[cols, rows])?, device.default_stream())
        };
        affine()?;
        self.case("transpose, scale and shift f32 to f16", 6 * len, &mut affine);
        check("affine", &halves, f16::from_f32(3.0))?;
        drop((ones, halves));
        let (bytes, mut planes) = (self.ones(1_u8)?, device.zeros::<f32>(len)?);
        let normalization = Normalization::new(1.0, &[0.0; 4], &[0.5; 4])?;
        let (images, normal) = ([1, rows, cols / 4, 4], [1, 4, rows, cols / 4]);
        let mut normalize = || {
            let to = planes.view_mut(&normal)?;
            ops::normalize(bytes.view(&images)?, &normalization, to, device.default_stream())
        };
        normalize()?;
        self.case("normalize images u8 to f32", 5 * len, &mut normalize);
        check("normalize", &planes, 2.0)
    }

    fn by_indices(&mut self) -> Result<()> {
        let (device, shape @ [rows, _]) = (self.device.clone(), self.shape);
        let (ones, mut to) = (self.ones(1.0_f32)?, device.zeros::<f32>(self.len())?);
        let indices = device.upload(&(0..rows as u32).rev().collect::<Vec<_>>())?;
        let bytes = 8 * self.len() + 4 * rows;
        let mut gather = || {
            let result = to.view_mut(&shape)?;
            ops::gather_rows(ones.view(&shape)?, indices.view(&[rows])?, result, device.default_stream())
        };
        gather()?;
        self.case("gather rows f32", bytes, &mut gather);
        check("gather", &to, 1.0)?;
        ops::fill(0.0, to.view_mut(&shape)?, device.default_stream())?;
        let mut scatter = || {
            let result = to.view_mut(&shape)?;
            ops::scatter_rows(ones.view(&shape)?, indices.view(&[rows])?, result, device.default_stream())
        };
        scatter()?;
        self.case("scatter rows f32", bytes, &mut scatter);
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
        |bencher, device, name, run| bencher.iter_custom(|runs| support::time(device, name, runs, &mut *run));
    let group = brief(c.benchmark_group("views cold"));
    let throughput = |bytes, _| Throughput::BytesDecimal(bytes);
    Bench { group, device, shape: ON_GPU, time, throughput }.all()
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
            let time = DeviceTime(device.clone());
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
