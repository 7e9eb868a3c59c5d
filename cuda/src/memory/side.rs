//! The bytes on one side of a copy.

use std::sync::Arc;

use warpstride::driver::soft::Soft;

use super::table::{Home, Kind};
use crate::arguments::Opaque;
use crate::code::Outcome;
use crate::process::Process;

/// Bytes that pass through a buffer at a time.
pub(super) const CHUNK: usize = 64 << 10;

/// One side of a copy, which queued work keeps.
#[derive(Clone)]
pub(super) enum Side {
    /// Memory that this library allocated, also that of the host. Another thread may free it before
    /// queued work runs, which then finds nothing there.
    Device(Arc<Soft>, u64),
    /// Memory of the program.
    Host(Opaque),
    /// Bytes of pageable memory as they were when the program asked for the copy.
    Staged(Arc<[u8]>),
}

impl Side {
    /// Makes the side that begins at an address.
    pub(super) fn new(process: &Process, home: Home, address: u64) -> Outcome<Self> {
        let gpu = process.gpu(if let Home::Device(device, _) = home { device } else { 0 })?;
        let is_own = match home {
            Home::Device(..) | Home::Managed => true,
            // Registered memory stays the program's, also once it is not registered any more.
            Home::PageLocked => {
                process.memory.lock().around(address).is_some_and(|(_, found)| found.kind == Kind::PageLocked)
            }
            Home::Pageable => false,
        };
        Ok(if is_own { Self::Device(Arc::clone(&gpu.soft), address) } else { Self::Host(Opaque::at(address)) })
    }

    /// Reads the bytes at an offset.
    pub(super) fn read(&self, offset: usize, out: &mut [u8]) -> warpstride::Result<()> {
        match self {
            Self::Device(soft, address) => soft.memory().read(address.saturating_add(offset as u64), out)?,
            Self::Host(memory) => memory.read_at(offset, out),
            Self::Staged(bytes) => out.copy_from_slice(&bytes[offset..][..out.len()]),
        }
        Ok(())
    }

    /// Writes the bytes at an offset.
    pub(super) fn write(&self, offset: usize, bytes: &[u8]) -> warpstride::Result<()> {
        match self {
            Self::Device(soft, address) => soft.memory().write(address.saturating_add(offset as u64), bytes)?,
            Self::Host(memory) => memory.write_at(offset, bytes),
            Self::Staged(_) => unreachable!("staged bytes are a source"),
        }
        Ok(())
    }

    /// Copies a run of bytes from another side to this one.
    pub(super) fn copy_from(&self, to: usize, src: &Self, from: usize, bytes: usize) -> warpstride::Result<()> {
        if let (Self::Device(soft, dst), Self::Device(other, src)) = (self, src)
            && Arc::ptr_eq(soft, other)
        {
            let (dst, src) = (dst.saturating_add(to as u64), src.saturating_add(from as u64));
            return Ok(soft.memory().copy(dst, src, bytes as u64)?);
        }
        let mut buffer = vec![0; CHUNK.min(bytes)];
        for start in (0..bytes).step_by(CHUNK) {
            let chunk = &mut buffer[..CHUNK.min(bytes - start)];
            src.read(from + start, chunk)?;
            self.write(to + start, chunk)?;
        }
        Ok(())
    }
}
