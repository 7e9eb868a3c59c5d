//! Vector clocks of queued work, which say what comes before what.
//!
//! A clock has, for each stream, the number of its pieces of work that come before something. The
//! host has one, for the work that it has waited for. Events carry clocks from stream to stream,
//! and waits carry them to the host. (Colin Fidge and Friedemann Mattern, 1988; ThreadSanitizer
//! orders threads like this.)

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The work that comes before something.
#[derive(Debug, Clone, Default)]
pub(super) struct Clock {
    pieces: BTreeMap<u64, u64>,
    /// True if all work that has run by then does, because an order is not known.
    everything: bool,
}

/// A piece of work in the order.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) stream: u64,
    /// Its number on its stream, from 1.
    number: u64,
    /// The number of places before it on its stream that other work may come behind: records of
    /// events, and ends of waits of the host. Pieces without such a place between them come before
    /// the same work.
    pub(super) marks: u64,
    /// The work that comes before it, and itself.
    behind: Arc<Clock>,
}

/// The clocks of all streams and of the host.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    host: Clock,
    streams: BTreeMap<u64, Stream>,
}

#[derive(Debug, Default)]
struct Stream {
    /// The work that comes before its next piece.
    clock: Clock,
    pieces: u64,
    marks: u64,
    /// The clocks of the pieces that have not run. Each is behind all that the first is behind.
    pending: VecDeque<Arc<Clock>>,
    is_closed: bool,
    /// The program's name for it.
    name: Option<String>,
}

impl Clock {
    pub(super) fn join(&mut self, other: &Self) {
        for (&stream, &pieces) in &other.pieces {
            let own = self.pieces.entry(stream).or_default();
            *own = pieces.max(*own);
        }
        self.everything |= other.everything;
    }

    fn has(&self, piece: &Piece) -> bool {
        self.everything || self.pieces.get(&piece.stream).is_some_and(|&pieces| pieces >= piece.number)
    }
}

impl Piece {
    /// Returns whether another piece comes before this one.
    pub(super) fn is_behind(&self, other: &Self) -> bool {
        self.behind.has(other)
    }

    /// Returns what comes before it, and itself.
    pub(super) fn clock(&self) -> &Clock {
        &self.behind
    }
}

impl Clocks {
    pub(super) fn set_name(&mut self, stream: u64, name: String) {
        self.streams.entry(stream).or_default().name = Some(name);
    }

    /// Returns the program's name for a stream, or else its number.
    pub(super) fn name(&self, stream: u64) -> String {
        let known = self.streams.get(&stream).and_then(|of| of.name.clone());
        known.unwrap_or_else(|| format!("stream {stream:#x}"))
    }

    /// Takes the next piece of a stream.
    pub(super) fn next(&mut self, stream: u64) -> Piece {
        let of = self.streams.entry(stream).or_default();
        of.pieces += 1;
        of.clock.join(&self.host);
        of.clock.pieces.insert(stream, of.pieces);
        let behind = Arc::new(of.clock.clone());
        of.pending.push_back(Arc::clone(&behind));
        Piece { stream, number: of.pieces, marks: of.marks, behind }
    }

    /// Notes that the first piece of a stream that had not run has run.
    pub(super) fn ran(&mut self, stream: u64) {
        if let Some(of) = self.streams.get_mut(&stream) {
            of.pending.pop_front();
        }
    }

    /// Makes a place on a stream that other work may come behind.
    pub(super) fn mark(&mut self, stream: u64) {
        self.streams.entry(stream).or_default().marks += 1;
    }

    /// Returns what comes before an event that is recorded on a stream now.
    pub(super) fn record(&mut self, stream: u64) -> Clock {
        self.mark(stream);
        let of = self.streams.entry(stream).or_default();
        of.clock.join(&self.host);
        of.clock.clone()
    }

    /// Makes later work of a stream come behind an event's.
    pub(super) fn wait(&mut self, stream: u64, event: &Clock) {
        self.streams.entry(stream).or_default().clock.join(event);
    }

    /// Makes later work of a stream come behind a condition, which any work may make hold.
    pub(super) fn until(&mut self, stream: u64) {
        self.streams.entry(stream).or_default().clock.everything = true;
    }

    /// Returns what comes before the end of all work of these streams, and marks the place: another
    /// thread may queue work behind it before the host knows of the end.
    pub(super) fn all_of(&mut self, is_meant: impl Fn(u64) -> bool) -> Clock {
        let mut all = Clock::default();
        for (_, of) in self.streams.iter_mut().filter(|(stream, _)| is_meant(**stream)) {
            of.marks += 1;
            all.join(&of.clock);
        }
        all
    }

    /// Notes that the host knows that something has run. Behind a condition that is all that has
    /// run by now.
    pub(super) fn host_has(&mut self, clock: &Clock) {
        self.host.join(clock);
        if std::mem::take(&mut self.host.everything) {
            for (&stream, of) in &mut self.streams {
                let own = self.host.pieces.entry(stream).or_default();
                *own = (of.pieces - of.pending.len() as u64).max(*own);
                of.marks += 1;
            }
        }
    }

    /// Returns whether a piece comes before all work that has not run, and all that is queued from
    /// now on.
    pub(super) fn is_over(&self, piece: &Piece) -> bool {
        !self.streams.contains_key(&piece.stream)
            || (self.host.has(piece) && self.all_pending(|clock| clock.has(piece)))
    }

    fn all_pending(&self, holds: impl Fn(&Clock) -> bool) -> bool {
        self.streams.values().filter_map(|of| of.pending.front()).all(|clock| holds(clock))
    }

    /// Notes that a stream gets no more work.
    pub(super) fn close(&mut self, stream: u64) {
        if let Some(of) = self.streams.get_mut(&stream) {
            of.is_closed = true;
        }
        // A program may make and end streams for ever.
        let has_all = |clock: &Clock, stream: &u64, of: &Stream| {
            of.pieces == 0 || clock.pieces.get(stream).is_some_and(|&pieces| pieces >= of.pieces)
        };
        let is_over = |stream: &u64, of: &Stream| {
            of.is_closed && has_all(&self.host, stream, of) && self.all_pending(|clock| has_all(clock, stream, of))
        };
        let over: Vec<u64> =
            self.streams.iter().filter(|(stream, of)| is_over(stream, of)).map(|(&stream, _)| stream).collect();
        for stream in over {
            self.streams.remove(&stream);
            self.host.pieces.remove(&stream);
            for of in self.streams.values_mut() {
                of.clock.pieces.remove(&stream);
            }
        }
    }
}
