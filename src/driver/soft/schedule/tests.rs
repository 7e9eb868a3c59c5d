use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::error::ErrorKind;

/// Runs all work towards a goal, and returns it in its order.
fn run(
    schedule: &mut Schedule<&'static str>,
    goal: impl FnOnce(&mut Schedule<&'static str>) -> Goal,
) -> Vec<&'static str> {
    let goal = goal(schedule);
    let next = || match schedule.next(&goal).unwrap() {
        Next::Work(work) => Some(work),
        Next::Reached => None,
        other => panic!("{other:?}"),
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn a_call_keeps_its_stream_busy_and_no_other() {
    for seed in (0..16).step_by(2) {
        let mut schedule = streams(seed, 2);
        schedule.push_call(0, "call");
        schedule.push(0, "behind");
        schedule.push(1, "other");
        let (own, other) = (schedule.everything_on(0), schedule.everything_on(1));
        assert_eq!(schedule.next(&own), Ok(Next::Call("call")));
        assert_eq!(schedule.next(&own), Ok(Next::Busy));
        assert_eq!(schedule.next(&other), Ok(Next::Work("other")));
        assert_eq!(schedule.next(&other), Ok(Next::Reached));
        assert!(schedule.close(0));
        schedule.finish(0);
        schedule.finish(0);
        assert_eq!(schedule.next(&own), Ok(Next::Work("behind")));
        assert_eq!(schedule.next(&own), Ok(Next::Reached));
    }
}

#[test]
fn a_condition_holds_back_and_lets_other_work_make_it_hold() {
    for seed in 0..16 {
        let mut schedule = streams(seed, 2);
        let met = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&met);
        schedule.push_until(0, Condition(Arc::new(move || seen.load(Ordering::Relaxed))));
        schedule.push(0, "behind");
        schedule.push(1, "other");
        let goal = schedule.everything_on(0);
        assert_eq!(schedule.next(&goal), Ok(Next::Work("other")), "seed {seed}");
        assert_eq!(schedule.next(&goal), Ok(Next::Unmet), "seed {seed}");
        met.store(true, Ordering::Relaxed);
        assert_eq!(schedule.next(&goal), Ok(Next::Work("behind")), "seed {seed}");
        assert_eq!(schedule.next(&goal), Ok(Next::Reached), "seed {seed}");
    }
}

#[test]
fn a_goal_that_nothing_leads_to_is_an_error_and_not_reached() {
    for seed in 0..4 {
        let mut schedule = streams(seed, 1);
        schedule.push(0, "a");
        let beyond = Goal { ends: [(0, 2)].into(), known: None };
        assert_eq!(schedule.next(&beyond), Ok(Next::Work("a")));
        assert_eq!(schedule.next(&beyond).unwrap_err().kind(), ErrorKind::Driver);
    }
}

fn streams(seed: u64, count: u64) -> Schedule<&'static str> {
    let mut schedule = Schedule::new(seed);
    (0..count).for_each(|stream| schedule.open(stream));
    schedule
}

#[test]
fn an_even_seed_runs_only_what_is_waited_for() {
    for seed in (0..64).step_by(2) {
        let mut schedule = streams(seed, 2);
        schedule.push(0, "a");
        schedule.push(1, "b");
        assert_eq!(run(&mut schedule, |queued| queued.everything_on(0)), ["a"]);
        assert_eq!(run(&mut schedule, Schedule::everything), ["b"]);
    }
}

#[test]
fn an_odd_seed_sometimes_runs_more() {
    let ran: BTreeSet<_> = (1..64)
        .step_by(2)
        .map(|seed| {
            let mut schedule = streams(seed, 2);
            schedule.push(0, "a");
            schedule.push(1, "b");
            run(&mut schedule, |queued| queued.everything_on(0))
        })
        .collect();
    assert!(ran.contains(&vec!["a"]) && ran.contains(&vec!["b", "a"]), "{ran:?}");
}

#[test]
fn streams_take_every_turn_that_is_legal_and_no_other() {
    let orders: BTreeSet<_> = (0..256)
        .map(|seed| {
            let mut schedule = streams(seed, 2);
            for (stream, work) in [(0, "a1"), (0, "a2"), (1, "b1"), (1, "b2")] {
                schedule.push(stream, work);
            }
            run(&mut schedule, Schedule::everything).concat()
        })
        .collect();
    let legal = ["a1a2b1b2", "a1b1a2b2", "a1b1b2a2", "b1a1a2b2", "b1a1b2a2", "b1b2a1a2"];
    assert_eq!(orders, legal.map(String::from).into());
}

#[test]
fn a_wait_pulls_in_what_it_waits_for_however_far() {
    for seed in 0..64 {
        let mut schedule = streams(seed, 3);
        schedule.push(0, "a");
        let first = schedule.record(0).unwrap();
        schedule.wait(1, &first);
        schedule.push(1, "b");
        let second = schedule.record(1).unwrap();
        schedule.wait(2, &second);
        schedule.push(2, "c");
        assert_eq!(run(&mut schedule, |queued| queued.everything_on(2)), ["a", "b", "c"], "seed {seed}");
        assert!(first.passed().unwrap() <= second.passed().unwrap());
    }
}

#[test]
fn a_mark_needs_nothing_queued_after_it() {
    let mut schedule = streams(0, 1);
    schedule.push(0, "before");
    let mark = schedule.record(0).unwrap();
    schedule.push(0, "after");
    assert_eq!(run(&mut schedule, |queued| queued.up_to(&mark)), ["before"]);
    assert!(mark.passed().is_some());
}

#[test]
fn a_wait_holds_the_record_it_saw_and_survives_the_stream() {
    for seed in 0..64 {
        let mut schedule = streams(seed, 2);
        schedule.push(0, "a");
        let mark = schedule.record(0).unwrap();
        assert!(schedule.close(0) && !schedule.is_live(0) && !schedule.close(0));
        assert!(schedule.record(0).is_none());
        schedule.wait(1, &mark);
        schedule.push(1, "b");
        assert_eq!(run(&mut schedule, |queued| queued.everything_on(1)), ["a", "b"], "seed {seed}");
        assert_eq!(schedule.streams.len(), 1, "the destroyed stream is gone once it has run dry");
    }
}

#[test]
fn the_same_seed_gives_the_same_order() {
    let order = |seed| {
        let mut schedule = streams(seed, 4);
        for stream in [0, 1, 2, 3].repeat(8) {
            schedule.push(stream, ["a", "b", "c", "d"][stream as usize]);
        }
        run(&mut schedule, Schedule::everything).concat()
    };
    assert_eq!(order(7), order(7));
    assert_ne!(order(7), order(8));
}
