//! `src/alloc/caching`: the lock of a lane, and the sums that are read without it.

#[path = "../../../src/alloc/caching/brief.rs"]
mod brief;
#[allow(dead_code, reason = "no model drains a list or asks for the holder of a block")]
#[path = "../../../src/alloc/caching/lane.rs"]
mod lane;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use self::brief::Brief;
use self::lane::{Slot, add, still};

crate::models! {
    one_thread_at_a_time_has_the_value,
    a_block_goes_to_one_thread_at_a_time,
    sums_never_show_more_than_was_in_use,
    sums_follow_a_block_that_another_thread_frees,
}

fn one_thread_at_a_time_has_the_value() {
    let sum = Arc::new(Brief::<u64>::default());
    let threads = [(); 2].map(|()| {
        let sum = Arc::clone(&sum);
        thread::spawn(move || (0..2).for_each(|_| *sum.enter() += 1))
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(*sum.enter(), 4);
}

/// Two threads on one lane share its list.
fn a_block_goes_to_one_thread_at_a_time() {
    let lane = Arc::new((Slot::default(), UnsafeCell::new(0)));
    lane.0.quick.enter().push(1, 0, 0);
    let threads = [(); 2].map(|()| {
        let lane = Arc::clone(&lane);
        thread::spawn(move || {
            let (slot, memory) = &*lane;
            let popped = slot.quick.enter().pop(1);
            if let Some(block) = popped {
                // SAFETY: loom checks that no other thread uses it.
                memory.with_mut(|memory| unsafe { *memory += 1 });
                slot.quick.enter().push(1, block.address, block.node);
            }
            popped.is_some()
        })
    });
    let got = threads.map(|thread| thread.join().unwrap());
    assert!(got.contains(&true));
    assert!(lane.0.quick.enter().pop(1).is_some(), "it came back");
}

fn alloc(slot: &Slot) {
    let quick = slot.quick.enter();
    add(&slot.sums.allocated, 1);
    drop(quick);
}

fn free(slot: &Slot) {
    let quick = slot.quick.enter();
    add(&slot.sums.freed, 1);
    drop(quick);
}

fn in_use(slots: &[Slot]) -> u64 {
    still(slots.iter().map(|slot| &slot.sums), |sums| &sums.allocated, |sums| &sums.freed)
}

/// Reads the sums while others go on. loom runs a thread that was started later after the others
/// first, and then finds out which of their stores to put off. The other way round it would miss
/// some, because they read their sums before they write them.
fn reader(slots: &Arc<[Slot; 2]>) -> thread::JoinHandle<()> {
    let slots = Arc::clone(slots);
    thread::spawn(move || assert!(in_use(&*slots) <= 1))
}

/// A block that is requested on one lane is freed on the other.
fn sums_never_show_more_than_was_in_use() {
    let slots = Arc::new([Slot::default(), Slot::default()]);
    let reader = reader(&slots);
    for turn in 0..2 {
        alloc(&slots[turn]);
        free(&slots[1 - turn]);
    }
    reader.join().unwrap();
    assert_eq!(in_use(&*slots), 0);
}

/// A block is handed to another thread, which frees it and then requests one of its own.
fn sums_follow_a_block_that_another_thread_frees() {
    let slots = Arc::new([Slot::default(), Slot::default()]);
    let handed = Arc::new(Brief::<bool>::default());
    let other = thread::spawn({
        let (slots, handed) = (Arc::clone(&slots), Arc::clone(&handed));
        move || {
            if *handed.enter() {
                free(&slots[1]);
                alloc(&slots[1]);
            }
        }
    });
    let reader = reader(&slots);
    alloc(&slots[0]);
    *handed.enter() = true;
    other.join().unwrap();
    reader.join().unwrap();
}
