//! Copies of bytes that lie in memory alike on both sides: the yardstick for everything else that moves bytes.

use std::fmt;

use crate::abi::{COPY, COPY_BLOCK, CopyParams, EntryId, Key};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::error::{Result, counted};
use crate::launch_shape::LaunchShape;
use crate::ops::Align;
use crate::ops::canonical::Canonical;
use crate::ops::numbering::grid;
use crate::ops::units::VECTOR;

/// One launch of the copy kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops) struct CopyPlan {
    /// The kernel's entry.
    pub(in crate::ops) entry: EntryId,
    /// Bytes from the start of the source's storage to the first to read.
    src_start: u64,
    /// Bytes from the start of the destination's storage to the first to write.
    dst_start: u64,
    /// At least 1.
    bytes: u64,
}

impl CopyPlan {
    /// The plan, where all elements lie alike on both sides, and both start on 16 bytes.
    pub(in crate::ops) fn of(canonical: &Canonical, src_align: Align, dst_align: Align) -> Option<Self> {
        let in_bytes = |elements: usize| (elements * canonical.width) as u64;
        let (src_start, dst_start) = (in_bytes(canonical.src_start), in_bytes(canonical.dst_start));
        let starts = src_start | src_align.bytes() | dst_start | dst_align.bytes();
        if !canonical.is_contiguous() || !starts.is_multiple_of(VECTOR as u64) {
            return None;
        }
        let entry = COPY.get(Key::ONLY);
        Some(Self { entry, src_start, dst_start, bytes: in_bytes(canonical.len()) })
    }

    /// The launch's shape.
    pub(in crate::ops) fn shape(&self) -> LaunchShape {
        // One lane an access, and one a byte of the tail; a copy of few bytes may be all tail.
        let lanes = (self.bytes / VECTOR as u64).max(self.bytes % VECTOR as u64);
        let blocks = lanes.div_ceil(u64::from(COPY_BLOCK));
        LaunchShape { grid: grid(blocks), block: [COPY_BLOCK, 1, 1], dynamic_shared: 0 }
    }

    /// Launches on storages at these addresses.
    ///
    /// # Safety
    ///
    /// As [`copy_into_raw`](crate::ops::copy_into_raw); the ranges do not overlap, and the addresses are aligned as the plan was
    /// told.
    pub(in crate::ops) unsafe fn launch(
        &self,
        device: &Device,
        src: u64,
        dst: u64,
        stream: StreamHandle,
    ) -> Result<()> {
        let params = CopyParams {
            src: src.wrapping_add(self.src_start),
            dst: dst.wrapping_add(self.dst_start),
            bytes: self.bytes,
        };
        // SAFETY: `copy` takes these parameters; the starts are multiples of 16; the rest as the
        // caller promises.
        unsafe { device.launch(self.entry, &self.shape(), &params, stream) }
    }
}

impl fmt::Display for CopyPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}, {}", self.entry, counted(self.bytes, "byte"), self.shape())
    }
}
