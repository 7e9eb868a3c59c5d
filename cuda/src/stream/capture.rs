//! Captures: work of streams becomes nodes of a graph and does not run.
//!
//! A capture begins on one stream. Another stream joins it when it waits for an event that was
//! recorded in the capture. Each stream of a capture has the nodes that its next node comes behind.
//! A call that has no place in a capture breaks it: later calls fail until the end of the capture,
//! which then returns no graph.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_uint;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use super::{Event, NON_BLOCKING, Stream};
use crate::arguments::Handle;
use crate::code::{CUresult, Failure, Outcome, code};
use crate::context::Context;
use crate::graph::{Dependency, Graph, Work};

/// The modes of captures, and of threads, which say what calls that may wait for captured work do.
pub(super) const GLOBAL: c_uint = 0;
pub(super) const THREAD_LOCAL: c_uint = 1;
pub(super) const RELAXED: c_uint = 2;

/// The record of an event in a capture: the number of the capture, and the nodes that the event
/// comes behind.
#[derive(Clone)]
pub(super) struct Captured {
    sequence: u64,
    nodes: Vec<Dependency>,
}

/// One capture, over all its streams.
pub(super) struct Sequence {
    pub(super) graph: Arc<Graph>,
    /// The stream that it began on, by its number in the driver.
    origin: u64,
    mode: c_uint,
    thread: ThreadId,
    pub(super) is_broken: bool,
}

/// A stream of a capture.
pub(super) struct Member {
    pub(super) sequence: u64,
    /// The nodes that its next node comes behind.
    pub(super) last: Vec<Dependency>,
    context: Handle<Context>,
    is_blocking: bool,
    /// The list of those nodes that a program was given, until it asks again.
    pub(super) told: Box<[u64]>,
    pub(super) told_edges: Box<[[u8; 8]]>,
}

/// All captures of the process.
#[derive(Default)]
pub(super) struct Captures {
    pub(super) sequences: BTreeMap<u64, Sequence>,
    pub(super) members: BTreeMap<u64, Member>,
    begun: u64,
}

static CAPTURES: Mutex<Captures> =
    Mutex::new(Captures { sequences: BTreeMap::new(), members: BTreeMap::new(), begun: 0 });
/// The number of captures, so that work outside of them pays little.
static COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The mode of the thread.
    pub(super) static MODE: Cell<c_uint> = const { Cell::new(GLOBAL) };
}

pub(super) fn captures() -> MutexGuard<'static, Captures> {
    CAPTURES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the captures, if there are any.
fn any() -> Option<MutexGuard<'static, Captures>> {
    (COUNT.load(Ordering::Acquire) > 0).then(captures)
}

/// Why a call on a legacy stream is refused.
const IMPLICIT: &str = "the call needs the legacy default stream, which would wait for a stream that is captured; \
                        use another stream, or capture a non-blocking one";

fn invalidated() -> Failure {
    Failure::new(code::STREAM_CAPTURE_INVALIDATED, "an earlier call broke the capture; end it and capture anew")
}

impl Captures {
    fn break_it(&mut self, sequence: u64) {
        if let Some(sequence) = self.sequences.get_mut(&sequence) {
            sequence.is_broken = true;
        }
    }

    /// Breaks these captures, if there are any, and returns the failure of the call that did so.
    fn break_all(&mut self, sequences: &BTreeSet<u64>, code: CUresult, why: String) -> Outcome {
        if sequences.is_empty() {
            return Ok(());
        }
        sequences.iter().for_each(|&sequence| self.break_it(sequence));
        Err(Failure::new(code, why))
    }

    /// Returns the stream's part of a capture that is not broken.
    pub(super) fn member(&mut self, stream: &Stream) -> Outcome<Option<(&mut Member, &mut Sequence)>> {
        let Some(member) = self.members.get_mut(&stream.soft.0) else { return Ok(None) };
        let sequence = self.sequences.get_mut(&member.sequence).ok_or_else(invalidated)?;
        if sequence.is_broken { Err(invalidated()) } else { Ok(Some((member, sequence))) }
    }

