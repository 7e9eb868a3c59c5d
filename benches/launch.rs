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
use warpstride::ops::{self, CopyPlan, TransposePlan};

/// Launches between two waits, fewer than a GPU's queue takes: no launch waits for room in it.
const BATCH: u64 = 256;
/// Rows and columns of the matrices: as small as a launch can be, so that the GPU keeps up.
const SHAPE: [usize; 2] = [32, 32];

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
    let [source, mut destination] = [device.alloc::<f32>(32 * 32)?, device.alloc(32 * 32)?];
    let (from, to, stream) = (source.address(), destination.address(), device.default_stream().clone());
    let matrix = Layout::row_major(&SHAPE)?;
    let transpose = TransposePlan::new(&matrix, &matrix, 4, None)?;
    let copy = CopyPlan::new(&matrix, &matrix, 4)?;

    measure(c, device, &format!("{on}: launch a kept transpose"), || {
        // SAFETY: two buffers of as many elements as the layouts have, on a stream of their device.
        unsafe { black_box(&transpose).launch(device, from, to, stream.handle()) }
    });
    measure(c, device, &format!("{on}: launch a kept copy"), || {
        // SAFETY: as above.
        unsafe { black_box(&copy).launch(device, from, to, stream.handle()) }
    });
    measure(c, device, &format!("{on}: plan and launch a transpose, raw"), || {
        // SAFETY: as above.
        unsafe { ops::transpose_raw(device, from, black_box(&matrix), to, &matrix, 4, None, stream.handle()) }
    });
    measure(c, device, &format!("{on}: plan and launch a copy, raw"), || {
        // SAFETY: as above.
        unsafe { ops::copy_raw(device, from, black_box(&matrix), to, &matrix, 4, stream.handle()) }
    });
    measure(c, device, &format!("{on}: view, plan and launch a transpose"), || {
        ops::transpose_into(source.view(black_box(&SHAPE))?, destination.view_mut(&SHAPE)?, None, &stream)
    });
    measure(c, device, &format!("{on}: view, plan and launch a copy"), || {
        ops::copy(source.view(black_box(&SHAPE))?, destination.view_mut(&SHAPE)?, &stream)
    });
    Ok(())
}

fn plans(c: &mut Criterion) {
    let matrix = Layout::row_major(&SHAPE).expect("a shape");
    let turned = matrix.t();
    c.bench_function("plan a transpose", |bencher| {
        bencher.iter(|| TransposePlan::new(black_box(&matrix), &matrix, 4, None));
    });
    c.bench_function("plan a transpose that is a copy", |bencher| {
        bencher.iter(|| TransposePlan::new(black_box(&matrix), &turned, 4, None));
    });
    c.bench_function("plan a copy", |bencher| bencher.iter(|| CopyPlan::new(black_box(&matrix), &matrix, 4)));
}

fn launches(c: &mut Criterion) {
    let (_, device) = idle::Idle::device();
    host_cost(c, "idle", &device).expect("an idle driver refuses none of it");
    match Device::open(Backend::Cuda(0)) {
        Ok(device) => host_cost(c, "cuda", &device).expect("the GPU does it"),
        Err(reason) => println!("without a GPU only our part is measured: {reason}"),
    }
}

criterion_group!(launch, plans, launches);
criterion_main!(launch);
