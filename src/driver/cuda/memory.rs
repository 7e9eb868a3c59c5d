//! Device memory, page-locked host memory, and copies.

use std::fmt;
use std::ptr::{self, NonNull};

use super::Cuda;
use super::api::{self, Api, CUDA_MEMCPY3D, MemoryType};
use super::error::code;
use super::graphs::Release;
use super::mapping::Mapping;
use super::pool::Pool;
use crate::driver::memory::within_the_host;
use crate::driver::{Copy3d, HostKind, Memory, Pitched, Place, StreamHandle};
use crate::error::{Result, counted, refuse};

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
        let code = unsafe { (api.cuMemAlloc_v2)(&mut address, size) };
        self.check_alloc(code, "cuMemAlloc", bytes, format_args!(""))?;
        Ok(address)
    }

    unsafe fn free(&self, address: u64) -> Result<()> {
        self.release(Release::Memory(address))
    }

    fn has_pool(&self) -> bool {
        self.pool.is_some()
    }

    unsafe fn pool_alloc(&self, bytes: u64, stream: StreamHandle) -> Result<u64> {
        const CALL: &str = "cuMemAllocFromPoolAsync";
        let api = self.enter()?;
        let Some(Pool(pool)) = self.pool else {
            refuse!(Unavailable, "{} has no pool of memory; allocate without one", self.info.name)
        };
        let size = usize::try_from(bytes).map_err(|_| self.out_of_memory(CALL, bytes))?;
        let mut address = 0;
        // SAFETY: `address` takes the result, the pool is live, and so is the stream, as the caller
        // promises.
        let code = unsafe { (api.cuMemAllocFromPoolAsync)(&mut address, size, pool, stream.raw()) };
        self.check_alloc(code, CALL, bytes, format_args!(", stream {:#x}", stream.0))?;
        Ok(address)
    }

    unsafe fn pool_free(&self, address: u64, stream: StreamHandle) -> Result<()> {
        let _entered = self.enter_to_release();
        // SAFETY: the caller promises a live allocation of the pool and a live stream, and that all
        // uses come before this point of the stream.
        let code = unsafe { (self.api.cuMemFreeAsync)(address, stream.raw()) };
        self.check(code, format_args!("cuMemFreeAsync({address:#x}, stream {:#x})", stream.0))
    }

    fn pool_trim(&self, keep: u64) -> Result<()> {
        let Some(Pool(pool)) = self.pool else { return Ok(()) };
        let api = self.enter()?;
        // SAFETY: the pool is live.
        let code = unsafe { (api.cuMemPoolTrimTo)(pool, usize::try_from(keep).unwrap_or(usize::MAX)) };
        self.check(code, format_args!("cuMemPoolTrimTo({})", counted(keep, "byte")))
    }

    fn alloc_host(&self, bytes: usize, kind: HostKind) -> Result<NonNull<u8>> {
        // Only the driver has write-combined memory. If this fails, the driver's own way may still
        // work, and its error is the caller's.
        let mapping = if kind == HostKind::Cached { Mapping::new(bytes) } else { None };
        match mapping.and_then(|mapping| self.lock_mapping(mapping).ok()) {
            Some(memory) => Ok(memory),
            None => self.alloc_locked(bytes, kind),
        }
    }

    unsafe fn free_host(&self, memory: NonNull<u8>) -> Result<()> {
        self.release(Release::HostMemory(memory))
    }

    /// Registers the memory for the contexts of all devices, as the driver's own memory is.
    unsafe fn register_host(&self, memory: NonNull<u8>, bytes: usize) -> Result<()> {
        let api = self.enter()?;
        let (first, flags) = (memory.as_ptr().cast(), api::MEMHOSTREGISTER_PORTABLE);
        // SAFETY: the caller promises live memory of this size.
        let code = unsafe { (api.cuMemHostRegister_v2)(first, bytes, flags) };
        let bytes = counted(bytes, "byte");
        if code == code::OUT_OF_MEMORY {
            refuse!(
                OutOfMemory,
                "cuMemHostRegister({bytes} at {memory:p}): the system page-locks no more memory; unregister some, raise \
                 `ulimit -l`, or copy from pageable memory"
            );
        }
        self.check(code, format_args!("cuMemHostRegister({bytes} at {memory:p})"))
    }

    unsafe fn unregister_host(&self, memory: NonNull<u8>) -> Result<()> {
        self.unregister(memory)
    }

    unsafe fn copy_h2d(&self, dst: u64, src: *const u8, bytes: usize, stream: StreamHandle) -> Result<()> {
        self.queue_bytes(bytes as u64, stream, format_args!("cuMemcpyHtoDAsync({dst:#x} from {src:p}"), |api| {
            // SAFETY: the caller promises both ranges, and that the source does not change until
            // the copy has run.
            unsafe { (api.cuMemcpyHtoDAsync_v2)(dst, src.cast(), bytes, stream.raw()) }
        })
    }

    unsafe fn copy_d2h(&self, dst: *mut u8, src: u64, bytes: usize, stream: StreamHandle) -> Result<()> {
        self.queue_bytes(bytes as u64, stream, format_args!("cuMemcpyDtoHAsync({dst:p} from {src:#x}"), |api| {
            // SAFETY: the caller promises both ranges, and that no other code uses the target until
            // the copy has run.
            unsafe { (api.cuMemcpyDtoHAsync_v2)(dst.cast(), src, bytes, stream.raw()) }
        })
    }

    unsafe fn copy_d2d(&self, dst: u64, src: u64, bytes: u64, stream: StreamHandle) -> Result<()> {
        self.queue_bytes(bytes, stream, format_args!("cuMemcpyDtoDAsync({dst:#x} from {src:#x}"), |api| {
            // SAFETY: the caller promises both ranges.
            unsafe { (api.cuMemcpyDtoDAsync_v2)(dst, src, bytes as usize, stream.raw()) }
        })
    }

    unsafe fn copy_3d(&self, copy: &Copy3d, stream: StreamHandle) -> Result<()> {
        if let (Place::Host(_), Place::Host(_)) = (copy.dst.place, copy.src.place) {
            return Err(within_the_host());
        }
        if copy.is_empty() {
            return Ok(());
        }
        if let Some(operands) = one_call(copy) {
            // SAFETY: the caller's promises, about the same rows.
            return unsafe { self.copy_pitched(&operands, copy, stream) };
        }
        for slice in (0..copy.depth).map(|slice| copy.slice(slice)) {
            match one_call(&slice) {
                // SAFETY: the caller's promises, about the same rows.
                Some(operands) => unsafe { self.copy_pitched(&operands, &slice, stream) }?,
                None => slice.rows().try_for_each(|row| match row {
                    [Place::Device(dst), Place::Device(src)] => {
                        // SAFETY: the caller's promises, about this row.
                        unsafe { self.copy_d2d(dst, src, copy.width as u64, stream) }
                    }
                    // SAFETY: as above.
                    [Place::Device(dst), Place::Host(src)] => unsafe { self.copy_h2d(dst, src, copy.width, stream) },
                    // SAFETY: as above.
                    [Place::Host(dst), Place::Device(src)] => unsafe { self.copy_d2h(dst, src, copy.width, stream) },
                    [Place::Host(_), Place::Host(_)] => Err(within_the_host()),
                })?,
            }
        }
        Ok(())
    }

    unsafe fn fill(&self, dst: u64, value: u8, bytes: u64, stream: StreamHandle) -> Result<()> {
        self.queue_bytes(bytes, stream, format_args!("cuMemsetD8Async({dst:#x}, {value}"), |api| {
            // SAFETY: the caller promises the range.
            unsafe { (api.cuMemsetD8Async)(dst, value, bytes as usize, stream.raw()) }
        })
    }
}

