//! Copies of views that lie in memory in the same order: the yardstick for everything else that moves bytes.

use std::fmt;

use super::{check_addresses, check_bytes, check_width, queue_between};
use crate::abi::{COPY, COPY_BLOCK, CopyParams, EntryId, Index, LaunchShape, MAX_GRID_X, WIDTHS};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::Element;
use crate::error::{Error, ErrorKind, Result};
use crate::layout::Layout;
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// What the driver's allocations are aligned to, in bytes; see [`Driver::alloc`](crate::driver::Driver::alloc).
const ALLOCATION_ALIGN: u64 = 256;

/// Queues a copy of `src` to `dst` on `stream`. Both are contiguous, in whatever order of axes, and lie in memory alike.
///
/// # Errors
///
/// `Layout` where the shapes differ or the elements lie in different orders or with gaps, which is not supported yet:
/// of matrices, [`transpose_into`](super::transpose_into) from `src.t()` does it. `InvalidArgument` where the three are not
/// of one device. Else what the driver failed with.
pub fn copy<T: Element>(src: View<'_, T>, dst: ViewMut<'_, T>, stream: &Stream) -> Result<()> {
    let plan = CopyPlan::new(src.layout(), dst.layout(), size_of::<T>())?;
    let (source, destination) = (src.memory(), dst.memory());
    queue_between(source, destination, stream, || {
        // SAFETY: the layouts lie within the buffers, which live until their drops, and share no element, as the exclusive
        // borrow of `dst` shows; other work on them is ordered by `queue_between`, which also holds all to one device.
        unsafe { plan.launch(destination.device(), source.address(), destination.address(), stream.handle()) }
    })
}

/// Queues a copy between memory that others own, by addresses. `src` and `dst` are the addresses of the storages that the
/// layouts are of, `width` the bytes of an element.
///
/// # Errors
///
/// As [`copy`]; `InvalidArgument` also for an address that is not aligned to `width`, or ranges that overlap.
///
/// # Safety
///
/// - Every element of `src_layout` from `src` and of `dst_layout` from `dst` lies within memory that `device` can access,
///   live until the copy has run.
/// - `stream` is a live stream of `device`'s context. On CUDA a `CUstream` of the device's primary context is one,
///   and 0 its default stream.
/// - From this call until the copy has run, no other work writes the source, or reads or writes the destination, unless
///   it is ordered before or after the copy on `stream` or by events.
pub unsafe fn copy_raw(
    device: &Device,
    src: u64,
    src_layout: &Layout,
    dst: u64,
    dst_layout: &Layout,
    width: usize,
    stream: StreamHandle,
) -> Result<()> {
    let plan = CopyPlan::new(src_layout, dst_layout, width)?;
    if plan.bytes == 0 {
        return Ok(());
    }
    check_addresses(src, src_layout, dst, dst_layout, width)?;
    // SAFETY: as the caller promises; the ranges do not overlap and are aligned, as checked above.
    unsafe { plan.launch(device, src, dst, stream) }
}

/// How a copy is done: one launch of the copy kernel, or none for no bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyPlan {
    /// Bytes from the start of the source's storage to the first to read.
    src_start: u64,
    /// Bytes from the start of the destination's storage to the first to write.
    dst_start: u64,
    bytes: u64,
    access: usize,
}

impl CopyPlan {
    /// Plans a copy between storages aligned as the driver aligns allocations. `width` is the bytes of an element.
    ///
    /// # Errors
    ///
    /// `Layout` where the shapes differ, the elements lie in different orders or with gaps, or the bytes overflow;
    /// `InvalidArgument` for a width that is not 1, 2, 4, 8 or 16.
    pub fn new(src: &Layout, dst: &Layout, width: usize) -> Result<Self> {
        check_width(width)?;
        check_bytes("source", src, width)?;
        check_bytes("destination", dst, width)?;
        if src.shape() != dst.shape() {
            return Err(Error::new(
                ErrorKind::Layout,
                format!("shape {:?} cannot be copied to shape {:?}; they must be equal", src.shape(), dst.shape()),
            ));
        }
        Self::same_order(src, dst, width).ok_or_else(|| {
            let remedy = if src.rank() == 2 { "; use transpose_into with the source's t()" } else { "" };
            Error::new(
                ErrorKind::Layout,
                format!(
                    "a copy of shape {:?} from strides {:?} to strides {:?} is not supported yet: both sides must be \
                     contiguous and in the same order{remedy}",
                    src.shape(),
                    src.strides(),
                    dst.strides()
                ),
            )
        })
    }

