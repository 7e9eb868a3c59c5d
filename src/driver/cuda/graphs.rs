//! Captures, graphs and their launches.

use std::collections::{BTreeMap, BTreeSet};
use std::ptr::{self, NonNull};
use std::sync::Mutex;

use super::api::{CUcontext, CaptureMode};
use super::error::code;
use super::{Cuda, api};
use crate::driver::{GraphExecHandle, GraphHandle, Graphs, ModuleHandle, StreamHandle};
use crate::error::Result;
use crate::sync::lock;

/// The streams of a context that this crate captures, and the releases that wait for the end of the
/// captures.
///
/// A release waits for all work of the context first, and CUDA breaks every capture of a context
/// that is waited for. So releases and beginnings of captures exclude each other, also those of two
/// devices that were opened over the same context.
#[derive(Debug, Default)]
pub(super) struct Captures {
    streams: BTreeSet<StreamHandle>,
    waiting: Vec<Release>,
}

impl Captures {
    /// Returns the captures of a context. There are never more than the process has devices, so
    /// each stays for ever.
    pub(super) fn of(context: CUcontext) -> &'static Mutex<Self> {
        static ALL: Mutex<BTreeMap<usize, &Mutex<Captures>>> = Mutex::new(BTreeMap::new());
        let mut all = lock(&ALL);
        all.entry(context.addr()).or_insert_with(|| Box::leak(Box::default()))
    }
}

/// The objects that a call that waits for the context releases.
#[derive(Debug)]
pub(super) enum Release {
    Memory(u64),
    HostMemory(NonNull<u8>),
    Module(ModuleHandle),
}

// SAFETY: the memory belongs to the process, and its owner has given it up.
unsafe impl Send for Release {}

impl Cuda {
    /// Releases something that nothing will use, after all queued work; during a capture, when the
    /// last capture ends.
    pub(super) fn release(&self, release: Release) -> Result<()> {
        let mut captures = lock(self.captures);
        if captures.streams.is_empty() {
            return self.release_now(release);
        }
        captures.waiting.push(release);
        Ok(())
    }

    /// Unregisters host memory that nothing will use: at once, because its owner may free it next.
    pub(super) fn unregister(&self, memory: NonNull<u8>) -> Result<()> {
        let captures = lock(self.captures);
        let entered = self.enter_to_release();
        // During a capture no queued work uses the memory, as the caller promises.
        let drained = if captures.streams.is_empty() { self.drain(&entered, "cuMemHostUnregister") } else { Ok(()) };
        // SAFETY: the caller of `unregister_host` promises registered memory. No queued work uses
        // it, for the reasons in `release_now`.
        drained.and(unsafe { self.unlock_old(memory) })
    }

    fn release_now(&self, release: Release) -> Result<()> {
        let call = match release {
            Release::Memory(address) => format!("cuMemFree({address:#x})"),
            Release::HostMemory(memory) => format!("cuMemFreeHost({memory:p})"),
            Release::Module(module) => format!("cuModuleUnload({:#x})", module.0),
        };
        let entered = self.enter_to_release();
        let drained = self.drain(&entered, &call);
        // SAFETY (each call): the caller of the releasing method promised something live of this
        // driver that nothing will use. If the context was drained, no queued work uses it any
        // more. If draining failed, either the context is lost or torn down and nothing runs in it,
        // or other code captures a stream of it and the driver refuses this call too and releases
        // nothing.
        let code = match release {
            // SAFETY: as above.
            Release::HostMemory(memory) => return unsafe { self.free_locked(memory, drained) },
            // SAFETY: as above.
            Release::Memory(address) => unsafe { (self.api.cuMemFree_v2)(address) },
            // SAFETY: as above.
            Release::Module(module) => unsafe { (self.api.cuModuleUnload)(module.raw()) },
        };
        drained.and(self.check(code, format_args!("{call}")))
    }
}

// SAFETY: the CUDA driver's documentation promises the order that the trait requires.
unsafe impl Graphs for Cuda {
    unsafe fn capture_begin(&self, stream: StreamHandle) -> Result<()> {
        let api = self.enter()?;
        let mut captures = lock(self.captures);
        // SAFETY: the caller promises a live stream.
        let code = unsafe { (api.cuStreamBeginCapture_v2)(stream.raw(), CaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED) };
        self.check(code, format_args!("cuStreamBeginCapture({:#x})", stream.0))?;
        captures.streams.insert(stream);
        Ok(())
    }

