//! Every wait of an exchange is needed: without one of them, values are wrong under some order.

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};

use warpstride::distributed::{Distributed, Exchange, Gpus, Redistribution};
use warpstride::driver::Driver;
use warpstride::driver::soft::Soft;
use warpstride::interp::Checks;
use warpstride::{Device, Result, ops};

use super::Reach::{All, Engines, Islands};
use super::{Reach, permuted, split};
use crate::hooked::Hooked;

const GPUS: usize = 3;
const SHAPE: [usize; 2] = [6, 6];

/// How an exchange is made.
#[derive(Debug, Clone, Copy)]
struct Setting {
    /// True if it leaves multiprocessors to others.
    limited: bool,
    reach: Reach,
    /// The cuts of the source. The result is cut into three.
    from: &'static str,
}

/// The bytes of a piece that is packed. If all ranks have a third, each pair of them has two
/// pieces, and else one.
fn piece(setting: Setting) -> u64 {
    if setting.from.is_empty() { 48 } else { 8 }
}

/// GPUs of a host of which a wait for an event is lost: the one before which the counter is 0.
fn forgetful(seed: u64, Setting { limited, reach, .. }: Setting) -> (Arc<Gpus>, Arc<AtomicIsize>) {
    let left = Arc::new(AtomicIsize::new(isize::MAX));
    let open = |soft: Arc<Soft>| {
        let left = Arc::clone(&left);
        let mut hooked = Hooked::new(soft as Arc<dyn Driver>);
        hooked.forgets_wait = Box::new(move || left.fetch_sub(1, Ordering::Relaxed) == 0);
        Device::with_driver(Arc::new(hooked))
    };
    let devices = reach.islands(GPUS, seed, Checks::NONE).into_iter().map(open).collect::<Result<_>>().unwrap();
    let gpus = reach.gpus(devices).unwrap();
    (Arc::new(if limited { gpus.limited_to(1).unwrap() } else { gpus }), left)
}

/// Runs an exchange between work on the parts, with wait `forgotten` lost, and another one behind
/// it if `again`. Returns the elements, and the number of waits in the first exchange.
fn run(seed: u64, setting: Setting, again: bool, forgotten: isize) -> (Result<Vec<Vec<f32>>>, isize) {
    let (gpus, left) = forgetful(seed, setting);
    let [from, rows] = [setting.from, "0:3"].map(|cuts| split(&SHAPE, cuts));
    let elements: Vec<f32> = (1..=36_u8).map(f32::from).collect();
    let plain = Distributed::scatter(&gpus, &from, &elements).unwrap();
    let mut source = Distributed::scatter(&gpus, &from, &[0.5; 36]).unwrap();
    let results = [(); 4].map(|()| Distributed::scatter(&gpus, &rows, &[0.5; 36]).unwrap());
    let [mut result, mut kept, mut last, mut second] = results;
    let mut waits = 0;
    let exchange =
        Exchange::in_pieces(&gpus, &Redistribution::new(&from, [1, 0], &rows, 4).unwrap(), piece(setting)).unwrap();
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
        waits = forgotten - left.load(Ordering::Relaxed);
        for rank in 0..GPUS {
            let stream = gpus.device(rank).default_stream();
            ops::scale_into(3.0, result.part(rank), last.part_mut(rank), stream)?;
            ops::scale_into(0.0, plain.part(rank), source.part_mut(rank), stream)?;
        }
        if again { exchange.launch(&source, &mut second) } else { Ok(()) }
    };
    let outcome = work();
    left.store(isize::MAX, Ordering::Relaxed);
    // One GPU after the other, so that a seed always gives the same order.
    let mut turn = (0..GPUS).map(|step| gpus.device((seed as usize + step) % GPUS));
    let outcome = outcome.and_then(|()| turn.try_for_each(Device::synchronize));
    let gathered =
        outcome.and_then(|()| [&kept, &result, &last, &source, &second].map(Distributed::gather).into_iter().collect());
    (gathered, waits)
}

/// The seeds, one of which must find that a wait is left out.
const SEEDS: u64 = 64;

#[test]
fn no_wait_of_an_exchange_can_be_left_out() {
    let elements: Vec<f32> = (1..=36_u8).map(f32::from).collect();
    let turned = |factor: f32| permuted(&elements, &SHAPE, &[1, 0]).iter().map(|x| factor * x).collect::<Vec<_>>();
    let expected = |again: bool| {
        let second = vec![if again { 0.0 } else { 0.5 }; 36];
        vec![vec![0.5; 36], turned(2.0), turned(6.0), vec![0.0; 36], second]
    };
    for (limited, reach, from, planned) in [
        (false, All, "0:3", 18),
        (true, All, "0:3", 24),
        (false, Islands(1), "0:3", 36),
        (true, Islands(1), "", 11),
        (true, Engines, "0:3", 36),
        (false, Engines, "", 11),
    ] {
        let setting = Setting { limited, reach, from };
        let mut waits = 0;
        for seed in 0..SEEDS {
            for again in [false, true] {
                let (gathered, counted) = run(seed, setting, again, isize::MAX / 2);
                assert_eq!(gathered.unwrap(), expected(again), "seed {seed}");
                waits = counted;
            }
        }
        assert_eq!(waits, planned, "{setting:?}");
        for forgotten in 0..waits {
            let is_right = |seed| {
                let is_right = |again| run(seed, setting, again, forgotten).0.is_ok_and(|all| all == expected(again));
                is_right(false) && is_right(true)
            };
            assert!(!(0..SEEDS).all(is_right), "wait {forgotten} of {waits} is not needed: {setting:?}");
        }
    }
}
