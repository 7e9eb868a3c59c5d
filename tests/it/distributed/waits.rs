//! Every wait of an exchange is needed: without one of them, values are wrong under some order.

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};

use warpstride::distributed::{Distributed, Exchange, Gpus, Redistribution};
use warpstride::driver::Driver;
use warpstride::driver::soft::Soft;
use warpstride::interp::Checks;
use warpstride::{Device, Result, ops};

use super::{host, permuted, split};
use crate::hooked::Hooked;

const GPUS: usize = 3;
const SHAPE: [usize; 2] = [6, 6];

/// GPUs of a host of which a wait for an event is lost: the one before which the counter is 0.
fn forgetful(seed: u64, limited: bool) -> (Arc<Gpus>, Arc<AtomicIsize>) {
    let left = Arc::new(AtomicIsize::new(isize::MAX));
    let open = |soft: Arc<Soft>| {
        let left = Arc::clone(&left);
        let mut hooked = Hooked::new(soft as Arc<dyn Driver>);
        hooked.forgets_wait = Box::new(move || left.fetch_sub(1, Ordering::Relaxed) == 0);
        Device::with_driver(Arc::new(hooked))
    };
    let devices = host(GPUS, seed, Checks::NONE).into_iter().map(open).collect::<Result<_>>().unwrap();
    let gpus = Gpus::over(devices).unwrap();
    (Arc::new(if limited { gpus.limited_to(1).unwrap() } else { gpus }), left)
}

/// Runs two exchanges between work on the parts, with wait `forgotten` lost. Returns the elements,
/// and the number of waits.
fn run(seed: u64, (cuts, limited): (&str, bool), forgotten: isize) -> (Result<Vec<Vec<f32>>>, isize) {
    let (gpus, left) = forgetful(seed, limited);
    let rows = split(&SHAPE, cuts);
    let elements: Vec<f32> = (1..=36_u8).map(f32::from).collect();
    let plain = Distributed::scatter(&gpus, &rows, &elements).unwrap();
    let arrays = [(); 4].map(|()| Distributed::scatter(&gpus, &rows, &[0.5; 36]).unwrap());
    let [mut source, mut result, mut kept, mut last] = arrays;
    let exchange = Exchange::new(&gpus, &Redistribution::new(&rows, [1, 0], &rows, 4).unwrap()).unwrap();
    gpus.synchronize().unwrap();
    left.store(forgotten, Ordering::Relaxed);
    let mut work = || {
        for rank in 0..GPUS {
            let stream = gpus.device(rank).default_stream();
            // The result is read before the exchange overwrites it, and the source is written. One
            // GPU has more to do, so that the others may be ahead of it.
            let times = if rank as u64 == seed % 3 { 8 } else { 1 };
            for _ in 0..times {
                ops::scale_into(1.0, result.part(rank), kept.part_mut(rank), stream)?;
            }
            ops::scale_into(2.0, plain.part(rank), source.part_mut(rank), stream)?;
        }
        exchange.launch(&source, &mut result)?;
        for rank in 0..GPUS {
            let stream = gpus.device(rank).default_stream();
            ops::scale_into(3.0, result.part(rank), last.part_mut(rank), stream)?;
            ops::scale_into(0.0, plain.part(rank), source.part_mut(rank), stream)?;
        }
        Ok(())
    };
    let outcome = work();
    let waits = forgotten - left.swap(isize::MAX, Ordering::Relaxed);
    // One GPU after the other, so that a seed always gives the same order.
    let mut turn = (0..GPUS).map(|step| gpus.device((seed as usize + step) % GPUS));
    let outcome = outcome.and_then(|()| turn.try_for_each(Device::synchronize));
    let gathered =
        outcome.and_then(|()| [&kept, &result, &last, &source].map(Distributed::gather).into_iter().collect());
    (gathered, waits)
}

/// The seeds, one of which must find that a wait is left out.
const SEEDS: u64 = 64;

#[test]
fn no_wait_of_an_exchange_can_be_left_out() {
    let elements: Vec<f32> = (1..=36_u8).map(f32::from).collect();
    let turned = |factor: f32| permuted(&elements, &SHAPE, &[1, 0]).iter().map(|x| factor * x).collect::<Vec<_>>();
    let expected = vec![vec![0.5; 36], turned(2.0), turned(6.0), vec![0.0; 36]];
    // Each rank has one launch, or two of which one may be on a stream of its own, or three.
    for (cuts, limited, expected_waits) in [("0:3", false, 12), ("0:1+1+4", false, 14), ("0:3", true, 24)] {
        let mut waits = 0;
        for seed in 0..SEEDS {
            let (gathered, counted) = run(seed, (cuts, limited), isize::MAX / 2);
            assert_eq!(gathered.unwrap(), expected, "seed {seed}");
            waits = counted;
        }
        assert_eq!(waits, expected_waits, "{cuts}");
        for forgotten in 0..waits {
            let is_right = |seed| run(seed, (cuts, limited), forgotten).0.is_ok_and(|gathered| gathered == expected);
            assert!(!(0..SEEDS).all(is_right), "wait {forgotten} of {waits} is not needed; {cuts}, limited: {limited}");
        }
    }
}
