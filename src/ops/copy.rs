//! Copies of bytes that lie in memory alike on both sides: the yardstick for everything else that moves bytes.

use std::fmt;

use super::Align;
use crate::abi::{COPY, COPY_BLOCK, CopyParams, EntryId, Index, LaunchShape, WIDTHS};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::error::Result;
use crate::ops::permute::grid;

/// One launch of the copy kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CopyPlan {
    /// Bytes from the start of the source's storage to the first to read.
    src_start: u64,
    /// Bytes from the start of the destination's storage to the first to write.
    dst_start: u64,
    /// At least 1.
    bytes: u64,
    /// Bytes of one access: the widest of 1, 2, 4, 8 and 16 that the alignment of both sides allows.
    access: usize,
}

impl CopyPlan {
    /// Of `bytes` bytes, from so many bytes behind the start of one storage to so many behind that of another.
    pub(super) fn new(src_start: u64, src_align: Align, dst_start: u64, dst_align: Align, bytes: u64) -> Self {
        let aligned = src_start | src_align.bytes() | dst_start | dst_align.bytes();
        let access = WIDTHS.into_iter().rev().find(|&width| aligned.is_multiple_of(width as u64)).unwrap_or(1);
        Self { src_start, dst_start, bytes, access }
    }

    /// The kernel's entry.
    pub(super) fn entry(&self) -> Option<EntryId> {
        COPY.entry(self.access, Index::Wide)
    }

    /// The launch's shape.
    pub(super) fn shape(&self) -> LaunchShape {
        let width = self.access as u64;
        // One lane an access, and one a byte of the tail; a copy of few bytes may be all tail.
        let lanes = (self.bytes / width).max(self.bytes % width);
        let blocks = lanes.div_ceil(u64::from(COPY_BLOCK));
        LaunchShape { grid: grid(blocks), block: [COPY_BLOCK, 1, 1], dynamic_shared: 0 }
    }

    /// Launches on storages at these addresses.
    ///
    /// # Safety
    ///
    /// As [`copy_into_raw`](super::copy_into_raw); the ranges do not overlap, and the addresses are aligned as the plan was
    /// told.
    pub(super) unsafe fn launch(&self, device: &Device, src: u64, dst: u64, stream: StreamHandle) -> Result<()> {
        let Some(entry) = self.entry() else { return Ok(()) };
        let params = CopyParams {
            src: src.wrapping_add(self.src_start),
            dst: dst.wrapping_add(self.dst_start),
            bytes: self.bytes,
        };
        // SAFETY: `copy` takes these parameters; the accesses are aligned by the choice of their width; the rest as the
        // caller promises.
        unsafe { device.launch(entry, &self.shape(), &params, stream) }
    }
}

impl fmt::Display for CopyPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = self.entry().map_or("copy", EntryId::name);
        write!(f, "{entry}: {} bytes, {}", self.bytes, Shape(&self.shape()))
    }
}

/// A launch's shape as text.
pub(super) struct Shape<'a>(pub(super) &'a LaunchShape);

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([gx, gy, gz], [bx, by, bz]) = (self.0.grid, self.0.block);
        write!(f, "grid {gx} x {gy} x {gz} of blocks {bx} x {by} x {bz}")
    }
}
