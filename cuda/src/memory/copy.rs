//! Copies of bytes, in any direction.
//!
//! CUDA's "API synchronization behavior" says when a call returns. An asynchronous copy from
//! pageable memory has read its source by then, and one to such memory has run. One of page-locked
//! memory runs late. A synchronous copy within devices is only queued.

use std::sync::Arc;

use warpstride::driver::StreamHandle;
use warpstride::driver::soft::Region;
use warpstride::error::counted;

use super::side::Side;
use super::table::Home;
use crate::arguments::{Handle, Opaque};
use crate::code::{Failure, Outcome, code};
use crate::context::{Context, current};
use crate::export::export;
use crate::process::{Gpu, process};
use crate::stream::{Stream, check_safe, stream};

/// The sides that a function takes at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Any,
    Host,
    Device,
}

/// When a copy reads memory of the host, and when its call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timing {
    /// As the synchronous functions do.
    Synchronous,
    /// As the asynchronous functions do.
    Asynchronous,
    /// Its source is read before the call returns, also if it is page-locked.
    ReadAtOnce,
    /// Its source is read in the order of the stream, also if it is pageable.
    ReadInOrder,
}

/// One side of a copy as a call names it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operand {
    pub(super) address: u64,
    pub(super) wanted: Wanted,
    /// Bytes from a row to the next, and from a slice to the next.
    pub(super) row_pitch: usize,
    pub(super) slice_pitch: usize,
}

/// The box that a copy moves: bytes of a row, rows of a slice, and slices.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) depth: usize,
}

impl Operand {
    /// Makes the side of a copy of one row.
    pub(super) fn row(address: u64, wanted: Wanted) -> Self {
        Self { address, wanted, row_pitch: 0, slice_pitch: 0 }
    }

    fn region(&self, extent: Extent, is_written: bool) -> Region {
        Region {
            row_pitch: self.row_pitch as u64,
            row_count: extent.height as u64,
            slice_pitch: self.slice_pitch as u64,
            slice_count: extent.depth as u64,
            ..Region::row(self.address, extent.width as u64, is_written)
        }
    }
}

impl Extent {
    fn row(bytes: usize) -> Self {
        Self { width: bytes, height: 1, depth: 1 }
    }

    pub(super) fn is_empty(self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }

    fn bytes(self) -> Option<usize> {
        self.width.checked_mul(self.height)?.checked_mul(self.depth)
    }

    /// Returns the bytes from the first to the last one of a side; `None` beyond what memory has.
    fn span(self, side: &Operand) -> Option<usize> {
        let slices = (self.depth - 1).checked_mul(side.slice_pitch)?;
        let rows = (self.height - 1).checked_mul(side.row_pitch)?;
        slices.checked_add(rows)?.checked_add(self.width).filter(|&span| span <= 1 << 62)
    }

    /// Returns whether the rows of a side follow each other without a gap.
    fn is_packed(self, side: &Operand) -> bool {
        (self.height == 1 || side.row_pitch == self.width)
            && (self.depth == 1 || side.slice_pitch == self.width * self.height)
    }
}

/// A copy whose operands are checked. It can be queued any number of times.
#[derive(Clone)]
pub(crate) struct Planned {
    job: Arc<Job>,
    to: Home,
    from: Home,
}

/// A copy with its sides, which queued work keeps.
struct Job {
    dst: (Side, Operand),
    src: (Side, Operand),
    extent: Extent,
}

impl Job {
    fn run(&self) -> warpstride::Result<()> {
        let Self { dst: (dst, to), src: (src, from), extent } = self;
        if extent.is_packed(to) && extent.is_packed(from) {
            return dst.copy_from(0, src, 0, extent.width * extent.height * extent.depth);
        }
        let offset = |side: &Operand, slice, row| slice * side.slice_pitch + row * side.row_pitch;
        (0..extent.depth).flat_map(|slice| (0..extent.height).map(move |row| (slice, row))).try_for_each(
            |(slice, row)| dst.copy_from(offset(to, slice, row), src, offset(from, slice, row), extent.width),
        )
    }

    /// The bytes that it uses.
    fn uses(&self) -> Box<[Region]> {
        let sides = [(&self.dst, true), (&self.src, false)].into_iter();
        // The program does not know staged bytes.
        let known = sides.filter(|((side, _), _)| !matches!(side, Side::Staged(_)));
        known.map(|((_, operand), is_written)| operand.region(self.extent, is_written)).collect()
    }

