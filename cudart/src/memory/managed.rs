//! Memory that the host and the devices share.

#[cfg(cuda_12)]
use std::ffi::c_int;
use std::ffi::c_uint;

use crate::arguments::{In, Opaque, Out};
use crate::context;
use crate::driver::{driver, forward};
use crate::export::export;
use crate::types::{Location, Stream};

driver! {
    fn cuMemAllocManaged(address: Out<Opaque>, bytes: usize, flags: c_uint);
}

forward! {
    /// Returns what was advised about managed memory.
    fn cudaMemRangeGetAttribute(data: Opaque, room: usize, attribute: c_uint, at: Opaque, count: usize)
        = cuMemRangeGetAttribute;
    /// Returns several things that were advised about managed memory.
    fn cudaMemRangeGetAttributes(
        data: In<Opaque>, rooms: In<usize>, attributes: In<c_uint>, number: usize, at: Opaque, count: usize,
    ) = cuMemRangeGetAttributes;
}

#[cfg(not(cuda_12))]
forward! {
    /// Advises about the use of managed memory.
    fn cudaMemAdvise(at: Opaque, count: usize, advice: c_uint, place: Location) = cuMemAdvise_v2;
    /// Moves managed memory before its use.
    fn cudaMemPrefetchAsync, per_thread cudaMemPrefetchAsync_ptsz
        (at: Opaque, count: usize, place: Location, flags: c_uint, stream: Stream) = cuMemPrefetchAsync_v2;
    /// Moves several pieces of managed memory.
    fn cudaMemPrefetchBatchAsync, per_thread cudaMemPrefetchBatchAsync_ptsz (
        at: Opaque, counts: Opaque, number: usize, places: Opaque, first: Opaque, kinds: usize, flags: u64,
        stream: Stream,
    ) = cuMemPrefetchBatchAsync;
    /// Forgets the content of managed memory.
    fn cudaMemDiscardBatchAsync, per_thread cudaMemDiscardBatchAsync_ptsz
        (at: Opaque, counts: Opaque, number: usize, flags: u64, stream: Stream) = cuMemDiscardBatchAsync;
    /// Forgets the content of managed memory, and moves it.
    fn cudaMemDiscardAndPrefetchBatchAsync, per_thread cudaMemDiscardAndPrefetchBatchAsync_ptsz (
        at: Opaque, counts: Opaque, number: usize, places: Opaque, first: Opaque, kinds: usize, flags: u64,
        stream: Stream,
    ) = cuMemDiscardAndPrefetchBatchAsync;
}

#[cfg(cuda_12)]
forward! {
    /// Advises about the use of managed memory.
    fn cudaMemAdvise(at: Opaque, count: usize, advice: c_uint, device: c_int) = cuMemAdvise;
    /// Advises about the use of managed memory, of a place.
    fn cudaMemAdvise_v2(at: Opaque, count: usize, advice: c_uint, place: Location) = cuMemAdvise_v2;
    /// Moves managed memory before its use.
    fn cudaMemPrefetchAsync, per_thread cudaMemPrefetchAsync_ptsz
        (at: Opaque, count: usize, device: c_int, stream: Stream) = cuMemPrefetchAsync;
    /// Moves managed memory before its use, to a place.
    fn cudaMemPrefetchAsync_v2, per_thread cudaMemPrefetchAsync_v2_ptsz
        (at: Opaque, count: usize, place: Location, flags: c_uint, stream: Stream) = cuMemPrefetchAsync_v2;
}

export! {
    /// Allocates managed memory; no bytes are null.
    fn cudaMallocManaged(address: Out<Opaque>, bytes: usize, flags: c_uint) {
        address.check()?;
        context::ready()?;
        if bytes == 0 { address.set(Opaque::at(0)) } else { cuMemAllocManaged(address, bytes, flags) }
    }
}
