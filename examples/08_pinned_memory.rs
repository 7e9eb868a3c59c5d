//! Lesson 8 uploads the same bytes from four kinds of host memory.
//!
//! Puzzler 1: a copy to the GPU runs at a third of the link's speed, and one word makes it fast.
//! The word is *pinned*. The operating system may move or swap out the pages of ordinary, pageable
//! memory at any time, so the GPU cannot read them by itself: a core copies the bytes into a
//! page-locked bounce buffer first, and the GPU reads that. Pinned memory is page-locked, so the
//! GPU's copy engine reads it directly, at the speed of the link, while all cores do other work.
//!
//! | kind | copies | price |
//! |---|---|---|
//! | pageable | through the bounce buffer; the call waits | none |
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

use warpstride::device::{Backend, Device};
use warpstride::error::Result;
use warpstride::{DeviceArray, Stream};

const COPIES: usize = 5;

fn main() -> Result<()> {
    let device = Device::open(Backend::Auto)?;
    let timed = device.counters()?.is_none();
    let len = if timed { 1 << 25 } else { 1 << 14 };
    println!("{} bytes to {}, by kind of host memory", len * size_of::<f32>(), device.info().name);

    let numbers: Vec<f32> = (0..len).map(|i| i as f32).collect();
    let mut array = device.alloc_array::<f32>(&[len])?;
    let stream = device.stream()?;
    let bench = |name: &str,
                 array: &mut DeviceArray<f32>,
                 copies: &mut dyn FnMut(&Stream, &mut DeviceArray<f32>) -> Result<()>|
     -> Result<()> {
        copies(&stream, array)?; // the first one wakes everything up
        let start = Instant::now();
        copies(&stream, array)?;
        let gbps = (COPIES * len * size_of::<f32>()) as f64 / start.elapsed().as_secs_f64() / 1e9;
        let speed = if timed { format!("{gbps:5.1} GB/s") } else { "no GB/s without a GPU".to_owned() };
        println!("{name:<15} {speed}, right: {}", array.to_vec()? == numbers);
        Ok(())
    };

    // A scope ends when its copies have run, so the time is that of the copies.
    bench("pageable", &mut array, &mut |stream, array| {
        stream.scope(|s| (0..COPIES).try_for_each(|_| s.upload(&numbers, &mut *array)))
    })?;
    let pinned = device.pinned_from(&numbers)?;
    bench("pinned", &mut array, &mut |stream, array| {
        stream.scope(|s| (0..COPIES).try_for_each(|_| s.upload(&pinned, &mut *array)))
    })?;
    let mut copy = numbers.clone();
    bench("registered", &mut array, &mut |stream, array| {
        stream.scope(|s| {
            let locked: &[f32] = s.register(&mut copy)?.into_slice();
            (0..COPIES).try_for_each(|_| s.upload(locked, &mut *array))
        })
    })?;
    let mut combined = Some(device.write_combined(len)?);
    bench("write-combined", &mut array, &mut |stream, array| {
        for _ in 0..COPIES {
            if let Some(mut host) = combined.take() {
                host.write(0, &numbers)?;
                combined = Some(stream.upload(host, &mut *array)?.wait()?);
            }
        }
        Ok(())
    })?;

    let before = device.pinned_memory();
    drop((pinned, combined));
    let after = device.pinned_memory();
    println!(
        "page-locked: {} bytes in use; after the drop {} in use, {} cached",
        before.in_use, after.in_use, after.cached
    );
    println!("given back to the system: {} bytes", device.trim_pinned(0)?);
    println!("\nquestion: how many copies must a buffer take part in before locking its pages pays?");
    Ok(())
}
