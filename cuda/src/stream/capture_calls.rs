//! The functions that begin and end captures, and that ask about them.

use std::ffi::c_uint;

use super::capture::{self, MODE, RELAXED, captures};
use super::{Stream, stream};
use crate::arguments::{Handle, In, Out};
use crate::code::{Failure, Outcome, code};
use crate::export::export;
use crate::graph::{self, Dependency, EdgeData, Graph, Node};

/// The states of a stream: not captured, captured, and captured by a capture that a call has
/// broken.
const NONE: c_uint = 0;
const ACTIVE: c_uint = 1;
const BROKEN: c_uint = 2;

/// The places in which a program wants the facts about a capture.
struct Wanted {
    status: Out<c_uint>,
    id: Out<u64>,
    graph: Out<Handle<Graph>>,
    nodes: Out<*const u64>,
    edges: Option<Out<*const EdgeData>>,
    count: Out<usize>,
}

fn info(on: Handle<Stream>, wanted: &Wanted) -> Outcome {
    wanted.status.check()?;
    let stream = stream(on)?;
    capture::check_question(&stream)?;
    let mut captures = captures();
    let captures = &mut *captures;
    let Some(member) = captures.members.get_mut(&stream.soft.0) else { return wanted.status.set(NONE) };
    let Some(sequence) = captures.sequences.get(&member.sequence) else { return wanted.status.set(NONE) };
    wanted.id.set_if_wanted(member.sequence);
    if sequence.is_broken {
        return wanted.status.set(BROKEN);
    }
    wanted.graph.set_if_wanted(sequence.graph.handle);
    member.told = member.last.iter().map(|dependency| dependency.node.0).collect();
    member.told_edges = member.last.iter().map(|dependency| dependency.data).collect();
    if !wanted.nodes.is_null() {
        let is_plain = member.told_edges.iter().all(|data| *data == EdgeData::default());
        match wanted.edges {
            Some(edges) if !edges.is_null() => edges.set(member.told_edges.as_ptr())?,
            _ if is_plain => {}
            _ => return Err(Failure::new(code::LOSSY_QUERY, "the dependencies have data; ask for it, too")),
        }
        wanted.nodes.set(member.told.as_ptr())?;
    }
    wanted.count.set_if_wanted(member.told.len());
    wanted.status.set(ACTIVE)
}

/// Begins a capture into a graph of its own.
fn begin(on: Handle<Stream>, mode: c_uint) -> Outcome {
    let graph = graph::create_for_capture()?;
    capture::begin(&*stream(on)?, graph.clone(), Vec::new(), mode).inspect_err(|_| graph.drop_if_captured())
}

fn update(on: Handle<Stream>, new: Vec<Dependency>, flags: c_uint) -> Outcome {
    let stream = stream(on)?;
    let mut captures = captures();
    let Some((member, sequence)) = captures.member(&stream)? else {
        return Err(Failure::new(code::ILLEGAL_STATE, "the stream is not captured; begin a capture first"));
    };
    sequence.graph.check_nodes(&new)?;
    match flags {
        0 => {
            for dependency in new {
                if !member.last.iter().any(|known| known.node == dependency.node) {
                    member.last.push(dependency);
                }
            }
        }
        1 => member.last = new,
        _ => return Err(Failure::value(format!("{flags:#x} are not flags of an update: 0 adds and 1 replaces"))),
    }
    Ok(())
}

