//! Memory and streams that do nothing but remember what is ordered after what, with vector clocks.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Mutex;

use crate::alloc::upstream::{Taken, Upstream};
use crate::driver::{EventHandle, StreamHandle};
use crate::error::{Error, ErrorKind, Result};
pub(super) use crate::random::SplitMix64 as Random;
use crate::sync::lock;

/// For each stream, the number of its pieces of work that come before.
type Clock = HashMap<u64, u64>;

/// All of these pieces of work are known to have run.
fn assert_ran(known: &Clock, works: BTreeSet<Work>) {
    for (of, work) in works {
        assert!(known.get(&of).is_some_and(|&known| known >= work), "work {work} of stream {of} may still run");
    }
}

fn join(into: &mut Clock, from: &Clock) {
    for (&stream, &work) in from {
        let known = into.entry(stream).or_default();
        *known = work.max(*known);
    }
}

/// A piece of work: its stream, and its number there from 1.
pub(super) type Work = (u64, u64);

#[derive(Debug)]
pub(super) struct Model {
    pub(super) state: Mutex<State>,
    memory: u64,
    pool: bool,
}

#[derive(Debug, Default)]
pub(super) struct State {
    random: Random,
    streams: BTreeMap<u64, Clock>,
    /// The work that the host knows to have run.
    host: Clock,
    /// The work that the pool's own stream waits for.
    returns: Clock,
    events: BTreeMap<u64, Clock>,
    made: u64,
    pieces: BTreeMap<u64, u64>,
    spare: Vec<(u64, u64)>,
    taken: u64,
    next: u64,
    /// The last uses of memory: end and work by start.
    uses: BTreeMap<u64, (u64, BTreeSet<Work>)>,
    pub(super) calls: u64,
    /// The calls that fail, counted from 1.
    pub(super) fails: Range<u64>,
}

impl State {
    pub(super) fn open(&mut self) -> StreamHandle {
        self.made += 1;
        self.streams.insert(self.made, Clock::new());
        StreamHandle(self.made)
    }

    pub(super) fn destroy(&mut self, stream: StreamHandle) {
        self.streams.remove(&stream.0).expect("it is live");
    }

    /// Queues work on a stream.
    pub(super) fn work(&mut self, stream: StreamHandle) -> Work {
        let clock = self.streams.get_mut(&stream.0).expect("it is live");
        join(clock, &self.host);
        let own = clock.entry(stream.0).or_default();
        *own += 1;
        (stream.0, *own)
    }

    /// Makes a stream wait for all work of another.
    pub(super) fn follow(&mut self, stream: StreamHandle, other: StreamHandle) {
        let others = self.streams[&other.0].clone();
        join(self.streams.get_mut(&stream.0).expect("it is live"), &others);
    }

    /// Removes the uses of a range, and returns them.
    fn cut(&mut self, start: u64, end: u64) -> BTreeSet<Work> {
        let mut found = BTreeSet::new();
        let starts: Vec<u64> =
            self.uses.range(..end).rev().map(|(&at, _)| at).take_while(|&at| self.uses[&at].0 > start).collect();
        for at in starts {
            let (until, work) = self.uses.remove(&at).expect("it is there");
            found.extend(&work);
            if at < start {
                self.uses.insert(at, (start, work.clone()));
            }
            if until > end {
                self.uses.insert(end, (until, work));
            }
        }
        found
    }

    /// A block of memory is about to be used on a stream, or on any if it is fresh.
    pub(super) fn begin(&mut self, address: u64, bytes: u64, stream: StreamHandle, fresh: bool) {
        let inside = self.pieces.range(..=address).next_back().expect("it is in a piece");
        assert!(address + bytes <= inside.0 + inside.1, "a block lies in one piece that was not given back");
        let mut clock = self.host.clone();
        if !fresh {
            join(&mut clock, &self.streams[&stream.0]);
        }
        assert_ran(&clock, self.cut(address, address + bytes));
    }

    /// A block has been used by these.
    pub(super) fn end(&mut self, address: u64, bytes: u64, work: BTreeSet<Work>) {
        self.uses.insert(address, (address + bytes, work));
    }

    fn call(&mut self) -> Result<()> {
        self.calls += 1;
        if self.fails.contains(&self.calls) {
            return Err(Error::new(ErrorKind::Driver, format!("injected failure of call {}", self.calls)));
        }
        Ok(())
    }

