//! The pool of device memory that allocates and frees in the order of a stream.
//!
//! The pool is this driver's own. The device's default pool is shared with the CUDA runtime, so
//! other libraries change its threshold and hold its memory.

use std::ptr;

use super::Cuda;
use super::api::{AllocationType, CUmemLocation, CUmemPoolProps, CUmemoryPool, LocationType, PoolAttribute};
use super::error::code;
use crate::driver::StreamHandle;
use crate::error::{Error, ErrorKind, Result, counted};

/// A pool of the CUDA driver.
pub(super) struct Pool(CUmemoryPool);

// SAFETY: a pool belongs to the process, and any number of threads may use it.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Cuda {
    /// Makes a pool that keeps what is freed: else each synchronisation gives memory back to the
    /// system, and the next allocation maps it again.
    pub(super) fn make_pool(&self) -> Result<Pool> {
        let api = self.enter()?;
        let properties = CUmemPoolProps {
            kind: AllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            handles: 0,
            location: CUmemLocation { place: LocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: self.device },
            security: ptr::null_mut(),
            max_size: 0,
            reserved: [0; 56],
        };
        let mut pool = ptr::null_mut();
        // SAFETY: `properties` describes memory of this device, and `pool` takes the result.
        let code = unsafe { (api.cuMemPoolCreate)(&mut pool, &properties) };
        self.check(code, format_args!("cuMemPoolCreate(device {})", self.device))?;
        let mut threshold = u64::MAX;
        let attribute = PoolAttribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: the pool is live, and the attribute is a `u64`.
        let code = unsafe { (api.cuMemPoolSetAttribute)(pool, attribute, (&raw mut threshold).cast()) };
        let set = self.check(code, format_args!("cuMemPoolSetAttribute({attribute:?}, {threshold})"));
        if set.is_err() {
            // The first error is the one to report. SAFETY: the pool is live, and nobody knows it.
            let _ = unsafe { (api.cuMemPoolDestroy)(pool) };
        }
        set.map(|()| Pool(pool))
    }

    /// Destroys the pool at the end of the driver. Its memory goes back once no queued free needs
    /// it any more.
    pub(super) fn destroy_pool(&mut self) {
        if let Some(Pool(pool)) = self.pool.take() {
            let _entered = self.enter_to_release();
            // A failure allows no reaction. SAFETY: the pool is live until now.
            let _ = unsafe { (self.api.cuMemPoolDestroy)(pool) };
        }
    }

    /// Allocates in the order of `stream`.
    ///
    /// # Safety
    ///
    /// - `stream` is live.
    pub(super) unsafe fn alloc_in_order(&self, bytes: u64, stream: StreamHandle) -> Result<u64> {
        const CALL: &str = "cuMemAllocFromPoolAsync";
        let api = self.enter()?;
        let Some(Pool(pool)) = self.pool else {
            let context = format!("{} has no pool of memory; allocate without one", self.info.name);
            return Err(Error::new(ErrorKind::Unavailable, context));
        };
        let size = usize::try_from(bytes).map_err(|_| self.out_of_memory(CALL, bytes))?;
        let mut address = 0;
        // SAFETY: `address` takes the result, the pool is live, and so is the stream, as the caller
        // promises.
        match unsafe { (api.cuMemAllocFromPoolAsync)(&mut address, size, pool, stream.raw()) } {
            code::OUT_OF_MEMORY => Err(self.out_of_memory(CALL, bytes)),
            // The driver's answer to a size beyond any device's memory.
            code::INVALID_VALUE if bytes > self.info.memory_bytes => Err(self.out_of_memory(CALL, bytes)),
            code => {
                let StreamHandle(stream) = stream;
                let bytes = counted(bytes, "byte");
                self.check(code, format_args!("{CALL}({bytes}, stream {stream:#x})")).map(|()| address)
            }
        }
    }

    /// Frees in the order of `stream`.
    ///
    /// # Safety
    ///
    /// - As [`Memory::pool_free`](crate::driver::Memory::pool_free).
    pub(super) unsafe fn free_in_order(&self, address: u64, stream: StreamHandle) -> Result<()> {
        let _entered = self.enter_to_release();
        // SAFETY: the caller promises a live allocation of the pool and a live stream, and that all
        // uses come before this point of the stream.
        let code = unsafe { (self.api.cuMemFreeAsync)(address, stream.raw()) };
        let StreamHandle(stream) = stream;
        self.check(code, format_args!("cuMemFreeAsync({address:#x}, stream {stream:#x})"))
    }

    /// Gives unused memory of the pool back, until it holds `keep` bytes.
    pub(super) fn trim(&self, keep: u64) -> Result<()> {
        let Some(Pool(pool)) = self.pool else { return Ok(()) };
        let api = self.enter()?;
        // SAFETY: the pool is live.
        let code = unsafe { (api.cuMemPoolTrimTo)(pool, usize::try_from(keep).unwrap_or(usize::MAX)) };
        self.check(code, format_args!("cuMemPoolTrimTo({keep})", keep = counted(keep, "byte")))
    }
}