export! {
    /// Begins to capture a stream, in the global mode.
    fn cuStreamBeginCapture, per_thread cuStreamBeginCapture_ptsz (on: Handle<Stream>) {
        begin(on, capture::GLOBAL)
    }

    /// Begins to capture a stream.
    fn cuStreamBeginCapture_v2, per_thread cuStreamBeginCapture_v2_ptsz (on: Handle<Stream>, mode: c_uint) {
        begin(on, mode)
    }

    /// Begins to capture a stream into a graph that there is.
    fn cuStreamBeginCaptureToGraph, per_thread cuStreamBeginCaptureToGraph_ptsz (
        on: Handle<Stream>, graph: Handle<Graph>, nodes: In<Handle<Node>>, data: In<EdgeData>, count: usize, mode: c_uint,
    ) {
        let last = graph::dependencies(nodes, data, count)?;
        let graph = graph::graph(graph)?;
        graph.check_nodes(&last)?;
        capture::begin(&*stream(on)?, graph, last, mode)
    }

    /// Ends the capture of a stream, and returns its graph.
    fn cuStreamEndCapture, per_thread cuStreamEndCapture_ptsz (on: Handle<Stream>, graph: Out<Handle<Graph>>) {
        graph.check()?;
        let ended = capture::end(&*stream(on)?);
        graph.set(ended.as_ref().map_or(Handle::NULL, |graph| graph.handle))?;
        ended.map(|graph| graph.give())
    }

    /// Returns whether a stream is captured.
    fn cuStreamIsCapturing, per_thread cuStreamIsCapturing_ptsz (on: Handle<Stream>, status: Out<c_uint>) {
        let (id, graph, nodes, count) = (Out::NULL, Out::NULL, Out::NULL, Out::NULL);
        info(on, &Wanted { status, id, graph, nodes, edges: None, count })
    }

    /// Returns whether a stream is captured, and the number of the capture.
    fn cuStreamGetCaptureInfo, per_thread cuStreamGetCaptureInfo_ptsz (
        on: Handle<Stream>, status: Out<c_uint>, id: Out<u64>,
    ) {
        let (graph, nodes, count) = (Out::NULL, Out::NULL, Out::NULL);
        info(on, &Wanted { status, id, graph, nodes, edges: None, count })
    }

    /// Returns what is known about the capture of a stream.
    fn cuStreamGetCaptureInfo_v2, per_thread cuStreamGetCaptureInfo_v2_ptsz (
        on: Handle<Stream>, status: Out<c_uint>, id: Out<u64>, graph: Out<Handle<Graph>>, nodes: Out<*const u64>,
        count: Out<usize>,
    ) {
        info(on, &Wanted { status, id, graph, nodes, edges: None, count })
    }

    /// Returns what is known about the capture of a stream, with the data of its dependencies.
    fn cuStreamGetCaptureInfo_v3, per_thread cuStreamGetCaptureInfo_v3_ptsz (
        on: Handle<Stream>, status: Out<c_uint>, id: Out<u64>, graph: Out<Handle<Graph>>, nodes: Out<*const u64>,
        edges: Out<*const EdgeData>, count: Out<usize>,
    ) {
        info(on, &Wanted { status, id, graph, nodes, edges: Some(edges), count })
    }

    /// Changes what the next node of a captured stream comes behind.
    fn cuStreamUpdateCaptureDependencies, per_thread cuStreamUpdateCaptureDependencies_ptsz (
        on: Handle<Stream>, nodes: In<Handle<Node>>, count: usize, flags: c_uint,
    ) {
        update(on, graph::dependencies(nodes, In::NULL, count)?, flags)
    }

    /// Changes what the next node of a captured stream comes behind, with data of the dependencies.
    fn cuStreamUpdateCaptureDependencies_v2, per_thread cuStreamUpdateCaptureDependencies_v2_ptsz (
        on: Handle<Stream>, nodes: In<Handle<Node>>, data: In<EdgeData>, count: usize, flags: c_uint,
    ) {
        update(on, graph::dependencies(nodes, data, count)?, flags)
    }

    /// Swaps the mode of the calling thread.
    fn cuThreadExchangeStreamCaptureMode(mode: Out<c_uint>) {
        let new = mode.get()?;
        if new > RELAXED {
            return Err(capture::no_mode(new));
        }
        mode.set(MODE.replace(new))
    }
}
