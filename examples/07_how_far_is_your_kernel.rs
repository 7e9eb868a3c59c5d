//! # Lesson 7: how far is your kernel from what the device can do?
//!
//! A kernel that moves bytes has one figure: the bytes that it must move, over the time it takes, beside what the memory can
//! do. The first is arithmetic: this one reads a float and writes one, 8 bytes each, whatever the hardware makes of it. The
//! second is easily measured wrong: with data that lies in the cache, with the launch in it, on a GPU that has not woken up.
//! `roofline::measure::time` holds the stream until all samples are queued, puts events around each, and takes the median; you
//! give it data that the cache has lost, by rotating over as many buffers as `cold_sets` says. The third is not on the data
//! sheet: no kernel reaches that. `Peaks` measures the best kernels that only read, only write and copy.
//!
//! Measure only what is right: the result is checked first.
//!
//! Without a GPU there is no time to tell; the software GPU says what the kernel asks of memory, which is where to look first.
//!
//! ```text
//! cargo run --release --example 07_how_far_is_your_kernel
//! ```

use warpstride::counters::Counters;
use warpstride::device::{Backend, Device};
use warpstride::driver::FunctionHandle;
use warpstride::error::Result;
use warpstride::launch_shape::LaunchShape;
use warpstride::memory::DeviceBuffer;
use warpstride::roofline::measure;
use warpstride::roofline::peak::Peaks;

/// `out[i] = 2 * in[i]`, an element a thread, for whole blocks.
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

/// A source and a result.
type Set = [DeviceBuffer<f32>; 2];

fn main() -> Result<()> {
    let device = Device::open(Backend::Auto)?;
    let timed = device.counters()?.is_none();
    let len = if timed { 1 << 26 } else { 1 << 14 };
    let bytes = (2 * len * size_of::<f32>()) as u64;
    println!("{len} floats on {}: {bytes} bytes to move", device.info().name);

    // SAFETY: it stays live until the end of the program.
    let kernel = unsafe { device.driver().function(device.driver().module_load(PTX)?, "twice")? };
    let numbers: Vec<f32> = (0..len).map(|i| i as f32).collect();
    let sets = (0..measure::cold_sets(bytes, device.info().l2_bytes))
        .map(|_| Ok([device.upload(&numbers)?, device.zeros(len)?]))
        .collect::<Result<Vec<Set>>>()?;

    let before = device.counters()?;
    launch(&device, kernel, &sets[0])?;
    let right = sets[0][1].download()?.iter().zip(&numbers).all(|(found, number)| *found == 2.0 * number);
    assert!(right, "what is wrong is not worth measuring");
    match device.counters()?.zip(before) {
        Some((after, before)) => counted(after - before, bytes),
        None => measured(&device, kernel, &sets, bytes)?,
    }
    println!("\nquestion: `ld.global.v4.f32` moves 16 bytes a thread. What becomes of requests, sectors and GB/s?");
    Ok(())
}

fn launch(device: &Device, kernel: FunctionHandle, [source, result]: &Set) -> Result<()> {
    let grid = [(source.len() / THREADS) as u32, 1, 1];
    let shape = LaunchShape { grid, block: [THREADS as u32, 1, 1], dynamic_shared: 0 };
    let params = [source.address().to_le_bytes(), result.address().to_le_bytes()].concat();
    // SAFETY: two addresses, as the entry declares, of as many floats as there are threads; all work is on this stream.
    unsafe { device.driver().launch(kernel, &shape, &params, device.default_stream().handle()) }
}

/// On a GPU: time, and what the best kernels reach for as many bytes read and written.
fn measured(device: &Device, kernel: FunctionHandle, sets: &[Set], bytes: u64) -> Result<()> {
    let mut turn = 0;
    let timing = measure::time(device, device.default_stream(), 20, || {
        turn += 1;
        launch(device, kernel, &sets[turn % sets.len()])
    })?;
    let ceiling = Peaks::measure(device, |_| ())?.ceilings().of(bytes / 2, bytes / 2);
    let gbps = timing.gbps(bytes);
    println!("{:.4} ms at the median: {gbps:.0} GB/s", timing.median_ms());
    println!("the best copy here has {ceiling:.0} GB/s: this is {:.1} % of it", 100.0 * gbps / ceiling);
    Ok(())
}

/// On the software GPU: what it asks of memory.
fn counted(counters: Counters, bytes: u64) {
    let sectors = counters.global_load.sectors + counters.global_store.sectors;
    println!("no GB/s without a GPU, but this: {sectors} sectors of 32 bytes, and {} would hold the bytes", bytes / 32);
}
