//! What a launch costs the host: to plan it, to launch a plan that was kept, and both. Over a driver that does nothing, which
//! leaves our part, and on the first NVIDIA GPU, where there is one.

#[allow(dead_code, reason = "the counts are for tests")]
mod idle;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use warpstride::device::{Backend, Device};
use warpstride::error::Result;
use warpstride::layout::Layout;
use warpstride::ops::{self, Align, PermutePlan, Target};

/// Launches between two waits, fewer than a GPU's queue takes: no launch waits for room in it.
const BATCH: u64 = 256;
/// As small as a matrix can be that has tiles, so that a GPU keeps up; and the same elements of rank 5.
const SHAPES: [(&str, &[usize], &[usize]); 3] = [
    ("a copy", &[32, 32], &[0, 1]),
    ("a transpose", &[32, 32], &[1, 0]),
    ("a permute of 5 axes", &[4, 4, 4, 4, 4], &[4, 2, 0, 3, 1]),
];

/// Measures an operation, but not the waits for what it queued.
fn measure(c: &mut Criterion, device: &Device, name: &str, mut operation: impl FnMut() -> Result<()>) {
    c.bench_function(name, |bencher| {
        bencher.iter_custom(|iterations| {
            let mut time = Duration::ZERO;
            let mut left = iterations;
            while left > 0 {
                let batch = left.min(BATCH);
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
    for (what, shape, axes) in SHAPES {
        let src = Layout::row_major(shape)?.permuted_axes(axes)?;
        let dst = Layout::row_major(src.shape())?;
        let plan = PermutePlan::new(&src, align, &dst, align, 4, target)?;
        c.bench_function(&format!("{on}, {what}: plan"), |bencher| {
            bencher.iter(|| PermutePlan::new(black_box(&src), align, &dst, align, 4, target));
        });
        measure(c, device, &format!("{on}, {what}: launch a kept plan"), || {
            // SAFETY: two buffers of as many elements as the layouts have, on a stream of their device.
            unsafe { black_box(&plan).launch(device, from, to, stream.handle()) }
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

fn launches(c: &mut Criterion) {
    let (_, device) = idle::Idle::device();
    host_cost(c, "idle", &device).expect("an idle driver refuses none of it");
    match Device::open(Backend::Cuda(0)) {
        Ok(device) => host_cost(c, "cuda", &device).expect("the GPU does it"),
        Err(reason) => println!("without a GPU only our part is measured: {reason}"),
    }
}

criterion_group!(launch, launches);
criterion_main!(launch);
