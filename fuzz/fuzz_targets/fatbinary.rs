//! Reads any bytes as a fatbinary, and any text as PTX that is linked with itself, or refuses it.
//! Nothing may panic, hang or exhaust the host's memory.
//!
//! ```text
//! mkdir -p fuzz/corpus/fatbinary && cp cuda/tests/data/*.fatbin interp/tests/data/*.ptx fuzz/corpus/fatbinary
//! cargo +nightly fuzz run fatbinary -- -max_len=16384 -timeout=10 -rss_limit_mb=2048
//! ```

#![no_main]

#[path = "../../cuda/src/module/fatbin.rs"]
mod fatbin;
#[path = "../../cuda/src/module/join.rs"]
mod join;

use libfuzzer_sys::fuzz_target;
use warpstride::interp::MAX_TEXT_BYTES;

fuzz_target!(|bytes: &[u8]| {
    for entry in fatbin::entries(bytes).unwrap_or_default() {
        let length = entry.text().map_or(0, |text| text.len());
        // A byte that is not UTF-8 becomes a mark of three.
        assert!(length <= 3 * MAX_TEXT_BYTES && entry.runs_on(entry.architecture));
    }
    if let Ok(text) = str::from_utf8(bytes) {
        assert!(join::target(text).is_none_or(|(name, _)| name.starts_with("sm_")));
        drop(join::join(&[text.to_owned(), text.to_owned()]));
    }
});
