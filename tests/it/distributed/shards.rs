//! Redistributions among ranks that each have their own shard: through windows, and by messages.

use std::sync::Arc;

use warpstride::distributed::{
    Communicator, Deadline, Engine, Redistribution, Shard, ShardExchange, Trace, TracedCall,
};
use warpstride::{ErrorKind, Result, ops};

use super::communicators::{AMPLE, SHORT, each_call_fails, on_threads, ranks};
use super::{permuted, split};
use crate::communicators::Altered;

const SHAPE: [usize; 2] = [24, 36];

fn elements() -> Vec<u32> {
    (0..24 * 36).collect()
}

/// The transpose of a matrix that is cut by rows.
fn plan(ranks: usize) -> Redistribution {
    let rows = format!("0:{ranks}");
    Redistribution::new(&split(&SHAPE, &rows), [1, 0], &split(&[36, 24], &rows), 4).unwrap()
}

/// A rank's shards, and an exchange in pieces of so many bytes.
fn operands(of: &Arc<Communicator>, piece: u64) -> Result<(ShardExchange, Shard<u32>, Shard<u32>)> {
    let plan = plan(of.ranks());
    let source = Shard::of_whole(of, plan.source(), &elements())?;
    let result = Shard::alloc(of.device(), plan.result(), of.rank())?;
    Ok((ShardExchange::in_pieces(of, &plan, piece)?, source, result))
}

/// Says whether a rank's shard of the result is right.
fn is_right(of: &Communicator, result: &Shard<u32>, elements: &[u32]) -> Result<bool> {
    let expected = permuted(elements, &SHAPE, &[1, 0]);
    let part = plan(of.ranks()).result().part(of.rank());
    let first = part.start()[0] * 24;
    Ok(ops::contiguous(result.view())?.to_vec()? == expected[first..first + part.len()])
}

/// Hides the windows of every communicator, or of none.
fn by(messages: bool, ranks: Vec<Communicator>) -> Vec<Communicator> {
    ranks.into_iter().map(|of| if messages { Altered::by_messages(&of) } else { of }).collect()
}

#[test]
fn a_launch_neither_waits_for_a_device_nor_allocates() {
    for messages in [false, true] {
        let seen = on_threads(by(messages, ranks(3, 0, AMPLE)), |of| {
            let (exchange, source, mut result) = operands(of, 100).unwrap();
            for _ in 0..3 {
                exchange.launch(&source, &mut result).unwrap();
            }
            of.wait(of.device().default_stream()).unwrap();
            let before = of.device().stats();
            for _ in 0..20 {
                exchange.launch(&source, &mut result).unwrap();
            }
            let calls = of.device().stats().since(&before);
            of.wait(of.device().default_stream()).unwrap();
            assert!(is_right(of, &result, &elements()).unwrap());
            assert_eq!((calls.can_synchronize, calls.memory), (0, before.memory), "{calls}");
            calls.calls_of("launch")
        });
        // Each of two peers gets 4 KiB or less from a rank.
        assert!(seen.iter().all(|&launches| launches >= 20 * 5), "{seen:?}");
    }
}

/// Launches twice, with two arrays, on two ranks that skip a meeting. Returns whether all results
/// were right.
fn is_right_without(skipped: u64, piece: u64, seed: u64) -> bool {
    let engines = ranks(2, seed, AMPLE).into_iter().map(|of| Altered::without_meeting(&of, skipped));
    let right = on_threads(engines.collect(), |of| {
        let (exchange, source, mut result) = operands(of, piece)?;
        let backwards: Vec<u32> = elements().into_iter().rev().collect();
        let other = Shard::of_whole(of, plan(2).source(), &backwards)?;
        let mut second = Shard::alloc(of.device(), plan(2).result(), of.rank())?;
        exchange.launch(&source, &mut result)?;
        exchange.launch(&other, &mut second)?;
        of.wait(of.device().default_stream())?;
        Ok::<_, warpstride::Error>(is_right(of, &result, &elements())? && is_right(of, &second, &backwards)?)
    });
    right.into_iter().all(|right| right.unwrap())
}

/// Without a meeting, a rank sorts what has not arrived, or stores over what has not been sorted.
/// The software GPUs show it for some of their seeds.
#[test]
fn a_missing_meeting_is_found() {
    // In two pieces, meeting 0 and 3 come before anything is pushed: there the other ones suffice,
    // as in the first launch.
    for (piece, needed) in [(500, vec![1, 2, 4, 5]), (1 << 20, vec![1, 2, 3])] {
        assert!((0..64).all(|seed| is_right_without(u64::MAX, piece, seed)));
        for skipped in needed {
            assert!((0..64).any(|seed| !is_right_without(skipped, piece, seed)), "meeting {skipped} of {piece} bytes");
        }
    }
}

