//! Page-locked memory of the host.

use std::ffi::c_uint;
use std::ptr::NonNull;
use warpstride::error::counted;

use warpstride::driver::Memory as _;

use super::room;
use super::table::{Allocation, Kind, not_an_allocation};
use crate::arguments::{Opaque, Out};
use crate::code::{Failure, Outcome, code};
use crate::context::current;
use crate::export::export;
use crate::process::process;
use crate::stream::check_safe;

/// The flags of an allocation: for all contexts, for kernels, and past the caches of the host.
const ALLOC_FLAGS: c_uint = 7;
/// The flags of a registration: for all contexts, for kernels, of a device's registers, and for
/// reads alone.
const REGISTER_FLAGS: c_uint = 15;
const REGISTER_IO_MEMORY: c_uint = 4;
/// The first address of the host that kernels can use: they have windows below.
const FIRST_FOR_KERNELS: u64 = 1 << 40;
/// Bytes of a page.
const PAGE: usize = 4096;

/// Allocates page-locked memory.
fn allocate(bytes: usize, flags: c_uint) -> Outcome<Opaque> {
    check_safe("an allocation")?;
    let (process, context) = (process()?, current()?);
    let memory = Opaque(context.gpu()?.soft.alloc_shared(room(bytes)?)?.as_ptr());
    let made = Allocation::new(Kind::PageLocked, bytes as u64, &context, flags);
    process.memory.lock().add(memory.address(), made);
    Ok(memory)
}

/// Makes the system give the process the pages around these bytes, and returns whether it did: all
/// of them are mapped, and can be written.
fn has_pages(memory: NonNull<u8>, bytes: usize) -> bool {
    let first = memory.addr().get() / PAGE * PAGE;
    let Some(end) = memory.addr().get().checked_add(bytes).and_then(|end| end.checked_next_multiple_of(PAGE)) else {
        return false;
    };
    let populate = |first: usize, bytes| {
        let place = std::ptr::without_provenance_mut(first);
        // SAFETY: the system answers for each range, and changes no byte of it.
        unsafe { libc::madvise(place, bytes, libc::MADV_POPULATE_WRITE) == 0 }
    };
    // Linux before 5.14 cannot answer, also for a page that is there. The caller has promised the
    // pages.
    populate(first, end - first) || {
        let own = 0_u8;
        !populate((&raw const own).addr() / PAGE * PAGE, PAGE)
    }
}

/// Registers the caller's memory as page-locked.
fn register(memory: Opaque, bytes: usize, flags: c_uint) -> Outcome {
    let (process, context) = (process()?, current()?);
    let place = NonNull::new(memory.0).filter(|_| bytes > 0 && flags & !REGISTER_FLAGS == 0);
    let Some(place) = place else {
        return Err(Failure::value(format!(
            "{bytes} at {:#x} are not registered with flags {flags:#x}",
            memory.address(),
            bytes = counted(bytes, "byte")
        )));
    };
    if flags & REGISTER_IO_MEMORY != 0 {
        return Err(Failure::unsupported("the software GPU registers no registers of other devices"));
    }
    // The table is not locked while the GPU registers the memory, which may wait for a kernel.
    let is_listed = process.memory.lock().overlaps(memory.address(), bytes as u64);
    if is_listed {
        return Err(Failure::new(
            code::HOST_MEMORY_ALREADY_REGISTERED,
            format!(
                "a part of the {bytes} at {:#x} is page-locked already",
                memory.address(),
                bytes = counted(bytes, "byte")
            ),
        ));
    }
    if !has_pages(place, bytes) {
        return Err(Failure::value(format!(
            "the process cannot write all of the {bytes} at {:#x}; register memory that it can write",
            memory.address(),
            bytes = counted(bytes, "byte")
        )));
    }
    // SAFETY: the pages are there, and the caller of the C function promises that they stay until
    // the memory is unregistered.
    unsafe { context.gpu()?.soft.register_host(place, bytes) }?;
    let made = Allocation::new(Kind::Registered, bytes as u64, &context, flags);
    process.memory.lock().add(memory.address(), made);
    Ok(())
}

export! {
    /// Allocates page-locked memory of the host.
    fn cuMemAllocHost_v2 as cuMemAllocHost(memory: Out<Opaque>, bytes: usize) {
        memory.check()?;
        memory.set(allocate(bytes, 0)?)
    }

    /// Allocates page-locked memory of the host, with flags.
    fn cuMemHostAlloc(memory: Out<Opaque>, bytes: usize, flags: c_uint) {
        memory.check()?;
        if flags & !ALLOC_FLAGS != 0 {
            return Err(Failure::value(format!("{flags:#x} are not flags of page-locked memory")));
        }
        memory.set(allocate(bytes, flags)?)
    }

    /// Frees page-locked memory of the host. Queued work that uses it runs first.
    fn cuMemFreeHost(memory: Opaque) {
        check_safe("a free")?;
        let process = process()?;
        let taken = process.memory.lock().take(memory.address(), |found| found.kind == Kind::PageLocked);
        taken.ok_or_else(|| not_an_allocation(memory.address()))?.release(process, memory.address())
    }

    /// Registers memory of the program as page-locked.
    fn cuMemHostRegister_v2 as cuMemHostRegister(memory: Opaque, bytes: usize, flags: c_uint) {
        register(memory, bytes, flags)
    }

    /// Ends that. Queued work that uses the memory runs first.
    fn cuMemHostUnregister(memory: Opaque) {
        let process = process()?;
        if memory.is_null() {
            return Err(Failure::value("null is not registered memory"));
        }
        let taken = process.memory.lock().take(memory.address(), |found| found.kind == Kind::Registered);
        let taken = taken.ok_or_else(|| {
            Failure::new(
                code::HOST_MEMORY_NOT_REGISTERED,
                format!("registered memory does not begin at {:#x}", memory.address()),
            )
        })?;
        taken.release(process, memory.address())
    }

    /// Returns the address at which kernels use page-locked memory: that of the host.
    fn cuMemHostGetDevicePointer_v2 as cuMemHostGetDevicePointer(device: Out<u64>, memory: Opaque, flags: c_uint) {
        device.check()?;
        current()?;
        let table = process()?.memory.lock();
        let found = table.around(memory.address()).filter(|(_, found)| !matches!(found.kind, Kind::Device | Kind::Pool));
        if flags != 0 || found.is_none() || memory.address() < FIRST_FOR_KERNELS {
            return Err(Failure::value(format!(
                "kernels cannot use {:#x} with flags {flags:#x}; register the memory, or allocate it page-locked",
                memory.address()
            )));
        }
        device.set(memory.address())
    }

    /// Returns the flags that page-locked memory was allocated with.
    fn cuMemHostGetFlags(flags: Out<c_uint>, memory: Opaque) {
        let table = process()?.memory.lock();
        let is_locked = |kind| matches!(kind, Kind::PageLocked | Kind::Registered);
        let found = table.around(memory.address()).filter(|(_, found)| is_locked(found.kind));
        let (_, found) = found.ok_or_else(|| {
            Failure::value(format!("{:#x} is not page-locked memory of the host", memory.address()))
        })?;
        flags.set(found.flags)
    }
}
