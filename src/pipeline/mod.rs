//! Pipelines: batches go from the host through the device and back, several at once.
//!
//! A source on the host makes batches, the device works on them, and a sink on the host takes the
//! results. With one batch after the other, the link waits for the device and the device for the
//! link. A [`Pipeline`] keeps several batches on their way, so that the slowest stage alone decides
//! the speed.
//!
//! - The memory is a ring of slots, allocated once. A source waits where no slot is free, so a run
//!   of any length takes the memory of the ring.
//! - No call of the driver waits for the device while batches follow each other, except in
//!   [`Mode::Blocking`], which is there to compare with.
//! - The first error of any stage stops the run and is returned. Batches on their way land first,
//!   so the pipeline can run again. A panic of a stage goes on after that.
//!
//! The stages follow PyTorch's loaders with pinned memory, and the sample `simpleMultiCopy` of the
//! CUDA toolkit.

mod ends;
mod engine;
pub mod frames;
mod mode;
mod ring;
mod slot;
mod timeline;
mod work;

pub use ends::{Drain, Feed};
pub use engine::Engine;
pub use mode::Mode;
pub use timeline::{Span, Timeline, Track};
pub use work::Work;

use std::fmt;
use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use self::engine::Streams;
use self::ring::Ring;
use self::slot::Slot;
use self::timeline::Recorder;
use crate::device::Device;
use crate::element::Element;
use crate::error::{Result, require};
use crate::sync::start_thread;

/// How a pipeline runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How the stages share the device.
    pub mode: Mode,
    /// The number of batches that are on their way at most, at least 1. A stage that is as slow as
    /// another keeps one slot busy; there are five stages. [`Mode::Blocking`] always has one slot.
    pub slots: usize,
    /// The number of last batches whose stages the timeline shows; 0 records none. Each stage costs
    /// two records of events.
    pub timeline: usize,
    /// The name of the source's spans.
    pub source: &'static str,
}

impl Default for Options {
    fn default() -> Self {
        Self { mode: Mode::default(), slots: 6, timeline: 0, source: "source" }
    }
}

/// A pipeline from elements of type `I` to elements of type `O`.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::pipeline::{Options, Pipeline};
/// use warpstride::{Backend, Device, ops};
///
/// let device = Device::open(Backend::Soft)?;
/// let mut pipeline = Pipeline::<f32, f32>::new(&device, 6, 6, Options::default())?;
/// let mut sums = Vec::new();
/// let summary = pipeline.run(
///     |batch, elements| {
///         elements.fill(batch as f32);
///         Ok((batch < 10).then_some(elements.len()))
///     },
///     |work| {
///         let (input, stream) = (work.input.view(&[2, 3])?, work.stream().clone());
///         ops::scale_into(2.0, input, work.output.view_mut().split_axis(0, &[2, 3])?, &stream)
///     },
///     |_, results| {
///         sums.push(results.iter().sum::<f32>());
///         Ok(())
///     },
/// )?;
/// assert_eq!((summary.batches, sums[9]), (10, 6.0 * 18.0));
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub struct Pipeline<I: Element, O: Element> {
    device: Device,
    streams: Streams,
    slots: usize,
    /// Elements of a slot's input and output.
    elements: [usize; 2],
    stations: Stations<I, O>,
}

/// The state that the stages of a pipeline share.
struct Stations<I: Element, O: Element> {
    ring: Ring<Slot<I, O>, Slot<I, O>>,
    options: Options,
    recorder: Option<Recorder>,
}

/// The parts of a run, each for threads of the program. Drop each where it has ended: the others
/// wait for a part that is forgotten.
pub struct Run<'p, I: Element, O: Element> {
    /// Takes batches from sources.
    pub feed: Feed<'p, I, O>,
    /// Queues on the device.
    pub engine: Engine<'p, I, O>,
    /// Gives results to sinks.
    pub drain: Drain<'p, I, O>,
}