    /// Returns the captures that a legacy stream would have to wait for.
    fn concern_legacy(&self, context: Handle<Context>) -> BTreeSet<u64> {
        let meant = self.members.values().filter(|member| member.is_blocking && member.context == context);
        meant.map(|member| member.sequence).collect()
    }

    fn join(&mut self, stream: &Stream, sequence: u64, last: Vec<Dependency>) {
        let (context, is_blocking) = (stream.context, stream.flags & NON_BLOCKING == 0);
        let told = (Box::default(), Box::default());
        let member = Member { sequence, last, context, is_blocking, told: told.0, told_edges: told.1 };
        self.members.insert(stream.soft.0, member);
    }

    fn end(&mut self, sequence: u64) -> Option<Sequence> {
        self.members.retain(|_, member| member.sequence != sequence);
        let ended = self.sequences.remove(&sequence);
        COUNT.store(self.sequences.len(), Ordering::Release);
        ended
    }
}

/// Returns whether work on the stream is recorded. Refuses work on a legacy stream that would wait
/// for captured work.
pub(super) fn admit(stream: &Stream) -> Outcome<bool> {
    let Some(mut captures) = any() else { return Ok(false) };
    if stream.is_legacy {
        let meant = captures.concern_legacy(stream.context);
        captures.break_all(&meant, code::STREAM_CAPTURE_IMPLICIT, IMPLICIT.to_owned())?;
    }
    Ok(captures.member(stream)?.is_some())
}

/// Refuses to ask about a legacy stream that would wait for captured work, which breaks no capture.
pub(super) fn check_question(stream: &Stream) -> Outcome {
    if stream.is_legacy && !captures().concern_legacy(stream.context).is_empty() {
        return Err(Failure::new(code::STREAM_CAPTURE_IMPLICIT, IMPLICIT));
    }
    Ok(())
}

/// Refuses a call on a stream that is captured, and breaks its capture.
pub(super) fn refuse(stream: &Stream, what: &str) -> Outcome {
    if !admit(stream)? {
        return Ok(());
    }
    let mut captures = captures();
    let sequences = captures.members.get(&stream.soft.0).map(|member| member.sequence).into_iter().collect();
    let why = format!("{what} is refused while the stream is captured; end the capture first");
    captures.break_all(&sequences, code::STREAM_CAPTURE_UNSUPPORTED, why)
}

/// Refuses a call that concerns all streams of a context, and breaks the captures of those.
pub(super) fn refuse_in(context: &Context, what: &str) -> Outcome {
    let Some(mut captures) = any() else { return Ok(()) };
    let meant = captures.members.values().filter(|member| member.context == context.handle);
    let meant = meant.map(|member| member.sequence).collect();
    let why = format!("{what} is refused while a stream of it is captured; end the capture first");
    captures.break_all(&meant, code::STREAM_CAPTURE_UNSUPPORTED, why)
}

/// Refuses a call that may wait for captured work, such as an allocation, where the modes of the
/// captures and of the thread say so, and breaks those captures.
pub(crate) fn check_safe(what: &str) -> Outcome {
    let Some(mut captures) = any() else { return Ok(()) };
    let (mode, thread) = (MODE.get(), std::thread::current().id());
    let concerns = |sequence: &Sequence| match mode {
        GLOBAL => sequence.mode == GLOBAL || (sequence.mode == THREAD_LOCAL && sequence.thread == thread),
        THREAD_LOCAL => sequence.mode != RELAXED && sequence.thread == thread,
        _ => false,
    };
    let meant =
        captures.sequences.iter().filter(|(_, sequence)| concerns(sequence)).map(|(&number, _)| number).collect();
    let why = format!(
        "{what} is refused while a stream is captured in this mode; end the capture first, or use \
         cuThreadExchangeStreamCaptureMode"
    );
    captures.break_all(&meant, code::STREAM_CAPTURE_UNSUPPORTED, why)
}