/// Ranks that launch two exchanges in different orders are told so.
#[test]
fn exchanges_in_two_orders_are_an_error() {
    for messages in [false, true] {
        let errors = on_threads(by(messages, ranks(2, 0, AMPLE)), |of| {
            let (first, source, mut result) = operands(of, 1 << 20).unwrap();
            let (second, ..) = operands(of, 300).unwrap();
            let order = if of.rank() == 0 { [&first, &second] } else { [&second, &first] };
            order.iter().find_map(|exchange| exchange.launch(&source, &mut result).err())
        });
        let errors: Vec<_> = errors.into_iter().map(|error| error.expect("an error on each rank")).collect();
        assert!(errors.iter().all(|error| error.kind() == ErrorKind::Peer), "{errors:?}");
        let words = if messages { "give both calls one shape" } else { "make the same calls in the same order" };
        assert!(errors.iter().any(|error| error.to_string().contains(words)), "{errors:?}");
    }
}

/// Each call of a rank's driver fails in turn: every rank ends, and the results that come are
/// right.
#[test]
fn every_call_of_a_driver_fails_in_turn() {
    for messages in [false, true] {
        let calls = each_call_fails(|made| {
            on_threads(by(messages, made), |of| {
                let (exchange, source, mut result) = operands(of, 700)?;
                exchange.launch(&source, &mut result)?;
                of.wait(of.device().default_stream())?;
                assert!(is_right(of, &result, &elements())?, "rank {}", of.rank());
                Ok(())
            })
        });
        assert!(calls > 60, "{calls}");
    }
}

/// Exchanges of one communicator use its window one after the other, and a larger one only where
/// they need it.
#[test]
fn exchanges_share_a_window() {
    let traced = ranks(2, 0, AMPLE).into_iter().map(|of| Arc::new(Trace::new(Arc::clone(of.engine()))));
    let traced: Vec<Arc<Trace>> = traced.collect();
    let communicators = traced.iter().map(|trace| Communicator::over(Arc::clone(trace) as Arc<dyn Engine>));
    on_threads(communicators.collect(), |of| {
        let (large, source, mut first) = operands(of, 1 << 20).unwrap();
        let (small, _, mut second) = operands(of, 100).unwrap();
        large.launch(&source, &mut first).unwrap();
        small.launch(&source, &mut second).unwrap();
        large.launch(&source, &mut second).unwrap();
        small.launch(&source, &mut first).unwrap();
        of.wait(of.device().default_stream()).unwrap();
        assert!(is_right(of, &first, &elements()).unwrap() && is_right(of, &second, &elements()).unwrap());
        assert!(large.to_string().contains("into the windows of its peers"), "{large}");
    });
    for trace in &traced {
        let bytes_of = |call: &TracedCall| if let TracedCall::Window { bytes } = call { Some(*bytes) } else { None };
        let asked: Vec<u64> = trace.calls().iter().filter_map(bytes_of).collect();
        assert_eq!(asked.len(), 2, "{asked:?}");
        assert!(asked[0] > asked[1], "{asked:?}");
    }
}

#[test]
fn windows_of_the_ranks_have_one_size() {
    let opened = on_threads(ranks(3, 0, AMPLE), |of| {
        let by = Deadline::after(AMPLE);
        let [first, again, larger] = [512, 256, 513].map(|bytes| of.engine().window(bytes, by).unwrap().unwrap());
        assert_eq!(first, again);
        assert_eq!((larger.bytes, larger.addresses.len()), (513, 3));
        first.addresses
    });
    assert!(opened.iter().all(|addresses| *addresses == opened[0]));
    let errors = on_threads(ranks(2, 0, AMPLE), |of| {
        let bytes = if of.rank() == 0 { 512 } else { 1024 };
        of.engine().window(bytes, Deadline::after(AMPLE)).unwrap_err()
    });
    assert!(errors.iter().all(|error| error.kind() == ErrorKind::Peer), "{errors:?}");
    assert!(errors.iter().any(|error| error.to_string().contains("asks for a window of")), "{errors:?}");
}

#[test]
fn a_rank_that_does_not_open_a_window_is_an_error_at_the_deadline() {
    let errors = on_threads(ranks(2, 0, SHORT), |of| {
        (of.rank() == 0).then(|| of.engine().window(64, Deadline::after(SHORT)).unwrap_err())
    });
    let error = errors[0].as_ref().unwrap();
    assert!(matches!(error.kind(), ErrorKind::Deadline | ErrorKind::Peer), "{error}");
    assert!(error.to_string().contains("the window of rank 0"), "{error}");
}

/// The memory of a GPU has no room for the window, so the exchange is an error on all ranks.
#[test]
fn a_window_without_room_is_an_error_on_all_ranks() {
    let errors = on_threads(ranks(2, 0, AMPLE), |of| {
        let by = Deadline::after(AMPLE);
        let bytes = if of.rank() == 0 { 1 << 40 } else { 64 };
        of.engine().window(bytes, by).unwrap_err()
    });
    assert_eq!(errors[0].kind(), ErrorKind::OutOfMemory, "{errors:?}");
    assert!(errors[1].kind() == ErrorKind::Peer && errors[1].to_string().contains("rank 0 failed"), "{errors:?}");
}
