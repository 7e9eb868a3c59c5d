//! Device memory, page-locked host memory, and copies that run late.

use std::ptr::NonNull;

use super::Soft;
use super::state::{Action, HostBox, HostPointer, Line, MOST_BYTES, no_such};
use crate::driver::memory::within_the_host;
use crate::driver::{Copy3d, HostKind, Memory, Place, StreamHandle};
use crate::error::{Error, ErrorKind, Result, counted, refuse, require};

/// The first address of the host that is an address of kernels too: below, kernels have windows
/// onto other spaces. Registered memory below it serves copies alone.
const FIRST_SHARED: u64 = 1 << 40;

impl Soft {
    /// Allocates zeroed, page-locked memory of the host that begins with a page. The host, and
    /// kernels and copies of all GPUs of the host, use it at the same address.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` if the host has too little memory; `InvalidArgument` for 0 bytes, or unless
    /// the configuration has it that addresses are shared.
    #[doc(hidden)]
    pub fn alloc_shared(&self, bytes: usize) -> Result<NonNull<u8>> {
        let mut state = self.working()?;
        let memory = self.memory().alloc_host(bytes as u64)?;
        state.registered.insert(memory.addr().get(), bytes);
        Ok(memory)
    }

    /// Sets the bytes of the heap from which kernels allocate with `malloc`; work already queued
    /// runs first.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a kernel that allocates has run, or why the device failed.
    #[doc(hidden)]
    pub fn set_heap_limit(&self, bytes: u64) -> Result<()> {
        let mut state = self.working()?;
        self.drain(&mut state)?;
        Ok(self.memory().set_heap_limit(bytes)?)
    }

    /// Frees the heap of kernels and all that they allocated; work already queued runs first.
    #[doc(hidden)]
    pub fn end_heap(&self) {
        let mut state = self.lock();
        // A device that has failed runs no work, and so nothing uses the heap.
        let _ = self.drain(&mut state);
        self.memory().end_heap();
    }

    /// Frees memory of [`Soft::alloc_shared`]; work already queued that uses it runs first.
    ///
    /// # Errors
    ///
    /// `InvalidHandle` if no such memory begins there, or why the device failed.
    ///
    /// # Safety
    ///
    /// - Nothing uses the memory from now on.
    #[doc(hidden)]
    pub unsafe fn free_shared(&self, memory: NonNull<u8>) -> Result<()> {
        let mut state = self.lock();
        let drained = self.drain_host(&mut state);
        let no_such = || no_such("memory shared with the host", memory.addr().get() as u64);
        let bytes = state.registered.remove(&memory.addr().get()).ok_or_else(no_such)?;
        state.forget(memory.addr().get() as u64, bytes as u64);
        self.memory().free_host(memory)?;
        drained
    }

    /// Returns whether kernels can use registered memory of the host that begins here.
    fn is_shared(&self, memory: NonNull<u8>) -> bool {
        self.memory().has_addresses_of_host() && memory.addr().get() as u64 >= FIRST_SHARED
    }
}

// SAFETY: `interp::Memory` keeps the ranges, and `self` owns it.
unsafe impl Memory for Soft {
    fn memory(&self) -> Result<(u64, u64)> {
        let _state = self.working()?;
        Ok((self.memory().limit() - self.memory().used(), self.memory().limit()))
    }

    fn reset_persisting_l2(&self) -> Result<()> {
        let _state = self.working()?;
        Ok(())
    }

    fn alloc(&self, bytes: u64) -> Result<u64> {
        let _state = self.working()?;
        Ok(self.memory().alloc(bytes)?)
    }

    unsafe fn free(&self, address: u64) -> Result<()> {
        let mut state = self.lock();
        let drained = self.drain(&mut state);
        let freed = self.memory().free(address);
        state.forget(address, MOST_BYTES);
        drained.and(freed.map_err(|error| Error::new(ErrorKind::InvalidHandle, error.to_string())))
    }

    fn has_pool(&self) -> bool {
        true
    }

    unsafe fn pool_alloc(&self, bytes: u64, stream: StreamHandle) -> Result<u64> {
        let mut state = self.streaming(stream)?;
        state.not_captured(stream, "an allocation from the pool on")?;
        let allocated = self.memory().alloc(bytes).or_else(|error| {
            // CUDA's pool gives out memory again whose free is still queued. Here the free runs.
            self.drain(&mut state)?;
            self.memory().alloc(bytes).map_err(|_| Error::from(error))
        });
        state.pool.extend(allocated.as_ref().ok().map(|&address| (address, bytes)));
        allocated
    }