/// The largest pitch that the driver takes, which is the same on every device.
const MAX_PITCH: usize = i32::MAX as usize;

/// Returns the operands with which one call of the driver copies more than one row; `None` if it
/// cannot. The driver counts the pitch of slices in rows, whose pitch is at least their width.
fn one_call(copy: &Copy3d) -> Option<CUDA_MEMCPY3D> {
    let rows_of = |side: &Pitched| {
        let (pitch, slice) = match (copy.height, copy.depth) {
            (1, 1) => return None,
            (_, 1) => (side.row_pitch, side.row_pitch.saturating_mul(copy.height)),
            // Slices of one row are rows.
            (1, _) => (side.slice_pitch, side.slice_pitch),
            _ => (side.row_pitch, side.slice_pitch),
        };
        let fits = copy.width <= pitch && pitch <= MAX_PITCH && slice % pitch == 0 && copy.height <= slice / pitch;
        fits.then(|| (pitch, slice / pitch))
    };
    let ((src_pitch, src_height), (dst_pitch, dst_height)) = (rows_of(&copy.src)?, rows_of(&copy.dst)?);
    let (src_type, src_device, src_host) = operands(copy.src.place);
    let (dst_type, dst_device, dst_host) = operands(copy.dst.place);
    Some(CUDA_MEMCPY3D {
        src_before: [0; 4],
        src_type,
        src_host: src_host.cast(),
        src_device,
        src_array: ptr::null_mut(),
        reserved0: ptr::null_mut(),
        src_pitch,
        src_height,
        dst_before: [0; 4],
        dst_type,
        dst_host: dst_host.cast(),
        dst_device,
        dst_array: ptr::null_mut(),
        reserved1: ptr::null_mut(),
        dst_pitch,
        dst_height,
        width: copy.width,
        height: copy.height,
        depth: copy.depth,
    })
}

