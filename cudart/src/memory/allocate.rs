//! Allocations.

use std::ffi::c_uint;

use crate::arguments::{Opaque, Out};
use crate::code::{Failure, Outcome};
use crate::context;
use crate::driver::{driver, forward};
use crate::export::export;
use crate::types::{Extent, PitchedPtr};

driver! {
    fn cuMemAlloc_v2(address: Out<Opaque>, bytes: usize);
    fn cuMemFree_v2(address: Opaque);
    fn cuMemAllocPitch_v2(address: &mut Opaque, pitch: &mut usize, width: usize, height: usize, element: c_uint);
    fn cuMemHostAlloc(address: Out<Opaque>, bytes: usize, flags: c_uint);
    fn cuMemFreeHost(address: Opaque);
}

/// The bytes of an element for the distance of rows: any is aligned for the widest accesses.
const ELEMENT: c_uint = 16;

forward! {
    /// Locks pages of the host for a device.
    fn cudaHostRegister(address: Opaque, bytes: usize, flags: c_uint) = cuMemHostRegister_v2;
    /// Unlocks these pages.
    fn cudaHostUnregister(address: Opaque) = cuMemHostUnregister;
    /// Returns the address on the device of locked memory of the host.
    fn cudaHostGetDevicePointer(device: Out<Opaque>, host: Opaque, flags: c_uint) = cuMemHostGetDevicePointer_v2;
    /// Returns the flags of locked memory.
    fn cudaHostGetFlags(flags: Out<c_uint>, host: Opaque) = cuMemHostGetFlags;
    /// Returns the free and all memory of the current device.
    fn cudaMemGetInfo(free: Out<usize>, total: Out<usize>) = cuMemGetInfo_v2;
}

/// Allocates memory of the host; no bytes are null.
fn host(address: Out<Opaque>, bytes: usize, flags: c_uint) -> Outcome {
    address.check()?;
    context::ready()?;
    if bytes == 0 { address.set(Opaque::at(0)) } else { cuMemHostAlloc(address, bytes, flags) }
}

/// Allocates rows, and returns their address and distance; no bytes are null.
fn rows(width: usize, height: usize) -> Outcome<(Opaque, usize)> {
    context::ready()?;
    let (mut address, mut pitch) = (Opaque::at(0), 0);
    if width > 0 && height > 0 {
        cuMemAllocPitch_v2(&mut address, &mut pitch, width, height, ELEMENT)?;
    }
    Ok((address, pitch))
}

export! {
    /// Allocates memory of the current device; no bytes are null.
    fn cudaMalloc(address: Out<Opaque>, bytes: usize) {
        address.check()?;
        context::ready()?;
        if bytes == 0 { address.set(Opaque::at(0)) } else { cuMemAlloc_v2(address, bytes) }
    }

    /// Frees memory of a device.
    fn cudaFree(address: Opaque) {
        context::ready()?;
        if address.is_null() { Ok(()) } else { cuMemFree_v2(address) }
    }

    /// Allocates locked memory of the host.
    fn cudaMallocHost(address: Out<Opaque>, bytes: usize) {
        host(address, bytes, 0)
    }

    /// Allocates locked memory of the host, with flags.
    fn cudaHostAlloc(address: Out<Opaque>, bytes: usize, flags: c_uint) {
        host(address, bytes, flags)
    }

    /// Frees locked memory of the host.
    fn cudaFreeHost(address: Opaque) {
        context::ready()?;
        if address.is_null() { Ok(()) } else { cuMemFreeHost(address) }
    }

    /// Allocates rows, and returns the bytes from row to row.
    fn cudaMallocPitch(address: Out<Opaque>, pitch: Out<usize>, width: usize, height: usize) {
        address.check()?;
        pitch.check()?;
        let (allocated, bytes) = rows(width, height)?;
        address.set(allocated)?;
        pitch.set(bytes)
    }

    /// Allocates slices of rows.
    fn cudaMalloc3D(out: Out<PitchedPtr>, extent: Extent) {
        out.check()?;
        let Extent { width, height, depth } = extent;
        let all = height.checked_mul(depth).ok_or_else(|| {
            Failure::value(format!("a height of {height} and a depth of {depth} are more than memory can have"))
        })?;
        let (pointer, pitch) = rows(width, all)?;
        out.set(PitchedPtr { pointer, pitch, width, height })
    }
}
