//! The caching allocator on several threads.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::alloc::{Allocate, Caching, Figures, Request, Statistics};
use crate::driver::StreamHandle;

/// Reads figures while another thread allocates and frees one block at a time, on the first and on
/// the last of many lanes. A block that is requested on one is often freed on the other.
fn reads_what_was_live(allocator: &dyn Allocate) {
    const BYTES: u64 = 64 << 20;
    const READS: u32 = 20_000;
    // SAFETY: nothing is queued on the streams, which do not exist.
    let open = |stream| unsafe { allocator.open(StreamHandle(stream)) }.unwrap();
    let lanes: Vec<_> = (0..200).map(open).collect();
    let lanes = [&lanes[0], &lanes[199]];
    // SAFETY: the lanes are open.
    let alloc = |lane: usize| unsafe { allocator.alloc(&Request::new(BYTES, lanes[lane])) }.unwrap();
    // SAFETY: `alloc` gave the block out, and nothing uses it.
    let free = |block, lane: usize| unsafe { allocator.free(block, lanes[lane]) }.unwrap();
    // Each lane has a block from here on, so all further requests are hits.
    [0, 1].map(|lane| (alloc(lane), lane)).into_iter().for_each(|(block, lane)| free(block, lane));
    let (begun, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let wrong = std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0.. {
                free(alloc(turn % 2), (turn / 2) % 2);
                begun.store(true, Relaxed);
                if done.load(Relaxed) {
                    break;
                }
            }
        });
        while !begun.load(Relaxed) {
            std::thread::yield_now();
        }
        let is_wrong =
            |figures: &Figures| figures.active > BYTES || figures.peak_active > 2 * BYTES || figures.blocks > 1;
        let wrong = (0..READS).map(|_| allocator.figures()).find(is_wrong);
        done.store(true, Relaxed);
        wrong
    });
    assert_eq!(wrong, None);
}

#[test]
fn figures_never_show_more_than_was_in_use() {
    reads_what_was_live(&Caching::simulated(1 << 30));
    reads_what_was_live(&Statistics::new(Caching::simulated(1 << 30)));
}
