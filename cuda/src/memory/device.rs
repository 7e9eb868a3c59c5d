//! Memory of devices.

use std::ffi::c_uint;
use warpstride::error::counted;

use warpstride::driver::Memory as _;

use super::room;
use super::table::{Allocation, Kind, not_an_allocation, not_listed};
use crate::arguments::Out;
use crate::code::{Failure, Outcome, code};
use crate::context::current;
use crate::export::export;
use crate::process::process;
use crate::stream::check_safe;

/// The bytes of which the pitch of a 2-D allocation is a multiple, as on NVIDIA's GPUs.
const PITCH: usize = 512;

/// Allocates memory of the current context's device.
fn allocate(bytes: usize) -> Outcome<u64> {
    check_safe("an allocation")?;
    let (process, context) = (process()?, current()?);
    let base = context.gpu()?.soft.alloc(room(bytes)? as u64)?;
    process.memory.lock().add(base, Allocation::new(Kind::Device, bytes as u64, &context, 0));
    Ok(base)
}

export! {
    /// Allocates memory of the current context's device.
    fn cuMemAlloc_v2 as cuMemAlloc(address: Out<u64>, bytes: usize) {
        address.check()?;
        address.set(allocate(bytes)?)
    }

    /// Allocates rows whose distance suits the device.
    fn cuMemAllocPitch_v2 as cuMemAllocPitch(
        address: Out<u64>, pitch: Out<usize>, width: usize, height: usize, element: c_uint,
    ) {
        address.check()?;
        pitch.check()?;
        if !matches!(element, 4 | 8 | 16) {
            return Err(Failure::value(format!("an element of {element} has no pitch; pass 4, 8 or 16", element = counted(element, "byte"))));
        }
        let each = width.checked_next_multiple_of(PITCH);
        let all = each.and_then(|each| each.checked_mul(height));
        let (Some(each), Some(all)) = (each, all) else {
            return Err(Failure::new(code::OUT_OF_MEMORY, "the rows are larger than memory"));
        };
        address.set(allocate(all)?)?;
        pitch.set(each)
    }

    /// Frees memory of a device, or memory that devices share with the host. Queued work that uses
    /// it runs first.
    fn cuMemFree_v2 as cuMemFree(address: u64) {
        let process = process()?;
        if address == 0 {
            return Ok(());
        }
        check_safe("a free")?;
        let taken = process.memory.lock().take(address, |found| found.kind.is_of_devices());
        let allocation = taken.ok_or_else(|| not_an_allocation(address))?;
        super::pool::forget(process, &allocation);
        allocation.release(process, address)
    }

    /// Returns the free and the whole memory of the current context's device.
    fn cuMemGetInfo_v2 as cuMemGetInfo(free: Out<usize>, total: Out<usize>) {
        let (left, all) = warpstride::driver::Memory::memory(&*current()?.gpu()?.soft)?;
        free.set_if_wanted(left as usize);
        total.set_if_wanted(all as usize);
        Ok(())
    }

    /// Returns the first address and the bytes of the allocation that contains an address.
    fn cuMemGetAddressRange_v2 as cuMemGetAddressRange(base: Out<u64>, bytes: Out<usize>, address: u64) {
        let process = process()?;
        current()?;
        let listed = process.memory.lock().around(address).map(|(base, found)| (base, found.bytes));
        let found = listed.or_else(|| Some(not_listed(process, address, 1)?.1));
        let (first, length) = found.ok_or_else(|| {
            Failure::new(code::NOT_FOUND, format!("{address:#x} is in no live allocation of a device"))
        })?;
        base.set_if_wanted(first);
        bytes.set_if_wanted(length as usize);
        Ok(())
    }
}