    /// Returns the copy with the source as it is now, row after row.
    fn staged(&self) -> Outcome<Self> {
        let Extent { width, height, .. } = self.extent;
        let bytes = self.extent.bytes().ok_or_else(too_large)?;
        let mut staged = Vec::new();
        staged.try_reserve_exact(bytes).map_err(|_| {
            Failure::new(
                code::OUT_OF_MEMORY,
                format!(
                    "the host has no {bytes} in which a copy could keep its source",
                    bytes = counted(bytes, "byte")
                ),
            )
        })?;
        staged.resize(bytes, 0);
        let (src, from) = &self.src;
        for (number, row) in staged.chunks_exact_mut(width).enumerate() {
            let (slice, line) = (number / height, number % height);
            src.read(slice * from.slice_pitch + line * from.row_pitch, row)?;
        }
        let packed = Operand { row_pitch: width, slice_pitch: width * height, ..*from };
        Ok(Self { dst: self.dst.clone(), src: (Side::Staged(staged.into()), packed), extent: self.extent })
    }
}

fn too_large() -> Failure {
    Failure::value("the box of a copy is larger than memory")
}

/// Returns the place of a side, and refuses one that the call does not take.
fn home(side: &Operand, extent: Extent) -> Outcome<Home> {
    let process = process()?;
    let bytes = extent.span(side).ok_or_else(too_large)?;
    if (extent.height > 1 && side.row_pitch < extent.width) || (extent.depth > 1 && side.slice_pitch < extent.width) {
        return Err(Failure::value(format!(
            "the pitch of a side is {}, less than the {} of a row",
            side.row_pitch,
            counted(extent.width, "byte")
        )));
    }
    let home = process.memory.home(process, side.address, bytes as u64)?;
    let address = side.address;
    match (side.wanted, home) {
        (Wanted::Host, Home::Device(..)) => {
            Err(Failure::value(format!("{address:#x} is an address of a device; pass one of the host")))
        }
        (Wanted::Device, Home::Pageable) => Err(Failure::value(format!(
            "{address:#x} is not an address of a device; pass one that cuMemAlloc returned"
        ))),
        _ => Ok(home),
    }
}

fn is_host(home: Home) -> bool {
    matches!(home, Home::Pageable | Home::PageLocked)
}

impl Planned {
    /// Checks the operands of a copy; returns `None` if it moves nothing.
    pub(super) fn new(dst: Operand, src: Operand, extent: Extent) -> Outcome<Option<Self>> {
        if extent.is_empty() {
            return Ok(None);
        }
        let process = process()?;
        let (to, from) = (home(&dst, extent)?, home(&src, extent)?);
        let dst = (Side::new(process, to, dst.address)?, dst);
        let src = (Side::new(process, from, src.address)?, src);
        Ok(Some(Self { job: Arc::new(Job { dst, src, extent }), to, from }))
    }

    /// Queues the copy, whose source is read and whose destination is written in the order of the
    /// stream.
    pub(crate) fn queue(&self, gpu: &Gpu, soft: StreamHandle) -> warpstride::Result<()> {
        self.queue_counted(gpu, soft, false)
    }

    /// Queues the copy, and counts it; `hides_wait` says that the call only seems asynchronous.
    fn queue_counted(&self, gpu: &Gpu, soft: StreamHandle, hides_wait: bool) -> warpstride::Result<()> {
        let what = match (is_host(self.from), is_host(self.to)) {
            (true, true) => "copying within the host",
            (true, false) => "copying from the host to a device",
            (false, true) => "copying from a device to the host",
            (false, false) => "copying within devices",
        };
        let job = &self.job;
        gpu.soft.call_host(
            soft,
            what,
            Some(job.uses()),
            Box::new({
                let job = Arc::clone(job);
                move || job.run()
            }),
        )?;
        if let Ok(process) = process() {
            let bytes = self.job.extent.bytes().unwrap_or(usize::MAX);
            process.memory.traffic.add(self.to, self.from, bytes as u64, hides_wait);
        }
        Ok(())
    }
}

/// Copies a box of bytes on a stream.
pub(super) fn copy(dst: Operand, src: Operand, extent: Extent, on: &Arc<Stream>, timing: Timing) -> Outcome {
    let Some(mut planned) = Planned::new(dst, src, extent)? else { return Ok(()) };
    let Planned { to, from, .. } = planned;
    let is_synchronous = timing == Timing::Synchronous;
    if is_synchronous {
        check_safe("a copy that waits")?;
    }
    let is_captured = on.is_captured()?;
    let waits = match timing {
        // A graph's copies read and write memory at each launch.
        _ if is_captured && !is_synchronous => false,
        Timing::Synchronous => {
            let is_late = |home| matches!(home, Home::Device(_, false));
            !(is_late(to) && is_late(from))
        }
        _ => to == Home::Pageable || (is_host(to) && is_host(from)),
    };
    let stages = match timing {
        Timing::Synchronous | Timing::ReadInOrder => false,
        _ if is_captured => false,
        Timing::Asynchronous => from == Home::Pageable,
        Timing::ReadAtOnce => is_host(from),
    };
    if stages && !waits {
        planned.job = Arc::new(planned.job.staged()?);
    }
    on.queue(move |gpu, soft| planned.queue_counted(gpu, soft, waits && !is_synchronous))?;
    if waits { on.wait() } else { Ok(()) }
}

