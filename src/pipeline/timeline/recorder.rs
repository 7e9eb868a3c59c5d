//! Records when the stages of a run begin and end.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Instant;

use super::{Span, Timeline, Track};
use crate::device::Device;
use crate::error::Result;
use crate::stream::{Event, Stream};
use crate::sync::lock;

/// From this time on the start of an upload is the next anchor: an `f32` of milliseconds has steps
/// of less than 0.1 us up to here.
const MOST_FROM_ANCHOR_US: f64 = 1e6;

/// The clock of a run, and the spans of its last batches.
pub(in super::super) struct Recorder {
    device: Device,
    /// The host's time of the timeline's start.
    zero: Instant,
    /// An event that has been passed, and its time on the timeline in microseconds. It moves with
    /// the run, because a driver gives the time between two events as an `f32` of milliseconds.
    anchor: Mutex<(Event, f64)>,
    /// The number of batches whose spans are kept.
    batches: usize,
    spans: Mutex<VecDeque<Span>>,
}

/// The stages of one batch on the device.
#[derive(Default)]
pub(in super::super) struct Marks {
    stages: Vec<Stage>,
    /// Events for the next batch.
    spare: Vec<Event>,
}

struct Stage {
    name: &'static str,
    track: Track,
    start: Event,
    end: Event,
}

impl Recorder {
    /// Waits for an event on `stream`, which has nothing else to do.
    pub(in super::super) fn new(device: &Device, stream: &Stream, batches: usize) -> Result<Self> {
        let origin = device.event()?;
        let before = Instant::now();
        stream.record(&origin)?;
        origin.synchronize()?;
        let zero = before + before.elapsed() / 2;
        let anchor = Mutex::new((origin, 0.0));
        Ok(Self { device: device.clone(), zero, anchor, batches, spans: Mutex::default() })
    }

    /// Notes a stage on the host.
    pub(in super::super) fn note(&self, name: &'static str, track: Track, batch: u64, start: Instant) {
        let us = |at: Instant| at.saturating_duration_since(self.zero).as_secs_f64() * 1e6;
        self.keep(Span { name, track, batch, start_us: us(start), end_us: us(Instant::now()) });
    }

    /// Notes the stages of a batch that has landed.
    pub(in super::super) fn note_marks(&self, batch: u64, marks: &mut Marks) -> Result<()> {
        let mut anchor = lock(&self.anchor);
        let stages = std::mem::take(&mut marks.stages);
        for Stage { name, track, start, end } in stages {
            let us = |event: &Event| event.elapsed_ms_since(&anchor.0).map(|ms| anchor.1 + f64::from(ms) * 1e3);
            let (start_us, end_us) = (us(&start)?, us(&end)?);
            self.keep(Span { name, track, batch, start_us, end_us });
            // The upload comes first, and those of later batches come later.
            let is_next = track == Track::Upload && start_us - anchor.1 > MOST_FROM_ANCHOR_US;
            let passed = if is_next { std::mem::replace(&mut *anchor, (start, start_us)).0 } else { start };
            marks.spare.extend([passed, end]);
        }
        Ok(())
    }

    fn keep(&self, span: Span) {
        let mut spans = lock(&self.spans);
        spans.push_back(span);
        // Stages of one batch lie among those of others, so old ones go by their numbers.
        let oldest = self.oldest(span.batch);
        while spans.front().is_some_and(|first| first.batch < oldest) {
            spans.pop_front();
        }
    }

    /// Returns the first batch that is kept while `last` is the last one.
    fn oldest(&self, last: u64) -> u64 {
        last.saturating_sub(self.batches as u64 - 1)
    }

    pub(in super::super) fn timeline(&self) -> Timeline {
        let mut spans: Vec<_> = lock(&self.spans).drain(..).collect();
        let last = spans.iter().map(|span| span.batch).max().unwrap_or(0);
        spans.retain(|span| span.batch >= self.oldest(last));
        spans.sort_by(|a, b| a.start_us.total_cmp(&b.start_us));
        Timeline { spans }
    }
}

impl Marks {
    /// Queues the start of a stage on `stream`.
    pub(in super::super) fn start(&mut self, recorder: Option<&Recorder>, stream: &Stream) -> Result<Option<Event>> {
        let Some(recorder) = recorder else { return Ok(None) };
        let event = self.event(recorder)?;
        stream.record(&event)?;
        Ok(Some(event))
    }

    /// Queues the end of a stage that began with `start`.
    pub(in super::super) fn end(
        &mut self,
        recorder: Option<&Recorder>,
        stream: &Stream,
        (name, track): (&'static str, Track),
        start: Option<Event>,
    ) -> Result<()> {
        let (Some(recorder), Some(start)) = (recorder, start) else { return Ok(()) };
        let end = self.event(recorder)?;
        stream.record(&end)?;
        self.stages.push(Stage { name, track, start, end });
        Ok(())
    }

    /// Returns whether the device has passed the last mark, and so all.
    pub(in super::super) fn have_passed(&self) -> Result<bool> {
        self.stages.last().map_or(Ok(true), |stage| stage.end.query())
    }

    /// Returns the number of stages of the batch so far.
    pub(in super::super) fn stages(&self) -> usize {
        self.stages.len()
    }

    /// Takes back the start of a stage that the timeline does not show.
    pub(in super::super) fn give_back(&mut self, start: Option<Event>) {
        self.spare.extend(start);
    }

    /// Forgets the stages of a batch that did not land.
    pub(in super::super) fn clear(&mut self) {
        self.stages.clear();
    }

    fn event(&mut self, recorder: &Recorder) -> Result<Event> {
        self.spare.pop().map_or_else(|| recorder.device.event(), Ok)
    }
}
