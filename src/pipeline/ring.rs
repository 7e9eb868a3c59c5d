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

/// The ring; `S` is a slot on the host's side, `F` a slot whose batch is on its way. In a pipeline
/// both are one type, whose copies own the host's memory between `fly` and the landing.
pub(super) struct Ring<S, F> {
    state: Mutex<RingState<S, F>>,
    changed: Condvar,
}

/// The state of a ring. None of its methods waits.
pub(super) struct RingState<S, F> {
    free: Vec<S>,
    /// The number of the batch that is claimed next.
    next: u64,
    /// The number of batches, once a source has ended.
    end: Option<u64>,
    filled: BTreeMap<u64, (S, usize)>,
    /// The number of the batch that is queued next.
    queue: u64,
    flights: VecDeque<(u64, F)>,
    /// True if no flight will follow.
    closed: bool,
    stopped: bool,
    error: Option<Error>,
    /// Slots that a source, the engine or a sink has.
    away: usize,
    /// Batches that a sink has taken.
    taken: u64,
}

/// The end of a run.
pub(super) struct Finished<F> {
    /// The flights that no sink took.
    pub(super) flights: VecDeque<(u64, F)>,
    /// The number of batches that a sink took.
    pub(super) taken: u64,
    /// True if a stage ended the run before its last batch.
    pub(super) stopped: bool,
    /// The first error.
    pub(super) error: Option<Error>,
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

impl<S, F> RingState<S, F> {
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

    /// Tells if no batch of this number will go on: the run has stopped, or it ends before this
    /// batch.
    fn is_over(&self, batch: u64) -> bool {
        self.stopped || self.end.is_some_and(|end| batch >= end)
    }

