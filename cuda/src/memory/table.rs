//! The table of what programs have allocated.

use std::collections::BTreeMap;
use std::ffi::c_uint;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use warpstride::error::counted;

use warpstride::driver::Memory as _;

use super::managed::Advice;
use super::pool::{Pool, Pools};
use super::traffic::Traffic;
use crate::arguments::{Handle, Opaque};
use crate::code::{Failure, Outcome, code};
use crate::context::Context;
use crate::process::{Process, process};

/// The first address that no memory of the host has: memory of devices lies beyond.
pub(crate) const FIRST_OF_DEVICES: u64 = 1 << 47;
/// The most allocations that are kept for the report after their context has ended.
const MOST_ABANDONED: usize = 1 << 16;

/// The most freed allocations that are remembered.
const MOST_FREED: usize = 1 << 16;

/// The allocations of programs, their pools, and their copies.
#[derive(Default)]
pub(crate) struct Memory {
    table: Mutex<Table>,
    pub(super) pools: Pools,
    pub(super) traffic: Traffic,
}

/// Allocations by their first address.
#[derive(Default)]
pub(super) struct Table {
    live: BTreeMap<u64, Allocation>,
    /// Those that were live when their context ended.
    abandoned: Vec<Leak>,
    /// The bytes of freed memory by its first address, unless other memory has come there.
    freed: BTreeMap<u64, u64>,
}

/// How memory was allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Memory of a device.
    Device,
    /// Memory of a device, from a pool.
    Pool,
    /// Page-locked memory of the host that this library allocated.
    PageLocked,
    /// Memory of the program that it has registered as page-locked.
    Registered,
    /// Memory that the host and the devices share.
    Managed,
}

/// An allocation.
#[derive(Debug, Clone)]
pub(super) struct Allocation {
    pub(super) kind: Kind,
    pub(super) bytes: u64,
    pub(super) context: Handle<Context>,
    pub(super) device: i32,
    /// A number that no other allocation of the process has.
    pub(super) id: u64,
    /// The flags that it was allocated or registered with.
    pub(super) flags: c_uint,
    /// The pool that it comes from, or null.
    pub(super) pool: Handle<Pool>,
    /// True if each synchronous copy or fill of it waits for the device.
    pub(super) syncs: bool,
    pub(super) advice: Advice,
}

/// Memory that the program has not freed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leak {
    pub(crate) kind: Kind,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) device: i32,
}

/// The place of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// Memory of the device of this number; true if synchronous work on it waits.
    Device(i32, bool),
    /// Memory that the host and the devices share.
    Managed,
    /// Page-locked memory of the host.
    PageLocked,
    /// Other memory of the host.
    Pageable,
}

impl Kind {
    /// Returns whether `cuMemFree` frees it.
    pub(super) fn is_of_devices(self) -> bool {
        matches!(self, Self::Device | Self::Pool | Self::Managed)
    }
}

impl Allocation {
    /// Makes an entry for memory that was allocated in a context.
    pub(super) fn new(kind: Kind, bytes: u64, context: &Context, flags: c_uint) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let (context, device, pool) = (context.handle, context.device, Handle::NULL);
        Self { kind, bytes, context, device, id, flags, pool, syncs: false, advice: Advice::default() }
    }

    fn leak(&self, address: u64) -> Leak {
        Leak { kind: self.kind, address, bytes: self.bytes, device: self.device }
    }

    /// Gives the memory back, once it is out of the table. Queued work that uses it runs first.
    pub(super) fn release(&self, process: &Process, address: u64) -> Outcome {
        let soft = &process.gpu(self.device)?.soft;
        let memory = NonNull::new(Opaque::at(address).0).ok_or_else(|| Failure::value("no memory begins at 0"))?;
        match self.kind {
            // SAFETY: the allocation was taken out of the table, so it is freed once.
            Kind::Device | Kind::Pool => unsafe { soft.free(address) }?,
            // SAFETY: as above, and the program does not use freed memory.
            Kind::PageLocked | Kind::Managed => unsafe { soft.free_shared(memory) }?,
            // SAFETY: the range was taken out of the table, so it is unregistered once.
            Kind::Registered => unsafe { soft.unregister_host(memory) }?,
        }
        Ok(())
    }
}

/// Returns the memory that contains bytes and that the table does not have, such as a variable of a
/// module: the number of its device, its first address and its bytes.
pub(super) fn not_listed(process: &Process, address: u64, bytes: u64) -> Option<(usize, (u64, u64))> {
    let around = |gpu: &crate::process::Gpu| gpu.soft.memory().allocation_around(address, bytes);
    let found = process.gpus.iter().enumerate().find_map(|(number, gpu)| Some((number, around(gpu)?)))?;
    // The room behind an allocation is not the program's.
    let is_listed = process.memory.lock().live.contains_key(&found.1.0);
    (!is_listed).then_some(found)
}

