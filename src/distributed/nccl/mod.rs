//! Messages between processes and hosts by NVIDIA's NCCL.

mod calls;
mod engine;
mod library;
mod windows;

pub use library::Library as NcclLibrary;

use std::sync::Arc;

use super::{Communicator, Members};
use crate::device::Device;
use crate::error::Result;

impl Communicator {
    /// Makes the communicator of a process by NCCL, with those of the other processes of a job.
    /// Each has a GPU of its own. The library is found at run time: see [`NcclLibrary::find`].
    ///
    /// Each call and wait has the time that the processes had to meet, until
    /// [`Communicator::with_deadline`] gives another. A process that dies is known by its
    /// connection to the others ([`Members::lost`]), and then NCCL's work is aborted: so no call
    /// hangs, and the error names the rank.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the library is not found or the device is a software GPU; `Peer` if the
    /// processes have different versions of it, or one was lost; `Deadline` if a process does not
    /// make the call in time; else NCCL's error.
    pub fn nccl(device: &Device, members: Members) -> Result<Self> {
        let deadline = members.deadline();
        Ok(Self::over(Arc::new(engine::Nccl::new(device, members)?)).with_deadline(deadline))
    }
}
