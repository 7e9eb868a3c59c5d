//! Reads any text as a log of allocations, or refuses it, and replays what it read. Nothing may
//! panic, hang or exhaust the host's memory.
//!
//! ```text
//! cargo +nightly fuzz run alloc_log -- -max_len=16384 -timeout=10 -rss_limit_mb=2048
//! ```

#![no_main]

// The command line is a program, whose modules no other package can import.
#[allow(dead_code)]
#[path = "../../cli/src/replay/mod.rs"]
mod replay;

use libfuzzer_sys::fuzz_target;
use warpstride::alloc::Caching;
use warpstride::driver::StreamHandle;

use replay::{Log, replay};

fuzz_target!(|text: &[u8]| {
    let Ok(log) = Log::read(text) else { return };
    let streams: Vec<_> = (0..u64::from(log.streams())).map(StreamHandle).collect();
    // SAFETY: a simulation has no streams.
    if let Ok(outcome) = unsafe { replay(&log, &Caching::simulated(1 << 51), &streams) } {
        assert!(outcome.peak_reserved >= outcome.peak_active);
    }
});