/// Returns whether a capture adds nodes to the graph.
pub(crate) fn is_captured_into(graph: Handle<Graph>) -> bool {
    any().is_some_and(|captures| captures.sequences.values().any(|sequence| sequence.graph.handle == graph))
}

/// Adds a node to the capture of a stream.
pub(super) fn record(stream: &Stream, work: Work) -> Outcome {
    let mut captures = captures();
    let (member, sequence) = captures.member(stream)?.ok_or_else(invalidated)?;
    let node = sequence.graph.add(work, &member.last)?;
    member.last = vec![Dependency::on(node)];
    Ok(())
}

/// Records an event in the capture of a stream.
pub(super) fn record_event(stream: &Stream, event: &Event) -> Outcome {
    let mut captures = captures();
    let (member, _) = captures.member(stream)?.ok_or_else(invalidated)?;
    let record = Captured { sequence: member.sequence, nodes: member.last.clone() };
    drop(captures);
    *event.captured() = Some(record);
    Ok(())
}

/// Makes a stream wait for an event where one of them belongs to a capture; false if the wait is an
/// ordinary one.
pub(super) fn wait_for_event(stream: &Stream, event: &Event) -> Outcome<bool> {
    let is_captured = admit(stream)?;
    let record = event.captured().clone();
    let Some(Captured { sequence: of, nodes }) = &record else {
        if !is_captured {
            return Ok(false);
        }
        if event.is_unrecorded() {
            return Ok(true);
        }
        return refuse_as(
            stream,
            code::STREAM_CAPTURE_ISOLATION,
            "a capture cannot wait for an event from outside of it",
        );
    };
    let mut captures = captures();
    let Some(sequence) = captures.sequences.get(of) else {
        return Err(Failure::new(
            code::CAPTURED_EVENT,
            "the event was last recorded in a capture that has ended; record it anew",
        ));
    };
    if sequence.is_broken {
        return Err(invalidated());
    }
    let own = captures.members.get_mut(&stream.soft.0);
    match own {
        Some(member) if member.sequence == *of => {
            let known = |node: &Dependency, last: &[Dependency]| last.iter().any(|other| other.node == node.node);
            for node in nodes {
                if !known(node, &member.last) {
                    member.last.push(*node);
                }
            }
        }
        Some(member) => {
            let both = BTreeSet::from([member.sequence, *of]);
            let why = "the wait would join two captures; end one of them first".to_owned();
            captures.break_all(&both, code::STREAM_CAPTURE_MERGE, why)?;
        }
        None if stream.is_legacy => {
            let why = "the legacy default stream cannot join a capture; use another stream".to_owned();
            captures.break_all(&BTreeSet::from([*of]), code::STREAM_CAPTURE_IMPLICIT, why)?;
        }
        None => captures.join(stream, *of, nodes.clone()),
    }
    Ok(true)
}

fn refuse_as(stream: &Stream, code: CUresult, why: &str) -> Outcome<bool> {
    let mut captures = captures();
    let sequences = captures.members.get(&stream.soft.0).map(|member| member.sequence).into_iter().collect();
    captures.break_all(&sequences, code, why.to_owned())?;
    Ok(true)
}

/// Refuses to poll or to wait for an event whose latest record is in a capture.
pub(super) fn refuse_event(event: &Event) -> Outcome {
    let record = event.captured().clone();
    let Some(Captured { sequence, .. }) = record else { return Ok(()) };
    captures().break_it(sequence);
    Err(Failure::new(
        code::CAPTURED_EVENT,
        "the event was last recorded in a capture, so it is passed at no time; record it outside of the capture",
    ))
}

/// Describes a mode that CUDA does not have.
pub(super) fn no_mode(mode: c_uint) -> Failure {
    Failure::value(format!("{mode} is not a mode of captures: 0 is global, 1 of the thread, 2 relaxed"))
}

