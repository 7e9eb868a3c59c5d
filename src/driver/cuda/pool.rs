//! The pool of device memory that allocates and frees in the order of a stream.
//!
//! The pool is this driver's own. The device's default pool is shared with the CUDA runtime, so
//! other libraries change its threshold and hold its memory.

use std::ptr;

use super::Cuda;
use super::api::{AllocationType, CUmemLocation, CUmemPoolProps, CUmemoryPool, LocationType, PoolAttribute};
use crate::error::Result;

/// A pool of the CUDA driver.
pub(super) struct Pool(pub(super) CUmemoryPool);

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
            // The first error is the one to report. SAFETY: the pool is live, and no other code has
            // it.
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
}
