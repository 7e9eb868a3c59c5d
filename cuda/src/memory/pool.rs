//! Pools, from which memory is allocated and freed in the order of streams.

use std::collections::HashMap;
use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use warpstride::driver::Memory as _;

use super::managed::Location;
use super::room;
use super::table::{Allocation, Kind, not_an_allocation};
use crate::arguments::{Handle, In, Opaque, Out};
use crate::code::{Failure, Outcome};
use crate::export::export;
use crate::graph::{Allocated, Work};
use crate::handles::Handles;
use crate::process::{Process, process};
use crate::stream::{Stream, stream};

/// The one type of allocation that pools of devices have.
const PINNED: c_uint = 1;
/// The rights of a device to a pool's memory: nothing, read, or read and write.
const NO_ACCESS: c_uint = 0;
const READ: c_uint = 1;
const READ_AND_WRITE: c_uint = 3;

const RELEASE_THRESHOLD: c_uint = 4;
const RESERVED_CURRENT: c_uint = 5;
const RESERVED_HIGH: c_uint = 6;
const USED_CURRENT: c_uint = 7;
const USED_HIGH: c_uint = 8;

/// A pool.
pub(crate) struct Pool {
    device: c_int,
    is_default: bool,
    state: Mutex<State>,
}

struct State {
    /// The three ways in which the pool may give memory out again, which change nothing here.
    reuses: [c_int; 3],
    release_threshold: u64,
    used: u64,
    used_high: u64,
    /// The rights of other devices to its memory.
    access: HashMap<c_int, c_uint>,
}

/// All pools.
pub(super) struct Pools {
    live: Handles<Pool>,
    by_device: Mutex<ByDevice>,
}

/// The pools that calls without one use.
#[derive(Default)]
struct ByDevice {
    default: HashMap<c_int, Handle<Pool>>,
    current: HashMap<c_int, Handle<Pool>>,
}

/// The properties of a new pool, as in `CUmemPoolProps`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Properties {
    kind: c_uint,
    handle_types: c_uint,
    location: Location,
    security: u64,
    most_bytes: usize,
    usage: u16,
    reserved: [u8; 54],
}

/// The rights of a device to a pool's memory, as in `CUmemAccessDesc`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Access {
    location: Location,
    flags: c_uint,
}

