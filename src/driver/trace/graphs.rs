//! Records the calls for captures and graphs.

use super::{Call, Fails, Trace};
use crate::driver::{GraphExecHandle, GraphHandle, Graphs, StreamHandle};
use crate::error::Result;

// Every unsafe method passes on its caller's promises and operands unchanged. SAFETY: an injected
// failure of a release or of `capture_end` comes after the real call, and every other call is the
// inner driver's or is not made, so the inner driver's promises hold.
unsafe impl Graphs for Trace {
    unsafe fn capture_begin(&self, stream: StreamHandle) -> Result<()> {
        // SAFETY: the caller's promises are the inner driver's.
        let real = || unsafe { self.inner.capture_begin(stream) };
        self.make(Call::CaptureBegin { stream }, real, |live, ()| {
            live.captures.insert(stream);
        })
    }

    unsafe fn capture_end(&self, stream: StreamHandle) -> Result<GraphHandle> {
        self.books().live.captures.remove(&stream);
        // SAFETY: the caller's promise is the inner driver's.
        let real = || unsafe { self.inner.capture_end(stream) };
        let mut made = None;
        let ended =
            self.call(Call::CaptureEnd { stream }, Fails::After, || real().inspect(|&graph| made = Some(graph)));
        match (ended, made) {
            (Ok(graph), _) => {
                self.books().live.graphs.insert(graph);
                Ok(graph)
            }
            (Err(error), None) => Err(error),
            (Err(error), Some(graph)) => {
                // The error is the injected one, which leaves no graph behind. SAFETY: the graph
                // was just made, and nobody else knows it.
                let _ = unsafe { self.inner.graph_destroy(graph) };
                Err(error)
            }
        }
    }

    unsafe fn graph_nodes(&self, graph: GraphHandle) -> Result<usize> {
        // SAFETY: the caller's promises are the inner driver's.
        self.queue(Call::GraphNodes { graph }, || unsafe { self.inner.graph_nodes(graph) })
    }

    unsafe fn graph_destroy(&self, graph: GraphHandle) -> Result<()> {
        // SAFETY: the caller's promise is the inner driver's.
        let real = || unsafe { self.inner.graph_destroy(graph) };
        self.release(Call::GraphDestroy { graph }, real, |live| {
            live.graphs.remove(&graph);
        })
    }

    unsafe fn graph_instantiate(&self, graph: GraphHandle) -> Result<GraphExecHandle> {
        // SAFETY: the caller's promises are the inner driver's.
        let real = || unsafe { self.inner.graph_instantiate(graph) };
        self.make(Call::GraphInstantiate { graph }, real, |live, &exec| {
            live.execs.insert(exec);
        })
    }

    unsafe fn graph_update(&self, exec: GraphExecHandle, graph: GraphHandle) -> Result<bool> {
        // SAFETY: the caller's promises are the inner driver's.
        self.queue(Call::GraphUpdate { exec, graph }, || unsafe { self.inner.graph_update(exec, graph) })
    }

    unsafe fn graph_launch(&self, exec: GraphExecHandle, stream: StreamHandle) -> Result<()> {
        // SAFETY: the caller's promises are the inner driver's.
        self.queue(Call::GraphLaunch { exec, stream }, || unsafe { self.inner.graph_launch(exec, stream) })
    }

    unsafe fn graph_exec_destroy(&self, exec: GraphExecHandle) -> Result<()> {
        // SAFETY: the caller's promise is the inner driver's.
        let real = || unsafe { self.inner.graph_exec_destroy(exec) };
        self.release(Call::GraphExecDestroy { exec }, real, |live| {
            live.execs.remove(&exec);
        })
    }
}
