//! Host memory that is dropped while a copy uses it: when it is freed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use warpstride::Device;
use warpstride::driver::soft::Soft;
use warpstride::driver::{Driver, Memory};

use crate::hooked::Hooked;

#[test]
fn memory_is_not_freed_where_the_wait_for_its_copy_panics() {
    const LEN: usize = 64 << 10;
    for seed in 0..4 {
        let soft = Arc::new(Soft::with_seed(seed));
        let panics = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&panics);
        let before_wait = move || assert!(!asked.swap(false, Ordering::Relaxed), "the driver panics");
        let hooked = Hooked { before_wait: Box::new(before_wait), ..Hooked::new(Arc::clone(&soft) as Arc<dyn Driver>) };
        let device = Device::with_driver(Arc::new(hooked)).unwrap();
        let array = device.array(&[LEN], &[7_u8; LEN]).unwrap();
        drop(device.default_stream().download(&array, vec![0_u8; LEN]).unwrap());
        panics.store(true, Ordering::Relaxed);
        assert!(catch_unwind(AssertUnwindSafe(move || drop((array, device)))).is_err(), "the wait is the last one");
        // These get the memory if it was freed.
        let others = [(); 4].map(|()| vec![0x55_u8; LEN]);
        // The software GPU runs what is queued before it frees memory.
        let address = soft.alloc(256).unwrap();
        // SAFETY: the memory is this test's, and no work uses it.
        unsafe { soft.free(address) }.unwrap();
        assert!(others.iter().flatten().all(|&byte| byte == 0x55), "seed {seed}: a copy wrote other memory");
    }
}
