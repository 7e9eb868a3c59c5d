//! Ranks that die, fail or call nothing: every other rank ends, and its error names the cause.

use std::thread;
use std::time::Duration;

use super::{AMPLE, Job, Meeting, Outcome, Rank};
use crate::long::{is_long, short_or_long};

#[test]
fn a_rank_that_calls_nothing_is_found_at_the_deadline() {
    let job = Job::new(2, &Meeting::File);
    let ranks = [job.start(0, "receives", 300, &[]), job.start(1, "is_silent", AMPLE, &[])];
    let [first, other] = ranks.map(Rank::end);
    first.is("Deadline", &["a group of messages of rank 0 did not end within 300ms"]);
    other.is("Peer", &["rank 0", "a group of messages of rank 0 did not end within 300ms"]);
}

#[test]
fn an_abort_ends_the_calls_of_all_ranks() {
    for peer in ["receives", "is_silent"] {
        let job = Job::new(2, &Meeting::File);
        let ranks = [job.start(0, "is_aborted", AMPLE, &[]), job.start(1, peer, AMPLE, &[])];
        let [first, other] = ranks.map(Rank::end);
        first.is("Peer", &["the user said so"]);
        other.is("Peer", &["rank 0 is lost: it aborted (", "the user said so"]);
    }
}

/// Returns a number below `bound`, by splitmix64.
fn drawn(seed: u64, bound: u64) -> u64 {
    let mixed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 27)) % bound
}

#[test]
fn a_rank_that_is_killed_is_named_by_all_others() {
    for seed in 0..short_or_long(6, 60) {
        let job = Job::new(3, &Meeting::File);
        // NCCL may know of the end before the ranks do.
        let remote: &[_] = if seed % 2 == 0 { &[("WARPSTRIDE_STUB_REMOTE", "1")] } else { &[] };
        let mut ranks: Vec<Rank> = (0..3).map(|rank| job.start(rank, "for_ever", AMPLE, remote)).collect();
        for rank in &mut ranks {
            assert_eq!(rank.hear().as_deref(), Some("met"));
        }
        let killed = seed as usize % 3;
        thread::sleep(Duration::from_micros(drawn(seed, 80_000)));
        drop(ranks.remove(killed));
        for outcome in ranks.into_iter().map(Rank::end) {
            outcome.is("Peer", &[&format!("rank {killed} is lost: ")]);
            assert!(outcome.seconds < AMPLE as f64 / 1e3 + 2.0, "{outcome:?}");
        }
    }
    let again = Job::new(3, &Meeting::File).run("short", AMPLE, |_| Vec::new());
    again.iter().for_each(|outcome| outcome.is("ok", &[]));
}

/// Runs two ranks, one of which has a variable.
fn with(task: &str, rank: usize, name: &str, value: &str) -> Vec<Outcome> {
    Job::new(2, &Meeting::File).run(task, AMPLE, |of| if of == rank { vec![(name, value)] } else { Vec::new() })
}

/// Each call of NCCL fails in turn: every rank ends, and the one that had no failure names the one
/// that had.
#[test]
fn every_call_of_nccl_fails_in_turn() {
    for failing in 0..2 {
        let mut failed = 0;
        for call in 1.. {
            let outcomes = with("short", failing, "WARPSTRIDE_STUB_FAIL", &call.to_string());
            let (one, other) = (&outcomes[failing], &outcomes[1 - failing]);
            if one.kind == "ok" {
                // The call was one of the end, or there is no such call.
                other.is("ok", &[]);
                if call > 12 {
                    break;
                }
                continue;
            }
            failed += 1;
            assert!(["Driver", "Unavailable"].contains(&&*one.kind), "call {call}: {one:?}");
            other.is("Peer", &[&format!("rank {failing} is lost: it aborted ("), &one.words]);
        }
        assert!(failed >= 9, "{failed}");
    }
}

#[test]
fn an_asynchronous_error_ends_all_ranks() {
    for question in [1, 4, 9] {
        let outcomes = with("for_ever", 1, "WARPSTRIDE_STUB_ASYNC", &question.to_string());
        outcomes[1].is("Driver", &["remote process exited, says the stub", "NCCL_DEBUG=WARN"]);
        outcomes[0].is("Peer", &["rank 1 is lost: ", "remote process exited, says the stub"]);
    }
}

#[test]
fn the_end_of_a_communicator_does_not_wait_for_ever() {
    let job = Job::new(2, &Meeting::File);
    let ranks = [job.start(0, "never_passes", AMPLE, &[]), job.start(1, "is_silent_after_all", AMPLE, &[])];
    let [first, other] = ranks.map(Rank::end);
    first.is("ok", &[]);
    // The last call had 50 ms.
    assert!((0.05..AMPLE as f64 / 1e3).contains(&first.seconds), "{first:?}");
    other.is("Peer", &["rank 0 is lost: it aborted (it dropped its communicator, whose work did not end"]);
}

/// The engine leaves an abort alone after ten seconds, so this is a test of the long form.
#[test]
fn an_abort_that_hangs_is_left_alone() {
    if !is_long() {
        return;
    }
    let job = Job::new(2, &Meeting::File);
    let hangs = [("WARPSTRIDE_STUB_HANG_ABORT", "1")];
    let ranks = [job.start(0, "receives", 300, &hangs), job.start(1, "is_silent", AMPLE, &[])];
    let [first, other] = ranks.map(Rank::end);
    first.is("Deadline", &["a group of messages of rank 0"]);
    assert!(first.seconds < AMPLE as f64 / 1e3, "{first:?}");
    other.is("Peer", &["rank 0"]);
    for outcome in with("short", 0, "WARPSTRIDE_STUB_HANG_FINALIZE", "1") {
        outcome.is("ok", &[]);
    }
}
