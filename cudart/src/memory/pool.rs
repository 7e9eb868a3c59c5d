//! Pools of memory, and allocations in the order of streams.

use std::ffi::c_uint;

use crate::arguments::{In, Opaque, Out};
use crate::driver::forward;
use crate::types::{Location, Pool, Stream};

forward! {
    /// Allocates memory in the order of a stream.
    fn cudaMallocAsync, per_thread cudaMallocAsync_ptsz (address: Out<Opaque>, bytes: usize, stream: Stream)
        = cuMemAllocAsync;
    /// Allocates memory of a pool in the order of a stream.
    fn cudaMallocFromPoolAsync, per_thread cudaMallocFromPoolAsync_ptsz
        (address: Out<Opaque>, bytes: usize, pool: Pool, stream: Stream) = cuMemAllocFromPoolAsync;
    /// Frees memory in the order of a stream.
    fn cudaFreeAsync, per_thread cudaFreeAsync_ptsz (address: Opaque, stream: Stream) = cuMemFreeAsync;
    /// Makes a pool.
    fn cudaMemPoolCreate(pool: Out<Pool>, properties: Opaque) = cuMemPoolCreate;
    /// Ends a pool.
    fn cudaMemPoolDestroy(pool: Pool) = cuMemPoolDestroy;
    /// Gives up free memory of a pool.
    fn cudaMemPoolTrimTo(pool: Pool, keep: usize) = cuMemPoolTrimTo;
    /// Sets an attribute of a pool.
    fn cudaMemPoolSetAttribute(pool: Pool, attribute: c_uint, value: Opaque) = cuMemPoolSetAttribute;
    /// Returns an attribute of a pool.
    fn cudaMemPoolGetAttribute(pool: Pool, attribute: c_uint, value: Opaque) = cuMemPoolGetAttribute;
    /// Sets which devices use the memory of a pool.
    fn cudaMemPoolSetAccess(pool: Pool, each: Opaque, count: usize) = cuMemPoolSetAccess;
    /// Returns whether a device uses the memory of a pool.
    fn cudaMemPoolGetAccess(flags: Out<c_uint>, pool: Pool, place: In<Location>) = cuMemPoolGetAccess;
}

#[cfg(not(cuda_12))]
forward! {
    /// Returns the pool with which a place begins.
    fn cudaMemGetDefaultMemPool(pool: Out<Pool>, place: In<Location>, kind: c_uint) = cuMemGetDefaultMemPool;
    /// Returns the pool from which a place allocates.
    fn cudaMemGetMemPool(pool: Out<Pool>, place: In<Location>, kind: c_uint) = cuMemGetMemPool;
    /// Sets the pool from which a place allocates.
    fn cudaMemSetMemPool(place: In<Location>, kind: c_uint, pool: Pool) = cuMemSetMemPool;
}
