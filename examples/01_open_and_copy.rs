//! Opens a device, copies an array, and counts the memory accesses of the copy.
//!
//! A GPU has memory of its own. Work on it has four steps: open the device, send the data, run a
//! kernel, and fetch the result. The kernel here only copies, sixteen bytes a thread. It is
//! the yardstick for every kernel that moves data: none that reads and writes the same number of
//! bytes can be faster.
//!
//! `Backend::Auto` takes an NVIDIA GPU where there is one, else the software GPU. The software GPU
//! runs the same kernel, compiled to the same PTX. It takes longer, and it counts. A *request* is
//! one load or store of a warp (32 threads that run in step). A *sector* is 32 bytes of memory, the
//! smallest amount that a GPU reads or writes.
//!
//! ```text
//! cargo run --example 01_open_and_copy
//! ```

use warpstride::device::{Backend, Device};
use warpstride::error::Result;
use warpstride::ops;

fn main() -> Result<()> {
    let device = Device::open(Backend::Auto)?;
    println!("device: {}", device.choice());

    let numbers: Vec<f32> = (0..1_000_000).map(|i| i as f32).collect();
    let n = numbers.len();
    let source = device.upload(&numbers)?;
    let mut copy = device.alloc::<f32>(n)?;

    // The call only queues the copy and returns at once; the download waits for it.
    ops::copy_into(source.view(&[n])?, copy.view_mut(&[n])?, device.default_stream())?;
    println!("{n} numbers copied, all equal: {}", copy.download()? == numbers);

    match device.counters()? {
        Some(counters) => {
            let load = counters.global_load;
            println!("{} loads of a warp touched {} sectors of 32 bytes", load.requests, load.sectors);
            println!("bytes in those sectors: {}, bytes asked for: {}", load.sectors * 32, n * size_of::<f32>());
        }
        None => println!("a GPU does not count by itself; `Backend::Soft` does"),
    }
    Ok(())
}
