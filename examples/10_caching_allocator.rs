//! Takes memory again and again without a wait.
//!
//! `cuMemAlloc` and `cuMemFree` stop the whole queue. So a device keeps the memory of dropped
//! buffers for the next ones. This program doubles numbers 3000 times into a new buffer and gets
//! the same address each time, without a call that could wait. It keeps all results instead, until
//! the memory ends: an error says so, and a snapshot says which lines of the program hold it. It
//! drops a buffer while work on it is queued, and allocates on another stream: that work still sees
//! its own bytes. And it lets a producer queue work for a consumer, first as much as it likes, and
//! then only as much as 4 MiB of items allow.
//!
//! ```text
//! cargo run --example 10_caching_allocator
//! ```

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use warpstride::alloc::{Caching, HoldBack, Limit};
use warpstride::{Backend, Device, DeviceArray, ErrorKind, Result, ops};

const LEN: usize = 64 * 64;
const TURNS: usize = 3000;
const ITEMS: usize = 1000;
const MIB: u64 = 1 << 20;

fn main() -> Result<()> {
    the_same_memory_comes_back()?;
    a_list_ends_out_of_memory()?;
    another_stream_waits()?;
    a_producer_is_held_back()?;
    Ok(())
}

/// Doubles into a new buffer in a loop.
fn the_same_memory_comes_back() -> Result<()> {
    let device = Device::open(Backend::Auto)?;
    let a = device.array(&[LEN], &[1.5_f32; LEN])?;
    ops::scale(2.0, &a)?; // the first launch loads the kernel
    device.synchronize()?;
    let before = device.stats();
    let mut addresses = HashSet::new();
    for _ in 0..TURNS {
        let doubled = ops::scale(2.0, &a)?;
        addresses.insert(doubled.buffer().address());
    }
    let waits = device.stats().can_synchronize - before.can_synchronize;
    println!("{TURNS} results: {} address, {waits} calls that can wait", addresses.len());
    Ok(())
}

/// Keeps all results, in a device that has 8 MiB to give.
fn a_list_ends_out_of_memory() -> Result<()> {
    let device = Device::open_with(Backend::Auto, |driver| Ok(Arc::new(Limit::new(Caching::new(driver)?, 8 * MIB))))?;
    let a = device.array(&[LEN], &[1.5_f32; LEN])?;
    let mut kept = Vec::new();
    let error = loop {
        match ops::scale(2.0, &a) {
            Ok(doubled) => kept.push(doubled),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    println!("a list of {} results ends: {error}", kept.len());
    let mut holders = BTreeMap::<_, u64>::new();
    for block in device.allocator().snapshot().segments.into_iter().flat_map(|segment| segment.blocks) {
        *holders.entry(block.site).or_default() += block.bytes;
    }
    for (line, bytes) in holders.into_iter().filter_map(|(line, bytes)| Some((line?, bytes))) {
        println!("{line} holds {} KiB", bytes >> 10);
    }
    Ok(())
}

/// Drops a buffer while a copy of it is queued on one stream, and allocates on another.
fn another_stream_waits() -> Result<()> {
    let device = Device::open(Backend::Auto)?;
    let [first, second] = [device.stream()?, device.stream()?];
    let mut seen = device.alloc_array::<f32>(&[LEN])?;
    let mut right = true;
    for turn in 0..100 {
        let mut source = device.alloc_array_on::<f32>(&[LEN], &first)?;
        ops::fill_into(turn as f32, &mut source, &first)?;
        ops::copy_into(&source, &mut seen, &first)?;
        drop(source); // the copy may still have to run
        let mut other = device.alloc_array_on::<f32>(&[LEN], &second)?;
        ops::fill_into(-1.0, &mut other, &second)?;
        right &= seen.to_vec()?.iter().all(|&number| number == turn as f32);
    }
    println!("100 buffers dropped with work queued, and memory on another stream: all right: {right}");
    Ok(())
}

/// Makes items on one stream and adds them up on another, without a wait in the loop: first with
/// the cache alone, and then held back.
fn a_producer_is_held_back() -> Result<()> {
    let free = Device::open_with(Backend::Auto, |driver| Ok(Arc::new(Caching::new(driver)?)))?;
    let held_back = Device::open_with(Backend::Auto, |driver| {
        Ok(Arc::new(HoldBack::new(Caching::new(Arc::clone(&driver))?, driver, 4 * MIB)))
    })?;
    for (device, name) in [(free, "alone"), (held_back, "held back")] {
        let before = device.stats();
        let sum = sum_of_items(&device)?;
        let waits = device.stats().since(&before).calls_of("event_synchronize");
        let right = sum.to_vec()?.iter().all(|&number| number == ITEMS as f32);
        println!(
            "{ITEMS} items of {} KiB, {name}: the producer waits {waits} times; all right: {right}",
            (4 * LEN) >> 10
        );
    }
    Ok(())
}

/// Queues all work, and returns a sum that the device may not have computed yet.
fn sum_of_items(device: &Device) -> Result<DeviceArray<f32>> {
    let [producer, consumer] = [device.stream()?, device.stream()?];
    let [mut sum, mut next] = [device.alloc_array(&[LEN])?, device.alloc_array(&[LEN])?];
    ops::fill_into(0.0, &mut sum, &consumer)?;
    for _ in 0..ITEMS {
        let mut item = device.alloc_array_on(&[LEN], &producer)?;
        ops::fill_into(1.0, &mut item, &producer)?;
        ops::add_into(&sum, &item, &mut next, &consumer)?;
        std::mem::swap(&mut sum, &mut next);
    }
    Ok(sum)
}
