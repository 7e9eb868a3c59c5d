//! A driver that panics in the middle of an exchange.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};

use warpstride::alloc::DriverMemory;
use warpstride::distributed::{Distributed, Exchange, Gpus, Redistribution};
use warpstride::driver::Driver;
use warpstride::interp::Checks;
use warpstride::{Device, Result};

use super::{islands, split};
use crate::hooked::Hooked;

/// The waits of an exchange among three GPUs: where they use each other's memory, and where none
/// does.
const WAITS: [(usize, isize); 2] = [(3, 18), (1, 36)];

/// The result is dropped right after the panic, and no push that was queued may touch its memory.
#[test]
fn a_panic_leaves_no_push_behind() {
    for (island, at) in WAITS.into_iter().flat_map(|(island, waits)| (0..waits).map(move |at| (island, at))) {
        let left = Arc::new(AtomicIsize::new(isize::MAX));
        let open = |soft| {
            let left = Arc::clone(&left);
            let mut hooked = Hooked::new(soft as Arc<dyn Driver>);
            hooked.forgets_wait = Box::new(move || {
                assert!(left.fetch_sub(1, Ordering::Relaxed) != 0, "injected");
                false
            });
            Device::with_allocator(Arc::new(hooked), |driver| Ok(Arc::new(DriverMemory::new(driver))))
        };
        let devices: Vec<Device> =
            islands(3, 0, Checks::NONE, island).into_iter().map(open).collect::<Result<_>>().unwrap();
        let gpus = Arc::new(Gpus::over(devices).unwrap());
        let rows = split(&[6, 6], "0:3");
        let source = Distributed::scatter(&gpus, &rows, &[1_f32; 36]).unwrap();
        let mut result = Distributed::<f32>::alloc(&gpus, &rows).unwrap();
        let exchange = Exchange::in_pieces(&gpus, &Redistribution::new(&rows, [1, 0], &rows, 4).unwrap(), 8).unwrap();
        exchange.launch(&source, &mut result).unwrap();
        gpus.synchronize().unwrap();
        left.store(at, Ordering::Relaxed);
        let launched = catch_unwind(AssertUnwindSafe(|| exchange.launch(&source, &mut result)));
        left.store(isize::MAX, Ordering::Relaxed);
        assert!(launched.is_err(), "wait {at}");
        drop(result);
        assert_eq!(gpus.synchronize(), Ok(()), "wait {at}");
    }
}
