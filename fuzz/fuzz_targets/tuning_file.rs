//! Reads any text as a user's tuning file, or refuses it. Nothing may panic, hang or exhaust the
//! host's memory, and what is read is within what the kernels take.
//!
//! ```text
//! cargo +nightly fuzz run tuning_file -- -max_len=70000 -timeout=10 -rss_limit_mb=2048
//! ```

#![no_main]

use libfuzzer_sys::fuzz_target;
use warpstride::device::{Tuned, TuningFile};
use warpstride::driver::Driver;
use warpstride::driver::soft::Soft;

fuzz_target!(|text: &[u8]| {
    let soft = Soft::new();
    let _ = TuningFile::parse_plans(text, soft.info());
    if let Ok(Some(weights)) = TuningFile::parse_weights(text, soft.info()) {
        let again = TuningFile::with_weights(b"", soft.info(), &weights).expect("a new file");
        assert_eq!(TuningFile::parse_weights(again.as_bytes(), soft.info()), Ok(Some(weights)));
    }
    if let Ok(Some(row)) = TuningFile::parse(text, soft.info()) {
        assert_eq!(Tuned::new(row.across_log2(), row.copy_block(), row.fill_block()), Ok(row));
    }
});
