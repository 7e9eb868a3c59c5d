//! Streams that only remember which work is ordered after which, with vector clocks.

use std::collections::HashMap;
use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use crate::error::Result;
use crate::memory::{Allocation, Shared};

const STREAMS: usize = 3;

/// The state of a driver. Its calls are atomic, so its lock is not one of loom's.
#[derive(Debug, Default)]
struct Driver {
    /// For each stream, the number of pieces of work of each stream that come before its next.
    clocks: [[u64; STREAMS]; STREAMS],
    /// The last use of each allocation: the stream, and the number of the work there.
    uses: HashMap<u32, (usize, u64)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Stream {
    number: usize,
    driver: Arc<Mutex<Driver>>,
}

impl PartialEq for Stream {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

/// A point in a stream: for each stream, the number of pieces of work that come before it.
#[derive(Debug, Default)]
pub(crate) struct Event(Mutex<[u64; STREAMS]>);

/// The streams of a device.
pub(crate) fn streams() -> [Stream; STREAMS] {
    let driver = Arc::default();
    std::array::from_fn(|number| Stream { number, driver: Arc::clone(&driver) })
}

impl Stream {
    /// Queues work that uses allocations, by their numbers, and panics if the former use of one may
    /// still run.
    pub(crate) fn work(&self, used: &[u32]) {
        let driver = &mut *self.driver.lock().unwrap();
        driver.clocks[self.number][self.number] += 1;
        let clock = driver.clocks[self.number];
        for &memory in used {
            let former = driver.uses.insert(memory, (self.number, clock[self.number]));
            if let Some((stream, work)) = former {
                assert!(clock[stream] >= work, "work {work} of stream {stream} on memory {memory} may still run");
            }
        }
    }

    pub(crate) fn wait_for(&self, other: &Self) -> Result<()> {
        let driver = &mut *self.driver.lock().unwrap();
        let others = driver.clocks[other.number];
        for (own, other) in driver.clocks[self.number].iter_mut().zip(others) {
            *own = other.max(*own);
        }
        Ok(())
    }

    pub(crate) fn record(&self, event: &Event) -> Result<()> {
        *event.0.lock().unwrap() = self.driver.lock().unwrap().clocks[self.number];
        Ok(())
    }

    pub(crate) fn wait(&self, event: &Event) -> Result<()> {
        let point = *event.0.lock().unwrap();
        let driver = &mut *self.driver.lock().unwrap();
        for (own, other) in driver.clocks[self.number].iter_mut().zip(point) {
            *own = other.max(*own);
        }
        Ok(())
    }

    /// No owner captures it.
    pub(crate) fn check_keeps_memory(&self) -> Result<()> {
        Ok(())
    }

    /// No stream is being captured.
    pub(crate) fn record_uses(&self, _: &[&Shared<Allocation>]) -> Option<Capturing<'_>> {
        None
    }
}

/// A capture in progress, which no model has.
pub(crate) type Capturing<'a> = PhantomData<(&'a Stream, Infallible)>;
