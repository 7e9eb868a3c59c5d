//! Communicators of software GPUs: the conformance suite, and how they end.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use warpstride::alloc::DriverMemory;
use warpstride::distributed::{
    Combine, Communicator, Deadline, Engine, Gpus, Message, Redistribution, Reduce, ShardExchange, Trace, TracedCall,
};
use warpstride::driver::Driver;
use warpstride::driver::trace::Trace as DriverTrace;
use warpstride::interp::Checks;
use warpstride::stream::Stream;
use warpstride::{Device, ErrorKind, Result};

use super::{devices, gpus, host, split};
use crate::communicators::{Altered, conforms};
use crate::long::short_or_long;

/// Long enough for anything that ends by itself.
pub(super) const AMPLE: Duration = Duration::from_secs(300);
/// The deadline of tests in which something does not come.
pub(super) const SHORT: Duration = Duration::from_millis(50);

/// Runs `rank` on a thread for each rank.
pub(super) fn on_threads<R: Send>(ranks: Vec<Communicator>, rank: impl Fn(&Arc<Communicator>) -> R + Sync) -> Vec<R> {
    let rank = &rank;
    thread::scope(|threads| {
        let start = |of: Communicator| threads.spawn(move || rank(&Arc::new(of)));
        let started: Vec<_> = ranks.into_iter().map(start).collect();
        started.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

pub(super) fn ranks(count: usize, seed: u64, deadline: Duration) -> Vec<Communicator> {
    let made = Communicator::local(&gpus(count, seed, false)).expect("communicators");
    made.into_iter().map(|of| of.with_deadline(deadline)).collect()
}

#[test]
fn communicators_of_software_gpus_conform() {
    for count in 1..=short_or_long(5, 8) {
        for seed in 0..short_or_long(2, 16) {
            let both = |of: &Arc<Communicator>| {
                conforms(of, short_or_long(6, 60))?;
                conforms(&Arc::new(Altered::by_messages(of)), short_or_long(6, 60))
            };
            on_threads(ranks(count as usize, seed, AMPLE), both).into_iter().for_each(|outcome| outcome.unwrap());
        }
    }
}

/// Ranks may share a GPU.
#[test]
fn communicators_of_one_gpu_conform() {
    let device = devices(&host(1, 1, Checks::ALL)).unwrap().remove(0);
    let gpus = Arc::new(Gpus::over(vec![device; 3]).unwrap());
    let both = |of: &Arc<Communicator>| {
        conforms(of, 6)?;
        conforms(&Arc::new(Altered::by_messages(of)), 6)
    };
    on_threads(Communicator::local(&gpus).unwrap(), both).into_iter().for_each(|outcome| outcome.unwrap());
}

/// Each call of each rank's engine fails in turn: every rank ends, with an error or with the right
/// values, and those that had no failure name the rank that had.
#[test]
fn every_call_of_an_engine_fails_in_turn() {
    let mut failed = 0;
    for (rank, call) in (0..2).flat_map(|rank| (0..short_or_long(40, 400)).map(move |call| (rank, call))) {
        let traced = ranks(2, call, AMPLE).into_iter().map(|of| {
            let trace = Trace::new(Arc::clone(of.engine()));
            let trace = if of.rank() == rank { trace.failing(call) } else { trace };
            Communicator::over(Arc::new(trace)).with_deadline(AMPLE)
        });
        let outcomes = on_threads(traced.collect(), |of| conforms(of, 1));
        let Err(error) = &outcomes[rank] else { continue };
        failed += 1;
        assert_eq!(error.to_string(), format!("call {call} of rank {rank} was made to fail"));
        let other = outcomes[1 - rank].as_ref().unwrap_err();
        assert_eq!(other.kind(), ErrorKind::Peer);
        assert!(other.to_string().contains(&error.to_string()), "{other}");
    }
    assert!(failed >= 60, "{failed}");
}

/// Makes each call of the driver of rank 0 fail in turn, while `work` runs on two ranks, until the
/// work makes no more calls. Returns the number of calls. Every rank ends.
pub(super) fn each_call_fails(work: impl Fn(Vec<Communicator>) -> Vec<Result<()>>) -> u64 {
    for call in 0.. {
        let soft = host(2, call, Checks::ALL);
        let traces: Vec<_> =
            soft.iter().map(|gpu| Arc::new(DriverTrace::new(Arc::clone(gpu) as Arc<dyn Driver>))).collect();
        let gpus = Arc::new(Gpus::over(devices(&traces).unwrap()).unwrap());
        let made = Communicator::local(&gpus).unwrap().into_iter().map(|of| of.with_deadline(AMPLE)).collect();
        traces[0].fail_nth(traces[0].calls().len() + call as usize);
        let outcomes = work(made);
        traces[0].fail_nothing();
        drop(gpus);
        soft.iter().for_each(|gpu| assert_eq!(gpu.findings(), [], "call {call}"));
        if outcomes.iter().all(Result::is_ok) {
            return call;
        }
    }
    unreachable!("the calls do not end")
}

/// Each call of a rank's driver fails in turn.
#[test]
fn every_call_of_a_driver_fails_in_turn() {
    let calls = each_call_fails(|made| {
        on_threads(made, |of| {
            let (device, stream) = (of.device(), of.device().default_stream());
            let (mine, mut sum) = (device.array(&[5], &[1.0_f32; 5])?, device.alloc_array(&[5])?);
            of.all_reduce(&mine, &mut sum, Combine::Sum, stream)?;
            of.wait(stream)?;
            assert_eq!(sum.to_vec()?, [2.0; 5]);
            Ok(())
        })
    });
    assert!(calls > 20, "{calls}");
}

#[test]
fn a_message_that_does_not_come_is_named_at_the_deadline() {
    let errors = on_threads(ranks(3, 0, SHORT), |of| {
        let (device, stream) = (of.device(), of.device().default_stream());
        let mut array = device.alloc_array::<f32>(&[4])?;
        match of.rank() {
            0 => of.receive(&mut array, 2, stream),
            // Lives on, so that it has not ended.
            _ => {
                thread::sleep(10 * SHORT);
                Ok(())
            }
        }
    });
    let error = errors[0].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Deadline);
    assert!(
        error.to_string().starts_with("the 16 bytes that rank 0 receives from rank 2 did not end within 50ms"),
        "{error}"
    );
}

#[test]
fn ranks_that_disagree_are_named() {
    let errors = on_threads(ranks(2, 0, AMPLE), |of| {
        let (device, stream) = (of.device(), of.device().default_stream());
        let mut array = device.alloc_array::<f32>(&[4 + of.rank()])?;
        if of.rank() == 0 { of.send(&array, 1, stream) } else { of.receive(&mut array, 0, stream) }
    });
    for error in errors {
        let text = error.unwrap_err().to_string();
        assert!(text.contains("rank 0 sends 16 bytes to rank 1, which receives 20 bytes"), "{text}");
    }
    let errors = on_threads(ranks(3, 0, AMPLE), |of| {
        let (from, to) = (split(&[4, 6], "0:3"), split(&[6, 4], if of.rank() == 2 { "1:3" } else { "0:3" }));
        ShardExchange::new(of, &Redistribution::new(&from, [1, 0], &to, 4)?).map(drop)
    });
    for error in errors {
        let text = error.unwrap_err().to_string();
        assert!(text.contains("rank 2 and rank 0 disagree about the redistribution"), "{text}");
    }
}

/// A rank that fails between the two exchanges of a reduction ends it for all: else its next call
/// would meet the peers in the middle of this one.
#[test]
fn a_reduction_that_one_rank_cannot_end_fails_on_all() {
    let soft = host(2, 0, Checks::ALL);
    let traces: Vec<_> =
        soft.iter().map(|gpu| Arc::new(DriverTrace::new(Arc::clone(gpu) as Arc<dyn Driver>))).collect();
    let gpus = Arc::new(Gpus::over(devices(&traces).unwrap()).unwrap());
    let made = Communicator::local(&gpus).unwrap().into_iter().map(|of| of.with_deadline(AMPLE)).collect();
    let errors = on_threads(made, |of| {
        let (device, stream) = (of.device(), of.device().default_stream());
        let (mine, mut sum) = (device.array(&[4], &[1.0_f32; 4])?, device.alloc_array(&[4])?);
        if of.rank() == 0 {
            traces[0].fail_method(warpstride::driver::trace::Method::Launch);
        }
        let first = of.all_reduce(&mine, &mut sum, Combine::Sum, stream);
        if of.rank() == 0 {
            traces[0].fail_nothing();
        }
        first.unwrap_err();
        of.all_reduce(&mine, &mut sum, Combine::Sum, stream)
    });
    errors.into_iter().for_each(|error| assert_eq!(error.unwrap_err().kind(), ErrorKind::Peer));
}

/// Several threads of a rank may agree at once.
#[test]
fn agreements_of_several_threads_do_not_meet() {
    for _ in 0..short_or_long(20, 200) {
        let outcomes = on_threads(ranks(2, 0, AMPLE), |of| {
            thread::scope(|threads| {
                let other = threads.spawn(|| of.agree("number", &7));
                of.agree("number", &7).and(other.join().expect("no panic"))
            })
        });
        outcomes.into_iter().for_each(|outcome| outcome.unwrap());
    }
}

#[test]
fn an_abort_ends_the_waits_of_all_ranks() {
    let errors = on_threads(ranks(2, 0, AMPLE), |of| {
        let mut array = of.device().alloc_array::<f32>(&[4])?;
        if of.rank() == 1 {
            let aborter = of.aborter();
            thread::spawn(move || aborter.abort("the user said so")).join().expect("no panic");
        }
        of.receive(&mut array, 1 - of.rank(), of.device().default_stream())
    });
    for error in errors {
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Peer);
        assert!(error.to_string().contains("the user said so"), "{error}");
    }
}

#[test]
fn a_rank_that_has_ended_is_named() {
    let mut all = ranks(2, 0, AMPLE);
    drop(all.pop());
    let (device, mut array) = (all[0].device().clone(), all[0].device().alloc_array::<f32>(&[4]).unwrap());
    for _ in 0..2 {
        let error = all[0].receive(&mut array, 1, device.default_stream()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Peer);
        assert!(error.to_string().contains("rank 1 has ended"), "{error}");
    }
    // The memory is free to use.
    device.upload(&[1_u8]).unwrap();
    device.synchronize().unwrap();
}

#[test]
fn operands_that_do_not_fit_are_refused_before_a_peer_waits() {
    let all = ranks(2, 0, SHORT);
    let (mine, other) = (all[0].device(), all[1].device());
    let (array, far) = (mine.array(&[2, 3], &[0_u8; 6]).unwrap(), other.array(&[2, 3], &[0_u8; 6]).unwrap());
    let stream = mine.default_stream();
    let refused = |outcome: Result<()>, kind: ErrorKind, words: &str| {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    };
    refused(all[0].send(&array, 2, stream), ErrorKind::InvalidArgument, "there is no rank 2");
    refused(all[0].send(&far, 1, stream), ErrorKind::InvalidArgument, "communicator of rank 0");
    refused(all[0].send(&array, 1, other.default_stream()), ErrorKind::InvalidArgument, "stream is of another device");
    refused(all[0].send(array.view().t(), 1, stream), ErrorKind::Layout, "C order without gaps");
    let mut result = mine.alloc_array::<u8>(&[3, 2]).unwrap();
    refused(all[0].all_to_all(&array, &mut result, stream), ErrorKind::Layout, "[2, 3] into shape [3, 2]");
    let (one, mut other_one) = (mine.array(&[], &[1_u8]).unwrap(), mine.alloc_array::<u8>(&[]).unwrap());
    refused(all[0].all_to_all(&one, &mut other_one, stream), ErrorKind::Layout, "cannot be divided among 2 ranks");
    refused(all[0].all_reduce(&array, &mut result, Combine::Max, stream), ErrorKind::Layout, "give equal shapes");
    refused(all[0].wait(other.default_stream()), ErrorKind::InvalidArgument, "another device");
    // Nothing of it reached the engine.
    let trace = Arc::new(Trace::new(Arc::clone(all[0].engine())));
    let traced = Communicator::over(Arc::clone(&trace) as Arc<dyn Engine>);
    traced.send(array.view().t(), 1, stream).unwrap_err();
    assert_eq!(trace.calls(), []);
    trace.abort("the end");
    assert_eq!(trace.calls(), [TracedCall::Abort("the end".into())]);
}

/// An engine whose abort did not end, as one of NCCL may: its work may begin at any time.
#[derive(Debug)]
struct Stuck(Arc<dyn Engine>, bool);

// SAFETY: it queues nothing.
unsafe impl Engine for Stuck {
    fn device(&self) -> &Device {
        self.0.device()
    }

    fn rank(&self) -> usize {
        0
    }

    fn ranks(&self) -> usize {
        1
    }

    unsafe fn exchange(&self, _: &[Message], _: &[Message], _: &Stream, by: Deadline) -> Result<()> {
        Err(by.error("a message"))
    }

    unsafe fn reduce(&self, _: Reduce, _: &Stream, by: Deadline) -> Result<()> {
        Err(by.error("a reduction"))
    }

    fn agree(&self, _: &str, _: u64, _: Deadline) -> Result<()> {
        Ok(())
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn may_still_run(&self) -> bool {
        self.1
    }

    fn abort(&self, _: &str) {}
}

#[test]
fn memory_of_work_that_may_still_run_is_not_freed() {
    for is_stuck in [false, true] {
        let soft = host(1, 0, Checks::ALL);
        let trace = Arc::new(DriverTrace::new(Arc::clone(&soft[0]) as Arc<dyn Driver>));
        let device = Device::with_allocator(Arc::clone(&trace) as Arc<dyn Driver>, |driver| {
            Ok(Arc::new(DriverMemory::new(driver)))
        })
        .unwrap();
        let gpus = Arc::new(Gpus::over(vec![device.clone()]).unwrap());
        let local = Communicator::local(&gpus).unwrap().remove(0);
        let communicator = Communicator::over(Arc::new(Stuck(Arc::clone(local.engine()), is_stuck)));
        let before = device.driver().memory().unwrap();
        let mut array = device.alloc_array::<f32>(&[1 << 10]).unwrap();
        communicator.receive(&mut array, 0, device.default_stream()).unwrap_err();
        drop(array);
        device.synchronize().unwrap();
        assert_eq!(device.driver().memory().unwrap() == before, !is_stuck);
    }
}
