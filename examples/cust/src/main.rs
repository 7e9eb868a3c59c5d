//! Transposes cust's buffers on cust's stream.
//!
//! cust makes the device's primary context current, and this crate uses the same one. So cust's
//! addresses and streams are valid here, and nothing is copied. The work runs in the order of
//! cust's stream.
//!
//! ```text
//! cargo run --manifest-path examples/cust/Cargo.toml
//! ```

use std::error::Error;

use cust::error::CudaError;
use cust::memory::{CopyDestination, DeviceBuffer};
use cust::stream::{Stream, StreamFlags};
use warpstride::device::{Backend, Device};
use warpstride::driver::StreamHandle;
use warpstride::layout::Layout;
use warpstride::ops;

const ROWS: usize = 1000;
const COLS: usize = 700;

fn main() -> Result<(), Box<dyn Error>> {
    // The context must outlive everything that is made in it.
    let _context = match cust::quick_init() {
        Err(CudaError::NoDevice) => {
            println!("there is no NVIDIA GPU here; this example needs one");
            return Ok(());
        }
        made => made?,
    };
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    let numbers: Vec<f32> = (0..ROWS * COLS).map(|i| i as f32).collect();
    let matrix = DeviceBuffer::from_slice(&numbers)?;
    let transposed = DeviceBuffer::<f32>::zeroed(ROWS * COLS)?;
    // Both of these calls may return before the device has done the work, on a stream that ours
    // does not wait for.
    cust::context::CurrentContext::synchronize()?;

    // This is the device that `quick_init` opened.
    let device = Device::open(Backend::Cuda(0))?;
    let handle = StreamHandle(stream.as_inner() as usize as u64);
    let from = Layout::row_major(&[ROWS, COLS])?;
    // The destination as the matrix sees it: by row and column.
    let to = Layout::row_major(&[COLS, ROWS])?.t();
    let (src, dst) = (matrix.as_device_ptr().as_raw(), transposed.as_device_ptr().as_raw());
    // SAFETY: both buffers hold the `f32` that the layouts reach, and live to the end of `main`.
    // The stream belongs to the device's primary context. Earlier work has run, and later work
    // waits for the stream.
    unsafe { ops::copy_into_raw(&device, src, &from, dst, &to, size_of::<f32>(), handle) }?;
    stream.synchronize()?;

    let mut result = vec![0.0; ROWS * COLS];
    transposed.copy_to(&mut result)?;
    let right = (0..ROWS * COLS).all(|i| result[i] == numbers[i % ROWS * COLS + i / ROWS]);
    assert!(right, "the transpose is wrong");
    println!("{ROWS} x {COLS} numbers of cust's, transposed on cust's stream on {}: right", device.info().name);
    Ok(())
}
