//! # Lesson 6: memory that others own
//!
//! Most programs have a crate for their GPU already. Operations of this crate take cudarc's buffers
//! too, and are queued on its streams among its own work; nothing is copied from one crate to the other, since both use
//! the primary context of the device.
//!
//! A stream is a queue: what is queued on one runs in order. Between streams cudarc keeps order by events, two for each
//! buffer. The transpose below runs on a stream of its own: it waits for the upload, which it reads, and the download, on
//! the first stream again, waits for it. `ops::copy_into_raw` is the way for every other crate, by addresses and handles.
//!
//! ```text
//! cargo run --features cudarc --example 06_cudarc
//! ```

use std::error::Error;

use cudarc::driver::CudaContext;
use warpstride::device::{self, Device};
use warpstride::interop::cudarc::transpose_into;

fn main() -> Result<(), Box<dyn Error>> {
    let question = "question: cudarc frees the matrix when it goes out of scope. Which event must that wait for?";
    // cudarc panics where there is no driver, so we ask first. The first entry is the first GPU, or says why there is none.
    if let Err(reason) = &device::probe()[0].info {
        println!("this lesson needs an NVIDIA GPU: {reason}\n{question}");
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
    println!("\n{question}");
    Ok(())
}
