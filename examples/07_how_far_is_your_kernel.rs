//! Measures how far a kernel of your own is from the limit of the device.
//!
//! Three figures describe a kernel that moves bytes: the bytes that it must move, the time that it
//! takes, and the speed that the memory can reach.
//!
//! - The first is arithmetic. This kernel reads a float and writes one: 8 bytes each, whatever the
//!   hardware does with them.
//! - The second is easy to measure wrong: with data in the cache, with the launch in the time, or
//!   on a GPU that has not woken up. `roofline::measure::time` holds the stream until all samples
//!   are queued, puts events around each, and takes the median. You keep the data cold: each run
//!   takes the next set of a `Rotation`.
//! - The third is not on the data sheet, because no kernel reaches that number. `Peaks` measures
//!   the best kernels that only read, only write and copy.
//!
//! Measure only a right result: this program checks it first.
//!
//! Without a GPU there is no time to measure. The software GPU counts the kernel's memory accesses,
//! and those are the first place to look.
//!
//! ```text
//! cargo run --release --example 07_how_far_is_your_kernel
//! ```

use warpstride::counters::Counters;
use warpstride::device::{Backend, Device};
use warpstride::driver::FunctionHandle;
use warpstride::error::Result;
use warpstride::launch_shape::LaunchShape;
use warpstride::roofline::measure::{self, RotatingBuffer, Rotation};
use warpstride::roofline::peak::Peaks;

/// `out[i] = 2 * in[i]`, one element a thread, for whole blocks.
const PTX: &str = "
    .version 7.0
    .target sm_75
    .address_size 64
    .visible .entry twice(.param .u64 in, .param .u64 out) {
        .reg .b32 %r<4>;
        .reg .f32 %f<3>;
        .reg .b64 %rd<5>;

        ld.param.u64   %rd1, [in];
        ld.param.u64   %rd2, [out];
        mov.u32        %r1, %ctaid.x;
        mov.u32        %r2, %ntid.x;
        mov.u32        %r3, %tid.x;
        mad.lo.u32     %r1, %r1, %r2, %r3;
        mad.wide.u32   %rd3, %r1, 4, %rd1;
        mad.wide.u32   %rd4, %r1, 4, %rd2;
        ld.global.f32  %f1, [%rd3];
        add.f32        %f2, %f1, %f1;
        st.global.f32  [%rd4], %f2;
        ret;
    }";

const THREADS: usize = 256;

/// The sources and the results of a rotation.
type Arrays = [RotatingBuffer<f32>; 2];

fn main() -> Result<()> {
    let device = Device::open(Backend::Auto)?;
    let timed = device.counters()?.is_none();
    let len = if timed { 1 << 26 } else { 1 << 14 };
    let bytes = (2 * len * size_of::<f32>()) as u64;
    println!("{len} floats on {}: {bytes} bytes to move", device.info().name);

    // SAFETY: the module stays loaded until the end of the program.
    let kernel = unsafe { device.driver().function(device.driver().module_load(PTX)?, "twice")? };
    let numbers: Vec<f32> = (0..len).map(|i| i as f32).collect();
    let mut rotation = Rotation::new(&device, &[4 * len; 2]);
    let arrays = [rotation.upload(&numbers)?, rotation.zeros(len)?];

    let before = device.counters()?;
    launch(kernel, &arrays, &mut rotation)?;
    let after = device.counters()?;
    let right = arrays[1].download_first(len)?.iter().zip(&numbers).all(|(found, number)| *found == 2.0 * number);
    assert!(right, "the kernel is wrong; correct it before you measure it");
    match after.zip(before) {
        Some((after, before)) => counted(after - before, bytes),
        None => measured(kernel, &arrays, &mut rotation, bytes)?,
    }
    Ok(())
}

fn launch(kernel: FunctionHandle, [source, result]: &Arrays, rotation: &mut Rotation) -> Result<()> {
    let (set, device) = (rotation.advance(), rotation.device());
    let grid = [(source.len() / THREADS) as u32, 1, 1];
    let shape = LaunchShape { grid, block: [THREADS as u32, 1, 1], dynamic_shared: 0 };
    let params = [source.address(set).to_le_bytes(), result.address(set).to_le_bytes()].concat();
    // SAFETY: the entry takes two addresses, and both buffers hold a float for each thread. All
    // work is on this stream.
    unsafe { device.driver().launch(kernel, &shape, &params, device.default_stream().handle()) }
}

/// Measures the time on a GPU, and compares it with the best kernels for the same bytes.
fn measured(kernel: FunctionHandle, arrays: &Arrays, rotation: &mut Rotation, bytes: u64) -> Result<()> {
    let device = rotation.device().clone();
    let timing = measure::time(&device, device.default_stream(), 20, || launch(kernel, arrays, rotation))?;
    let ceiling = Peaks::measure(&device, |_| ())?.ceilings().of(bytes / 2, bytes / 2);
    let gbps = timing.gbps(bytes);
    println!("{:.4} ms at the median: {gbps:.0} GB/s", timing.median_ms());
    println!("the best copy here has {ceiling:.0} GB/s: this is {:.1} % of it", 100.0 * gbps / ceiling);
    Ok(())
}

/// Prints the sectors that the kernel touched on the software GPU.
fn counted(counters: Counters, bytes: u64) {
    let sectors = counters.global_load.sectors + counters.global_store.sectors;
    println!("no GB/s without a GPU, but this: {sectors} sectors of 32 bytes, and {} would hold the bytes", bytes / 32);
}
