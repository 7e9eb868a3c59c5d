//! Reads any text as a log of allocations, or refuses it, and replays what it read. Nothing may
//! panic, hang or exhaust the host's memory.
//!
//! ```text
//! cargo +nightly fuzz run alloc_log -- -max_len=16384 -timeout=10 -rss_limit_mb=2048
//! ```

#![no_main]

// The command line is a program, whose modules no other package can import.
#[allow(dead_code)]
#[path = "../../cli/src/alloc/log.rs"]
mod log;
#[allow(dead_code)]
#[path = "../../cli/src/alloc/play.rs"]
mod play;
#[allow(dead_code)]
#[path = "../../cli/src/refusal.rs"]
mod refusal;

use libfuzzer_sys::fuzz_target;

use log::Log;
use play::replay_simulated;
use refusal::{Refusal, refuse, require};

fuzz_target!(|text: &[u8]| {
    let Ok(log) = Log::read(text) else { return };
    if let Ok(outcome) = replay_simulated(&log, 1 << 51) {
        assert!(outcome.peak_reserved >= outcome.peak_active);
    }
});
