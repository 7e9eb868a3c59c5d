//! The host's ends of a pipeline: sources and sinks.

use std::thread;
use std::time::{Duration, Instant};

use super::Stations;
use super::ring::{Ring, RingState};
use super::slot::Slot;
use super::timeline::Track;
use crate::driver::nvtx;
use crate::element::Element;
use crate::error::{Error, Result, counted};

/// The end at which sources fill slots, on any threads of the program.
///
/// When it is dropped, the run ends behind the batches that were claimed.
pub struct Feed<'p, I: Element, O: Element>(pub(super) &'p Stations<I, O>);

/// The end at which sinks take results, on any threads of the program.
///
/// When it is dropped before the last batch, the run ends there.
pub struct Drain<'p, I: Element, O: Element>(pub(super) &'p Stations<I, O>);

/// A slot that a closure of the program has. It goes back also where the closure panics.
struct Held<'p, I: Element, O: Element> {
    ring: &'p Ring<Slot<I, O>, Slot<I, O>>,
    slot: Option<Slot<I, O>>,
}

impl<I: Element, O: Element> Held<'_, I, O> {
    fn slot(&mut self) -> &mut Slot<I, O> {
        self.slot.as_mut().expect("it is there until it goes back")
    }

    fn into_slot(mut self) -> Slot<I, O> {
        self.slot.take().expect("it is there until it goes back")
    }

    /// Gives the slot back, and stops the run.
    fn give_back(&mut self, error: Option<&Error>) {
        let Some(mut slot) = self.slot.take() else { return };
        // The batch has not landed, or no sink took it.
        slot.marks.clear();
        debug_assert!(slot.is_whole(), "a slot goes back with all of its memory");
        self.ring.change(|state| {
            state.free(slot);
            state.stop(error.cloned());
        });
    }
}

impl<I: Element, O: Element> Drop for Held<'_, I, O> {
    fn drop(&mut self) {
        // Only a panic leaves the slot here. The panic itself goes on.
        self.give_back(None);
    }
}

impl<I: Element, O: Element> Feed<'_, I, O> {
    /// Waits for a free slot and has it filled. `fill` gets the number of the batch and the
    /// page-locked memory of the slot, which holds what an earlier batch left there. It returns the
    /// number of elements from the start that are the batch, or `None` if there is no batch of this
    /// number and none that follows.
    ///
    /// Returns whether the run goes on. Several threads may fill slots at once.
    ///
    /// # Errors
    ///
    /// The error of `fill`, which also stops the run; `InvalidArgument` if it returns more elements
    /// than the slot has.
    ///
    /// # Panics
    ///
    /// If `fill` panics. The run stops then.
    pub fn fill(&self, fill: impl FnOnce(u64, &mut [I]) -> Result<Option<usize>>) -> Result<bool> {
        let Stations { ring, recorder, options, .. } = self.0;
        let Some((batch, slot)) = ring.wait(|state| state.claim()) else { return Ok(false) };
        let mut held = Held { ring, slot: Some(slot) };
        let start = Instant::now();
        let filled = {
            let _range = nvtx::Range::new(options.source);
            fill(batch, held.slot().source.memory())
        };
        let room = held.slot().source.memory().len();
        match filled.and_then(|elements| check_elements(elements, room)) {
            Ok(Some(elements)) => {
                if let Some(recorder) = recorder {
                    recorder.note(options.source, Track::Source, batch, start);
                }
                let slot = held.into_slot();
                ring.change(|state| state.fill(batch, slot, elements));
                Ok(true)
            }
            Ok(None) => {
                let slot = held.into_slot();
                ring.change(|state| state.end(batch, slot));
                Ok(false)
            }
            Err(error) => {
                held.give_back(Some(&error));
                Err(error)
            }
        }
    }
}

fn check_elements(elements: Option<usize>, room: usize) -> Result<Option<usize>> {
    match elements {
        Some(elements) if elements > room => Err(Error::argument(format!(
            "the source returned {} and a slot has room for {room}; return at most that number",
            counted(elements, "element")
        ))),
        _ => Ok(elements),
    }
}

impl<I: Element, O: Element> Drain<'_, I, O> {
    /// Waits for the next batch and hands its results to `take`, with its number. No call of the
    /// driver waits: the thread asks whether the batch has arrived, and sleeps in between.
    ///
    /// Returns whether the run goes on. Batches come in their order; several threads may take them.
    ///
    /// # Errors
    ///
    /// The error of `take` or of the device, which also stops the run.
    ///
    /// # Panics
    ///
    /// If `take` panics. The run stops then.
    pub fn take(&self, take: impl FnOnce(u64, &mut [O]) -> Result<()>) -> Result<bool> {
        let Stations { ring, recorder, .. } = self.0;
        let Some((batch, mut slot)) = ring.wait(|state| state.land()) else { return Ok(false) };
        let asked = await_landing(&mut slot);
        let landed = slot.land();
        let mut held = Held { ring, slot: Some(slot) };
        let landed = asked.and(landed).and_then(|elements| match recorder {
            Some(recorder) => recorder.note_marks(batch, &mut held.slot().marks).map(|()| elements),
            None => Ok(elements),
        });
        let start = Instant::now();
        let taken = landed.and_then(|elements| {
            let _range = nvtx::Range::new(SINK);
            take(batch, &mut held.slot().sink.memory()[..elements])
        });
        if let Err(error) = taken {
            held.give_back(Some(&error));
            return Err(error);
        }
        if let Some(recorder) = recorder {
            recorder.note(SINK, Track::Sink, batch, start);
        }
        let slot = held.into_slot();
        ring.change(|state| {
            state.take();
            state.free(slot);
        });
        Ok(true)
    }
}

/// The name of the sink's spans.
const SINK: &str = "sink";

/// Asks until a batch has arrived: at first without a pause, because a short one is about to.
fn await_landing<I: Element, O: Element>(slot: &mut Slot<I, O>) -> Result<()> {
    /// Linux adds up to 50 us to each pause: `PR_SET_TIMERSLACK` in prctl(2).
    const PAUSE: Duration = Duration::from_micros(20);
    let start = Instant::now();
    while !slot.has_landed()? {
        if start.elapsed() < PAUSE {
            thread::yield_now();
        } else {
            thread::sleep(PAUSE);
        }
    }
    Ok(())
}

impl<I: Element, O: Element> Drop for Feed<'_, I, O> {
    fn drop(&mut self) {
        let is_panic = thread::panicking();
        self.0.ring.change(|state| if is_panic { state.stop(None) } else { state.end_here() });
    }
}

impl<I: Element, O: Element> Drop for Drain<'_, I, O> {
    fn drop(&mut self) {
        self.0.ring.change(RingState::leave);
    }
}
