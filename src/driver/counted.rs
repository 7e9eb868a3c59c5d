//! Counts the calls to another driver, and those of them that can synchronise.
//!
//! A call synchronises if the host waits in it for queued work. A program that makes such a call in
//! a loop leaves the device idle in between, and no profile of the device shows why. Each device
//! counts its own calls: [`Device::stats`](crate::Device::stats) returns them.

use std::collections::BTreeMap;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::stats::{METHODS, Method, Waits};
use super::{
    Copy3d, DeviceInfo, Driver, EventHandle, FunctionHandle, Held, HostKind, Memory, MemoryStats, ModuleHandle,
    Modules, Place, Stats, StreamHandle, Streams,
};
use crate::counters::Counters;
use crate::error::Result;
use crate::launch_shape::LaunchShape;

/// A driver that counts the calls to another.
pub(crate) struct Counted {
    inner: Arc<dyn Driver>,
    calls: [AtomicU64; METHODS.len()],
    can_synchronize: AtomicU64,
    device: Mutex<Ledger>,
    pool: Mutex<Ledger>,
    /// Page-locked memory: what was allocated, and what was registered. Copies look for theirs.
    locked: RwLock<[Ledger; 2]>,
}

const ALLOCATED: usize = 0;
const REGISTERED: usize = 1;

/// Blocks by their first address.
#[derive(Default)]
struct Ledger {
    blocks: BTreeMap<u64, u64>,
    bytes: u64,
    peak_bytes: u64,
}

impl Ledger {
    fn enter(&mut self, address: u64, bytes: u64) {
        self.blocks.insert(address, bytes);
        self.bytes += bytes;
        self.peak_bytes = self.peak_bytes.max(self.bytes);
    }

    fn leave(&mut self, address: u64) {
        self.bytes -= self.blocks.remove(&address).unwrap_or_default();
    }

    fn held(&self) -> Held {
        Held { blocks: self.blocks.len() as u64, bytes: self.bytes, peak_bytes: self.peak_bytes }
    }

    /// Whether one block contains all of the range.
    fn contains(&self, address: u64, bytes: u64) -> bool {
        let block = self.blocks.range(..=address).next_back();
        block.is_some_and(|(&first, &length)| address - first < length && bytes <= length - (address - first))
    }
}

impl Counted {
    /// Wraps `inner`.
    pub(crate) fn new(inner: Arc<dyn Driver>) -> Self {
        Self {
            inner,
            calls: [const { AtomicU64::new(0) }; METHODS.len()],
            can_synchronize: AtomicU64::new(0),
            device: Mutex::default(),
            pool: Mutex::default(),
            locked: RwLock::default(),
        }
    }

    /// Returns the calls so far, and the memory that is held.
    pub(crate) fn stats(&self) -> Stats {
        let calls = METHODS.iter().zip(&self.calls).map(|((name, _), calls)| (*name, calls.load(Ordering::Relaxed)));
        let locked = self.locked();
        Stats {
            calls: calls.filter(|&(_, calls)| calls > 0).collect(),
            can_synchronize: self.can_synchronize.load(Ordering::Relaxed),
            memory: MemoryStats {
                device: lock(&self.device).held(),
                pool: lock(&self.pool).held(),
                host: locked[ALLOCATED].held(),
                registered: locked[REGISTERED].held(),
            },
        }
    }

    /// Counts a call, and returns the inner driver to make it.
    fn count(&self, method: Method) -> &dyn Driver {
        self.count_call(method, METHODS[method as usize].1 == Waits::Yes)
    }

    /// Counts a copy, which can synchronise unless the host's side is page-locked.
    fn count_copy(&self, method: Method, host: *const u8, bytes: usize) -> &dyn Driver {
        let (first, bytes) = (host.addr() as u64, bytes as u64);
        let is_locked = || self.locked().iter().any(|ledger| ledger.contains(first, bytes));
        self.count_call(method, bytes > 0 && !is_locked())
    }

