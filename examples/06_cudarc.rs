//! Transposes memory that cudarc owns, on cudarc's stream.
//!
//! Most programs already have a crate for their GPU. This crate's operations also take cudarc's
//! buffers, and queue on its streams among its own work. Both crates use the primary context of the
//! device, so nothing is copied from one to the other.
//!
//! A stream is a queue: its work runs in order. Between streams cudarc keeps order by events, two
//! for each buffer. The transpose below runs on a second stream. It waits for the upload, which it
//! reads, and the download on the first stream waits for it. For every other crate there is
//! `ops::copy_into_raw`, which takes addresses and handles.
//!
//! ```text
//! cargo run --features cudarc --example 06_cudarc
//! ```

use std::error::Error;

use cudarc::driver::CudaContext;
use warpstride::device::{self, Device};
use warpstride::interop::cudarc::transpose_into;

fn main() -> Result<(), Box<dyn Error>> {
    // cudarc panics without a driver, so we ask first. The first entry is the first GPU, or the
    // reason why there is none.
    if let Err(reason) = &device::probe()[0].info {
        println!("this program needs an NVIDIA GPU: {reason}");
        return Ok(());
    }
    let context = CudaContext::new(0)?;
    let device = Device::from_cudarc(&context)?;
    println!("device: {}", device.choice());

    let [rows, cols] = [1000, 700];
    let numbers: Vec<f32> = (0..rows * cols).map(|i| i as f32).collect();
    let (first, second) = (context.new_stream()?, context.new_stream()?);
    let matrix = first.clone_htod(&numbers)?;
    let mut transposed = first.alloc_zeros::<f32>(rows * cols)?;
    transpose_into(&device, matrix.as_view(), [rows, cols], transposed.as_view_mut(), &second)?;
    let result = first.clone_dtoh(&transposed)?;

    let right = (0..rows * cols).all(|i| result[i] == numbers[i % rows * cols + i / rows]);
    println!(
        "{rows} x {cols} numbers of cudarc, transposed on its second stream: {}",
        if right { "right" } else { "WRONG" }
    );
    assert!(right);
    Ok(())
}
