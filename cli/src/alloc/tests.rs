//! Replays: the bars of memory, and logs that a program reads.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufWriter;
use std::sync::Barrier;

use proptest::prelude::*;
use warpstride::alloc::{Allocate, Caching, Logged, Request};
use warpstride::device::{Backend, Device};
use warpstride::driver::StreamHandle;

use super::log::{Call, LeftOut, Log};
use super::play::replay_simulated;
use crate::long::short_or_long;

/// The long form runs 10^6 operations for each seed.
#[test]
fn peak_reserved_is_within_a_tenth_of_peak_active() {
    for seed in 0..5 {
        let log = Log::random(seed, short_or_long(20_000, 1_000_000));
        let outcome = replay_simulated(&log, 80 << 30).unwrap();
        assert!(outcome.ratio() <= 1.10, "seed {seed}: {}", outcome.ratio());
        assert!(outcome.peak_active > 19 << 30, "seed {seed}: {}", outcome.peak_active);
        assert_eq!((outcome.figures.active > 0, outcome.samples.len() > 500), (true, true), "seed {seed}");
    }
    assert_eq!(Log::random(3, 1000), Log::random(3, 1000));
    assert_ne!(Log::random(3, 1000), Log::random(4, 1000));
}

/// Rows as RMM writes them.
const RMM: &str = "Thread,Time,Action,Pointer,Size,Stream\n\
    8,14:02:11.000001,allocate,0x7f0a40000000,1024,0x0\n\
    8,14:02:11.000002,allocate failure,0x0,99999999999,0x0\n\
    8,14:02:11.000003,allocate,0x7f0a40000400,512,0x5581\n\
    8,14:02:11.000004,allocate,0x0,0,0x0\n\
    8,14:02:11.000005,free,0x7f0a40000000,1024,0x5581\n\
    8,14:02:11.000006,free,0x0,0,0x0\n\
    9,14:02:11.000007,allocate,0x7f0a40000000,2048,0x0\n";

/// The bytes that PyTorch's allocator reserved at most for `training-steps.csv`, three steps of a
/// transformer on an H100 (`benches/peers/memory.py record`).
const PYTORCH_RESERVED: u64 = 8_770_289_664;

#[test]
fn training_steps_reserve_less_than_with_pytorch() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/training-steps.csv");
    let log = Log::read(std::fs::File::open(path).unwrap()).unwrap();
    let outcome = replay_simulated(&log, 80 << 30).unwrap();
    assert!(outcome.ratio() <= 1.10 && outcome.peak_reserved < PYTORCH_RESERVED, "{}", outcome.peak_reserved);
    assert_eq!(outcome.peak_active, 7_960_317_128);
}

#[test]
fn a_log_of_rmm_is_read() {
    let log = Log::read(RMM.as_bytes()).unwrap();
    let allocated = |line, slot, bytes, stream| Call { is_free: false, slot, bytes, stream, line };
    let freed = Call { is_free: true, ..allocated(6, 0, 1024, 1) };
    assert_eq!(log.calls, [allocated(2, 0, 1024, 0), allocated(4, 1, 512, 1), freed, allocated(8, 0, 2048, 0)]);
    let left_out = |why, rows, first_line| LeftOut { why, rows, first_line };
    assert_eq!(log.left_out, [left_out("failed allocations", 1, 3), left_out("blocks of 0 bytes", 2, 5)]);
    assert_eq!((log.slots, log.streams, log.peak), (2, 2, (3, 2560)));
    let outcome = replay_simulated(&log, 1 << 30).unwrap();
    assert_eq!((outcome.peak_active, outcome.peak_reserved, outcome.figures.blocks), (2560, 2 << 20, 2));
}

