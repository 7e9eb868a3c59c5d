//! Graphs: captured work that one call launches.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::context::{Capture, CapturedGraph, Context, Joint, Kernels, Stream};
use crate::driver::GraphExecHandle;
use crate::error::Result;
use crate::sync::lock;

/// Captured work, which each launch runs anew. [`Stream::capture`] makes it.
///
/// A launch of many small kernels costs the host little more than one launch of one kernel. The
/// graph keeps the memory that its work uses, so the buffers may be dropped; their memory is freed
/// with the graph. A launch runs after all former uses of that memory, and is its last use from
/// then on, as for any operation. So launches of one graph run one after the other.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::{Backend, Device, ops};
///
/// let device = Device::open(Backend::Soft)?;
/// let (a, mut b) = (device.array(&[3], &[1.0_f32, 2.0, 3.0])?, device.array(&[3], &[0.0; 3])?);
/// let mut graph = device.default_stream().capture(|s| {
///     let mut doubled = device.alloc_array(&[3])?; // the graph keeps its memory
///     ops::scale_into(2.0, &a, &mut doubled, s)?;
///     ops::add_into(&a, &doubled, &mut b, s)
/// })?;
/// assert_eq!((graph.nodes(), b.to_vec()?), (2, vec![0.0; 3])); // nothing has run
/// graph.launch(&device.stream()?)?;
/// assert_eq!(b.to_vec()?, [3.0, 6.0, 9.0]);
///
/// let c = device.array(&[3], &[7.0_f32; 3])?;
/// let in_place = graph.update(|s| {
///     let mut doubled = device.alloc_array(&[3])?;
///     ops::scale_into(2.0, &c, &mut doubled, s)?;
///     ops::add_into(&c, &doubled, &mut b, s)
/// })?;
/// graph.launch(device.default_stream())?;
/// assert_eq!((in_place, b.to_vec()?), (true, vec![21.0; 3]));
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub struct Graph {
    /// Locked by a launch, because the driver lets one call at a time use it.
    exec: Mutex<GraphExecHandle>,
    nodes: usize,
    memory: Joint,
    /// The kernels stay loaded as long as the graph may launch them.
    kernels: Option<Arc<Kernels>>,
    context: Arc<Context>,
}

impl Stream {
    /// Captures what `work` queues on its argument, a stream of this device that is made for it,
    /// and returns it as a graph. None of it runs before the graph is launched. Other work of this
    /// device, also this stream's, goes on as usual, on any thread.
    ///
    /// The argument takes operations on device memory. It refuses waits, events and copies from or
    /// to the host. Buffers that are allocated on it are the default stream's first. After the
    /// capture it is an ordinary stream, if `work` kept a clone of it.
    ///
    /// # Errors
    ///
    /// The error of `work`; `InvalidArgument` if work was queued by the handle of the stream that
    /// must not be captured; else the driver's error.
    ///
    /// # Panics
    ///
    /// If `work` panics. The capture has ended then.
    pub fn capture(&self, work: impl FnOnce(&Self) -> Result<()>) -> Result<Graph> {
        let context = Arc::clone(self.context());
        let Capture { graph, memory, kernels } = Capture::of(&context, work)?;
        let (exec, nodes) = instantiate(&graph)?;
        Ok(Graph { exec: Mutex::new(exec), nodes, memory, kernels, context })
    }
}

impl Graph {
    /// Queues the captured work on `stream`, after all former uses of its memory. It allocates
    /// nothing and does not wait, but for a thread's first launches of larger and larger graphs.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the stream is of another device, or is being captured; else the
    /// driver's error.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        self.context.check_same(stream.context(), "the graph and the stream")?;
        stream.check_not_capturing("the launch of a graph")?;
        self.memory.queue(stream, || {
            let exec = lock(&self.exec);
            // SAFETY: the graph and the stream are live, no other call uses the graph, and the
            // stream runs its work. The graph keeps its kernels loaded, and the memory of its
            // work, which is ordered after all former uses and before all later ones.
            unsafe { self.context.driver().graph_launch(*exec, stream.handle()) }
        })
    }

    /// Replaces the captured work by what `work` queues on its argument, as [`Stream::capture`]
    /// does. Launches that are queued are not affected. After an error the graph is as before, but
    /// may keep the memory of both works until its next update.
    ///
    /// Returns true if the driver replaced the operands in place, which is the cheap way, and false
    /// if the new work differs in more, so that the driver made the executable graph anew.
    ///
    /// # Errors
    ///
    /// As [`Stream::capture`].
    ///
    /// # Panics
    ///
    /// If `work` panics.
    pub fn update(&mut self, work: impl FnOnce(&Stream) -> Result<()>) -> Result<bool> {
        let Capture { graph, memory, kernels } = Capture::of(&self.context, work)?;
        let updated = self.replace(&graph);
        if updated.is_ok() {
            // The former memory goes back in stream order, after the launches that use it.
            self.memory = memory;
            self.kernels = kernels;
        } else {
            // CUDA does not say that an update that fails has replaced no operand, so the
            // executable graph may name both.
            self.memory.add(memory);
            self.kernels = self.kernels.take().or(kernels);
        }
        updated
    }

    /// Replaces the operands of the executable graph, or else the graph; returns whether the
    /// operands sufficed.
    fn replace(&mut self, graph: &CapturedGraph) -> Result<bool> {
        let exec = self.exec.get_mut().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: both are live, and this thread alone uses them.
        if unsafe { self.context.driver().graph_update(*exec, graph.handle()) }? {
            return Ok(true);
        }
        let (anew, nodes) = instantiate(graph)?;
        self.nodes = nodes;
        destroy(&self.context, std::mem::replace(exec, anew));
        Ok(false)
    }

    /// Returns the number of nodes: launches, copies and fills.
    pub fn nodes(&self) -> usize {
        self.nodes
    }
}

/// Makes an executable graph, and returns its number of nodes too.
fn instantiate(graph: &CapturedGraph) -> Result<(GraphExecHandle, usize)> {
    let driver = graph.context().driver();
    // SAFETY: the graph is live, and this thread alone uses it.
    let nodes = unsafe { driver.graph_nodes(graph.handle()) }?;
    // SAFETY: as above.
    let exec = unsafe { driver.graph_instantiate(graph.handle()) }?;
    Ok((exec, nodes))
}

fn destroy(context: &Context, exec: GraphExecHandle) {
    // SAFETY: its owner gave it up, so it is not used again.
    let destroyed = unsafe { context.driver().graph_exec_destroy(exec) };
    context.note_drop(destroyed, || "destroying a graph".into());
}

impl Drop for Graph {
    fn drop(&mut self) {
        destroy(&self.context, *self.exec.get_mut().unwrap_or_else(PoisonError::into_inner));
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("nodes", &self.nodes)
            .field("allocations", &self.memory.len())
            .finish_non_exhaustive()
    }
}
