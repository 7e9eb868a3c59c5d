use super::*;

/// Waits until a thread waits for the budget, or has ended without.
fn until_waiting<T>(budget: &Budget, thread: &std::thread::ScopedJoinHandle<'_, T>) {
    while budget.lock().waiting == 0 && !thread.is_finished() {
        std::thread::yield_now();
    }
}

#[test]
fn a_block_far_ahead_waits_for_slow_blocks_that_still_run() {
    let budget = Budget::new(u64::MAX);
    assert!((1..WINDOW).all(|block| budget.has_room(block, true) && budget.spend(block, 1).is_none()));
    let far = std::thread::scope(|scope| {
        let far = scope.spawn(|| budget.has_room(WINDOW, true));
        until_waiting(&budget, &far);
        assert!(!far.is_finished(), "block 0 has not ended");
        assert!(!budget.has_room(WINDOW, false), "a thread that has block 0 itself must not wait for it");
        assert_eq!(budget.spend(0, 1), None);
        far.join().unwrap()
    });
    assert!(far);
    // Block `WINDOW` never ends.
    let gone = std::thread::scope(|scope| {
        let gone = scope.spawn(|| budget.has_room(2 * WINDOW, true));
        until_waiting(&budget, &gone);
        drop(budget.share());
        assert!(!budget.lock().closed && !gone.is_finished(), "others may end it yet");
        budget.close();
        gone.join().unwrap()
    });
    assert!(!gone);
}