/// Begins a capture, whose first node comes behind `last`.
pub(super) fn begin(stream: &Stream, graph: Arc<Graph>, last: Vec<Dependency>, mode: c_uint) -> Outcome {
    if mode > RELAXED {
        return Err(no_mode(mode));
    }
    if stream.is_legacy {
        let why = "the legacy default stream cannot be captured; use another stream";
        return Err(Failure::new(code::STREAM_CAPTURE_UNSUPPORTED, why));
    }
    let mut captures = captures();
    if let Some(member) = captures.members.get(&stream.soft.0) {
        let sequence = BTreeSet::from([member.sequence]);
        let why = "the stream is captured already; end that capture first".to_owned();
        return captures.break_all(&sequence, code::ILLEGAL_STATE, why);
    }
    captures.begun += 1;
    let number = captures.begun;
    let thread = std::thread::current().id();
    captures.sequences.insert(number, Sequence { graph, origin: stream.soft.0, mode, thread, is_broken: false });
    captures.join(stream, number, last);
    COUNT.store(captures.sequences.len(), Ordering::Release);
    Ok(())
}

/// Ends the capture of a stream, and returns its graph.
pub(super) fn end(stream: &Stream) -> Outcome<Arc<Graph>> {
    let mut captures = captures();
    let Some(member) = captures.members.get(&stream.soft.0) else {
        return Err(Failure::new(code::ILLEGAL_STATE, "the stream is not captured; begin a capture first"));
    };
    let number = member.sequence;
    let Some(sequence) = captures.sequences.get_mut(&number) else { return Err(invalidated()) };
    if sequence.origin != stream.soft.0 {
        sequence.is_broken = true;
        let why = "the capture began on another stream; end it there";
        return Err(Failure::new(code::STREAM_CAPTURE_UNMATCHED, why));
    }
    if sequence.mode != RELAXED && sequence.thread != std::thread::current().id() {
        let why = "the capture began on another thread, which has to end it; or begin a relaxed one";
        return Err(Failure::new(code::STREAM_CAPTURE_WRONG_THREAD, why));
    }
    let last = member_nodes(&captures, |_, of| of == stream.soft.0);
    let others = member_nodes(&captures, |member, of| member.sequence == number && of != stream.soft.0);
    let Some(sequence) = captures.end(number) else { return Err(invalidated()) };
    // The end of a graph may call functions of the program, so the captures are unlocked.
    drop(captures);
    let failure = if sequence.is_broken {
        Some(invalidated())
    } else if !sequence.graph.is_behind(&last, &others) {
        let why =
            "a stream of the capture has work that its first stream does not wait for; join the stream by an event";
        Some(Failure::new(code::STREAM_CAPTURE_UNJOINED, why))
    } else {
        None
    };
    match failure {
        None => Ok(sequence.graph),
        Some(failure) => {
            sequence.graph.drop_if_captured();
            Err(failure)
        }
    }
}

fn member_nodes(captures: &Captures, is_meant: impl Fn(&Member, u64) -> bool) -> Vec<Handle<crate::graph::Node>> {
    let meant = captures.members.iter().filter(|(of, member)| is_meant(member, **of));
    meant.flat_map(|(_, member)| member.last.iter().map(|dependency| dependency.node)).collect()
}

/// Takes a stream that ends out of its capture, which is broken by that.
pub(super) fn end_of(stream: &Stream) {
    let Some(mut captures) = any() else { return };
    let Some(member) = captures.members.remove(&stream.soft.0) else { return };
    captures.break_it(member.sequence);
    let is_origin = captures.sequences.get(&member.sequence).is_some_and(|sequence| sequence.origin == stream.soft.0);
    let ended = if is_origin { captures.end(member.sequence) } else { None };
    drop(captures);
    if let Some(sequence) = ended {
        sequence.graph.drop_if_captured();
    }
}
