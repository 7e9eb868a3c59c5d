//! The ways by which a rank's part of a redistribution is made.

use std::fmt;

use crate::context::{Allocation, Shared};
use crate::distributed::{Communicator, Deadline};
use crate::error::Result;
use crate::stream::Stream;

/// A way that was planned for one rank.
pub(super) trait Way: fmt::Display + Send + Sync {
    /// Returns the buffers that each launch uses.
    fn buffers(&self) -> Vec<&Shared<Allocation>>;

    /// Queues all of it behind what is queued on a stream. [`Way::join`] follows, after a failure
    /// too.
    ///
    /// # Safety
    ///
    /// - The parts that were planned, of the source and of the result, lie at these addresses, and
    ///   nothing else uses them until what is queued here has run, nor the buffers.
    unsafe fn queue(&self, stream: &Stream, parts: [u64; 2], by: Deadline) -> Result<()>;

    /// Makes the stream wait for all that is queued.
    fn join(&self, stream: &Stream) -> Result<()>;

    /// Waits for all that is queued on other streams. Where it could not be joined, nothing else
    /// orders later uses after it.
    fn synchronize(&self);
}

/// Waits when dropped, which happens only if a driver panicked: the locks of the operands end then.
/// It aborts first, because the work may wait for peers.
pub(super) struct WaitOnUnwind<'a>(pub(super) &'a dyn Way, pub(super) &'a Communicator);

impl Drop for WaitOnUnwind<'_> {
    fn drop(&mut self) {
        self.1.engine().abort(&format!("rank {} panicked", self.1.rank()));
        self.0.synchronize();
    }
}
