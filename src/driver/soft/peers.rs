//! Memory that software GPUs of one host share.

use super::Soft;
use crate::driver::Peers;
use crate::error::{Error, Result, require};

// SAFETY: `interp::Memory` shares the allocations of its host.
unsafe impl Peers for Soft {
    fn can_share_with(&self, peer: u32) -> Result<bool> {
        let _state = self.working()?;
        Ok(self.host.gpus.get(peer as usize).is_some())
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
        self.memory().share_with(&gpus[peer as usize].memory).map_err(Error::from)
    }
}
