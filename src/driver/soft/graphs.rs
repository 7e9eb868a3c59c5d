//! Captures, graphs and their launches.

use std::mem::discriminant;
use std::sync::Arc;

use super::Soft;
use super::state::{Action, Capture, Exec, HostBox, HostPointer, Nodes, State, no_such};
use crate::driver::{GraphExecHandle, GraphHandle, Graphs, StreamHandle};
use crate::error::{Result, counted, refuse};

impl Action {
    /// Returns the first address of its host memory, and the bytes from there to the last one.
    fn host(&self) -> Option<(usize, usize)> {
        match self {
            Self::Upload { src: HostPointer(host), bytes, .. }
            | Self::Download { dst: HostPointer(host), bytes, .. } => Some((host.addr(), *bytes)),
            Self::CopyBox(HostBox(copy)) => copy.host().map(|(host, side)| (host.addr(), copy.span(side))),
            Self::Copy { .. } | Self::Fill { .. } | Self::Launch { .. } | Self::PoolFree { .. } => None,
            Self::Call { .. } | Self::Until(_) => None,
        }
    }
}

impl State {
    /// Queues an action on a live stream, or records it where the stream is being captured.
    pub(super) fn queue(&mut self, stream: StreamHandle, action: Action) -> Result<()> {
        if let Some((address, bytes)) = action.host() {
            self.check_locks(address, bytes)?;
        }
        if !self.captures.contains_key(&stream.0) {
            self.push(stream, Arc::new(action));
            return Ok(());
        }
        // CUDA's driver would take such a copy, and stage it at a time that it does not document.
        if let Some((address, bytes)) = action.host().filter(|&(address, bytes)| !self.is_page_locked(address, bytes)) {
            let what = format!(
                "the copy of {} from or to {address:#x}, memory that this driver has not page-locked, cannot be captured; copy \
                 outside of the capture, or use page-locked memory",
                counted(bytes, "byte")
            );
            return Err(self.refuse(stream, what));
        }
        if let Action::PoolFree { address, .. } = action {
            let what = format!(
                "the pool's allocation at {address:#x} cannot be freed in a capture; free it on another stream"
            );
            return Err(self.refuse(stream, what));
        }
        let capture = self.capture(stream)?.expect("looked up above");
        capture.nodes.push(Arc::new(action));
        Ok(())
    }

    /// Returns the capture of `stream`, if there is one. A broken one is an error.
    pub(super) fn capture(&mut self, stream: StreamHandle) -> Result<Option<&mut Capture>> {
        match self.captures.get_mut(&stream.0) {
            Some(Capture { broken: Some(cause), .. }) => {
                Err(cause.clone().while_doing("an earlier call broke the capture"))
            }
            capture => Ok(capture),
        }
    }

    /// Refuses a call that concerns a stream while it is captured, which also breaks the capture.
    pub(super) fn not_captured(&mut self, stream: StreamHandle, call: &str) -> Result<()> {
        if self.capture(stream)?.is_none() {
            return Ok(());
        }
        let what =
            format!("{call} stream {:#x} is refused while the stream is captured; end the capture first", stream.0);
        Err(self.refuse(stream, what))
    }

    /// Refuses a copy across a place where registered memory begins or ends, as CUDA's driver does.
    fn check_locks(&self, address: usize, bytes: usize) -> Result<()> {
        let ends = self.registered.iter().flat_map(|(&at, &of)| [at, at + of]);
        let crossed = ends.filter(|&end| address < end && end < address + bytes).min();
        let Some(at) = crossed else { return Ok(()) };
        let bytes = counted(bytes, "byte");
        refuse!(
            InvalidArgument,
            "the copy of {bytes} from or to {address:#x} crosses {at:#x}, where registered memory begins or ends; copy up to \
             there, and then the rest"
        )
    }

    /// Returns whether these bytes lie in one block of page-locked memory.
    fn is_page_locked(&self, address: usize, bytes: usize) -> bool {
        let within = |start: usize, length: usize| start <= address && address - start + bytes <= length;
        self.host.iter().any(|(&start, lines)| within(start, size_of_val(lines.as_slice())))
            || self.registered.iter().any(|(&start, &length)| within(start, length))
    }

