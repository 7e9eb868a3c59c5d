//! The host threads that a launch has: rayon's with the feature `parallel`, else the caller's
//! alone.

/// How many there are.
pub(super) fn there_are() -> usize {
    #[cfg(feature = "parallel")]
    return rayon::current_num_threads();
    #[cfg(not(feature = "parallel"))]
    return 1;
}

/// Does `work` on `count` of them at a time, the caller's among them; at most as many as
/// [`there_are`].
pub(super) fn on_each(count: u64, work: impl Fn() + Sync) {
    #[cfg(feature = "parallel")]
    if count > 1 {
        return rayon::scope(|scope| {
            for _ in 1..count {
                scope.spawn(|_| work());
            }
            work();
        });
    }
    debug_assert_eq!(count, 1);
    work();
}
