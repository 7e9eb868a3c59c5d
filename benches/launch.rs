//! Measures what a launch costs the host: planning, launching a kept plan, and both; and what a
//! buffer costs.
//!
//! One part runs over a driver that does nothing, which leaves the crate's own cost. The other part
//! runs on the first NVIDIA GPU, if there is one: from a thread without a current context, and from
//! a thread whose current context is the GPU's primary one, as in programs that use the CUDA
//! runtime, cudarc or candle. There it also measures the driver's own call, with a kernel that does
//! nothing.

#[allow(dead_code, reason = "the counts are for tests")]
mod idle;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use warpstride::device::{Backend, Device};
use warpstride::error::Result;
use warpstride::layout::Layout;
use warpstride::ops::{self, Align, PermutePlan, Plan, Target};

/// Launches between two waits. A GPU's queue holds more, so no launch waits for room in it.
const BATCH: u64 = 256;
/// The smallest matrix that has tiles, so that a GPU keeps up, and the same elements in rank 5.
const SHAPES: [(&str, &[usize], &[usize]); 3] = [
    ("a copy", &[32, 32], &[0, 1]),
    ("a transpose", &[32, 32], &[1, 0]),
    ("a permute of 5 axes", &[4, 4, 4, 4, 4], &[4, 2, 0, 3, 1]),
];

/// Large permutes of 4-byte elements whose plans write the parameters at each launch, by the kernel
/// that moves them: one for each form.
const LARGE: [(&str, &[usize], &[usize]); 5] = [
    ("elements", &[1024, 256, 2048], &[1, 0, 2]),
    ("deinterleave_quads", &[1 << 24, 3], &[1, 0]),
    ("packed_quads", &[50_000, 33, 33], &[0, 2, 1]),
    ("ragged_tile", &[8191, 8193], &[1, 0]),
    ("boxes", &[81_279, 3, 7, 3], &[3, 2, 1, 0]),
];

/// Permutes of 1 MiB, for the cost of a result in a new buffer.
const OF_1_MIB: [(&str, &[usize], &[usize]); 3] = [
    ("a transpose of 1 MiB", &[512, 512], &[1, 0]),
    ("a permute of 3 axes of 1 MiB", &[64, 64, 64], &[2, 0, 1]),
    ("a permute of 5 axes of 1 MiB", &[16, 8, 16, 8, 16], &[4, 2, 0, 3, 1]),
];

/// Turns of a loop of them, and pairs of loops.
const TURNS: u32 = 1000;
const PAIRS: usize = 100;

/// Kernels of a graph, and its launches between two waits: a GPU takes longer to run one than the
/// host to launch it.
const NODES: usize = 100;
const GRAPHS: u64 = 8;

/// Measures an operation without the waits for its queued work.
fn measure(c: &mut Criterion, device: &Device, name: &str, operation: impl FnMut() -> Result<()>) {
    measure_batches(c, device, name, BATCH, operation);
}

/// Measures an operation in batches without the waits behind them.
fn measure_batches(
    c: &mut Criterion,
    device: &Device,
    name: &str,
    batch: u64,
    mut operation: impl FnMut() -> Result<()>,
) {
    c.bench_function(name, |bencher| {
        bencher.iter_custom(|iterations| {
            let mut time = Duration::ZERO;
            let mut left = iterations;
            while left > 0 {
                let batch = left.min(batch);
                let start = Instant::now();
                for _ in 0..batch {
                    operation().expect("it is queued");
                }
                time += start.elapsed();
                device.synchronize().expect("it has run");
                left -= batch;
            }
            time
        });
    });
}

