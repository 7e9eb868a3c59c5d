//! Device memory, page-locked host memory, and copies.

use std::ptr::{self, NonNull};

use super::Cuda;
use super::error::code;
use super::graphs::Release;
use crate::driver::{Memory, StreamHandle};
use crate::error::{Error, ErrorKind, Result, counted};

// SAFETY: the CUDA driver's documentation promises for allocations and copies what the trait
// requires.
unsafe impl Memory for Cuda {
    fn memory(&self) -> Result<(u64, u64)> {
        let api = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both take the result.
        let code = unsafe { (api.cuMemGetInfo_v2)(&mut free, &mut total) };
        self.check(code, format_args!("cuMemGetInfo"))?;
        Ok((free as u64, total as u64))
    }

    fn reset_persisting_l2(&self) -> Result<()> {
        // Cache policies and persisting lines came with compute capability 8.0.
        if self.info.compute_capability < (8, 0) {
            return Ok(());
        }
        let api = self.enter()?;
        // SAFETY: it only requires a current context.
        let code = unsafe { (api.cuCtxResetPersistingL2Cache)() };
        // A part of a GPU may not support the call; then there is nothing to reset.
        if code == code::NOT_SUPPORTED {
            return Ok(());
        }
        self.check(code, format_args!("cuCtxResetPersistingL2Cache"))
    }

    fn alloc(&self, bytes: u64) -> Result<u64> {
        let api = self.enter()?;
        let size = usize::try_from(bytes).map_err(|_| self.out_of_memory("cuMemAlloc", bytes))?;
        let mut address = 0;
        // SAFETY: `address` takes the result.
        match unsafe { (api.cuMemAlloc_v2)(&mut address, size) } {
            code::OUT_OF_MEMORY => Err(self.out_of_memory("cuMemAlloc", bytes)),
            // The driver's answer to a size beyond any device's memory.
            code::INVALID_VALUE if bytes > self.info.memory_bytes => Err(self.out_of_memory("cuMemAlloc", bytes)),
            code => {
                self.check(code, format_args!("cuMemAlloc({bytes})", bytes = counted(bytes, "byte"))).map(|()| address)
            }
        }
    }

    unsafe fn free(&self, address: u64) -> Result<()> {
        self.release(Release::Memory(address))
    }

    fn alloc_host(&self, bytes: usize) -> Result<NonNull<u8>> {
        let api = self.enter()?;
        let mut memory = ptr::null_mut();
        // Flags 0: cached by the host, not write-combined, so that reading it back is fast. SAFETY:
        // `memory` takes the result.
        let code = unsafe { (api.cuMemHostAlloc)(&mut memory, bytes, 0) };
        if code == code::OUT_OF_MEMORY {
            let context = format!(
                "cuMemHostAlloc({bytes}): the system gives no more page-locked memory; free some, or copy from \
                 pageable memory",
                bytes = counted(bytes, "byte")
            );
            return Err(Error::new(ErrorKind::OutOfMemory, context));
        }
        self.check(code, format_args!("cuMemHostAlloc({bytes})", bytes = counted(bytes, "byte")))?;
        let memory: NonNull<u8> = NonNull::new(memory)
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::Driver,
                    format!("cuMemHostAlloc({bytes}) gave no address", bytes = counted(bytes, "byte")),
                )
            })?
            .cast();
        // SAFETY: the driver has just allocated `bytes` bytes here for us alone.
        unsafe { memory.write_bytes(0, bytes) };
        Ok(memory)
    }

    unsafe fn free_host(&self, memory: NonNull<u8>) -> Result<()> {
        self.release(Release::HostMemory(memory))
    }

    unsafe fn copy_h2d(&self, dst: u64, src: *const u8, bytes: usize, stream: StreamHandle) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let api = self.enter()?;
        // SAFETY: the caller promises both ranges, and that the source does not change until the
        // copy has run.
        let code = unsafe { (api.cuMemcpyHtoDAsync_v2)(dst, src.cast(), bytes, stream.raw()) };
        let StreamHandle(stream) = stream;
        self.check(
            code,
            format_args!(
                "cuMemcpyHtoDAsync({dst:#x} from {src:p}, {bytes}, stream {stream:#x})",
                bytes = counted(bytes, "byte")
            ),
        )
    }

    unsafe fn copy_d2h(&self, dst: *mut u8, src: u64, bytes: usize, stream: StreamHandle) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let api = self.enter()?;
        // SAFETY: the caller promises both ranges, and that no other code uses the target until the
        // copy has run.
        let code = unsafe { (api.cuMemcpyDtoHAsync_v2)(dst.cast(), src, bytes, stream.raw()) };
        let StreamHandle(stream) = stream;
        self.check(
            code,
            format_args!(
                "cuMemcpyDtoHAsync({dst:p} from {src:#x}, {bytes}, stream {stream:#x})",
                bytes = counted(bytes, "byte")
            ),
        )
    }

    unsafe fn copy_d2d(&self, dst: u64, src: u64, bytes: u64, stream: StreamHandle) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let api = self.enter()?;
        // SAFETY: the caller promises both ranges.
        let code = unsafe { (api.cuMemcpyDtoDAsync_v2)(dst, src, bytes as usize, stream.raw()) };
        let StreamHandle(stream) = stream;
        self.check(
            code,
            format_args!(
                "cuMemcpyDtoDAsync({dst:#x} from {src:#x}, {bytes}, stream {stream:#x})",
                bytes = counted(bytes, "byte")
            ),
        )
    }

    unsafe fn fill(&self, dst: u64, value: u8, bytes: u64, stream: StreamHandle) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let api = self.enter()?;
        // SAFETY: the caller promises the range.
        let code = unsafe { (api.cuMemsetD8Async)(dst, value, bytes as usize, stream.raw()) };
        let StreamHandle(stream) = stream;
        self.check(
            code,
            format_args!(
                "cuMemsetD8Async({dst:#x}, {value}, {bytes}, stream {stream:#x})",
                bytes = counted(bytes, "byte")
            ),
        )
    }
}