    unsafe fn pool_free(&self, address: u64, stream: StreamHandle) -> Result<()> {
        let mut state = self.lock();
        let Some(bytes) = state.pool.remove(&address) else {
            return Err(no_such("allocation of the pool", address));
        };
        drop(state);
        let queued = self.queue(stream, 1, Action::PoolFree { address, bytes });
        if queued.is_err() {
            // A release has released even if it fails. The error of the queue is the cause.
            let _ = self.drain(&mut self.lock());
            let _ = self.memory().free(address);
        }
        queued
    }

    fn pool_trim(&self, _keep: u64) -> Result<()> {
        // A free that has run gave the memory back at once.
        self.working().map(drop)
    }

    fn alloc_host(&self, bytes: usize, _kind: HostKind) -> Result<NonNull<u8>> {
        let mut state = self.working()?;
        let mut lines = Vec::new();
        require!(
            lines.try_reserve_exact(bytes.div_ceil(size_of::<Line>())).is_ok(),
            OutOfMemory,
            "the host cannot allocate {} of page-locked memory; free some or use less",
            counted(bytes, "byte")
        );
        lines.resize(lines.capacity(), Line([0; 64]));
        let memory = NonNull::from(lines.as_mut_slice()).cast();
        state.host.insert(memory.addr().get(), lines);
        Ok(memory)
    }

    unsafe fn free_host(&self, memory: NonNull<u8>) -> Result<()> {
        let mut state = self.lock();
        let drained = self.drain_host(&mut state);
        let freed = state.host.remove(&memory.addr().get()).map(drop);
        drained.and(freed.ok_or_else(|| no_such("page-locked memory", memory.addr().get() as u64)))
    }

    unsafe fn register_host(&self, memory: NonNull<u8>, bytes: usize) -> Result<()> {
        let mut state = self.working()?;
        let first = memory.addr().get();
        let own = state.host.iter().map(|(&at, lines)| (at, size_of_val(lines.as_slice())));
        let registered = state.registered.iter().map(|(&at, &bytes)| (at, bytes));
        let overlaps = |&(at, of): &(usize, usize)| first < at + of && at < first + bytes;
        if let Some((at, of)) = own.chain(registered).find(overlaps) {
            let (bytes, of) = (counted(bytes, "byte"), counted(of, "byte"));
            refuse!(
                InvalidArgument,
                "cannot register {bytes} at {memory:p}: {of} at {at:#x} are page-locked already; register other memory"
            );
        }
        if self.is_shared(memory) {
            // SAFETY: the caller promises that the memory stays until it is unregistered, which
            // takes it away from kernels first. The system gives and takes whole pages.
            unsafe { self.memory().map_host(memory, bytes as u64) }?;
        }
        state.registered.insert(first, bytes);
        Ok(())
    }

    unsafe fn unregister_host(&self, memory: NonNull<u8>) -> Result<()> {
        let mut state = self.lock();
        let drained = self.drain_host(&mut state);
        let removed = state.registered.remove(&memory.addr().get());
        let removed = removed.map(|bytes| state.forget(memory.addr().get() as u64, bytes as u64));
        if removed.is_some() && self.is_shared(memory) {
            self.memory().free_host(memory)?;
        }
        drained.and(removed.ok_or_else(|| no_such("registered memory", memory.addr().get() as u64)))
    }

    unsafe fn copy_h2d(&self, dst: u64, src: *const u8, bytes: usize, stream: StreamHandle) -> Result<()> {
        self.queue(stream, bytes as u64, Action::Upload { dst, src: HostPointer(src.cast_mut()), bytes })
    }

    unsafe fn copy_d2h(&self, dst: *mut u8, src: u64, bytes: usize, stream: StreamHandle) -> Result<()> {
        self.queue(stream, bytes as u64, Action::Download { dst: HostPointer(dst), src, bytes })
    }

    unsafe fn copy_d2d(&self, dst: u64, src: u64, bytes: u64, stream: StreamHandle) -> Result<()> {
        self.queue(stream, bytes, Action::Copy { dst, src, bytes })
    }

    unsafe fn copy_3d(&self, copy: &Copy3d, stream: StreamHandle) -> Result<()> {
        if let (Place::Host(_), Place::Host(_)) = (copy.dst.place, copy.src.place) {
            return Err(within_the_host());
        }
        self.queue(stream, u64::from(!copy.is_empty()), Action::CopyBox(HostBox(*copy)))
    }

    unsafe fn fill(&self, dst: u64, value: u8, bytes: u64, stream: StreamHandle) -> Result<()> {
        self.queue(stream, bytes, Action::Fill { dst, value, bytes })
    }
}
