//! `warpstride alloc bench`: the costs of a buffer's allocation and of its drop.

use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::run::table::Table;
use anyhow::Result;
use serde::Serialize;
use serde_json::json;
use warpstride::alloc::{Allocate, DriverMemory, Request};
use warpstride::device::{Backend, Device};
use warpstride::driver::DriverKind;
use warpstride::error::counted;
use warpstride::stream::Stream;

use crate::open;
use crate::output::{self, Output};
use crate::threads;

/// Bytes of the buffers.
const SIZES: [u64; 5] = [512, 64 << 10, 1 << 20, 64 << 20, 1 << 30];
/// The software GPU's memory is the host's.
const MOST_SOFT: u64 = 1 << 20;
/// Pairs of an allocation and a free for each figure on a GPU.
const PAIRS: u32 = 1_000_000;
/// The same on the software GPU, because a debug build is slow.
const PAIRS_SOFT: u32 = 200_000;
/// Pairs of the driver's own, which are slower.
const PAIRS_UNCACHED: u32 = 1000;
/// Threads whose pairs at once are held against those of one.
const THREADS: usize = 8;

/// Nanoseconds of a pair of one size; `null` for the software GPU's own memory, whose times mean
/// nothing.
#[derive(Serialize)]
struct Pair {
    bytes: u64,
    cache_ns: f64,
    pool_ns: Option<f64>,
    driver_ns: Option<f64>,
}

/// Pairs a second of several threads, each on a stream of its own.
#[derive(Serialize)]
struct Threads {
    threads: usize,
    pairs_per_second: f64,
}

pub(crate) fn run(backend: Backend, output: &Output) -> Result<()> {
    let device = open(backend, output)?;
    let is_soft = device.info().kind == DriverKind::Soft;
    let most = if is_soft { MOST_SOFT } else { device.info().memory_bytes / 4 };
    let each = if is_soft { PAIRS_SOFT } else { PAIRS };
    let progress = output.progress(1);
    let (mut pairs, mut synchronizing) = (Vec::new(), 0);
    let mut measured = |threads: usize, bytes: u64| -> Result<f64> {
        let (took, calls) = cached(&device, threads, bytes, each)?;
        synchronizing += calls;
        Ok(took.as_nanos() as f64 / f64::from(each))
    };
    for bytes in SIZES.into_iter().filter(|&bytes| bytes <= most) {
        progress.doing(counted(bytes, "byte").to_string());
        let cache_ns = measured(1, bytes)?;
        let of_driver = |pool: bool| {
            let measured = !is_soft && (!pool || device.driver().has_pool());
            measured.then(|| uncached(&device, pool, bytes)).transpose()
        };
        pairs.push(Pair { bytes, cache_ns, pool_ns: of_driver(true)?, driver_ns: of_driver(false)? });
    }
    progress.doing(counted(THREADS, "thread").to_string());
    let of = |threads: usize, ns: f64| Threads { threads, pairs_per_second: threads as f64 * 1e9 / ns };
    // The rate of one thread is that of the first row, so that the two agree.
    let rates = [of(1, pairs[0].cache_ns), of(THREADS, measured(THREADS, SIZES[0])?)];
    drop(progress);
    let scaling = rates[1].pairs_per_second / rates[0].pairs_per_second;
    let document = json!({
        "device": output::info_json(device.info()),
        "pairs": each,
        "uncached_pairs": PAIRS_UNCACHED,
        "sizes": pairs,
        "threads": rates,
        "scaling": scaling,
        "synchronizing_calls": synchronizing,
    });
    output.result(&text(&pairs, each, &rates, scaling, synchronizing), document)
}