    fn graph(&self, graph: GraphHandle) -> Result<&Nodes> {
        self.graphs.get(&graph.0).ok_or_else(|| no_such("graph", graph.0))
    }

    fn exec(&mut self, exec: GraphExecHandle) -> Result<&mut Exec> {
        self.execs.get_mut(&exec.0).ok_or_else(|| no_such("executable graph", exec.0))
    }
}

// SAFETY: a captured action is queued by launches alone, all actions of one in their order, and
// each launch waits for the end of the one before it.
unsafe impl Graphs for Soft {
    unsafe fn capture_begin(&self, stream: StreamHandle) -> Result<()> {
        let mut state = self.streaming(stream)?;
        state.not_captured(stream, "another capture of")?;
        let id = self.gpu().handle();
        state.captures.insert(stream.0, Capture { id, nodes: Vec::new(), broken: None });
        Ok(())
    }

    unsafe fn capture_end(&self, stream: StreamHandle) -> Result<GraphHandle> {
        let mut state = self.lock();
        let ended = state.captures.remove(&stream.0);
        state.check()?;
        let Some(Capture { nodes, broken, .. }) = ended else {
            refuse!(InvalidArgument, "stream {:#x} is not being captured; begin the capture first", stream.0)
        };
        if let Some(cause) = broken {
            return Err(cause.while_doing("nothing came of the capture"));
        }
        let handle = self.gpu().handle();
        state.graphs.insert(handle, nodes.into());
        Ok(GraphHandle(handle))
    }

    unsafe fn is_capturing(&self, stream: StreamHandle) -> Result<bool> {
        Ok(self.streaming(stream)?.captures.contains_key(&stream.0))
    }

    unsafe fn graph_nodes(&self, graph: GraphHandle) -> Result<usize> {
        self.working()?.graph(graph).map(|nodes| nodes.len())
    }

    unsafe fn graph_destroy(&self, graph: GraphHandle) -> Result<()> {
        let mut state = self.lock();
        let removed = state.graphs.remove(&graph.0);
        state.check()?;
        removed.map(drop).ok_or_else(|| no_such("graph", graph.0))
    }

    unsafe fn graph_instantiate(&self, graph: GraphHandle) -> Result<GraphExecHandle> {
        let mut state = self.working()?;
        let nodes = Arc::clone(state.graph(graph)?);
        let handle = self.gpu().handle();
        state.execs.insert(handle, Exec { nodes, last: None });
        Ok(GraphExecHandle(handle))
    }

    unsafe fn graph_update(&self, exec: GraphExecHandle, graph: GraphHandle) -> Result<bool> {
        let mut state = self.working()?;
        let nodes = Arc::clone(state.graph(graph)?);
        let exec = state.exec(exec)?;
        let kinds = |nodes: &Nodes| nodes.iter().map(|action| discriminant(&**action)).collect::<Vec<_>>();
        let fits = kinds(&exec.nodes) == kinds(&nodes);
        if fits {
            exec.nodes = nodes;
        }
        Ok(fits)
    }

    unsafe fn graph_launch(&self, exec: GraphExecHandle, stream: StreamHandle) -> Result<()> {
        let mut state = self.streaming(stream)?;
        state.not_captured(stream, "the launch of a graph on")?;
        self.check_own("executable graph", exec.0)?;
        let Exec { nodes, last } = state.exec(exec)?;
        let (nodes, last) = (Arc::clone(nodes), last.take());
        if let Some(last) = last {
            state.schedule.wait(stream.0, &last);
        }
        for action in nodes.iter() {
            state.push(stream, Arc::clone(action));
        }
        let end = state.schedule.record(stream.0);
        state.exec(exec)?.last = end;
        Ok(())
    }

    unsafe fn graph_exec_destroy(&self, exec: GraphExecHandle) -> Result<()> {
        let mut state = self.lock();
        let removed = state.execs.remove(&exec.0);
        state.check()?;
        removed.map(drop).ok_or_else(|| no_such("executable graph", exec.0))
    }
}