fn host_cost(c: &mut Criterion, on: &str, device: &Device) -> Result<()> {
    let [source, mut destination] = [device.alloc::<f32>(1024)?, device.alloc(1024)?];
    let (from, to, stream) = (source.address(), destination.address(), device.default_stream().clone());
    let (align, target) = (Align::ALLOCATION, Target::of(device));
    for bytes in [4 << 10, 4 << 20] {
        c.bench_function(&format!("{on}: allocate and free {} KiB", bytes >> 10), |bencher| {
            bencher.iter(|| device.alloc::<u8>(black_box(bytes)).expect("there is room"));
        });
    }
    for (what, shape, axes) in SHAPES {
        let src = Layout::row_major(shape)?.permuted_axes(axes)?;
        let dst = Layout::row_major(src.shape())?;
        let plan = PermutePlan::new(&src, align, &dst, align, 4, target)?;
        c.bench_function(&format!("{on}, {what}: plan"), |bencher| {
            bencher.iter(|| PermutePlan::new(black_box(&src), align, &dst, align, 4, target));
        });
        measure(c, device, &format!("{on}, {what}: launch a kept plan"), || {
            // SAFETY: both buffers hold the elements of the layouts, and the stream is of their
            // device.
            unsafe { black_box(&plan).launch_raw(device, from, to, stream.handle()) }
        });
        measure(c, device, &format!("{on}, {what}: check, plan and launch"), || {
            // SAFETY: as above.
            unsafe { ops::copy_into_raw(device, from, black_box(&src), to, &dst, 4, stream.handle()) }
        });
        measure(c, device, &format!("{on}, {what}: make views, plan, order and launch"), || {
            let views = (source.view(black_box(shape))?.permuted_axes(axes)?, destination.view_mut(dst.shape())?);
            ops::copy_into(views.0, views.1, &stream)
        });
    }
    Ok(())
}

/// Measures launches of plans for large arrays. `device` has an idle driver, which touches none.
fn large_plans(c: &mut Criterion, device: &Device) -> Result<()> {
    let (stream, align, target) = (device.default_stream().handle(), Align::ALLOCATION, Target::new((9, 0)));
    for (kernel, shape, axes) in LARGE {
        let src = Layout::row_major(shape)?.permuted_axes(axes)?;
        let dst = Layout::row_major(src.shape())?;
        let plan = PermutePlan::new(&src, align, &dst, align, 4, target)?;
        assert!(plan.entry().is_some_and(|entry| entry.starts_with(kernel)), "{plan} is not by {kernel}");
        measure(c, device, &format!("idle, a large permute by {kernel}: launch a kept plan"), || {
            // SAFETY: the driver does nothing, so the addresses need no memory. They are as aligned
            // as allocations, and the sides between them do not overlap.
            unsafe { black_box(&plan).launch_raw(device, 1 << 40, 1 << 41, stream) }
        });
    }
    Ok(())
}

/// Measures launches of graphs: of kernels on two buffers, and on a pair of buffers each.
fn graphs(c: &mut Criterion, on: &str, device: &Device) -> Result<()> {
    let (_, shape, axes) = SHAPES[1];
    let stream = device.default_stream();
    for (what, pairs) in [("on two buffers", 1), ("on a pair of buffers each", NODES)] {
        let sources = (0..pairs).map(|_| device.alloc_array::<f32>(shape)).collect::<Result<Vec<_>>>()?;
        let mut results = (0..pairs).map(|_| device.alloc_array::<f32>(shape)).collect::<Result<Vec<_>>>()?;
        let graph = stream.capture(|s| {
            (0..NODES).try_for_each(|node| {
                let at = node % pairs;
                ops::copy_into(sources[at].view().permuted_axes(axes)?, &mut results[at], s)
            })
        })?;
        let name = format!("{on}: launch a graph of {NODES} small permutes {what}");
        measure_batches(c, device, &name, GRAPHS, || black_box(&graph).launch(stream));
    }
    Ok(())
}

/// Measures permutes into new buffers beside launches of a kept plan into a kept one, and prints
/// the medians. The cost of a launch differs more from second to second than these two do, so their
/// loops take turns.
fn new_buffers(on: &str, device: &Device) -> Result<()> {
    for (what, shape, axes) in OF_1_MIB {
        let source = device.alloc_array::<f32>(shape)?;
        let view = source.view().permuted_axes(axes)?;
        let kept = device.alloc_array::<f32>(view.shape())?;
        let (from, to) = (source.buffer().address(), kept.buffer().address());
        let (stream, align) = (device.default_stream().handle(), Align::ALLOCATION);
        let plan = PermutePlan::new(view.layout(), align, kept.layout(), align, 4, Target::of(device))?;
        let mut turns = Vec::with_capacity(PAIRS);
        // SAFETY: both buffers hold the elements of the layouts, and the stream is of their device.
        let launch = || unsafe { black_box(&plan).launch_raw(device, from, to, stream) };
        let permute = || ops::permute(black_box(&source), axes).map(drop);
        for pair in 0..PAIRS {
            let [kept, new] = if pair % 2 == 0 {
                [turn_of(device, launch)?, turn_of(device, permute)?]
            } else {
                let new = turn_of(device, permute)?;
                [turn_of(device, launch)?, new]
            };
            turns.push([kept, new, new - kept]);
        }
        let median = |at: usize| {
            let mut all: Vec<f64> = turns.iter().map(|turn| turn[at]).collect();
            all.sort_unstable_by(f64::total_cmp);
            all[PAIRS / 2]
        };
        let [kept, new, more] = [0, 1, 2].map(median);
        println!(
            "{on}, {what}: a kept plan into a kept buffer {kept:.3} us, into a new buffer {new:.3} us, {more:.3} us more"
        );
    }
    Ok(())
}

