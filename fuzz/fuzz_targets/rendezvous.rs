//! Reads any bytes as the messages of a rendezvous, or refuses them. Nothing may panic or hang.
//!
//! ```text
//! cargo +nightly fuzz run rendezvous -- -max_len=16384 -timeout=10 -rss_limit_mb=2048
//! ```

#![no_main]

use libfuzzer_sys::fuzz_target;
use warpstride::distributed::check_frames;

fuzz_target!(|bytes: &[u8]| {
    let _ = check_frames(bytes);
});
