//! A driver that panics in the middle of an exchange.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};

use warpstride::alloc::DriverMemory;
use warpstride::distributed::{Distributed, Exchange, Gpus, Redistribution};
use warpstride::driver::Driver;
use warpstride::interp::Checks;
use warpstride::{Device, Result};

use super::{host, split};
use crate::hooked::Hooked;

/// The waits of an exchange among three GPUs, each of which launches twice.
const WAITS: isize = 14;

/// The result is dropped right after the panic, and no push that was queued may touch its memory.
#[test]
fn a_panic_leaves_no_push_behind() {
    for at in 0..WAITS {
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
        let devices: Vec<Device> = host(3, 0, Checks::NONE).into_iter().map(open).collect::<Result<_>>().unwrap();
        let gpus = Arc::new(Gpus::over(devices).unwrap());
        let rows = split(&[6, 6], "0:1+1+4");
        let source = Distributed::scatter(&gpus, &rows, &[1_f32; 36]).unwrap();
        let mut result = Distributed::<f32>::alloc(&gpus, &rows).unwrap();
        let exchange = Exchange::new(&gpus, &Redistribution::new(&rows, [1, 0], &rows, 4).unwrap()).unwrap();
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