/// Copies bytes on the stream of a handle.
fn bytes(dst: (u64, Wanted), src: (u64, Wanted), bytes: usize, on: Handle<Stream>, timing: Timing) -> Outcome {
    let stream = stream(on)?;
    copy(Operand::row(dst.0, dst.1), Operand::row(src.0, src.1), Extent::row(bytes), &stream, timing)
}

/// Refuses a context that is not live; null is the current one.
pub(super) fn check_context(context: Handle<Context>) -> Outcome {
    if context.is_null() {
        return current().map(drop);
    }
    let found = process()?.contexts.find(context);
    found.map(drop).ok_or_else(|| Failure::new(code::INVALID_CONTEXT, format!("{context:?} is not a live context")))
}

use Timing::{Asynchronous, Synchronous};
use Wanted::{Any, Device, Host};

export! {
    /// Copies between any two addresses.
    fn cuMemcpy, per_thread cuMemcpy_ptds (dst: u64, src: u64, count: usize) {
        bytes((dst, Any), (src, Any), count, Handle::NULL, Synchronous)
    }

    /// Queues a copy between any two addresses.
    fn cuMemcpyAsync, per_thread cuMemcpyAsync_ptsz (dst: u64, src: u64, count: usize, on: Handle<Stream>) {
        bytes((dst, Any), (src, Any), count, on, Asynchronous)
    }

    /// Copies from the host to a device.
    fn cuMemcpyHtoD_v2 as cuMemcpyHtoD, per_thread cuMemcpyHtoD_v2_ptds (dst: u64, src: Opaque, count: usize) {
        bytes((dst, Device), (src.address(), Host), count, Handle::NULL, Synchronous)
    }

    /// Queues a copy from the host to a device.
    fn cuMemcpyHtoDAsync_v2 as cuMemcpyHtoDAsync, per_thread cuMemcpyHtoDAsync_v2_ptsz (
        dst: u64, src: Opaque, count: usize, on: Handle<Stream>,
    ) {
        bytes((dst, Device), (src.address(), Host), count, on, Asynchronous)
    }

    /// Copies from a device to the host.
    fn cuMemcpyDtoH_v2 as cuMemcpyDtoH, per_thread cuMemcpyDtoH_v2_ptds (dst: Opaque, src: u64, count: usize) {
        bytes((dst.address(), Host), (src, Device), count, Handle::NULL, Synchronous)
    }

    /// Queues a copy from a device to the host.
    fn cuMemcpyDtoHAsync_v2 as cuMemcpyDtoHAsync, per_thread cuMemcpyDtoHAsync_v2_ptsz (
        dst: Opaque, src: u64, count: usize, on: Handle<Stream>,
    ) {
        bytes((dst.address(), Host), (src, Device), count, on, Asynchronous)
    }

    /// Queues a copy within devices, on the default stream.
    fn cuMemcpyDtoD_v2 as cuMemcpyDtoD, per_thread cuMemcpyDtoD_v2_ptds (dst: u64, src: u64, count: usize) {
        bytes((dst, Device), (src, Device), count, Handle::NULL, Synchronous)
    }

    /// Queues a copy within devices.
    fn cuMemcpyDtoDAsync_v2 as cuMemcpyDtoDAsync, per_thread cuMemcpyDtoDAsync_v2_ptsz (
        dst: u64, src: u64, count: usize, on: Handle<Stream>,
    ) {
        bytes((dst, Device), (src, Device), count, on, Asynchronous)
    }

    /// Queues a copy between the devices of two contexts, on the default stream.
    fn cuMemcpyPeer, per_thread cuMemcpyPeer_ptds (
        dst: u64, of_dst: Handle<Context>, src: u64, of_src: Handle<Context>, count: usize,
    ) {
        check_context(of_dst)?;
        check_context(of_src)?;
        bytes((dst, Device), (src, Device), count, Handle::NULL, Synchronous)
    }

    /// Queues a copy between the devices of two contexts.
    fn cuMemcpyPeerAsync, per_thread cuMemcpyPeerAsync_ptsz (
        dst: u64, of_dst: Handle<Context>, src: u64, of_src: Handle<Context>, count: usize, on: Handle<Stream>,
    ) {
        check_context(of_dst)?;
        check_context(of_src)?;
        bytes((dst, Device), (src, Device), count, on, Asynchronous)
    }
}
