//! Reads any text as an expectation of counters, or refuses it, and compares a report with what it
//! read. Nothing may panic, and what was read must have a text that reads the same.
//!
//! ```text
//! cargo +nightly fuzz run expect -- -max_len=1200
//! ```

#![no_main]

use libfuzzer_sys::fuzz_target;
use warpstride_interp::Report;
use warpstride_interp::expect::{Expectation, Verdicts};

fuzz_target!(|text: &str| {
    let Ok(expectation) = text.parse::<Expectation>() else { return };
    assert_eq!(expectation.to_string().parse::<Expectation>(), Ok(expectation.clone()));
    let report = Report { thread_instructions: u64::MAX, ..Report::default() };
    if let Ok(verdicts) = Verdicts::of(&report, &[expectation]) {
        assert_eq!(verdicts.to_string().lines().count(), 2);
    }
});