    fn count_call(&self, method: Method, can_synchronize: bool) -> &dyn Driver {
        self.calls[method as usize].fetch_add(1, Ordering::Relaxed);
        if can_synchronize {
            self.can_synchronize.fetch_add(1, Ordering::Relaxed);
        }
        self.inner.as_ref()
    }

    fn locked(&self) -> RwLockReadGuard<'_, [Ledger; 2]> {
        // Every critical section leaves the ledgers consistent.
        self.locked.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change_locked(&self) -> RwLockWriteGuard<'_, [Ledger; 2]> {
        self.locked.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    // As for `Counted::locked`.
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Methods that count the call and make it.
macro_rules! forward {
    ($(fn $safe:ident($($operand:ident: $type:ty),*) -> $result:ty = $counted:ident;)* ---
     $(unsafe fn $name:ident($($given:ident: $of:ty),*) -> $gives:ty = $method:ident;)*) => {
        $(fn $safe(&self, $($operand: $type),*) -> $result {
            self.count(Method::$counted).$safe($($operand),*)
        })*
        $(unsafe fn $name(&self, $($given: $of),*) -> $gives {
            let inner = self.count(Method::$method);
            // SAFETY: the caller's promises are the inner driver's.
            unsafe { inner.$name($($given),*) }
        })*
    };
}

// SAFETY: all parts belong to the inner driver.
unsafe impl Driver for Counted {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn counters(&self) -> Option<Counters> {
        self.inner.counters()
    }
}

// A block leaves its ledger before its release: after it, another thread may get the same address.
// SAFETY: every call is the inner driver's, with the operands and promises of the caller.
unsafe impl Memory for Counted {
    forward! {
        fn memory() -> Result<(u64, u64)> = Memory;
        fn reset_persisting_l2() -> Result<()> = ResetPersistingL2;
        fn pool_trim(keep: u64) -> Result<()> = PoolTrim;
        ---
        unsafe fn copy_d2d(dst: u64, src: u64, bytes: u64, stream: StreamHandle) -> Result<()> = CopyD2d;
        unsafe fn fill(dst: u64, value: u8, bytes: u64, stream: StreamHandle) -> Result<()> = Fill;
    }

    fn has_pool(&self) -> bool {
        self.inner.has_pool()
    }

    fn alloc(&self, bytes: u64) -> Result<u64> {
        let address = self.count(Method::Alloc).alloc(bytes)?;
        lock(&self.device).enter(address, bytes);
        Ok(address)
    }

    unsafe fn free(&self, address: u64) -> Result<()> {
        lock(&self.device).leave(address);
        let inner = self.count(Method::Free);
        // SAFETY: the caller's promises are the inner driver's.
        unsafe { inner.free(address) }
    }

    unsafe fn pool_alloc(&self, bytes: u64, stream: StreamHandle) -> Result<u64> {
        let inner = self.count(Method::PoolAlloc);
        // SAFETY: the caller's promise is the inner driver's.
        let address = unsafe { inner.pool_alloc(bytes, stream) }?;
        lock(&self.pool).enter(address, bytes);
        Ok(address)
    }

    unsafe fn pool_free(&self, address: u64, stream: StreamHandle) -> Result<()> {
        lock(&self.pool).leave(address);
        let inner = self.count(Method::PoolFree);
        // SAFETY: the caller's promises are the inner driver's.
        unsafe { inner.pool_free(address, stream) }
    }

    fn alloc_host(&self, bytes: usize, kind: HostKind) -> Result<NonNull<u8>> {
        let memory = self.count(Method::AllocHost).alloc_host(bytes, kind)?;
        self.change_locked()[ALLOCATED].enter(memory.addr().get() as u64, bytes as u64);
        Ok(memory)
    }

    unsafe fn free_host(&self, memory: NonNull<u8>) -> Result<()> {
        self.change_locked()[ALLOCATED].leave(memory.addr().get() as u64);
        let inner = self.count(Method::FreeHost);
        // SAFETY: the caller's promises are the inner driver's.
        unsafe { inner.free_host(memory) }
    }

