//! Copies between the host and the device that may go through the staging engine.

use super::Stream;
use crate::error::Result;
use crate::host::Direction;

/// Copies `bytes` bytes to the device after the work that is queued on `stream`. Where the engine
/// wins, the host waits for that work and the bytes are there when this returns; else the driver's
/// copy is queued on the stream.
///
/// # Safety
///
/// - As [`Memory::copy_h2d`](crate::driver::Memory::copy_h2d).
/// - Only this stream has work that uses the range of the device, and no other thread queues such
///   work before this returns: [`queue_in_order`](super::queue_in_order) calls it.
pub(crate) unsafe fn upload(stream: &Stream, dst: u64, src: *const u8, bytes: usize) -> Result<()> {
    // SAFETY: the caller's promises.
    if unsafe { staged(stream, Direction::Upload, dst, src.cast_mut(), bytes) }? {
        return Ok(());
    }
    // SAFETY: the caller's promises.
    unsafe { stream.context().driver().copy_h2d(dst, src, bytes, stream.handle()) }
}

/// Copies `bytes` bytes to the host after the work that is queued on `stream`, as [`upload`].
///
/// # Safety
///
/// - As [`Memory::copy_d2h`](crate::driver::Memory::copy_d2h).
/// - Only this stream has work that uses the range of the device, and no other thread queues such
///   work before this returns: [`queue_in_order`](super::queue_in_order) calls it.
pub(crate) unsafe fn download(stream: &Stream, dst: *mut u8, src: u64, bytes: usize) -> Result<()> {
    // SAFETY: the caller's promises.
    if unsafe { staged(stream, Direction::Download, src, dst, bytes) }? {
        return Ok(());
    }
    // SAFETY: the caller's promises.
    unsafe { stream.context().driver().copy_d2h(dst, src, bytes, stream.handle()) }
}

/// Copies by the engine of the stream's device if that is the way. Else it returns false, and
/// nothing was copied.
///
/// # Safety
///
/// - As [`upload`] or [`download`].
unsafe fn staged(stream: &Stream, direction: Direction, device: u64, host: *mut u8, bytes: usize) -> Result<bool> {
    let context = stream.context();
    let wait = || stream.synchronize();
    // SAFETY: the caller's promises. After the wait the work that was queued has run, and the
    // caller holds off what comes behind, because the engine's streams are not known to it.
    unsafe { context.staging().copy_after(wait, context.pinned(), direction, device, host, bytes) }
}