    /// Gives a source a free slot and the number of its batch.
    pub(super) fn claim(&mut self) -> Next<(u64, S)> {
        if self.is_over(self.next) {
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
        if self.is_over(batch) {
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
        if self.is_over(self.queue) {
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

    /// A sink leaves. If batches could still come, no station would take them, so all stations
    /// stop.
    pub(super) fn leave(&mut self) {
        if !(self.closed && self.flights.is_empty()) {
            self.stop(None);
        }
    }

    /// The engine has lost a slot.
    pub(super) fn lose(&mut self) {
        self.away -= 1;
    }

    /// Stops all stations. The first error is kept.
    pub(super) fn stop(&mut self, error: Option<Error>) {
        self.stopped = true;
        self.error = self.error.take().or(error);
        self.free.extend(std::mem::take(&mut self.filled).into_values().map(|(slot, _)| slot));
    }

    /// Is ready once no station has a slot, and none will take one.
    pub(super) fn rest(&self) -> Next<()> {
        let over = self.stopped || (self.closed && self.flights.is_empty());
        if over && self.away == 0 { Next::Ready(()) } else { Next::Wait }
    }
}

impl<S, F> Ring<S, F> {
    pub(super) fn new(free: Vec<S>) -> Self {
        Self { state: Mutex::new(RingState::new(free)), changed: Condvar::new() }
    }

    /// Waits until a station answers; `None` if nothing will come.
    pub(super) fn wait<T>(&self, mut station: impl FnMut(&mut RingState<S, F>) -> Next<T>) -> Option<T> {
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
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut RingState<S, F>) -> T) -> T {
        let changed = change(&mut lock(&self.state));
        self.changed.notify_all();
        changed
    }

    /// Begins the next run with the slots that are left. A program that forgets the parts of a run,
    /// or a driver that panics, can lose some.
    pub(super) fn begin(&self, left: impl FnOnce(&mut Vec<S>)) {
        let mut state = self.state();
        state.stop(None);
        let mut free = std::mem::take(&mut state.free);
        left(&mut free);
        *state = RingState::new(free);
    }

    /// Ends a run that is at rest.
    pub(super) fn finish(&self) -> Finished<F> {
        let mut state = self.state();
        Finished {
            flights: std::mem::take(&mut state.flights),
            taken: state.taken,
            stopped: state.stopped,
            error: state.error.take(),
        }
    }

    /// Adds slots that came back from flights that no sink took.
    pub(super) fn restore(&self, slot: S) {
        self.state().free.push(slot);
    }

    fn state(&self) -> MutexGuard<'_, RingState<S, F>> {
        lock(&self.state)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::ErrorKind;

    /// A step of a station, with a number that it may use.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        Claim,
        /// Gives back one of the claimed slots, filled.
        Fill(usize),
        /// Gives back one of the claimed slots, because there is no such batch.
        End(usize),
        Queue,
        Fly,
        /// Gives back the slot that the engine has.
        Fail,
        Land,
        Take(usize),
        Stop,
        Close,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => Just(Step::Claim),
            8 => (0..8_usize).prop_map(Step::Fill),
            1 => (0..8_usize).prop_map(Step::End),
            8 => Just(Step::Queue),
            8 => Just(Step::Fly),
            1 => Just(Step::Fail),
            8 => Just(Step::Land),
            8 => (0..8_usize).prop_map(Step::Take),
            1 => Just(Step::Stop),
            1 => Just(Step::Close),
        ]
    }

    /// The slots that the stations hold, beside the ring.
    #[derive(Default)]
    struct Stations {
        claimed: Vec<(u64, usize)>,
        queued: Option<(u64, usize)>,
        landed: Vec<(u64, usize)>,
        /// The numbers in which batches were claimed, queued and landed.
        orders: [Vec<u64>; 3],
        ended: Option<u64>,
        stopped: bool,
        closed: bool,
        taken: u64,
    }

    /// Takes one element out of a list.
    fn pick(list: &mut Vec<(u64, usize)>, at: usize) -> Option<(u64, usize)> {
        let at = at % list.len().max(1);
        (!list.is_empty()).then(|| list.swap_remove(at))
    }

    impl Stations {
        fn step(&mut self, state: &mut RingState<usize, usize>, step: Step) {
            match (step, self.queued) {
                (Step::Claim, _) => {
                    if let Next::Ready((batch, slot)) = state.claim() {
                        self.orders[0].push(batch);
                        self.claimed.push((batch, slot));
                    }
                }
                (Step::Fill(at), _) => {
                    if let Some((batch, slot)) = pick(&mut self.claimed, at) {
                        state.fill(batch, slot, slot + 100);
                    }
                }
                (Step::End(at), _) => {
                    if let Some((batch, slot)) = pick(&mut self.claimed, at) {
                        state.end(batch, slot);
                        self.ended = Some(self.ended.map_or(batch, |ended| ended.min(batch)));
                    }
                }
                (Step::Queue, None) if !self.closed => {
                    let Next::Ready((batch, slot, elements)) = state.queue() else { return };
                    assert_eq!(elements, slot + 100, "the elements are those of the slot");
                    assert!(self.ended.is_none_or(|ended| batch < ended), "{batch} is behind the end");
                    self.orders[1].push(batch);
                    self.queued = Some((batch, slot));
                }
                (Step::Fly, Some((batch, slot))) => {
                    state.fly(batch, slot);
                    self.queued = None;
                }
                (Step::Fail, Some((_, slot))) => {
                    state.free(slot);
                    self.queued = None;
                    self.stop(state, "the engine failed");
                }
                // The engine closes when it has nothing more to queue.
                (Step::Close, None) if state.is_over(state.queue) => {
                    state.close();
                    self.closed = true;
                }
                (Step::Land, _) => {
                    if let Next::Ready((batch, slot)) = state.land() {
                        self.orders[2].push(batch);
                        self.landed.push((batch, slot));
                    }
                }
                (Step::Take(at), _) => {
                    if let Some((_, slot)) = pick(&mut self.landed, at) {
                        state.take();
                        state.free(slot);
                        self.taken += 1;
                    }
                }
                (Step::Stop, _) => self.stop(state, "a later error"),
                (Step::Queue | Step::Fly | Step::Fail | Step::Close, _) => {}
            }
        }

        fn stop(&mut self, state: &mut RingState<usize, usize>, why: &str) {
            state.stop(Some(Error::new(ErrorKind::Io, why)));
            self.stopped = true;
        }

        /// Each slot is in one place.
        fn check(&self, state: &RingState<usize, usize>, slots: usize) {
            let ring = state.free.iter().copied().chain(state.filled.values().map(|&(slot, _)| slot));
            let ring = ring.chain(state.flights.iter().map(|&(_, slot)| slot));
            let held = self.claimed.iter().chain(&self.queued).chain(&self.landed).map(|&(_, slot)| slot);
            let mut all: Vec<_> = ring.chain(held).collect();
            all.sort_unstable();
            assert_eq!(all, (0..slots).collect::<Vec<_>>());
            assert_eq!(state.away, self.claimed.len() + usize::from(self.queued.is_some()) + self.landed.len());
            for order in &self.orders {
                assert!(order.iter().enumerate().all(|(at, &batch)| batch == at as u64), "{order:?}");
            }
            if self.stopped {
                assert_eq!((state.is_over(state.next), state.filled.len()), (true, 0));
            }
        }
    }

    proptest! {
        #[test]
        fn every_slot_is_in_one_place_and_batches_keep_their_order(
            slots in 1_usize..6,
            steps in prop::collection::vec(step(), 0..300),
        ) {
            let mut state = RingState::new((0..slots).collect());
            let mut stations = Stations::default();
            for step in steps {
                stations.step(&mut state, step);
                stations.check(&state, slots);
            }
            // From any state, an end brings all to rest: each station gives back what it has.
            let last = [Step::Stop].repeat(usize::from(!stations.closed));
            let give = [Step::Fly, Step::Close, Step::Land, Step::Take(0), Step::Fill(0)].repeat(2 * slots + 2);
            for step in last.into_iter().chain(give) {
                stations.step(&mut state, step);
                stations.check(&state, slots);
            }
            assert_eq!(state.rest(), Next::Ready(()));
            assert_eq!(state.taken, stations.taken);
        }
    }

    #[test]
    fn the_first_error_is_kept() {
        let mut state = RingState::<u8, u8>::new(vec![0]);
        state.stop(None);
        for text in ["first", "second"] {
            state.stop(Some(Error::new(ErrorKind::Io, text)));
        }
        assert_eq!(state.error, Some(Error::new(ErrorKind::Io, "first")));
    }
}
