use super::super::entry::Deed;
use super::super::order::Order;
use super::*;
use crate::gpu::modifiers::Sync;

fn meet(shadow: &mut Shadow, order: &Order, opcode: &str, warp: u32) -> Option<Entry> {
    let (sync, writes) = (Sync::of(opcode), !opcode.starts_with("ld"));
    let entry = Entry::new(order.block, warp, 0, Deed::new(0, writes, sync, 4), order.clock(warp));
    let new =
        Newcomer { entry, update: opcode.starts_with("atom"), now: order.now(warp, 0), alone: false, narrow: false };
    shadow.meet(0, new, || true)
}

#[test]
fn of_readers_that_publish_nothing_one_is_kept() {
    let (mut shadow, mut order) = (Shadow::new(1, Messages::new()), Order::new(4));
    for block in 0..100 {
        order.begin(block);
        (0..4).for_each(|warp| assert_eq!(meet(&mut shadow, &order, "ld.b32", warp), None));
        order.end();
    }
    assert_eq!((shadow.lists.len(), shadow.free.len()), (1, 1));
    let rival = meet(&mut shadow, &order, "st.b32", 0).unwrap();
    assert_eq!((rival.block(), rival.warp()), (0, 0));
}

#[test]
fn a_counter_of_many_is_one_entry() {
    let (mut shadow, mut order) = (Shadow::new(1, Messages::new()), Order::new(2));
    for block in 0..100 {
        order.begin(block);
        (0..2).for_each(|warp| assert_eq!(meet(&mut shadow, &order, "atom.add.u32", warp), None));
        order.end();
    }
    assert!(shadow.lists.is_empty());
    assert_eq!(meet(&mut shadow, &order, "st.b32", 1), None, "the last has seen all others");
    assert!(meet(&mut shadow, &order, "ld.b32", 0).is_some());
}

#[test]
fn strong_stores_over_and_over_take_a_bounded_list() {
    let (mut shadow, mut order) = (Shadow::new(1, Messages::new()), Order::new(1));
    order.begin(0);
    for _ in 0..1000 {
        assert_eq!(meet(&mut shadow, &order, "st.volatile.b32", 0), None);
        order.tick(0);
    }
    assert!(shadow.lists[0].members.len() <= LIMITED + 2);
}
