use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::*;

/// If the waiting worker took a caller's task, that task would find the driver locked by the
/// worker itself.
#[test]
fn a_worker_that_waits_for_a_launch_takes_up_nothing_else() {
    let callers = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let taken_up = Arc::new(AtomicBool::new(false));
    let seen = callers.install(|| {
        let task = Arc::clone(&taken_up);
        rayon::spawn(move || task.store(true, Ordering::SeqCst));
        install(|| {
            // The launch's own blocks run in parallel meanwhile.
            rayon::scope(|scope| scope.spawn(|_| std::thread::sleep(Duration::from_millis(50))));
            taken_up.load(Ordering::SeqCst)
        })
    });
    assert!(!seen.unwrap(), "the caller's task ran on the worker that waits");
}
