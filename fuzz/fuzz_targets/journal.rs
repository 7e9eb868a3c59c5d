//! Reads any text as the journal of an interrupted run, or refuses it. Nothing may panic or hang.
//!
//! ```text
//! cargo +nightly fuzz run journal -- -max_len=16384 -timeout=10 -rss_limit_mb=2048
//! ```

#![no_main]

use libfuzzer_sys::fuzz_target;
use warpstride::out_of_core::check_journal;

fuzz_target!(|text: &[u8]| {
    let _ = check_journal(text);
});
