//! Memory that software GPUs of one host share.

use super::Soft;
use crate::driver::Peers;
use crate::error::{Error, Result, require};

// SAFETY: `interp::Memory` shares the allocations of its host.
unsafe impl Peers for Soft {
    fn can_share_with(&self, peer: u32) -> Result<bool> {
        let _state = self.working()?;
        Ok(self.host.gpus.get(peer as usize).is_some() && self.is_of_island(peer))
    }

    fn share_with(&self, peer: u32) -> Result<()> {
        let _state = self.working()?;
        let gpus = &self.host.gpus;
        require!(
            gpus.get(peer as usize).is_some(),
            InvalidArgument,
            "software GPU {} cannot share its memory with number {peer}: its host has {}; open them together by Soft::host",
            self.number,
            crate::error::counted(gpus.len(), "GPU")
        );
        require!(
            self.is_of_island(peer),
            Unavailable,
            "software GPU {peer} cannot use the memory of number {}: the configuration has them on two islands; copy through the \
             host",
            self.number
        );
        self.memory().share_with(&gpus[peer as usize].memory).map_err(Error::from)
    }
}

impl Soft {
    /// Returns whether a GPU of the host can use the memory of this one.
    fn is_of_island(&self, peer: u32) -> bool {
        peer as usize / self.host.island == self.number / self.host.island
    }
}
