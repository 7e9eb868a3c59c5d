//! The caching allocator on several threads.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::alloc::{Allocate, Caching, Request, Statistics};
use crate::driver::StreamHandle;

/// Reads figures while another thread allocates and frees one block at a time, on two lanes.
fn reads_what_was_live(allocator: &dyn Allocate) {
    const BYTES: u64 = 64 << 20;
    // SAFETY: nothing is queued on the streams, which do not exist.
    let lanes = [1, 2].map(|stream| unsafe { allocator.open(StreamHandle(stream)) }.unwrap());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0.. {
                // SAFETY: the lanes are open.
                let block = unsafe { allocator.alloc(&Request::new(BYTES, &lanes[turn % 2])) }.unwrap();
                // SAFETY: it was just given out, and nothing uses it.
                unsafe { allocator.free(block, &lanes[turn / 2 % 2]) }.unwrap();
                if done.load(Relaxed) {
                    break;
                }
            }
        });
        for _ in 0..100_000 {
            let figures = allocator.figures();
            done.store(figures.peak_active > BYTES || figures.blocks > 1, Relaxed);
            assert!(figures.peak_active <= BYTES && figures.active <= BYTES, "{figures:?}");
            assert!(figures.blocks <= 1, "{figures:?}");
        }
        done.store(true, Relaxed);
    });
}

#[test]
fn figures_never_show_more_than_was_ever_in_use() {
    reads_what_was_live(&Caching::simulated(1 << 30));
    reads_what_was_live(&Statistics::new(Caching::simulated(1 << 30)));
}