    /// Everything was given back and destroyed, but for memory of a driver that was lost: the end
    /// of its work is unknown.
    pub(super) fn assert_empty(&self) {
        assert!(self.pieces.is_empty() || self.fails.end == u64::MAX, "memory leaked: {:?}", self.pieces);
        assert!(self.events.is_empty(), "events leaked: {:?}", self.events.keys());
    }
}

impl Model {
    /// Memory of `memory` bytes, in a pool or plain.
    pub(super) fn new(seed: u64, memory: u64, pool: bool) -> Self {
        let state = State { random: Random(seed), next: 1 << 30, ..State::default() };
        Self { state: Mutex::new(state), memory, pool }
    }
}

// SAFETY: there is no memory and no work, only books about them, which panic where a promise
// breaks.
unsafe impl Upstream for std::sync::Arc<Model> {
    fn is_of(&self, _: &std::sync::Arc<dyn crate::driver::Driver>) -> bool {
        false
    }

    unsafe fn take(&self, bytes: u64, stream: StreamHandle) -> Result<Taken> {
        let state = &mut *lock(&self.state);
        state.call()?;
        if state.taken + bytes > self.memory {
            return Err(Error::new(ErrorKind::OutOfMemory, "the model is full"));
        }
        // The same addresses again, where it can.
        let again = state.spare.iter().position(|&(_, spare)| spare == bytes).map(|at| state.spare.swap_remove(at).0);
        let address = again.unwrap_or(state.next);
        state.next = state.next.max(address + bytes);
        state.pieces.insert(address, bytes);
        state.taken += bytes;
        if self.pool {
            let returns = state.returns.clone();
            join(state.streams.get_mut(&stream.0).expect("it is live"), &returns);
        }
        Ok(Taken { address, fresh: !self.pool })
    }

    unsafe fn give(&self, address: u64, bytes: u64, after: &[EventHandle]) -> Result<()> {
        let state = &mut *lock(&self.state);
        assert_eq!(state.pieces.remove(&address), Some(bytes), "a piece is given back once and whole");
        state.taken -= bytes;
        state.spare.push((address, bytes));
        if self.pool {
            for event in after {
                let clock = state.events[&event.0].clone();
                join(&mut state.returns, &clock);
            }
            let mut known = state.host.clone();
            join(&mut known, &state.returns);
            let uses = state.uses.range(address..address + bytes);
            assert_ran(&known, uses.flat_map(|(_, (_, work))| work.clone()).collect());
        } else {
            let clocks: Vec<Clock> = state.streams.values().cloned().collect();
            clocks.iter().for_each(|clock| join(&mut state.host, clock));
            // Streams that are gone have run, too.
            state.cut(address, address + bytes);
        }
        state.call()
    }

    fn orders_itself(&self) -> bool {
        !self.pool
    }

    fn trim(&self) -> Result<()> {
        lock(&self.state).call()
    }

    fn event_create(&self) -> Result<EventHandle> {
        let state = &mut *lock(&self.state);
        state.call()?;
        state.made += 1;
        state.events.insert(state.made, Clock::new());
        Ok(EventHandle(state.made))
    }

    unsafe fn event_destroy(&self, event: EventHandle) -> Result<()> {
        let state = &mut *lock(&self.state);
        state.events.remove(&event.0).expect("it is live");
        state.call()
    }

    unsafe fn event_record(&self, event: EventHandle, stream: StreamHandle) -> Result<()> {
        let state = &mut *lock(&self.state);
        state.call()?;
        let clock = state.streams[&stream.0].clone();
        *state.events.get_mut(&event.0).expect("it is live") = clock;
        Ok(())
    }

    unsafe fn event_wait(&self, event: EventHandle, stream: StreamHandle) -> Result<()> {
        let state = &mut *lock(&self.state);
        state.call()?;
        let clock = state.events[&event.0].clone();
        join(state.streams.get_mut(&stream.0).expect("it is live"), &clock);
        Ok(())
    }

    unsafe fn event_query(&self, event: EventHandle) -> Result<bool> {
        let state = &mut *lock(&self.state);
        state.call()?;
        let passed = state.random.below(3) == 0;
        if passed {
            let clock = state.events[&event.0].clone();
            join(&mut state.host, &clock);
        }
        Ok(passed)
    }

    unsafe fn stream_synchronize(&self, stream: StreamHandle) -> Result<()> {
        let state = &mut *lock(&self.state);
        state.call()?;
        let clock = state.streams[&stream.0].clone();
        join(&mut state.host, &clock);
        Ok(())
    }
}
