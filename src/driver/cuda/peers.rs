//! Memory that GPUs of one host reach over their links.

use super::Cuda;
use super::api::{AccessFlags, Api, CUdevice, CUmemAccessDesc, CUmemLocation, LocationType};
use super::context::Context;
use super::error::code;
use super::facts::{check, device};
use crate::driver::Peers;
use crate::error::{Result, require};
use crate::sync::lock;

/// A GPU that uses this one's memory. Its context is kept, because access ends with it.
pub(super) struct Peer {
    device: CUdevice,
    context: Context,
}

/// Returns whether kernels of a device can use the memory of another.
pub(super) fn can_reach(api: &Api, device: CUdevice, other: CUdevice) -> Result<bool> {
    if device == other {
        return Ok(true);
    }
    let mut can = 0;
    // SAFETY: both are devices of the driver, and `can` takes the result.
    let code = unsafe { (api.cuDeviceCanAccessPeer)(&mut can, device, other) };
    check(api, code, format_args!("cuDeviceCanAccessPeer(device {device} to {other})"))?;
    Ok(can != 0)
}

// SAFETY: the CUDA driver has one address space for all devices, and maps what is shared.
unsafe impl Peers for Cuda {
    fn can_share_with(&self, peer: u32) -> Result<bool> {
        can_reach(self.api, device(self.api, peer)?, self.device)
    }

    fn share_with(&self, peer: u32) -> Result<()> {
        let other = device(self.api, peer)?;
        let mut peers = lock(&self.peers);
        if other == self.device || peers.iter().any(|peer| peer.device == other) {
            return Ok(());
        }
        require!(
            self.can_share_with(peer)?,
            Unavailable,
            "CUDA device {peer} cannot use the memory of device {}: they have no link that allows it; copy through the host",
            self.info.ordinal
        );
        let peer = Peer { device: other, context: Context::retain(self.api, other)? };
        let shared = self.open_to(&peer).and_then(|()| self.open_pool_to(&peer));
        if shared.is_err() {
            // SAFETY: it was retained above.
            unsafe { Context::release(self.api, other) };
        } else {
            peers.push(peer);
        }
        shared
    }
}

impl Cuda {
    /// Maps what `cuMemAlloc` gives out here for the peer.
    fn open_to(&self, peer: &Peer) -> Result<()> {
        let entered =
            peer.context.enter(self.api).map_err(|(code, call)| self.failure(code, format_args!("{call}")))?;
        // SAFETY: this driver keeps its own context, and that of the peer is current.
        match unsafe { (entered.cuCtxEnablePeerAccess)(self.context.0, 0) } {
            code::PEER_ACCESS_ALREADY_ENABLED => Ok(()),
            code => self.check(code, format_args!("cuCtxEnablePeerAccess(device {} to {})", peer.device, self.device)),
        }
    }

    /// Maps what the pool gives out for the peer.
    fn open_pool_to(&self, peer: &Peer) -> Result<()> {
        let Some(pool) = &self.pool else { return Ok(()) };
        let api = self.enter()?;
        let access = CUmemAccessDesc {
            location: CUmemLocation { place: LocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: peer.device },
            flags: AccessFlags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        // SAFETY: the pool is live, and `access` is one description.
        let code = unsafe { (api.cuMemPoolSetAccess)(pool.0, &access, 1) };
        self.check(code, format_args!("cuMemPoolSetAccess(device {} to {})", peer.device, self.device))
    }

    /// Lets go of the peers' contexts at the end of the driver. Access ends with this one's.
    pub(super) fn release_peers(&mut self) {
        let peers = std::mem::take(self.peers.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner));
        for peer in peers {
            // SAFETY: it was retained when it became a peer.
            unsafe { Context::release(self.api, peer.device) };
        }
    }
}
