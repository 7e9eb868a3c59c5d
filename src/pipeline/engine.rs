//! The device's part of a pipeline: uploads, work and downloads, queued batch by batch.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

use super::ring::Finished;
use super::slot::Slot;
use super::timeline::{Recorder, Track};
use super::work::Work;
use super::{Mode, Stations, Summary};
use crate::device::Device;
use crate::driver::nvtx;
use crate::element::Element;
use crate::error::{Error, Result, counted};
use crate::layout::Layout;
use crate::stream::{Graph, Stream};

/// The names of the copies' spans.
const TO_DEVICE: &str = "cpu_to_gpu";
const TO_HOST: &str = "gpu_to_cpu";
/// The name of work that has no ranges of its own.
const WORK: &str = "work";

/// The part of a pipeline that queues on the device.
pub struct Engine<'p, I: Element, O: Element> {
    pub(super) stations: &'p Stations<I, O>,
    pub(super) streams: &'p Streams,
    /// The captured work of each slot, in the mode that captures.
    pub(super) graphs: Vec<Option<Captured>>,
}

/// The streams of a pipeline; they are one and the same where the mode has one.
pub(super) struct Streams {
    pub(super) up: Stream,
    pub(super) work: Stream,
    pub(super) down: Stream,
}

impl Streams {
    pub(super) fn new(device: &Device, mode: Mode) -> Result<Self> {
        let work = device.stream()?;
        let other = || if mode.has_streams() { device.stream() } else { Ok(work.clone()) };
        Ok(Self { up: other()?, down: other()?, work })
    }
}

/// The program's work.
type Queue<'q, I, O> = dyn FnMut(&mut Work<'_, I, O>) -> Result<()> + 'q;

/// Why a batch was not queued.
enum Cause {
    Error(Error),
    Panic(Box<dyn Any + Send>),
}

/// A batch that was not queued.
struct Failed<I: Element, O: Element> {
    /// Its slot; `None` if the driver panicked with a part of it.
    slot: Option<Slot<I, O>>,
    cause: Cause,
}

impl<I: Element, O: Element> Engine<'_, I, O> {
    /// Queues every batch that is filled, with the work that `work` queues between its copies, and
    /// returns when the last one was taken or the run has stopped, and nothing is on its way.
    ///
    /// In [`Mode::Graph`], `work` is called once for each slot, in a capture, and again where a
    /// batch has another number of elements.
    ///
    /// # Errors
    ///
    /// The first error of any stage of the run.
    ///
    /// # Panics
    ///
    /// If `work` panics. Nothing is on its way then.
    pub fn drive(mut self, mut work: impl FnMut(&mut Work<'_, I, O>) -> Result<()>) -> Result<Summary> {
        let start = Instant::now();
        let queued = self.queue_all(&mut work);
        let ring = &self.stations.ring;
        let panic = match queued {
            Ok(()) => None,
            Err(Cause::Error(error)) => {
                ring.change(|state| state.stop(Some(error)));
                None
            }
            Err(Cause::Panic(payload)) => {
                ring.change(|state| state.stop(None));
                Some(payload)
            }
        };
        ring.change(|state| state.close());
        ring.wait(|state| state.rest());
        let Finished { flights, taken, stopped, error } = ring.finish();
        for (_, mut slot) in flights {
            // The first error is kept already.
            let _ = slot.land();
            slot.marks.clear();
            debug_assert!(slot.is_whole(), "a slot goes back with all of its memory");
            ring.restore(slot);
        }
        if stopped {
            for stream in [&self.streams.up, &self.streams.work, &self.streams.down] {
                // As above.
                let _ = stream.synchronize();
            }
        }
        let wall = start.elapsed();
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
        let timeline = self.stations.recorder.as_ref().map(Recorder::timeline);
        error.map_or(Ok(Summary { batches: taken, is_complete: !stopped, wall, timeline }), Err)
    }

    fn queue_all(&mut self, work: &mut Queue<'_, I, O>) -> Result<(), Cause> {
        let ring = &self.stations.ring;
        while let Some((batch, slot, elements)) = ring.wait(|state| state.queue()) {
            match self.queue(slot, batch, elements, work) {
                Ok(slot) => ring.change(|state| state.fly(batch, slot)),
                Err(failed) => {
                    let Failed { slot, cause } = *failed;
                    ring.change(|state| match slot {
                        Some(slot) => state.free(slot),
                        None => state.lose(),
                    });
                    return Err(cause);
                }
            }
        }
        Ok(())
    }

    /// Queues one batch. A failure gives the slot back once no copy uses its memory.
    fn queue(
        &mut self,
        mut slot: Slot<I, O>,
        batch: u64,
        elements: usize,
        work: &mut Queue<'_, I, O>,
    ) -> Result<Slot<I, O>, Box<Failed<I, O>>> {
        let stages = || {
            self.upload(&mut slot, elements)?;
            let kept = self.work(&mut slot, (batch, elements), work)?;
            self.download(&mut slot, kept)
        };
        let cause = match catch_unwind(AssertUnwindSafe(stages)) {
            Ok(Ok(())) => return Ok(slot),
            Ok(Err(error)) => Cause::Error(error),
            Err(payload) => Cause::Panic(payload),
        };
        // A panic of the driver takes a part of the slot along, here too.
        let landed = catch_unwind(AssertUnwindSafe(|| drop(slot.land())));
        slot.marks.clear();
        let slot = Some(slot).filter(|slot| landed.is_ok() && slot.is_whole());
        Err(Box::new(Failed { slot, cause }))
    }

    fn upload(&self, slot: &mut Slot<I, O>, elements: usize) -> Result<()> {
        let _range = nvtx::Range::new(TO_DEVICE);
        let (up, recorder) = (&self.streams.up, self.recorder());
        slot.input.follow(up)?;
        let start = slot.marks.start(recorder, up)?;
        let to = slot.input.view_mut_with(Layout::row_major(&[elements])?)?;
        slot.source.fly(elements, |host| up.upload(host, to))?;
        slot.marks.end(recorder, up, (TO_DEVICE, Track::Upload), start)?;
        self.pause(up)
    }

    /// Queues the work, and returns the number of elements of its results.
    fn work(
        &mut self,
        slot: &mut Slot<I, O>,
        (batch, filled): (u64, usize),
        work: &mut Queue<'_, I, O>,
    ) -> Result<usize> {
        let stream = &self.streams.work;
        // The start of the work is marked after this: the waits are not part of it.
        slot.input.follow(stream)?;
        slot.output.follow(stream)?;
        let recorder = self.stations.recorder.as_ref();
        let start = slot.marks.start(recorder, stream)?;
        let before = slot.marks.stages();
        let kept = if self.stations.options.mode == Mode::Graph {
            let _range = nvtx::Range::new(WORK);
            let captured = &mut self.graphs[slot.number];
            // Work depends on the number of elements, so another number is captured anew.
            if captured.as_ref().is_none_or(|captured| captured.filled != filled) {
                let former = captured.take();
                *captured = Some(Captured::of(slot, (batch, filled), stream, work, former)?);
            }
            let captured = captured.as_ref().expect("it was captured");
            captured.graph.launch(stream)?;
            captured.kept
        } else {
            call(slot, (batch, filled), stream, recorder, work)?
        };
        if slot.marks.stages() == before {
            slot.marks.end(recorder, stream, (WORK, Track::Work), start)?;
        } else {
            // The program's ranges say more.
            slot.marks.give_back(start);
        }
        if self.stations.options.mode.has_streams() {
            slot.input.fence()?;
        }
        self.pause(stream)?;
        Ok(kept)
    }

    fn download(&self, slot: &mut Slot<I, O>, kept: usize) -> Result<()> {
        let _range = nvtx::Range::new(TO_HOST);
        let (down, recorder) = (&self.streams.down, self.recorder());
        slot.output.follow(down)?;
        let start = slot.marks.start(recorder, down)?;
        let from = slot.output.view_with(Layout::row_major(&[kept])?)?;
        slot.sink.fly(kept, |host| down.download(from, host))?;
        slot.marks.end(recorder, down, (TO_HOST, Track::Download), start)?;
        if self.stations.options.mode.has_streams() {
            slot.output.fence()?;
        }
        self.pause(down)
    }

    /// Waits for a stage, in the mode that does.
    fn pause(&self, stream: &Stream) -> Result<()> {
        if self.stations.options.mode == Mode::Blocking { stream.synchronize() } else { Ok(()) }
    }

    fn recorder(&self) -> Option<&Recorder> {
        self.stations.recorder.as_ref()
    }
}

