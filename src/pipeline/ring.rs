//! The slots of a pipeline and the batches in them: a bounded ring, as a state machine.
//!
//! It knows nothing of devices, so that tests can run it in every order of its threads. A slot goes
//! round: free, claimed by a source, filled, queued on the device (a flight), landed, and free
//! again. A source waits where no slot is free, which is all the back-pressure there is. Batches
//! are numbered in the order in which slots are claimed, and leave each station in that order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::PoisonError;

use crate::error::Error;
use crate::sync::{Condvar, Mutex, MutexGuard, lock};

/// The ring; `S` is a slot on the host's side, `F` a slot whose batch is on its way.
pub(super) struct Ring<S, F> {
    state: Mutex<State<S, F>>,
    changed: Condvar,
}

/// The state of a ring. None of its methods waits.
pub(super) struct State<S, F> {
    free: Vec<S>,
    /// The number of the batch that is claimed next.
    next: u64,
    /// The number of batches, once a source has ended.
    end: Option<u64>,
    filled: BTreeMap<u64, (S, usize)>,
    /// The number of the batch that is queued next.
    queue: u64,
    flights: VecDeque<(u64, F)>,
    /// Whether no flight will follow.
    closed: bool,
    stopped: bool,
    error: Option<Error>,
    /// Slots that a source, the engine or a sink has.
    away: usize,
    /// Batches that a sink has taken.
    taken: u64,
}

/// The answer of a station.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<T> {
    Ready(T),
    /// It may have something after another station has moved.
    Wait,
    /// Nothing will come.
    Over,
}

impl<S, F> State<S, F> {
    pub(super) fn new(free: Vec<S>) -> Self {
        Self {
            free,
            next: 0,
            end: None,
            filled: BTreeMap::new(),
            queue: 0,
            flights: VecDeque::new(),
            closed: false,
            stopped: false,
            error: None,
            away: 0,
            taken: 0,
        }
    }

    /// Gives a source a free slot and the number of its batch.
    pub(super) fn claim(&mut self) -> Next<(u64, S)> {
        if self.stopped || self.end.is_some_and(|end| self.next >= end) {
            return Next::Over;
        }
        let Some(slot) = self.free.pop() else { return Next::Wait };
        self.away += 1;
        self.next += 1;
        Next::Ready((self.next - 1, slot))
    }

    /// Takes a slot back from a source, with the number of elements in it.
    pub(super) fn fill(&mut self, batch: u64, slot: S, elements: usize) {
        self.away -= 1;
        if self.stopped || self.end.is_some_and(|end| batch >= end) {
            self.free.push(slot);
        } else {
            self.filled.insert(batch, (slot, elements));
        }
    }

    /// Takes a slot back from a source that has no batch of this number, and none that follows.
    pub(super) fn end(&mut self, batch: u64, slot: S) {
        self.away -= 1;
        self.free.push(slot);
        self.end_before(batch);
    }

    /// Ends the run before a batch.
    fn end_before(&mut self, batch: u64) {
        let end = self.end.map_or(batch, |end| end.min(batch));
        self.end = Some(end);
        self.free.extend(self.filled.split_off(&end).into_values().map(|(slot, _)| slot));
    }

    /// Ends the run behind the batches that were claimed.
    pub(super) fn end_here(&mut self) {
        self.end_before(self.next);
    }

    /// Gives the engine the next batch.
    pub(super) fn queue(&mut self) -> Next<(u64, S, usize)> {
        if self.stopped || self.end.is_some_and(|end| self.queue >= end) {
            return Next::Over;
        }
        let Some((slot, elements)) = self.filled.remove(&self.queue) else { return Next::Wait };
        self.away += 1;
        self.queue += 1;
        Next::Ready((self.queue - 1, slot, elements))
    }

    /// Takes a batch that the engine has queued.
    pub(super) fn fly(&mut self, batch: u64, flight: F) {
        self.away -= 1;
        self.flights.push_back((batch, flight));
    }

    /// Takes a slot back from the engine or from a sink.
    pub(super) fn free(&mut self, slot: S) {
        self.away -= 1;
        self.free.push(slot);
    }

    /// The engine will queue no more.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Gives a sink the next flight.
    pub(super) fn land(&mut self) -> Next<(u64, F)> {
        if self.stopped {
            return Next::Over;
        }
        match self.flights.pop_front() {
            Some(flight) => {
                self.away += 1;
                Next::Ready(flight)
            }
            None if self.closed => Next::Over,
            None => Next::Wait,
        }
    }

    /// A sink has taken a batch.
    pub(super) fn take(&mut self) {
        self.taken += 1;
    }

    /// Stops all stations. The first error is kept.
    pub(super) fn stop(&mut self, error: Option<Error>) {
        self.stopped = true;
        self.error = self.error.take().or(error);
        self.free.extend(std::mem::take(&mut self.filled).into_values().map(|(slot, _)| slot));
    }

    /// Whether no station has a slot, and none will take one.
    pub(super) fn rest(&self) -> Next<()> {
        let over = self.stopped || (self.closed && self.flights.is_empty());
        if over && self.away == 0 { Next::Ready(()) } else { Next::Wait }
    }
}

impl<S, F> Ring<S, F> {
    pub(super) fn new(free: Vec<S>) -> Self {
        Self { state: Mutex::new(State::new(free)), changed: Condvar::new() }
    }

    /// Waits until a station answers; `None` if nothing will come.
    pub(super) fn wait<T>(&self, mut station: impl FnMut(&mut State<S, F>) -> Next<T>) -> Option<T> {
        let mut state = lock(&self.state);
        loop {
            match station(&mut state) {
                Next::Ready(found) => return Some(found),
                Next::Over => return None,
                Next::Wait => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Changes the state, and wakes the stations that wait.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State<S, F>) -> T) -> T {
        let changed = change(&mut lock(&self.state));
        self.changed.notify_all();
        changed
    }

    /// Begins the next run; no station has a slot.
    pub(super) fn begin(&self) {
        let mut state = self.state();
        let free = std::mem::take(&mut state.free);
        *state = State::new(free);
    }

    /// Ends a run that is at rest. Returns the flights that no sink took, the batches that one did,
    /// and the first error.
    pub(super) fn finish(&self) -> (VecDeque<(u64, F)>, u64, Option<Error>) {
        let mut state = self.state();
        (std::mem::take(&mut state.flights), state.taken, state.error.take())
    }

    /// Adds slots that came back from flights that no sink took.
    pub(super) fn restore(&self, slot: S) {
        self.state().free.push(slot);
    }

    fn state(&self) -> MutexGuard<'_, State<S, F>> {
        lock(&self.state)
    }
}