/// Returns the three operands that stand for a place.
fn operands(place: Place) -> (MemoryType, u64, *mut u8) {
    match place {
        Place::Device(address) => (MemoryType::CU_MEMORYTYPE_DEVICE, address, ptr::null_mut()),
        Place::Host(memory) => (MemoryType::CU_MEMORYTYPE_HOST, 0, memory),
    }
}

impl Cuda {
    /// Checks the result of a call that allocates on the device. Its operands after the bytes are
    /// `others`.
    fn check_alloc(&self, code: u32, call: &str, bytes: u64, others: fmt::Arguments<'_>) -> Result<()> {
        match code {
            code::OUT_OF_MEMORY => Err(self.out_of_memory(call, bytes)),
            // The driver's answer to a size beyond any device's memory.
            code::INVALID_VALUE if bytes > self.info.memory_bytes => Err(self.out_of_memory(call, bytes)),
            code => self.check(code, format_args!("{call}({}{others})", counted(bytes, "byte"))),
        }
    }

    /// Queues a copy or fill of bytes by `work`, unless there are none. `call` is how the call
    /// begins in an error, which adds the bytes and the stream.
    fn queue_bytes(
        &self,
        bytes: u64,
        stream: StreamHandle,
        call: fmt::Arguments<'_>,
        work: impl FnOnce(&Api) -> u32,
    ) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let api = self.enter()?;
        let code = work(&api);
        let (bytes, StreamHandle(stream)) = (counted(bytes, "byte"), stream);
        self.check(code, format_args!("{call}, {bytes}, stream {stream:#x})"))
    }

    /// Queues a copy of a box by one call.
    ///
    /// # Safety
    ///
    /// - As [`Memory::copy_3d`] for `copy`, whose operands these are.
    unsafe fn copy_pitched(&self, operands: &CUDA_MEMCPY3D, copy: &Copy3d, stream: StreamHandle) -> Result<()> {
        let api = self.enter()?;
        // SAFETY: the caller promises every row, which the operands describe, and a live stream.
        let code = unsafe { (api.cuMemcpy3DAsync_v2)(operands, stream.raw()) };
        let StreamHandle(stream) = stream;
        self.check(code, format_args!("cuMemcpy3DAsync({copy:?}, stream {stream:#x})"))
    }
}