impl<I: Element, O: Element> Drop for Engine<'_, I, O> {
    /// Ends the run of an engine that was never driven, so that nothing waits for it.
    fn drop(&mut self) {
        self.stations.ring.change(|state| {
            state.stop(None);
            state.close();
        });
    }
}

/// The captured work of a slot.
pub(super) struct Captured {
    graph: Graph,
    /// The elements of the batch, and those of its results.
    filled: usize,
    kept: usize,
}

impl Captured {
    /// Captures work; it replaces that of `former`, if there is one.
    fn of<I: Element, O: Element>(
        slot: &mut Slot<I, O>,
        (batch, filled): (u64, usize),
        stream: &Stream,
        work: &mut Queue<'_, I, O>,
        former: Option<Self>,
    ) -> Result<Self> {
        let mut kept = 0;
        let captured = |captured: &Stream| {
            kept = call(slot, (batch, filled), captured, None, work)?;
            Ok(())
        };
        let graph = match former {
            Some(Self { mut graph, .. }) => graph.update(captured).map(|_| graph)?,
            None => stream.capture(captured)?,
        };
        Ok(Self { graph, filled, kept })
    }
}

/// Calls the program's work, and returns the number of elements of its results.
fn call<I: Element, O: Element>(
    slot: &mut Slot<I, O>,
    (batch, filled): (u64, usize),
    stream: &Stream,
    recorder: Option<&Recorder>,
    work: &mut Queue<'_, I, O>,
) -> Result<usize> {
    let Slot { number, input, output, marks, .. } = slot;
    let room = output.len();
    let output = output.view_mut(&[room])?;
    let mut queued = Work { batch, slot: *number, filled, input, output, stream, marks, recorder, kept: room };
    work(&mut queued)?;
    let kept = queued.kept;
    if kept > room {
        let (kept, room) = (counted(kept, "element"), counted(room, "element"));
        let sentence = format!("the work keeps {kept} and a slot's output has {room}; keep at most that number");
        return Err(Error::argument(sentence));
    }
    Ok(kept)
}
