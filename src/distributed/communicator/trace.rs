//! An engine that records the calls of another one, and makes one of them fail.

use std::sync::Arc;

use super::engine::{Deadline, Engine, Message, Reduce, Window};
use crate::device::Device;
use crate::error::{Result, refuse};
use crate::stream::Stream;
use crate::sync::{Mutex, lock};

/// Records the calls of an engine, and makes one of them fail before it reaches the engine: so
/// tests show that every failure of a communicator is handled.
#[derive(Debug)]
pub struct Trace {
    inner: Arc<dyn Engine>,
    calls: Mutex<Vec<TracedCall>>,
    /// The number of the call that fails.
    fails: Option<u64>,
}

/// A call of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TracedCall {
    /// [`Engine::exchange`].
    Exchange {
        /// The messages that were sent.
        sends: Vec<Message>,
        /// The messages that were received.
        receives: Vec<Message>,
    },
    /// [`Engine::broadcast`].
    Broadcast {
        /// The rank that sends.
        root: usize,
        /// The number of bytes.
        bytes: u64,
    },
    /// [`Engine::reduce`].
    Reduce(Reduce),
    /// [`Engine::window`].
    Window {
        /// The number of bytes of each rank.
        bytes: u64,
    },
    /// [`Engine::meet`].
    Meet {
        /// The number of the work.
        about: u64,
    },
    /// [`Engine::confirm`].
    Confirm,
    /// [`Engine::agree`].
    Agree {
        /// The subject, as an error names it.
        about: String,
        /// The number of this rank.
        digest: u64,
    },
    /// [`Engine::check`].
    Check,
    /// [`Engine::abort`].
    Abort(String),
}

impl Trace {
    /// Records the calls of an engine.
    pub fn new(inner: Arc<dyn Engine>) -> Self {
        Self { inner, calls: Mutex::default(), fails: None }
    }

    /// Makes the call with this number fail, counted from 0. An abort cannot fail.
    #[must_use]
    pub fn failing(self, call: u64) -> Self {
        Self { fails: Some(call), ..self }
    }

    /// Returns the calls so far.
    pub fn calls(&self) -> Vec<TracedCall> {
        lock(&self.calls).clone()
    }

    fn note(&self, call: TracedCall) -> Result<()> {
        let mut calls = lock(&self.calls);
        let number = calls.len() as u64;
        calls.push(call);
        if self.fails == Some(number) {
            let why = format!("call {number} of rank {} was made to fail", self.rank());
            drop(calls);
            self.inner.abort(&why);
            refuse!(Driver, "{why}");
        }
        Ok(())
    }
}

// SAFETY: the inner engine keeps the promises, and a call that fails here reaches nothing.
unsafe impl Engine for Trace {
    fn device(&self) -> &Device {
        self.inner.device()
    }

    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn ranks(&self) -> usize {
        self.inner.ranks()
    }

    unsafe fn exchange(&self, sends: &[Message], receives: &[Message], stream: &Stream, by: Deadline) -> Result<()> {
        self.note(TracedCall::Exchange { sends: sends.to_vec(), receives: receives.to_vec() })?;
        // SAFETY: as the caller promises.
        unsafe { self.inner.exchange(sends, receives, stream, by) }
    }

    unsafe fn broadcast(&self, address: u64, bytes: u64, root: usize, stream: &Stream, by: Deadline) -> Result<()> {
        self.note(TracedCall::Broadcast { root, bytes })?;
        // SAFETY: as the caller promises.
        unsafe { self.inner.broadcast(address, bytes, root, stream, by) }
    }

    unsafe fn reduce(&self, reduce: Reduce, stream: &Stream, by: Deadline) -> Result<()> {
        self.note(TracedCall::Reduce(reduce))?;
        // SAFETY: as the caller promises.
        unsafe { self.inner.reduce(reduce, stream, by) }
    }

    fn window(&self, bytes: u64, by: Deadline) -> Result<Option<Window>> {
        self.note(TracedCall::Window { bytes })?;
        self.inner.window(bytes, by)
    }

    fn meet(&self, about: u64, stream: &Stream, by: Deadline) -> Result<()> {
        self.note(TracedCall::Meet { about })?;
        self.inner.meet(about, stream, by)
    }

    fn confirm(&self) -> Result<()> {
        self.note(TracedCall::Confirm)?;
        self.inner.confirm()
    }

    fn agree(&self, about: &str, digest: u64, by: Deadline) -> Result<()> {
        self.note(TracedCall::Agree { about: about.to_owned(), digest })?;
        self.inner.agree(about, digest, by)
    }

    fn check(&self) -> Result<()> {
        self.note(TracedCall::Check)?;
        self.inner.check()
    }

    fn may_still_run(&self) -> bool {
        self.inner.may_still_run()
    }

    fn abort(&self, why: &str) {
        lock(&self.calls).push(TracedCall::Abort(why.to_owned()));
        self.inner.abort(why);
    }
}
