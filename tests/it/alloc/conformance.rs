//! The promises of every allocator, alone and wrapped.

#[cfg(feature = "interp")]
use std::sync::Arc;
use warpstride::alloc::{Allocate, Caching, Limit, Logged, Request, Statistics};
#[cfg(feature = "interp")]
use warpstride::alloc::{DriverMemory, HoldBack};
#[cfg(feature = "interp")]
use warpstride::driver::Driver;
use warpstride::driver::StreamHandle;
#[cfg(feature = "interp")]
use warpstride::driver::soft::{Config, Soft};
use warpstride::error::ErrorKind;

use super::Random;

const MEMORY: u64 = 32 << 20;

/// Holds one allocator to the contract of the trait. `streams` are live.
fn conforms(name: &str, allocator: &dyn Allocate, streams: [StreamHandle; 2]) {
    // SAFETY: the streams are live, and have no other lane.
    let lanes = streams.map(|stream| unsafe { allocator.open(stream) }.unwrap());
    assert_ne!(lanes[0].id, lanes[1].id, "{name}");
    // SAFETY: the lanes are open until the end.
    let alloc = |bytes, lane: usize| unsafe { allocator.alloc(&Request::new(bytes, &lanes[lane])) };
    let refused = alloc(0, 0).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{name}");
    let too_many = alloc(MEMORY + 1, 0).unwrap_err();
    assert_eq!(too_many.kind(), ErrorKind::OutOfMemory, "{name}");
    let (mut random, mut held, mut active) = (Random(7), Vec::new(), 0);
    for _ in 0..2000 {
        if random.below(2) == 0 {
            let lane = random.below(2) as usize;
            let bytes = 1 + random.below(50_000);
            let Ok(block) = alloc(bytes, lane) else { continue };
            assert_eq!((block.bytes, block.address % 256), (bytes, 0), "{name}");
            let end = block.address + bytes;
            assert!(
                held.iter().all(|(other, _): &(warpstride::alloc::Block, usize)| {
                    end <= other.address || other.address + other.bytes <= block.address
                }),
                "{name}: live blocks overlap"
            );
            active += bytes;
            held.push((block, lane));
        } else if !held.is_empty() {
            let (block, lane) = held.swap_remove(random.below(held.len() as u64) as usize);
            active -= block.bytes;
            // SAFETY: the allocator gave it out, and nothing uses it.
            unsafe { allocator.free(block, &lanes[lane]) }.unwrap();
        }
        let figures = allocator.figures();
        assert_eq!((figures.active, figures.blocks), (active, held.len() as u64), "{name}");
        assert!(figures.reserved >= active && figures.peak_reserved >= figures.reserved, "{name}");
        assert!(figures.peak_active >= active, "{name}");
    }
    for (block, lane) in held {
        // SAFETY: as above.
        unsafe { allocator.free(block, &lanes[lane]) }.unwrap();
    }
    allocator.trim(0).unwrap();
    assert_eq!(allocator.figures().reserved, 0, "{name}");
    assert!(allocator.snapshot().segments.is_empty(), "{name}");
    for lane in &lanes {
        // SAFETY: all blocks are freed.
        unsafe { allocator.close(lane) }.unwrap();
    }
}

#[test]
fn allocators_without_a_device_conform() {
    let streams = [StreamHandle(1), StreamHandle(2)];
    let cache = || Caching::simulated(MEMORY);
    conforms("a cache", &cache(), streams);
    conforms("a limit", &Limit::new(cache(), MEMORY), streams);
    conforms("statistics", &Statistics::new(cache()), streams);
    conforms("a log", &Logged::new(cache(), Box::new(std::io::sink())), streams);
    let all = Statistics::new(Limit::new(Logged::new(cache(), Box::new(std::io::sink())), MEMORY));
    conforms("all together", &all, streams);
}

#[cfg(feature = "interp")]
#[test]
fn allocators_over_a_driver_conform() {
    let soft = || {
        let soft: Arc<dyn Driver> = Arc::new(Soft::with_config(Config { memory_bytes: MEMORY, ..Config::default() }));
        let streams = [(); 2].map(|()| soft.stream_create().unwrap());
        (soft, streams)
    };
    let (driver, streams) = soft();
    conforms("the driver's memory", &DriverMemory::new(driver), streams);
    let (driver, streams) = soft();
    conforms("the driver's pool", &DriverMemory::pool(driver), streams);
    let (driver, streams) = soft();
    conforms("a cache", &Caching::new(driver).unwrap(), streams);
    let (driver, streams) = soft();
    let cache = Caching::new(Arc::clone(&driver)).unwrap();
    conforms("a brake", &HoldBack::new(cache, driver, MEMORY / 2), streams);
}

#[test]
fn an_error_lists_the_holders() {
    let cache = Caching::simulated(8 << 20);
    // SAFETY: a simulation has no streams.
    let lane = unsafe { cache.open(StreamHandle(1)) }.unwrap();
    // SAFETY: the lane is open, here and below.
    let large = unsafe { cache.alloc(&Request::new(6 << 20, &lane)) }.unwrap();
    // SAFETY: as above.
    let small = [(); 3].map(|()| unsafe { cache.alloc(&Request::new(1000, &lane)) }.unwrap());
    // SAFETY: as above.
    let error = unsafe { cache.alloc(&Request::new(4 << 20, &lane)) }.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    let text = error.to_string();
    for part in ["no 4.0 MiB", "conformance.rs:", "holds 6.0 MiB in 1 block on stream 0", "holds 3.0 KiB in 3 blocks"] {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
    for block in small.into_iter().chain([large]) {
        // SAFETY: the cache gave it out, and nothing uses it.
        unsafe { cache.free(block, &lane) }.unwrap();
    }
    // SAFETY: as above.
    let again = unsafe { cache.alloc(&Request::new(7 << 20, &lane)) };
    assert!(again.is_ok(), "what is free can be used in other sizes");
}
