//! Device memory, page-locked host memory, and copies that run late.

use std::ptr::NonNull;

use super::Soft;
use super::state::{Action, HostPointer, Line, no_such};
use crate::driver::{Memory, StreamHandle};
use crate::error::{Error, ErrorKind, Result, counted};

// SAFETY: `interp::Memory` keeps the ranges, and `self` owns it.
unsafe impl Memory for Soft {
    fn memory(&self) -> Result<(u64, u64)> {
        let _state = self.working()?;
        Ok((self.memory.limit() - self.memory.used(), self.memory.limit()))
    }

    fn reset_persisting_l2(&self) -> Result<()> {
        let _state = self.working()?;
        Ok(())
    }

    fn alloc(&self, bytes: u64) -> Result<u64> {
        let _state = self.working()?;
        self.memory.alloc(bytes)
    }

    unsafe fn free(&self, address: u64) -> Result<()> {
        let drained = self.drain(&mut self.lock());
        let freed = self.memory.free(address);
        drained.and(freed.map_err(|error| Error::new(ErrorKind::InvalidHandle, error.to_string())))
    }

    fn alloc_host(&self, bytes: usize) -> Result<NonNull<u8>> {
        let mut state = self.working()?;
        let mut lines = Vec::new();
        lines.try_reserve_exact(bytes.div_ceil(size_of::<Line>())).map_err(|_| {
            let context = format!(
                "the host cannot allocate {bytes} of page-locked memory; free some or use less",
                bytes = counted(bytes, "byte")
            );
            Error::new(ErrorKind::OutOfMemory, context)
        })?;
        lines.resize(lines.capacity(), Line([0; 64]));
        let memory = NonNull::from(lines.as_mut_slice()).cast();
        state.host.insert(memory.addr().get(), lines);
        Ok(memory)
    }

    unsafe fn free_host(&self, memory: NonNull<u8>) -> Result<()> {
        let mut state = self.lock();
        let drained = self.drain(&mut state);
        let freed = state.host.remove(&memory.addr().get()).map(drop);
        drained.and(freed.ok_or_else(|| no_such("page-locked memory", memory.addr().get() as u64)))
    }

    unsafe fn copy_h2d(&self, dst: u64, src: *const u8, bytes: usize, stream: StreamHandle) -> Result<()> {
        self.queue(stream, bytes as u64, Action::Upload { dst, src: HostPointer(src.cast_mut()), bytes })
    }

    unsafe fn copy_d2h(&self, dst: *mut u8, src: u64, bytes: usize, stream: StreamHandle) -> Result<()> {
        self.queue(stream, bytes as u64, Action::Download { dst: HostPointer(dst), src, bytes })
    }

    unsafe fn copy_d2d(&self, dst: u64, src: u64, bytes: u64, stream: StreamHandle) -> Result<()> {
        self.queue(stream, bytes, Action::Copy { dst, src, bytes })
    }

    unsafe fn fill(&self, dst: u64, value: u8, bytes: u64, stream: StreamHandle) -> Result<()> {
        self.queue(stream, bytes, Action::Fill { dst, value, bytes })
    }
}
