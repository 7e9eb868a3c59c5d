//! Records the calls for memory.

use std::ptr::NonNull;

use super::{Address, Call, Trace};
use crate::driver::{Copy3d, HostKind, Memory, Place, StreamHandle};
use crate::error::Result;

// Every unsafe method passes on its caller's promises and operands unchanged. SAFETY: an injected
// failure of a release comes after the real call, and every other call is the inner driver's or is
// not made, so the inner driver's promises hold.
unsafe impl Memory for Trace {
    fn memory(&self) -> Result<(u64, u64)> {
        self.queue(Call::Memory {}, || self.inner.memory())
    }

    fn reset_persisting_l2(&self) -> Result<()> {
        self.queue(Call::ResetPersistingL2 {}, || self.inner.reset_persisting_l2())
    }

    fn alloc(&self, bytes: u64) -> Result<u64> {
        self.make(
            Call::Alloc { bytes },
            || self.inner.alloc(bytes),
            |live, &address| {
                live.allocations.insert(Address(address), bytes);
            },
        )
    }

    unsafe fn free(&self, address: u64) -> Result<()> {
        // SAFETY: the caller's promise is the inner driver's.
        let real = || unsafe { self.inner.free(address) };
        self.release(Call::Free { address: Address(address) }, real, |live| {
            live.allocations.remove(&Address(address));
        })
    }

    fn has_pool(&self) -> bool {
        self.inner.has_pool()
    }

    unsafe fn pool_alloc(&self, bytes: u64, stream: StreamHandle) -> Result<u64> {
        self.make(
            Call::PoolAlloc { bytes, stream },
            // SAFETY: the caller's promise is the inner driver's.
            || unsafe { self.inner.pool_alloc(bytes, stream) },
            |live, &address| {
                live.pool_allocations.insert(Address(address), bytes);
            },
        )
    }

    unsafe fn pool_free(&self, address: u64, stream: StreamHandle) -> Result<()> {
        // SAFETY: the caller's promises are the inner driver's.
        let real = || unsafe { self.inner.pool_free(address, stream) };
        self.release(Call::PoolFree { address: Address(address), stream }, real, |live| {
            live.pool_allocations.remove(&Address(address));
        })
    }

    fn pool_trim(&self, keep: u64) -> Result<()> {
        self.queue(Call::PoolTrim { keep }, || self.inner.pool_trim(keep))
    }

    fn alloc_host(&self, bytes: usize, kind: HostKind) -> Result<NonNull<u8>> {
        self.make(
            Call::AllocHost { bytes, kind },
            || self.inner.alloc_host(bytes, kind),
            |live, &memory| {
                live.host_allocations.insert(host(memory.as_ptr()), bytes);
            },
        )
    }

    unsafe fn free_host(&self, memory: NonNull<u8>) -> Result<()> {
        // SAFETY: the caller's promise is the inner driver's.
        let real = || unsafe { self.inner.free_host(memory) };
        let memory = host(memory.as_ptr());
        self.release(Call::FreeHost { memory }, real, |live| {
            live.host_allocations.remove(&memory);
        })
    }

    unsafe fn register_host(&self, memory: NonNull<u8>, bytes: usize) -> Result<()> {
        let at = host(memory.as_ptr());
        self.make(
            Call::RegisterHost { memory: at, bytes },
            // SAFETY: the caller's promise is the inner driver's.
            || unsafe { self.inner.register_host(memory, bytes) },
            |live, &()| {
                live.registered.insert(at, bytes);
            },
        )
    }

    unsafe fn unregister_host(&self, memory: NonNull<u8>) -> Result<()> {
        // SAFETY: the caller's promise is the inner driver's.
        let real = || unsafe { self.inner.unregister_host(memory) };
        let memory = host(memory.as_ptr());
        self.release(Call::UnregisterHost { memory }, real, |live| {
            live.registered.remove(&memory);
        })
    }

    unsafe fn copy_h2d(&self, dst: u64, src: *const u8, bytes: usize, stream: StreamHandle) -> Result<()> {
        let call = Call::CopyH2d { dst: Address(dst), src: host(src), bytes, stream };
        // SAFETY: the caller's promises are the inner driver's.
        self.queue(call, || unsafe { self.inner.copy_h2d(dst, src, bytes, stream) })
    }

    unsafe fn copy_d2h(&self, dst: *mut u8, src: u64, bytes: usize, stream: StreamHandle) -> Result<()> {
        let call = Call::CopyD2h { dst: host(dst), src: Address(src), bytes, stream };
        // SAFETY: the caller's promises are the inner driver's.
        self.queue(call, || unsafe { self.inner.copy_d2h(dst, src, bytes, stream) })
    }

    unsafe fn copy_d2d(&self, dst: u64, src: u64, bytes: u64, stream: StreamHandle) -> Result<()> {
        let call = Call::CopyD2d { dst: Address(dst), src: Address(src), bytes, stream };
        // SAFETY: the caller's promises are the inner driver's.
        self.queue(call, || unsafe { self.inner.copy_d2d(dst, src, bytes, stream) })
    }

    unsafe fn copy_3d(&self, copy: &Copy3d, stream: StreamHandle) -> Result<()> {
        let extents = [copy.width, copy.height, copy.depth];
        let call = Call::Copy3d { dst: place(copy.dst.place), src: place(copy.src.place), extents, stream };
        // SAFETY: the caller's promises are the inner driver's.
        self.queue(call, || unsafe { self.inner.copy_3d(copy, stream) })
    }

    unsafe fn fill(&self, dst: u64, value: u8, bytes: u64, stream: StreamHandle) -> Result<()> {
        let call = Call::Fill { dst: Address(dst), value, bytes, stream };
        // SAFETY: the caller's promise is the inner driver's.
        self.queue(call, || unsafe { self.inner.fill(dst, value, bytes, stream) })
    }
}

fn host(memory: *const u8) -> Address {
    Address(memory.addr() as u64)
}

fn place(place: Place) -> Address {
    match place {
        Place::Device(address) => Address(address),
        Place::Host(memory) => host(memory),
    }
}