impl Table {
    pub(super) fn add(&mut self, address: u64, allocation: Allocation) {
        let last = address.saturating_add(allocation.bytes.saturating_sub(1));
        while let Some((&base, _)) =
            self.freed.range(..=last).next_back().filter(|(base, bytes)| *base + *bytes > address)
        {
            self.freed.remove(&base);
        }
        self.live.insert(address, allocation);
    }

    /// Takes the allocation out that begins at an address, if it is meant.
    pub(super) fn take(&mut self, address: u64, is_meant: impl Fn(&Allocation) -> bool) -> Option<Allocation> {
        self.live.get(&address).filter(|found| is_meant(found))?;
        let taken = self.live.remove(&address)?;
        // Memory that was registered stays the program's.
        if taken.kind != Kind::Registered {
            if self.freed.len() == MOST_FREED {
                self.freed.pop_first();
            }
            self.freed.insert(address, taken.bytes);
        }
        Some(taken)
    }

    /// Returns the first address of the freed memory that had an address.
    fn freed_around(&self, address: u64) -> Option<u64> {
        let (&base, &bytes) = self.freed.range(..=address).next_back()?;
        (address - base < bytes).then_some(base)
    }

    /// Returns the allocation that contains an address, and its first address.
    pub(super) fn around(&self, address: u64) -> Option<(u64, &Allocation)> {
        let (&base, found) = self.live.range(..=address).next_back()?;
        (address - base < found.bytes).then_some((base, found))
    }

    /// The same, to change it.
    pub(super) fn around_mut(&mut self, address: u64) -> Option<&mut Allocation> {
        let (&base, found) = self.live.range_mut(..=address).next_back()?;
        (address - base < found.bytes).then_some(found)
    }

    /// Returns whether an allocation has one of these bytes.
    pub(super) fn overlaps(&self, address: u64, bytes: u64) -> bool {
        let last = address.saturating_add(bytes.saturating_sub(1));
        self.live.range(..=last).next_back().is_some_and(|(&base, found)| base.saturating_add(found.bytes) > address)
    }
}

impl Memory {
    pub(super) fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the place of some bytes, and refuses bytes that no memory has.
    pub(super) fn home(&self, process: &Process, address: u64, bytes: u64) -> Outcome<Home> {
        if let Some((base, found)) = self.lock().around(address) {
            if bytes > found.bytes - (address - base) {
                return Err(Failure::value(format!(
                    "the {bytes} at {address:#x} go beyond their allocation, which has {} at {base:#x}",
                    found.bytes,
                    bytes = counted(bytes, "byte")
                )));
            }
            return Ok(match found.kind {
                Kind::Device | Kind::Pool => Home::Device(found.device, found.syncs),
                Kind::Managed => Home::Managed,
                Kind::PageLocked | Kind::Registered => Home::PageLocked,
            });
        }
        if address == 0 {
            return Err(Failure::value("the address is null; pass that of memory"));
        }
        if address < FIRST_OF_DEVICES {
            return Ok(Home::Pageable);
        }
        if let Some(base) = self.lock().freed_around(address) {
            let bytes = counted(bytes, "byte");
            let why = format!("the {bytes} at {address:#x} are in memory that the program has freed, at {base:#x}");
            return Err(Failure::value(why).breaks("memcheck/use-after-free"));
        }
        let (device, _) = not_listed(process, address, bytes).ok_or_else(|| {
            Failure::value(format!(
                "the {bytes} at {address:#x} are not all in one live allocation of a device",
                bytes = counted(bytes, "byte")
            ))
        })?;
        Ok(Home::Device(device as i32, false))
    }
}

/// Frees what was allocated in a context.
pub(crate) fn end_of(process: &Process, context: &Context) {
    let mut table = process.memory.lock();
    let (owned, live) = std::mem::take(&mut table.live).into_iter().partition(|(_, one)| one.context == context.handle);
    table.live = live;
    let owned: BTreeMap<u64, Allocation> = owned;
    let room = MOST_ABANDONED.saturating_sub(table.abandoned.len());
    table.abandoned.extend(owned.iter().take(room).map(|(address, allocation)| allocation.leak(*address)));
    drop(table);
    for (address, allocation) in owned {
        // The context ends all the same, and a failure of its work was told to the calls before.
        let _ = allocation.release(process, address);
    }
}

/// Returns the memory that the program has not freed: what is live, and what was live when its
/// context ended.
pub(crate) fn leaked() -> Vec<Leak> {
    let Ok(process) = process() else { return Vec::new() };
    let table = process.memory.lock();
    let live = table.live.iter().map(|(&address, allocation)| allocation.leak(address));
    table.abandoned.iter().cloned().chain(live).collect()
}

/// Returns the failure of a call that names memory which it does not free.
pub(super) fn not_an_allocation(address: u64) -> Failure {
    let is_freed = process().is_ok_and(|process| process.memory.lock().freed.contains_key(&address));
    if is_freed {
        let why = format!("the memory at {address:#x} was freed already; free each allocation once");
        return Failure::value(why).breaks("memcheck/double-free");
    }
    Failure::new(
        code::INVALID_VALUE,
        format!("{address:#x} is not the beginning of live memory that this call frees; free each allocation once"),
    )
}
