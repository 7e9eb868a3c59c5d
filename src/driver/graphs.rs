//! The part of a driver for graphs: work that is captured once and launched as one unit.

use super::{GraphExecHandle, GraphHandle, StreamHandle};
use crate::error::Result;

/// The part of a [`Driver`](super::Driver) that captures the work of a stream and launches it.
///
/// Between [`Graphs::capture_begin`] and [`Graphs::capture_end`], work that is queued on the stream
/// is recorded and does not run. An executable graph runs the recorded work at each launch, in the
/// recorded order. Captures are relaxed: during one, any thread may allocate, load modules and make
/// other calls that do not concern the stream. A release that waits for queued work
/// ([`Memory::free`](super::Memory::free) and its like) never disturbs a capture; it may be carried
/// out when the last capture ends. Where captures overlap without a gap, it is put off until there
/// is one: no capture waits for another to end, since their threads may wait for each other.
///
/// One stream makes a capture. Drivers refuse the following, and each such call ends the capture's
/// use: later work on the stream and `capture_end` return an error of kind `InvalidArgument`, as
/// on CUDA.
///
/// - Waiting for the stream or querying it, directly or by an event that was recorded in the
///   capture.
/// - Making the stream wait for an event that was recorded outside of the capture.
/// - Beginning a capture on it again.
///
/// Copies from and to host memory that is not page-locked, waits of other streams for events of the
/// capture, and launches of graphs on the stream may be refused; the software GPU refuses them.
///
/// # Errors
///
/// The errors that [`Driver`](super::Driver) lists for all methods.
///
/// # Safety
///
/// An implementation promises, to callers that keep their side of the contract:
///
/// - Captured work runs by launches alone, each time in the order in which it was recorded, with
///   the recorded operands.
/// - Launches of one executable graph run one after the other, in the order in which they were
///   queued.
pub unsafe trait Graphs: Send + Sync {
    /// Begins to capture the work that is queued on `stream` from now on.
    ///
    /// # Safety
    ///
    /// - `stream` is live, and stays so until [`Graphs::capture_end`].
    /// - No copy of host memory is queued on it: a wait for the stream is refused from now on.
    /// - Until [`Graphs::capture_end`], this crate's operations get no [`Stream`](crate::Stream) of
    ///   this crate with that handle. [`Stream::capture`](crate::Stream::capture) captures those. A
    ///   stream that [`Device::stream_from_raw`](crate::Device::stream_from_raw) made is an
    ///   exception, with what its caller promises.
    unsafe fn capture_begin(&self, stream: StreamHandle) -> Result<()>;

    /// Ends the capture of `stream`, even if it returns an error, and returns the captured work.
    /// An error of kind `InvalidArgument` if the stream is not being captured, or if the capture
    /// had a call that must not be captured.
    ///
    /// # Safety
    ///
    /// - `stream` is live.
    unsafe fn capture_end(&self, stream: StreamHandle) -> Result<GraphHandle>;

    /// Returns whether the work that is queued on `stream` is recorded and does not run. Other code
    /// than this crate's may have begun the capture. One that a refused call broke lasts until its
    /// end, too.
    ///
    /// # Safety
    ///
    /// - `stream` is live.
    unsafe fn is_capturing(&self, stream: StreamHandle) -> Result<bool>;

    /// Returns the number of nodes of a graph: launches, copies and fills.
    ///
    /// # Safety
    ///
    /// - `graph` is live, and no other call uses it at the same time.
    unsafe fn graph_nodes(&self, graph: GraphHandle) -> Result<usize>;

    /// Destroys a graph. Its instances stay.
    ///
    /// # Safety
    ///
    /// - `graph` is live, and not used from now on.
    unsafe fn graph_destroy(&self, graph: GraphHandle) -> Result<()>;

    /// Makes an executable graph of a graph.
    ///
    /// # Safety
    ///
    /// - `graph` is live, and no other call uses it at the same time.
    unsafe fn graph_instantiate(&self, graph: GraphHandle) -> Result<GraphExecHandle>;

    /// Replaces the operands of an executable graph by those of `graph`, for later launches.
    /// Returns false, and changes nothing, where the graphs differ in more than operands: in the
    /// number, the order or the kind of their nodes. NVIDIA's documentation does not
    /// promise this, nor what an error leaves, so keep what either graph names until a later call
    /// succeeds, or `exec` is destroyed.
    ///
    /// # Safety
    ///
    /// - `exec` and `graph` are live, and no other call uses one of them at the same time.
    unsafe fn graph_update(&self, exec: GraphExecHandle, graph: GraphHandle) -> Result<bool>;

    /// Queues all work of an executable graph on `stream`, as one unit, after the former launches
    /// of the same executable graph.
    ///
    /// # Safety
    ///
    /// - `exec` and `stream` are live, no other call uses `exec` at the same time, and `stream` is
    ///   not being captured.
    /// - For each node, what its own call requires holds from now on until it has run: the module
    ///   of its kernel is loaded, its addresses lie within live allocations, and no other work that
    ///   may run at the same time uses what it writes, or writes what it reads.
    unsafe fn graph_launch(&self, exec: GraphExecHandle, stream: StreamHandle) -> Result<()>;

    /// Destroys an executable graph; launches already queued still run.
    ///
    /// # Safety
    ///
    /// - `exec` is live, and not used from now on.
    unsafe fn graph_exec_destroy(&self, exec: GraphExecHandle) -> Result<()>;
}