/// Returns the time in which each of `threads` new threads makes `pairs` pairs that hit the cache,
/// each on a stream of its own, and the calls that can synchronise. The time is from the first
/// thread's first pair to the last thread's last one, so the start of the threads is not in it.
fn cached(device: &Device, threads: usize, bytes: u64, pairs: u32) -> Result<(Duration, u64)> {
    let pair = |stream: &Stream| device.alloc_on::<u8>(bytes as usize, stream).map(drop);
    let streams = (0..threads).map(|_| device.stream()).collect::<warpstride::Result<Vec<_>>>()?;
    streams.iter().try_for_each(pair)?;
    let before = device.stats().can_synchronize;
    let gate = RwLock::new(());
    let work = &|stream: &Stream| -> warpstride::Result<[Instant; 2]> {
        drop(gate.read().unwrap_or_else(PoisonError::into_inner));
        let start = Instant::now();
        (0..pairs).try_for_each(|_| pair(stream))?;
        Ok([start, Instant::now()])
    };
    let times = thread::scope(|scope| -> Result<Vec<_>> {
        // No thread passes before all have started. Where one does not start, the others pass, too.
        let closed = gate.write().unwrap_or_else(PoisonError::into_inner);
        let start = |stream| threads::start(scope, "pairs", move || work(stream));
        let running = streams.iter().map(start).collect::<warpstride::Result<Vec<_>>>()?;
        drop(closed);
        let ended = running.into_iter().map(|thread| thread.join().expect("an allocation does not panic"));
        Ok(ended.collect::<warpstride::Result<_>>()?)
    })?;
    let (first, last) = (times.iter().map(|[start, _]| start).min(), times.iter().map(|[_, end]| end).max());
    let took = first.zip(last).map_or(Duration::ZERO, |(first, last)| last.duration_since(*first));
    Ok((took, device.stats().can_synchronize - before))
}

/// Returns the nanoseconds of a pair without a cache, by the driver itself or by its pool: the mean
/// behind a first pair, which warms the driver up.
fn uncached(device: &Device, pool: bool, bytes: u64) -> Result<f64> {
    let make = if pool { DriverMemory::pool } else { DriverMemory::new };
    let (stream, memory) = (device.stream()?, make(Arc::clone(device.driver())));
    // SAFETY: the stream is live, and this memory has no other lane for it.
    let lane = unsafe { memory.open(stream.handle()) }?;
    let mut start = Instant::now();
    for pair in 0..=PAIRS_UNCACHED {
        if pair == 1 {
            start = Instant::now();
        }
        // SAFETY: the lane is open.
        let block = unsafe { memory.alloc(&Request::new(bytes, &lane)) }?;
        // SAFETY: it was just given out, and nothing uses it.
        unsafe { memory.free(block, &lane) }?;
    }
    let took = start.elapsed();
    // SAFETY: all blocks are freed.
    unsafe { memory.close(&lane) }?;
    Ok(took.as_nanos() as f64 / f64::from(PAIRS_UNCACHED))
}

fn text(pairs: &[Pair], each: u32, threads: &[Threads], scaling: f64, synchronizing: u64) -> String {
    let ns = |ns: Option<f64>| ns.map_or_else(|| "-".into(), |ns| format!("{ns:.1}"));
    let row = |pair: &Pair| vec![pair.bytes.to_string(), ns(Some(pair.cache_ns)), ns(pair.pool_ns), ns(pair.driver_ns)];
    let table = Table {
        words: 0,
        rows: pairs.iter().map(row).collect(),
        ..Table::new(&["bytes", "cache, ns", "driver's pool, ns", "driver, ns"])
    };
    let [cached, uncached] = [each, PAIRS_UNCACHED].map(|pairs| counted(pairs, "pair"));
    let mut text = format!(
        "An allocation and a free: the cache's figures are means of {cached}, the driver's of {uncached}.\n\n{table}\n"
    );
    for Threads { threads, pairs_per_second } in threads {
        let streams = if *threads == 1 { "on one stream" } else { "each on its own stream" };
        let (threads, bytes) = (counted(threads, "thread"), counted(SIZES[0], "byte"));
        text += &format!("{threads}, {streams}: {:.2} million pairs of {bytes} a second\n", pairs_per_second / 1e6);
    }
    text + &format!("scaling: {scaling:.2}; calls that can synchronise: {synchronizing}\n")
}
