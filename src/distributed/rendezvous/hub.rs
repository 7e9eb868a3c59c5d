//! The thread of rank 0, which reads what the other ranks send and relays what they must know.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::calls::Calls;
use super::frame::{Call, Message};
use super::inbox::Inbox;
use super::wire::Wire;
use super::{CLOSING, aborted};
use crate::sync::lock;

/// The time between two looks at the connections.
const ROUND: Duration = Duration::from_millis(10);
/// The same while ranks wait for others.
const AWAITED: Duration = Duration::from_millis(2);

/// The state that the thread shares with the calls of rank 0.
#[derive(Debug)]
struct Shared {
    calls: Mutex<Calls>,
    inbox: Arc<Inbox>,
    stops: AtomicBool,
}

#[derive(Debug)]
pub(super) struct Hub {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Hub {
    /// Serves the ranks from 1 on over their connections.
    pub(super) fn start(wires: Vec<Wire>, inbox: Arc<Inbox>, deadline: Duration) -> io::Result<Self> {
        let calls = Mutex::new(Calls::new(wires.len() + 1, deadline));
        let shared = Arc::new(Shared { calls, inbox, stops: AtomicBool::new(false) });
        let mut serving = Serving { shared: Arc::clone(&shared), wires: wires.into_iter().map(Some).collect() };
        let thread = Builder::new().name("rendezvous".into()).spawn(move || serving.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    pub(super) fn enter(&self, number: u64, call: Call) {
        lock(&self.shared.calls).enter(0, number, call, Instant::now());
        self.wake();
    }

    pub(super) fn abort(&self, reason: &str) {
        lock(&self.shared.calls).lost(0, &aborted(reason));
        self.wake();
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.shared.stops.store(true, Ordering::Release);
        self.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Serving {
    shared: Arc<Shared>,
    /// The connections of the ranks from 1 on, until they end.
    wires: Vec<Option<Wire>>,
}

impl Serving {
    fn run(&mut self) {
        while !self.shared.stops.load(Ordering::Acquire) {
            for rank in 1..=self.wires.len() {
                self.read(rank);
            }
            lock(&self.shared.calls).expire(Instant::now());
            self.send_out();
            let is_awaited = lock(&self.shared.calls).is_awaited();
            thread::park_timeout(if is_awaited { AWAITED } else { ROUND });
        }
        self.close();
    }

    /// Reads what has come from a rank.
    fn read(&mut self, rank: usize) {
        while let Some(wire) = &mut self.wires[rank - 1] {
            let message = match wire.next() {
                Ok(Some(message)) => message,
                Ok(None) => return,
                Err(ended) => return self.lose(rank, &ended),
            };
            let mut calls = lock(&self.shared.calls);
            match message {
                Message::Enter { number, call } => calls.enter(rank, number, call, Instant::now()),
                Message::Abort(reason) => calls.lost(rank, &aborted(&reason)),
                Message::Goodbye => {
                    calls.left(rank);
                    self.wires[rank - 1] = None;
                }
                _ => {
                    drop(calls);
                    self.lose(rank, "it sent a message out of turn");
                }
            }
        }
    }

    fn lose(&mut self, rank: usize, reason: &str) {
        self.wires[rank - 1] = None;
        lock(&self.shared.calls).lost(rank, reason);
    }

    /// Sends what ranks must know. A connection that ends on the way gives more of it.
    fn send_out(&mut self) {
        loop {
            let out = lock(&self.shared.calls).take_out();
            if out.is_empty() {
                break;
            }
            for (rank, message) in out {
                match rank.checked_sub(1) {
                    None => _ = self.shared.inbox.deliver(message),
                    Some(at) => self.with_wire(at + 1, |wire| wire.send(&message)),
                }
            }
        }
        for rank in 1..=self.wires.len() {
            self.with_wire(rank, Wire::flush);
        }
    }

    fn with_wire(&mut self, rank: usize, act: impl FnOnce(&mut Wire) -> Result<(), String>) {
        if let Some(Err(ended)) = self.wires[rank - 1].as_mut().map(act) {
            self.lose(rank, &ended);
        }
    }

    /// Says goodbye to all ranks, and closes each connection when its rank has read that: what was
    /// sent before is read too then.
    fn close(&mut self) {
        let begin = Instant::now();
        self.send_out();
        for rank in 1..=self.wires.len() {
            self.with_wire(rank, |wire| wire.send(&Message::Goodbye));
        }
        let mut wires: Vec<(Wire, bool)> = self.wires.drain(..).flatten().map(|wire| (wire, false)).collect();
        while !wires.is_empty() && begin.elapsed() < CLOSING {
            wires.retain_mut(|(wire, is_finished)| {
                let is_open = wire.flush().is_ok() && wire.drain();
                if wire.is_flushed() && !*is_finished {
                    wire.finish();
                    *is_finished = true;
                }
                is_open
            });
            thread::sleep(Duration::from_millis(1));
        }
    }
}