    unsafe fn capture_end(&self, stream: StreamHandle) -> Result<GraphHandle> {
        let _entered = self.enter_to_release();
        let mut captures = lock(self.captures);
        let mut graph = ptr::null_mut();
        // SAFETY: the caller promises a live stream; `graph` takes the result.
        let code = unsafe { (self.api.cuStreamEndCapture)(stream.raw(), &mut graph) };
        let ended = self.check(code, format_args!("cuStreamEndCapture({:#x})", stream.0));
        captures.streams.remove(&stream);
        if captures.streams.is_empty() {
            for release in std::mem::take(&mut captures.waiting) {
                // A release fails with an earlier failure of the device only, and every later call
                // reports that too.
                let _ = self.release_now(release);
            }
        }
        ended.map(|()| GraphHandle(graph as usize as u64))
    }

    unsafe fn is_capturing(&self, stream: StreamHandle) -> Result<bool> {
        let api = self.enter()?;
        let mut status = api::CAPTURE_STATUS_NONE;
        // SAFETY: the caller promises a live stream; `status` takes the result.
        let code = unsafe { (api.cuStreamIsCapturing)(stream.raw(), &mut status) };
        self.check(code, format_args!("cuStreamIsCapturing({:#x})", stream.0))?;
        Ok(status != api::CAPTURE_STATUS_NONE)
    }

    unsafe fn graph_nodes(&self, graph: GraphHandle) -> Result<usize> {
        let api = self.enter()?;
        let mut count = 0;
        // SAFETY: the caller promises a live graph; without an array for the nodes, `count` takes
        // their number.
        let code = unsafe { (api.cuGraphGetNodes)(graph.raw(), ptr::null_mut(), &mut count) };
        self.check(code, format_args!("cuGraphGetNodes({:#x})", graph.0))?;
        Ok(count)
    }

    unsafe fn graph_destroy(&self, graph: GraphHandle) -> Result<()> {
        let _entered = self.enter_to_release();
        // SAFETY: the caller promises a live graph.
        let code = unsafe { (self.api.cuGraphDestroy)(graph.raw()) };
        self.check(code, format_args!("cuGraphDestroy({:#x})", graph.0))
    }

    unsafe fn graph_instantiate(&self, graph: GraphHandle) -> Result<GraphExecHandle> {
        let api = self.enter()?;
        let mut exec = ptr::null_mut();
        // SAFETY: the caller promises a live graph that nothing else uses; `exec` takes the result.
        let code = unsafe { (api.cuGraphInstantiateWithFlags)(&mut exec, graph.raw(), 0) };
        self.check(code, format_args!("cuGraphInstantiate({:#x})", graph.0))?;
        Ok(GraphExecHandle(exec as usize as u64))
    }

    unsafe fn graph_update(&self, exec: GraphExecHandle, graph: GraphHandle) -> Result<bool> {
        let api = self.enter()?;
        let (mut node, mut result) = (ptr::null_mut(), 0);
        // SAFETY: the caller promises that both are live and that nothing else uses them; `node`
        // and `result` take the result.
        match unsafe { (api.cuGraphExecUpdate)(exec.raw(), graph.raw(), &mut node, &mut result) } {
            code::GRAPH_EXEC_UPDATE_FAILURE => Ok(false),
            code => self.check(code, format_args!("cuGraphExecUpdate({:#x} to {:#x})", exec.0, graph.0)).map(|()| true),
        }
    }

    unsafe fn graph_launch(&self, exec: GraphExecHandle, stream: StreamHandle) -> Result<()> {
        let api = self.enter()?;
        // SAFETY: the caller promises the executable graph, the stream, and all operands of nodes.
        let code = unsafe { (api.cuGraphLaunch)(exec.raw(), stream.raw()) };
        self.check(code, format_args!("cuGraphLaunch({:#x}, stream {:#x})", exec.0, stream.0))
    }

    unsafe fn graph_exec_destroy(&self, exec: GraphExecHandle) -> Result<()> {
        let _entered = self.enter_to_release();
        // SAFETY: the caller promises a live executable graph. The driver lets its launches run to
        // the end.
        let code = unsafe { (self.api.cuGraphExecDestroy)(exec.raw()) };
        self.check(code, format_args!("cuGraphExecDestroy({:#x})", exec.0))
    }
}
