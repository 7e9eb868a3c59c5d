//! A value is used by several handles, and dropped once, after all its uses.

use loom::alloc::Track;
use loom::cell::UnsafeCell;
use loom::thread;

use super::shared::Shared;

crate::models! {
    the_value_is_dropped_after_its_uses,
    a_handle_is_cloned_while_others_are_dropped,
}

/// loom fails the model if the drop is not ordered after all reads, or if there is none.
struct Value {
    read: UnsafeCell<u32>,
    _dropped: Track<()>,
}

impl Value {
    fn new() -> Self {
        Self { read: UnsafeCell::new(7), _dropped: Track::new(()) }
    }

    fn read(&self) {
        // SAFETY: loom checks that no thread writes it.
        assert_eq!(self.read.with(|value| unsafe { *value }), 7);
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: loom checks that no thread reads it.
        self.read.with_mut(|value| unsafe { *value = 0 });
    }
}

fn the_value_is_dropped_after_its_uses() {
    let first = Shared::new(Value::new());
    let threads = [first.clone(), first.clone()].map(|handle| {
        thread::spawn(move || {
            handle.read();
            drop(handle);
        })
    });
    first.read();
    drop(first);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

fn a_handle_is_cloned_while_others_are_dropped() {
    let first = Shared::new(Value::new());
    let second = first.clone();
    let thread = thread::spawn(move || {
        let third = second.clone();
        drop(second);
        third.read();
        drop(third);
    });
    let fourth = first.clone();
    drop(first);
    fourth.read();
    drop(fourth);
    thread.join().unwrap();
}
