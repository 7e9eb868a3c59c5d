//! Uploads the same bytes from four kinds of host memory.
//!
//! A copy to the GPU runs at a seventh of the link's speed, and one word makes it fast.
//! The word is *pinned*. The operating system may move or swap out the pages of ordinary, pageable
//! memory at any time, so the GPU cannot read them by itself: a core copies the bytes into a
//! page-locked bounce buffer first, and the GPU reads that. Pinned memory is page-locked, so the
//! GPU's copy engine reads it directly, at the speed of the link, while all cores do other work.
//!
//! This crate does the bounce of a large copy by several cores, each with buffers of its own. So
//! ordinary memory nearly reaches the link here too, but these cores are busy and the call waits.
//!
//! | kind | copies | price |
//! |---|---|---|
//! | pageable | through bounce buffers; the call waits | cores of the host |
//! | pinned | directly | page-locked memory is taken from the whole system |
//! | registered | directly, from memory that exists | locking costs as much as some copies |
//! | write-combined | directly, past the host's caches | reading it back is very slow, so its type cannot |
//!
//! Locking pages is slow, and so is a large pool for everybody else. So allocate pinned buffers
//! once and use them again: the pool of the device keeps them, counts them, and has a limit.
//!
//! ```text
//! cargo run --release --example 08_pinned_memory
//! ```

use std::time::Instant;

use warpstride::DeviceArray;
use warpstride::device::{Backend, Device};
use warpstride::error::Result;

const COPIES: usize = 5;

fn main() -> Result<()> {
    let device = Device::open(Backend::Auto)?;
    let len = if device.counters()?.is_none() { 1 << 25 } else { 1 << 14 };
    println!("{} bytes to {}, by kind of host memory", len * size_of::<f32>(), device.info().name);

    let numbers: Vec<f32> = (0..len).map(|i| i as f32).collect();
    let mut array = device.alloc_array::<f32>(&[len])?;
    let stream = device.stream()?;

    // A scope ends when its copies have run, so the time is that of the copies.
    let speed = gbps(&numbers, || stream.scope(|s| (0..COPIES).try_for_each(|_| s.upload(&numbers, &mut array))))?;
    show("pageable", speed, &array, &numbers)?;

    let pinned = device.pinned_from(&numbers)?;
    let speed = gbps(&numbers, || stream.scope(|s| (0..COPIES).try_for_each(|_| s.upload(&pinned, &mut array))))?;
    show("pinned", speed, &array, &numbers)?;

    // Registering is part of the time: it pays after some copies.
    let mut copy = numbers.clone();
    let registered = || {
        stream.scope(|s| {
            let locked: &[f32] = s.register(&mut copy)?.into_slice();
            (0..COPIES).try_for_each(|_| s.upload(locked, &mut array))
        })
    };
    let speed = gbps(&numbers, registered)?;
    show("registered", speed, &array, &numbers)?;

    let mut combined = device.write_combined(len)?;
    combined.write(0, &numbers)?;
    let speed = gbps(&numbers, || stream.scope(|s| (0..COPIES).try_for_each(|_| s.upload(&combined, &mut array))))?;
    show("write-combined", speed, &array, &numbers)?;

    let before = device.pinned_memory();
    drop((pinned, combined));
    let after = device.pinned_memory();
    println!(
        "page-locked: {} bytes in use; after the drop {} in use, {} cached",
        before.in_use, after.in_use, after.cached
    );
    println!("given back to the system: {} bytes", device.trim_pinned(0)?);
    Ok(())
}

/// Returns the GB/s of [`COPIES`] copies of the numbers, after a turn that wakes everything up.
fn gbps(numbers: &[f32], mut copies: impl FnMut() -> Result<()>) -> Result<f64> {
    copies()?;
    let start = Instant::now();
    copies()?;
    Ok((COPIES * size_of_val(numbers)) as f64 / start.elapsed().as_secs_f64() / 1e9)
}

fn show(name: &str, gbps: f64, array: &DeviceArray<f32>, numbers: &[f32]) -> Result<()> {
    let is_gpu = array.device().counters()?.is_none();
    let speed = if is_gpu { format!("{gbps:5.1} GB/s") } else { "no GB/s without a GPU".to_owned() };
    println!("{name:<15} {speed}, right: {}", array.to_vec()? == numbers);
    Ok(())
}