/// The batches, the time and the stages of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The number of batches that a sink took.
    pub batches: u64,
    /// True if these are all batches of the source. A run ends without an error before them where a
    /// part of it is dropped, or a thread of the program panics with it.
    pub is_complete: bool,
    /// The time from the first wait for a batch until the last was taken.
    pub wall: Duration,
    /// The stages of the last batches, if the options ask for them.
    pub timeline: Option<Timeline>,
}

impl<I: Element, O: Element> Pipeline<I, O> {
    /// Makes a pipeline whose slots have room for `input` and `output` elements, each in
    /// page-locked memory and on the device.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are no slots; `OutOfMemory` if the host or the device has too few
    /// bytes; else the driver's error.
    pub fn new(device: &Device, input: usize, output: usize, options: Options) -> Result<Self> {
        require!(options.slots > 0, InvalidArgument, "a pipeline has 0 slots; give it at least 1");
        let slots = if options.mode == Mode::Blocking { 1 } else { options.slots };
        let free = (0..slots).rev().map(|number| Slot::new(device, number, input, output)).collect::<Result<_>>()?;
        let streams = Streams::new(device, options.mode)?;
        let stations = Stations { ring: Ring::new(free), options, recorder: None };
        Ok(Self { device: device.clone(), streams, slots, elements: [input, output], stations })
    }

    /// Returns the number of slots.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Runs to the end of the source: `source` on a thread of its own, `work` on this one, and
    /// `sink` on a third. [`Pipeline::start`] leaves the threads to the program.
    ///
    /// - `source` fills a slot: see [`Feed::fill`].
    /// - `work` queues operations on [`Work::stream`]: see [`Engine::drive`].
    /// - `sink` takes the results of each batch, in order: see [`Drain::take`].
    ///
    /// # Errors
    ///
    /// The first error of any stage; `Unavailable` if the system starts no more threads.
    ///
    /// # Panics
    ///
    /// If a closure panics. Nothing is on its way then.
    pub fn run(
        &mut self,
        mut source: impl FnMut(u64, &mut [I]) -> Result<Option<usize>> + Send,
        work: impl FnMut(&mut Work<'_, I, O>) -> Result<()>,
        mut sink: impl FnMut(u64, &mut [O]) -> Result<()> + Send,
    ) -> Result<Summary> {
        let Run { feed, engine, drain } = self.start()?;
        // The run's first error is the engine's to return, so the ends need not.
        thread::scope(|scope| {
            // If one does not start, the drop of the engine ends the run.
            let source = start_thread(scope, "source", move || while feed.fill(&mut source).unwrap_or(false) {})?;
            let sink = start_thread(scope, "sink", move || while drain.take(&mut sink).unwrap_or(false) {})?;
            let driven = engine.drive(work);
            for end in [source, sink] {
                end.join().unwrap_or_else(|payload| resume_unwind(payload));
            }
            driven
        })
    }

    /// Starts a run, and returns its three parts, each for a thread of the program. The engine
    /// returns when the others are done: put it on a thread of its own, or the others.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn start(&mut self) -> Result<Run<'_, I, O>> {
        let Self { device, streams, slots, elements: [input, output], stations } = self;
        let mut missing: Vec<_> = (0..*slots).collect();
        stations.ring.begin(|left| missing.retain(|&number| left.iter().all(|slot| slot.number != number)));
        for number in missing {
            stations.ring.restore(Slot::new(device, number, *input, *output)?);
        }
        stations.recorder = match stations.options.timeline {
            0 => None,
            batches => Some(Recorder::new(device, &streams.work, batches)?),
        };
        let stations = &*stations;
        let graphs = (0..*slots).map(|_| None).collect();
        Ok(Run { feed: Feed(stations), engine: Engine { stations, streams, graphs }, drain: Drain(stations) })
    }
}

impl<I: Element, O: Element> fmt::Debug for Pipeline<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline")
            .field("options", &self.stations.options)
            .field("slots", &self.slots)
            .finish_non_exhaustive()
    }
}