impl Pool {
    fn new(device: c_int, is_default: bool) -> Self {
        let state = State { reuses: [1; 3], release_threshold: 0, used: 0, used_high: 0, access: HashMap::new() };
        Self { device, is_default, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Pools {
    fn default() -> Self {
        Self { live: Handles::new("memory pool"), by_device: Mutex::default() }
    }
}

impl Pools {
    fn lock(&self) -> MutexGuard<'_, ByDevice> {
        self.by_device.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn default_of(&self, device: c_int) -> Handle<Pool> {
        *self.lock().default.entry(device).or_insert_with(|| self.live.add(Pool::new(device, true)))
    }

    fn current_of(&self, device: c_int) -> Handle<Pool> {
        let current = self.lock().current.get(&device).copied();
        current.filter(|&pool| self.live.find(pool).is_some()).unwrap_or_else(|| self.default_of(device))
    }

    fn get(&self, pool: Handle<Pool>) -> Outcome<Arc<Pool>> {
        self.live.find(pool).ok_or_else(|| Failure::value(format!("{pool:?} is not a live memory pool")))
    }

    fn make_current(&self, device: c_int, pool: Handle<Pool>) -> Outcome {
        if self.get(pool)?.device != device {
            return Err(Failure::value("a device's pool must be on the device"));
        }
        self.lock().current.insert(device, pool);
        Ok(())
    }
}

/// Takes an allocation out of the count of its pool.
pub(super) fn forget(process: &Process, allocation: &Allocation) {
    if let Some(pool) = process.memory.pools.live.find(allocation.pool) {
        let mut state = pool.lock();
        state.used = state.used.saturating_sub(allocation.bytes);
    }
}

/// Allocates in the order of a stream, from its device's pool where none is given.
fn allocate(address: Out<u64>, bytes: usize, pool: Option<Handle<Pool>>, on: Handle<Stream>) -> Outcome {
    address.check()?;
    let (process, stream) = (process()?, stream(on)?);
    let pools = &process.memory.pools;
    let handle = pool.unwrap_or_else(|| pools.current_of(stream.device));
    let pool = pools.get(handle)?;
    if pool.device != stream.device {
        return Err(Failure::value("a pool allocates on streams of its own device"));
    }
    let context = process.contexts.get(stream.context)?;
    let mut of_graph = None;
    let is_captured = stream.record(|| {
        let memory = Arc::new(Allocated::new(stream.device, bytes)?);
        of_graph = Some(memory.address());
        Ok(Work::Alloc(memory))
    })?;
    if is_captured {
        return address.set(of_graph.unwrap_or_default());
    }
    let room = room(bytes)? as u64;
    let base = stream.queue_now("an allocation", |gpu, soft| {
        // SAFETY: the stream is live, and the software GPU refuses one that is being captured.
        unsafe { gpu.soft.pool_alloc(room, soft) }
    })?;
    let made = Allocation { pool: handle, ..Allocation::new(Kind::Pool, bytes as u64, &context, 0) };
    process.memory.lock().add(base, made);
    let mut state = pool.lock();
    state.used = state.used.saturating_add(bytes as u64);
    state.used_high = state.used_high.max(state.used);
    drop(state);
    address.set(base)
}

/// Returns the default or the current pool of a place.
fn pool_at(location: In<Location>, kind: c_uint) -> Outcome<c_int> {
    if kind != PINNED {
        return Err(Failure::unsupported("the software GPU has pools of devices' memory only, type 1"));
    }
    location.get()?.device()
}

fn set_attribute(pool: Handle<Pool>, attribute: c_uint, value: Opaque) -> Outcome {
    let pool = process()?.memory.pools.get(pool)?;
    let zero = || match value.operands::<u64>().get()? {
        0 => Ok(()),
        other => Err(Failure::value(format!("a mark of the most memory is set to 0, not to {other}"))),
    };
    match attribute {
        1..=3 => pool.lock().reuses[attribute as usize - 1] = value.operands::<c_int>().get()?,
        RELEASE_THRESHOLD => pool.lock().release_threshold = value.operands::<u64>().get()?,
        RESERVED_HIGH | USED_HIGH => {
            zero()?;
            let mut state = pool.lock();
            state.used_high = state.used;
        }
        _ => return Err(Failure::value(format!("{attribute} is not an attribute of a pool that can be set"))),
    }
    Ok(())
}

fn set_access(pool: Handle<Pool>, each: In<Access>, count: usize) -> Outcome {
    let process = process()?;
    let pool = process.memory.pools.get(pool)?;
    for Access { location, flags } in each.list(count)? {
        let device = location.device()?;
        if !matches!(flags, NO_ACCESS | READ | READ_AND_WRITE) || (device == pool.device && flags != READ_AND_WRITE) {
            return Err(Failure::value(format!("device {device} cannot have access {flags} to a pool")));
        }
        if device != pool.device && flags != NO_ACCESS {
            warpstride::driver::Peers::share_with(&*process.gpu(pool.device)?.soft, device as u32)?;
        }
        pool.lock().access.insert(device, flags);
    }
    Ok(())
}

export! {
    /// Allocates memory of a stream's device in the order of the stream.
    fn cuMemAllocAsync, per_thread cuMemAllocAsync_ptsz (address: Out<u64>, bytes: usize, on: Handle<Stream>) {
        allocate(address, bytes, None, on)
    }

    /// Allocates memory from a pool in the order of a stream.
    fn cuMemAllocFromPoolAsync, per_thread cuMemAllocFromPoolAsync_ptsz (
        address: Out<u64>, bytes: usize, pool: Handle<Pool>, on: Handle<Stream>,
    ) {
        allocate(address, bytes, Some(pool), on)
    }

    /// Frees memory of a pool in the order of a stream.
    fn cuMemFreeAsync, per_thread cuMemFreeAsync_ptsz (address: u64, on: Handle<Stream>) {
        let (process, stream) = (process()?, stream(on)?);
        if stream.record(|| Ok(Work::Free(address)))? {
            return Ok(());
        }
        let is_meant = |found: &Allocation| found.kind == Kind::Pool && found.device == stream.device;
        let taken = process.memory.lock().take(address, is_meant);
        let allocation = taken.ok_or_else(|| not_an_allocation(address))?;
        forget(process, &allocation);
        stream.queue_now("a free", |gpu, soft| {
            // SAFETY: the allocation was taken out of the table, so it is freed once; the program
            // orders its use.
            unsafe { gpu.soft.pool_free(address, soft) }
        })
    }

    /// Makes a pool.
    fn cuMemPoolCreate(pool: Out<Handle<Pool>>, properties: In<Properties>) {
        pool.check()?;
        let wanted = properties.get()?;
        if wanted.kind != PINNED {
            return Err(Failure::value(format!("{} is not a type of a pool's allocations; pass 1", wanted.kind)));
        }
        if wanted.handle_types != 0 {
            return Err(Failure::unsupported("the software GPU shares no pool with other processes"));
        }
        let device = wanted.location.device()?;
        pool.set(process()?.memory.pools.live.add(Pool::new(device, false)))
    }

    /// Destroys a pool; its allocations stay until they are freed.
    fn cuMemPoolDestroy(pool: Handle<Pool>) {
        let pools = &process()?.memory.pools;
        if pools.get(pool)?.is_default {
            return Err(Failure::value("the default pool of a device is not destroyed"));
        }
        pools.live.remove(pool).map(drop)
    }

    /// Gives back what a pool holds and nothing uses: the software GPU's pools hold nothing.
    fn cuMemPoolTrimTo(pool: Handle<Pool>, _keep: usize) {
        process()?.memory.pools.get(pool).map(drop)
    }

    /// Sets an attribute of a pool.
    fn cuMemPoolSetAttribute(pool: Handle<Pool>, attribute: c_uint, value: Opaque) {
        set_attribute(pool, attribute, value)
    }

    /// Returns an attribute of a pool.
    fn cuMemPoolGetAttribute(pool: Handle<Pool>, attribute: c_uint, value: Opaque) {
        let pool = process()?.memory.pools.get(pool)?;
        let state = pool.lock();
        match attribute {
            1..=3 => value.results().set(state.reuses[attribute as usize - 1]),
            RELEASE_THRESHOLD => value.results().set(state.release_threshold),
            RESERVED_CURRENT | USED_CURRENT => value.results().set(state.used),
            RESERVED_HIGH | USED_HIGH => value.results().set(state.used_high),
            _ => Err(Failure::value(format!("{attribute} is not an attribute of a pool"))),
        }
    }

    /// Sets what devices may do with a pool's memory.
    fn cuMemPoolSetAccess(pool: Handle<Pool>, each: In<Access>, count: usize) {
        set_access(pool, each, count)
    }

    /// Returns what a device may do with a pool's memory.
    fn cuMemPoolGetAccess(flags: Out<c_uint>, pool: Handle<Pool>, location: In<Location>) {
        let pool = process()?.memory.pools.get(pool)?;
        let device = location.get()?.device()?;
        let other = pool.lock().access.get(&device).copied().unwrap_or(NO_ACCESS);
        flags.set(if device == pool.device { READ_AND_WRITE } else { other })
    }

    /// Returns the default pool of a device.
    fn cuDeviceGetDefaultMemPool(pool: Out<Handle<Pool>>, device: c_int) {
        let process = process()?;
        process.gpu(device)?;
        pool.set(process.memory.pools.default_of(device))
    }

    /// Returns the current pool of a device.
    fn cuDeviceGetMemPool(pool: Out<Handle<Pool>>, device: c_int) {
        let process = process()?;
        process.gpu(device)?;
        pool.set(process.memory.pools.current_of(device))
    }

    /// Sets the current pool of a device.
    fn cuDeviceSetMemPool(device: c_int, pool: Handle<Pool>) {
        let process = process()?;
        process.gpu(device)?;
        process.memory.pools.make_current(device, pool)
    }

    /// Returns the default pool of a place.
    fn cuMemGetDefaultMemPool(pool: Out<Handle<Pool>>, location: In<Location>, kind: c_uint) {
        let device = pool_at(location, kind)?;
        pool.set(process()?.memory.pools.default_of(device))
    }

    /// Returns the current pool of a place.
    fn cuMemGetMemPool(pool: Out<Handle<Pool>>, location: In<Location>, kind: c_uint) {
        let device = pool_at(location, kind)?;
        pool.set(process()?.memory.pools.current_of(device))
    }

    /// Sets the current pool of a place.
    fn cuMemSetMemPool(location: In<Location>, kind: c_uint, pool: Handle<Pool>) {
        let device = pool_at(location, kind)?;
        process()?.memory.pools.make_current(device, pool)
    }
}