    /// The plan where both layouts, of one shape, reach their elements contiguously and in the same order.
    pub(super) fn same_order(src: &Layout, dst: &Layout, width: usize) -> Option<Self> {
        if src.is_empty() {
            return Some(Self::of_bytes(0, 0, 0));
        }
        let mut strides = src.shape().iter().zip(src.strides().iter().zip(dst.strides()));
        if !src.is_contiguous() || !strides.all(|(&extent, (of_src, of_dst))| extent == 1 || of_src == of_dst) {
            return None;
        }
        let start = |layout: &Layout| (layout.storage_range().start * width) as u64;
        Some(Self::of_bytes(start(src), start(dst), (src.len() * width) as u64))
    }

    fn of_bytes(src_start: u64, dst_start: u64, bytes: u64) -> Self {
        let access = widest_access(src_start | dst_start | ALLOCATION_ALIGN);
        Self { src_start, dst_start, bytes, access }
    }

    /// The same copy between storages at these addresses: with narrower accesses where they are less aligned.
    #[must_use]
    pub fn at(mut self, src: u64, dst: u64) -> Self {
        let (src, dst) = (src.wrapping_add(self.src_start), dst.wrapping_add(self.dst_start));
        self.access = widest_access(src | dst | ALLOCATION_ALIGN);
        self
    }

    /// Bytes copied.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of one access: the widest of 1, 2, 4, 8 and 16 that the alignment of both sides allows.
    pub fn access(&self) -> usize {
        self.access
    }

    /// The kernel's entry; `None` where nothing is launched.
    pub fn entry(&self) -> Option<&'static str> {
        self.kernel().map(EntryId::name)
    }

    fn kernel(&self) -> Option<EntryId> {
        if self.bytes == 0 { None } else { COPY.entry(self.access, Index::Wide) }
    }

    /// The launch's shape; of no use where nothing is launched.
    pub fn shape(&self) -> LaunchShape {
        let width = self.access as u64;
        // One lane an access, and one a byte of the tail; a copy of few bytes may be all tail.
        let lanes = (self.bytes / width).max(self.bytes % width).max(1);
        let blocks = lanes.div_ceil(u64::from(COPY_BLOCK));
        let x = blocks.min(u64::from(MAX_GRID_X));
        // The bytes are at most isize::MAX, yet y may be more than a grid allows: then the launch is refused.
        let y = u32::try_from(blocks.div_ceil(x)).unwrap_or(u32::MAX);
        LaunchShape { grid: [x as u32, y, 1], block: [COPY_BLOCK, 1, 1], dynamic_shared: 0 }
    }

    /// Queues the copy between storages at these addresses, with accesses as wide as they allow. A plan may be kept and
    /// launched any number of times; what is checked is checked in the plan.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where the device does not allow the launch's shape, and what the driver failed with.
    ///
    /// # Safety
    ///
    /// As [`copy_raw`], for storages of the plan's two layouts at `src` and `dst`; and the ranges do not overlap.
    pub unsafe fn launch(&self, device: &Device, src: u64, dst: u64, stream: StreamHandle) -> Result<()> {
        let plan = self.clone().at(src, dst);
        let Some(entry) = plan.kernel() else { return Ok(()) };
        let params = CopyParams {
            src: src.wrapping_add(plan.src_start),
            dst: dst.wrapping_add(plan.dst_start),
            bytes: plan.bytes,
        };
        // SAFETY: `copy` takes these parameters; the accesses are aligned by the choice of their width; the rest as the
        // caller promises.
        unsafe { device.launch(entry, &plan.shape(), &params, stream) }
    }
}

impl fmt::Display for CopyPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entry() {
            Some(entry) => write!(f, "{entry}: {} bytes, {}", self.bytes, Shape(&self.shape())),
            None => f.write_str("nothing to copy"),
        }
    }
}

/// The widest access that an alignment, or the bitwise or of several addresses, allows.
fn widest_access(addresses: u64) -> usize {
    WIDTHS.into_iter().rev().find(|&width| addresses.is_multiple_of(width as u64)).unwrap_or(1)
}

/// A launch's shape as text.
pub(super) struct Shape<'a>(pub(super) &'a LaunchShape);

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([gx, gy, gz], [bx, by, bz]) = (self.0.grid, self.0.block);
        write!(f, "grid {gx} x {gy} x {gz} of blocks {bx} x {by} x {bz}")
    }
}
