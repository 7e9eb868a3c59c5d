//! Threads that copy, and stay between copies.
//!
//! To start eight threads and to end them took a large part of a millisecond a copy on an H100's
//! host (`benches/record/2026-11-23-h100/transfers.md`).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::abort;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::{io, mem};

use super::job::Job;
use super::lane::{Lane, Slots};
use crate::error::Result;

/// How a part of a copy ended: with its result, or with a panic.
type Outcome = Result<Result<()>, Box<dyn Any + Send>>;

/// A thread with a lane, which waits for copies. It ends with its handle.
pub(super) struct Helper {
    /// `None` once the handle is being dropped.
    tasks: Option<Sender<Task>>,
    outcomes: Receiver<Outcome>,
    thread: Option<JoinHandle<()>>,
}

/// A copy that a helper takes part in.
struct Task {
    job: Arc<Job>,
    slots: Slots,
}

impl Helper {
    pub(super) fn new(lane: Lane) -> io::Result<Self> {
        let (tasks, taken) = channel();
        let (made, outcomes) = channel();
        let thread = Builder::new().name("warpstride copies".into()).spawn(move || work(lane, &taken, &made))?;
        Ok(Self { tasks: Some(tasks), outcomes, thread: Some(thread) })
    }

    /// Begins to take part in a copy. The caller calls [`Helper::wait`] next.
    ///
    /// # Safety
    ///
    /// - As [`Lane::run`], until `wait` has returned.
    pub(super) unsafe fn start(&self, job: &Arc<Job>, slots: Slots) {
        let task = Task { job: Arc::clone(job), slots };
        // A helper that has ended takes no piece, and `wait` says so.
        let _ = self.tasks.as_ref().map(|tasks| tasks.send(task));
    }

    /// Returns when the helper uses nothing of the copy any more. After a failure it ends.
    pub(super) fn wait(&self) -> Outcome {
        self.outcomes.recv().unwrap_or_else(|ended| Err(Box::new(ended)))
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.tasks = None;
        if let Some(thread) = self.thread.take() {
            // `wait` gave the panic to the caller.
            let _ = thread.join();
        }
    }
}

/// Takes part in copies until one fails, or the handle is dropped.
fn work(mut lane: Lane, tasks: &Receiver<Task>, outcomes: &Sender<Outcome>) {
    for Task { job, slots } in tasks {
        // SAFETY: the promises to `Helper::start`, which hold until the outcome is sent.
        let outcome = catch_unwind(AssertUnwindSafe(|| unsafe { lane.run(&job, slots) }));
        if !matches!(outcome, Ok(Ok(()))) {
            // This waits for copies that are still queued.
            let wait = Abort;
            drop(lane);
            mem::forget(wait);
            let _ = outcomes.send(outcome);
            return;
        }
        let _ = outcomes.send(outcome);
    }
}

/// Ends the process if a driver panics in a wait behind a failure: a copy may then still use the
/// slots or the device's memory.
struct Abort;

impl Drop for Abort {
    fn drop(&mut self) {
        abort();
    }
}