/// Returns the host's microseconds for a turn of a loop of launches, without the wait behind them.
fn turn_of(device: &Device, mut turn: impl FnMut() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    for _ in 0..TURNS {
        turn()?;
    }
    let took = start.elapsed();
    device.synchronize()?;
    Ok(took.as_secs_f64() * 1e6 / f64::from(TURNS))
}

fn launches(c: &mut Criterion) {
    let (_, device) = idle::Idle::device();
    host_cost(c, "idle", &device).expect("an idle driver refuses none of it");
    large_plans(c, &device).expect("an idle driver refuses none of it");
    new_buffers("idle", &device).expect("an idle driver refuses none of it");
    graphs(c, "idle", &device).expect("an idle driver refuses none of it");
    match Device::open(Backend::Cuda(0)) {
        Ok(device) => on_gpu(c, &device).expect("the GPU does it"),
        Err(reason) => println!("without a GPU only our part is measured: {reason}"),
    }
}

#[cfg(feature = "cudarc")]
fn on_gpu(c: &mut Criterion, device: &Device) -> Result<()> {
    host_cost(c, "cuda, no context current", device)?;
    new_buffers("cuda, no context current", device)?;
    graphs(c, "cuda, no context current", device)?;
    driver_cost(c, "cuda, no context current", device)?;
    let context = cudarc::driver::CudaContext::new(0).expect("the context that the device is open with");
    context.bind_to_thread().expect("it is alive");
    host_cost(c, "cuda, its context current", device)?;
    driver_cost(c, "cuda, its context current", device)
}

#[cfg(not(feature = "cudarc"))]
fn on_gpu(c: &mut Criterion, device: &Device) -> Result<()> {
    host_cost(c, "cuda", device)?;
    new_buffers("cuda", device)?;
    graphs(c, "cuda", device)
}

/// Measures the driver's own part: a launch of a kernel that does nothing, with few parameters and
/// with many.
#[cfg(feature = "cudarc")]
fn driver_cost(c: &mut Criterion, on: &str, device: &Device) -> Result<()> {
    use warpstride::driver::{Modules, cuda::Cuda};
    use warpstride::launch_shape::LaunchShape;

    let driver = Cuda::open(0)?;
    let entry = |bytes: usize| format!(".visible .entry of{bytes}(.param .align 8 .b8 params[{bytes}]) {{ ret; }}\n");
    let sizes = [64, 832];
    let module = driver.module_load(&format!(
        ".version 6.4\n.target sm_75\n.address_size 64\n{}{}",
        entry(sizes[0]),
        entry(sizes[1])
    ))?;
    let shape = LaunchShape { grid: [1; 3], block: [128, 1, 1], dynamic_shared: 0 };
    let (stream, params) = (device.default_stream().handle(), [0; 832]);
    for bytes in sizes {
        // SAFETY: the module and its driver are alive.
        let function = unsafe { driver.function(module, &format!("of{bytes}")) }?;
        measure(c, device, &format!("{on}: the driver's launch with {bytes} bytes of parameters"), || {
            // SAFETY: the kernel takes `bytes` bytes and touches no memory; the stream is of the
            // same primary context.
            unsafe { driver.launch(function, &shape, black_box(&params[..bytes]), stream) }
        });
    }
    // SAFETY: nothing uses the module from here on.
    unsafe { driver.module_unload(module) }
}

criterion_group!(launch, launches);
criterion_main!(launch);