    unsafe fn register_host(&self, memory: NonNull<u8>, bytes: usize) -> Result<()> {
        let inner = self.count(Method::RegisterHost);
        // SAFETY: the caller's promise is the inner driver's.
        unsafe { inner.register_host(memory, bytes) }?;
        self.change_locked()[REGISTERED].enter(memory.addr().get() as u64, bytes as u64);
        Ok(())
    }

    unsafe fn unregister_host(&self, memory: NonNull<u8>) -> Result<()> {
        self.change_locked()[REGISTERED].leave(memory.addr().get() as u64);
        let inner = self.count(Method::UnregisterHost);
        // SAFETY: the caller's promises are the inner driver's.
        unsafe { inner.unregister_host(memory) }
    }

    unsafe fn copy_h2d(&self, dst: u64, src: *const u8, bytes: usize, stream: StreamHandle) -> Result<()> {
        let inner = self.count_copy(Method::CopyH2d, src, bytes);
        // SAFETY: the caller's promises are the inner driver's.
        unsafe { inner.copy_h2d(dst, src, bytes, stream) }
    }

    unsafe fn copy_d2h(&self, dst: *mut u8, src: u64, bytes: usize, stream: StreamHandle) -> Result<()> {
        let inner = self.count_copy(Method::CopyD2h, dst, bytes);
        // SAFETY: the caller's promises are the inner driver's.
        unsafe { inner.copy_d2h(dst, src, bytes, stream) }
    }

    unsafe fn copy_3d(&self, copy: &Copy3d, stream: StreamHandle) -> Result<()> {
        let host = [copy.dst, copy.src].into_iter().find_map(|side| match side.place {
            Place::Host(memory) if !copy.is_empty() => Some((memory, copy.span(&side))),
            _ => None,
        });
        let inner = match host {
            Some((memory, bytes)) => self.count_copy(Method::Copy3d, memory, bytes),
            None => self.count_call(Method::Copy3d, false),
        };
        // SAFETY: the caller's promises are the inner driver's.
        unsafe { inner.copy_3d(copy, stream) }
    }
}

// SAFETY: every call is the inner driver's, with the operands and promises of the caller.
unsafe impl Streams for Counted {
    forward! {
        fn stream_create() -> Result<StreamHandle> = StreamCreate;
        fn event_create() -> Result<EventHandle> = EventCreate;
        ---
        unsafe fn stream_destroy(stream: StreamHandle) -> Result<()> = StreamDestroy;
        unsafe fn stream_synchronize(stream: StreamHandle) -> Result<()> = StreamSynchronize;
        unsafe fn event_destroy(event: EventHandle) -> Result<()> = EventDestroy;
        unsafe fn event_record(event: EventHandle, stream: StreamHandle) -> Result<()> = EventRecord;
        unsafe fn event_wait(event: EventHandle, stream: StreamHandle) -> Result<()> = EventWait;
        unsafe fn event_query(event: EventHandle) -> Result<bool> = EventQuery;
        unsafe fn event_synchronize(event: EventHandle) -> Result<()> = EventSynchronize;
        unsafe fn event_elapsed_ms(start: EventHandle, end: EventHandle) -> Result<f32> = EventElapsedMs;
    }
}

// SAFETY: every call is the inner driver's, with the operands and promises of the caller.
unsafe impl Modules for Counted {
    forward! {
        fn module_load(ptx: &str) -> Result<ModuleHandle> = ModuleLoad;
        ---
        unsafe fn module_unload(module: ModuleHandle) -> Result<()> = ModuleUnload;
        unsafe fn function(module: ModuleHandle, name: &str) -> Result<FunctionHandle> = Function;
        unsafe fn launch(function: FunctionHandle, shape: &LaunchShape, params: &[u8], stream: StreamHandle)
            -> Result<()> = Launch;
    }
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