/// Blocks go from thread to thread, so one frees an address and another allocates it again. The
/// long form makes fifty times as many allocations.
#[test]
fn the_log_of_threads_is_read_again() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let logged = Logged::new(Caching::simulated(1 << 30), Box::new(BufWriter::new(file.reopen().unwrap())));
    let (streams, turns) = ([1, 2, 3, 4].map(StreamHandle), short_or_long(2000, 100_000));
    let all_run = Barrier::new(streams.len());
    std::thread::scope(|scope| {
        for stream in streams {
            let (logged, all_run) = (&logged, &all_run);
            scope.spawn(move || {
                // SAFETY: a simulation has no streams.
                let lane = unsafe { logged.open(stream) }.unwrap();
                let pair = |bytes| {
                    // SAFETY: the lane is open.
                    let block = unsafe { logged.alloc(&Request::new(bytes, &lane)) }.unwrap();
                    // SAFETY: it was just given out, and nothing uses it.
                    unsafe { logged.free(block, &lane) }.unwrap();
                };
                for turn in 0..turns {
                    // The lines of 1000 turns of all threads are less than may wait for the writer,
                    // so none are lost, however long the thread that writes is held up.
                    if turn % 1000 == 0 {
                        all_run.wait();
                    }
                    pair(1 << (10 + turn % 9));
                    if turn % 16 == 0 {
                        logged.trim(0).unwrap();
                    }
                }
                // After the turns the allocator gives back all that it kept. Then one thread after
                // the other takes the block that the thread before has freed.
                all_run.wait();
                logged.trim(0).unwrap();
                for of_turn in streams {
                    all_run.wait();
                    if of_turn == stream {
                        pair(1 << 10);
                    }
                }
                all_run.wait();
                // SAFETY: all blocks are freed.
                unsafe { logged.close(&lane) }.unwrap();
            });
        }
    });
    // The drop writes the lines that the buffer still holds.
    drop(logged);
    let text = std::fs::read_to_string(file.path()).unwrap();
    let log = Log::read(text.as_bytes()).unwrap();
    assert_eq!(log.calls.len(), 8 * (turns + 1));
    assert!((1 << 18..=1 << 20).contains(&log.peak.1), "{:?}", log.peak);
    let mut threads_of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        threads_of.entry(fields[3]).or_default().insert(fields[0]);
    }
    assert!(threads_of.values().any(|threads| threads.len() > 1), "no address changed threads: {threads_of:?}");
}

#[test]
fn a_log_that_is_none_is_refused_with_its_line() {
    const COLUMNS: &str = "Thread,Time,Action,Pointer,Size,Stream";
    for (text, parts) in [
        ("a,b\n1,2\n", vec!["no column `Action`"]),
        ("", vec!["no column `Action`"]),
        ("\n0,0,allocate,0x1,12,0\n0,0,free,0x2,12,0\n", vec!["line 3", "0x2 is freed, but is not allocated"]),
        ("\n0,0,allocate,0x1,12,0\n0,0,allocate,0x1,12,0\n", vec!["line 3", "has not been freed"]),
        ("\n0,0,allocate,zebra,12,0\n", vec!["line 2", "`zebra` is not a pointer"]),
        ("\n0,0,allocate,0x1,-12,0\n", vec!["line 2", "`-12` is not a number of bytes"]),
        ("\n0,0,allocate,0x1,2000000000000000,0\n", vec!["line 2", "more than any device has"]),
        ("\n0,0,realloc,0x1,0,0\n", vec!["line 2", "`realloc` is not an action"]),
        ("\n0,0,realloc,0x1,12,0\n", vec!["line 2", "`realloc` is not an action"]),
        ("\n0,0,allocate\n", vec!["line 2", "only 3 fields"]),
    ] {
        let columns = if text.starts_with('\n') { COLUMNS } else { "" };
        let error = Log::read(format!("{columns}{text}").as_bytes()).unwrap_err();
        assert_eq!(crate::error_kind(&error), Some(warpstride::ErrorKind::InvalidArgument), "{error}");
        let said = crate::message(&error);
        parts.iter().for_each(|part| assert!(said.contains(part), "{part:?} is not in {said}"));
    }
    let long = format!("{COLUMNS}\n{}", "9".repeat(1 << 20));
    assert!(Log::read(long.as_bytes()).unwrap_err().to_string().contains("line 2 of the log has more than 4096 bytes"));
}

/// A user of the command line has no use for the lines and the calls of this program.
#[test]
fn memory_that_runs_out_names_options_and_no_code() {
    let device = Device::open(Backend::Soft).unwrap();
    device.set_pinned_limit(4096);
    let pinned = device.pinned::<u8>(1 << 20).map(drop).unwrap_err();
    let cache = Caching::simulated(1 << 20);
    // SAFETY: a simulation has no streams.
    let lane = unsafe { cache.open(StreamHandle(1)) }.unwrap();
    // SAFETY: the lane is open.
    let allocated = unsafe { cache.alloc(&Request::new(1 << 30, &lane)) }.map(drop).unwrap_err();
    for error in [pinned, allocated] {
        let said = crate::message(&error.clone().into());
        assert!(said.ends_with("; take a smaller shape, batch or input"), "{said}");
        assert!(!said.contains(".rs") && !said.contains("Device::"), "{said}");
        assert_ne!(said, error.to_string());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: short_or_long(200, 20_000), failure_persistence: None, ..ProptestConfig::default() })]

    /// Any text is read or refused, and what is read can be replayed. The long form tries a
    /// hundred times as many texts.
    #[test]
    fn any_text_is_read_or_refused(
        mut text in prop::collection::vec(any::<u8>(), 0..300),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        from_rmm in any::<bool>(),
    ) {
        if from_rmm {
            text = RMM.into();
            edits.iter().for_each(|(at, byte)| *at.get_mut(text.as_mut_slice()) = *byte);
        }
        if let Ok(log) = Log::read(text.as_slice()) {
            prop_assert!(replay_simulated(&log, 1 << 40).is_ok() || log.peak.1 > 1 << 39);
        }
    }
}
