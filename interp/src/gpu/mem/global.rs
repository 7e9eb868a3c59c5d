//! Global memory: allocations far apart in a 64-bit address space.
//!
//! Allocation `i` begins at `i << 40`. The first one is 1, and in memory that shares addresses with
//! the host (see `host.rs`) 128. A shift therefore finds the allocation of an address, an access
//! past the end of one lands in a hole and never in another, and a small integer is never a valid
//! address. A number is reused only after a million others, so a stale address is
//! recognised.
//!
//! The GPUs of one host share the address space, as CUDA's do. Each reaches the allocations that
//! the others share with it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::allocation::Allocation;
use super::cells::Cells;
use super::heap::OfKernels;
use super::host::{HOST_NUMBERS, Ranges};
use super::space;
use super::touched::{Touched, Ways};
use super::unread::Unread;
use crate::error::{Error, ErrorKind, Result, counted};
use crate::gpu::invalid;

pub(super) const ADDRESS_BITS: u32 = 40;
/// The most bytes of an address-only allocation: the distance to the next one.
const MAX_HOLLOW_BYTES: u64 = 1 << ADDRESS_BITS;
/// The number of allocations after which the numbers of freed ones are reused.
const FRESH_NUMBERS: usize = 1 << 20;
/// Bytes that copies and fills move at a time. A range may be as large as the host's memory, which
/// leaves no space for a buffer of the same size.
const CHUNK: u64 = 16 * 1024;

/// Device memory of one software GPU. Any number of threads may use it.
pub struct Memory {
    limit: u64,
    /// True if the memory is address-only.
    pub(super) hollow: bool,
    /// The number of the GPU among those of its host.
    pub(super) gpu: usize,
    state: Arc<Mutex<State>>,
    /// The addresses of variables, by the number of their module.
    modules: Mutex<BTreeMap<u64, Arc<[u64]>>>,
    heap: Mutex<OfKernels>,
}

/// The allocations of all GPUs of a host.
pub(super) struct State {
    // Shared with running launches. It is copied only if an allocation changes while one runs. The
    // first slot is for the host's low addresses.
    pub(super) slots: Arc<Vec<Slot>>,
    gpus: Vec<Gpu>,
    next_reuse: usize,
    /// The number of launches whose writes were not followed.
    pub(super) unseen: u64,
}

/// A GPU of a host.
struct Gpu {
    used: u64,
    /// The freed memory that was not read.
    unread: Unread,
    /// For each GPU, true if this one reaches its memory: its own, and that of those that share it.
    reaches: Vec<bool>,
}

#[derive(Clone)]
pub(super) enum Slot {
    Live(Arc<Allocation>),
    /// Ranges of the host's memory, at addresses of the host.
    Host(Ranges),
    Freed {
        bytes: u64,
    },
    /// One of another GPU, which does not share it.
    Foreign {
        bytes: u64,
        gpu: usize,
    },
}

impl Slot {
    fn live(&self) -> Option<&Allocation> {
        match self {
            Slot::Live(live) => Some(live),
            Slot::Host(_) | Slot::Freed { .. } | Slot::Foreign { .. } => None,
        }
    }

    /// The slot as a GPU sees it that reaches these.
    fn seen(&self, reaches: &[bool]) -> Self {
        match self {
            Slot::Live(live) if !reaches[live.gpu] => Slot::Foreign { bytes: live.bytes, gpu: live.gpu },
            slot => slot.clone(),
        }
    }
}

/// The allocations at the time when a launch began.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(super) slots: Arc<Vec<Slot>>,
    unseen: u64,
}

impl Memory {
    /// Makes memory with room for `limit` bytes of allocations at a time.
    pub fn new(limit: u64) -> Self {
        let gpus = vec![Gpu { used: 0, unread: Unread::default(), reaches: vec![true] }];
        let state = State { slots: Arc::new(vec![Slot::Host(Ranges::default())]), gpus, next_reuse: 0, unseen: 0 };
        Self::with(limit, 0, Arc::new(Mutex::new(state)))
    }

    /// Makes the memory of another GPU of the same host, with addresses in the same space. Neither
    /// of both reaches the other's until that is shared: see [`Memory::share_with`].
    pub fn beside(&self, limit: u64) -> Self {
        let mut state = self.lock();
        let gpu = state.gpus.len();
        for other in &mut state.gpus {
            other.reaches.push(false);
        }
        let mut reaches = vec![false; gpu];
        reaches.push(true);
        state.gpus.push(Gpu { used: 0, unread: Unread::default(), reaches });
        Self { hollow: self.hollow, ..Self::with(limit, gpu, Arc::clone(&self.state)) }
    }

    fn with(limit: u64, gpu: usize, state: Arc<Mutex<State>>) -> Self {
        Self { limit, hollow: false, gpu, state, modules: Mutex::default(), heap: Mutex::default() }
    }

    /// Lets kernels and copies of another GPU of the same host use this memory, now and later.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the other GPU is of another host.
    pub fn share_with(&self, other: &Self) -> Result<()> {
        if !Arc::ptr_eq(&self.state, &other.state) {
            return Err(invalid(
                "the memory of a GPU cannot be shared with a GPU of another host; use GPUs of one host",
            ));
        }
        self.lock().gpus[other.gpu].reaches[self.gpu] = true;
        Ok(())
    }

    /// Makes address-only memory, with almost nothing behind the addresses, and at most
    /// [`MAX_HOLLOW_BYTES`] for each allocation. It serves to count the accesses of kernels whose
    /// addresses do not depend on data. The host does not read or write it.
    #[doc(hidden)]
    pub fn hollow() -> Self {
        Self { hollow: true, ..Self::new(u64::MAX) }
    }

    /// Bytes that may be allocated at a time.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes allocated now.
    pub fn used(&self) -> u64 {
        self.lock().gpus[self.gpu].used
    }

    /// Returns how much memory was written and never read, by a kernel or a copy. Launches without
    /// initcheck may have read anything, so memory that was there during one is left out.
    pub fn unread(&self) -> Unread {
        let state = self.lock();
        let of_gpu = |number: &usize| state.slots[*number].live().is_some_and(|live| live.gpu == self.gpu);
        let live = (0..state.slots.len()).filter(of_gpu).map(|number| state.unread(number));
        live.fold(state.gpus[self.gpu].unread, |sum, unread| sum + unread)
    }

    /// Allocates `bytes` bytes, aligned to 256 bytes and filled with a poison pattern.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` beyond the limit, or if the host has too little memory; `InvalidArgument` for
    /// 0 bytes.
    pub fn alloc(&self, bytes: u64) -> Result<u64> {
        self.allocate(bytes, 0, Allocation::new)
    }

    /// Allocates a variable of a module: `bytes` zero bytes, read-only for kernels if it is
    /// `constant`.
    pub(crate) fn alloc_variable(&self, bytes: u64, constant: bool) -> Result<u64> {
        let mark = if constant { space::CONSTANT } else { 0 };
        self.allocate(bytes, mark, |base, bytes, born| Allocation::zeroed(base, bytes, born, constant))
    }

    /// Allocates at an address that has the bits of `mark`.
    pub(super) fn allocate(
        &self,
        bytes: u64,
        mark: u64,
        make: impl Fn(u64, u64, u64) -> Option<Allocation>,
    ) -> Result<u64> {
        if bytes == 0 {
            return Err(invalid("0 bytes were requested; an allocation has at least 1"));
        }
        let mut state = self.lock();
        if mark != 0 {
            state.leave_host_addresses();
        }
        let free = self.limit - state.gpus[self.gpu].used;
        if bytes > free {
            return Err(out_of_memory(bytes, free));
        }
        if self.hollow && bytes > MAX_HOLLOW_BYTES {
            return Err(out_of_memory(bytes, MAX_HOLLOW_BYTES));
        }
        let number = state.number();
        let base = (number as u64) << ADDRESS_BITS | mark;
        let made =
            if self.hollow { Allocation::hollow(base, bytes, state.unseen) } else { make(base, bytes, state.unseen) };
        let mut allocation = made.ok_or_else(|| out_of_memory(bytes, free))?;
        allocation.gpu = self.gpu;
        let slot = Slot::Live(Arc::new(allocation));
        let slots = Arc::make_mut(&mut state.slots);
        if number == slots.len() {
            slots.push(slot);
        } else {
            slots[number] = slot;
        }
        state.gpus[self.gpu].used += bytes;
        Ok(base)
    }

    /// Frees the allocation that begins at `address`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if no live allocation begins there.
    pub fn free(&self, address: u64) -> Result<()> {
        let mut state = self.lock();
        let is_ours = |live: &&Allocation| live.base == address && live.gpu == self.gpu && !live.is_heap();
        if find(&state.slots, address).filter(is_ours).is_none() {
            return Err(invalid(format!(
                "{address:#x} is not the address of a live allocation; free what `alloc` returned, once"
            )));
        }
        state.remove(address, self.gpu);
        Ok(())
    }

    /// Copies `out.len()` bytes from `address` to the host.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if no single live allocation contains the bytes.
    pub fn read(&self, address: u64, out: &mut [u8]) -> Result<()> {
        let snapshot = self.snapshot();
        let (allocation, offset) = snapshot.range(address, out.len() as u64, "read")?;
        allocation.read.add(offset, out.len() as u64);
        let (head, rest) = out.split_at_mut(head_bytes(offset, out.len()));
        let middle = offset + head.len() as u64;
        let (words, tail) = rest.as_chunks_mut::<4>();
        let end = middle + 4 * words.len() as u64;
        let stored = &allocation.words[middle as usize / 4..][..words.len()];
        for (word, stored) in words.iter_mut().zip(stored) {
            *word = stored.load(Relaxed).to_le_bytes();
        }
        for (byte, at) in head.iter_mut().zip(offset..).chain(tail.iter_mut().zip(end..)) {
            *byte = allocation.load8(at);
        }
        Ok(())
    }

    /// Copies `bytes` from the host to `address`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if no single live allocation contains the bytes.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<()> {
        let snapshot = self.snapshot();
        let (allocation, offset) = snapshot.range(address, bytes.len() as u64, "write")?;
        allocation.written.add(offset, bytes.len() as u64);
        let (head, rest) = bytes.split_at(head_bytes(offset, bytes.len()));
        let middle = offset + head.len() as u64;
        let (words, tail) = rest.as_chunks::<4>();
        let end = middle + 4 * words.len() as u64;
        let stored = &allocation.words[middle as usize / 4..][..words.len()];
        for (&word, stored) in words.iter().zip(stored) {
            stored.store(u32::from_le_bytes(word), Relaxed);
        }
        for (&byte, at) in head.iter().zip(offset..).chain(tail.iter().zip(end..)) {
            allocation.store8(at, byte);
        }
        Ok(())
    }

    /// Copies `bytes` bytes from `src` to `dst`, as if through a buffer: the ranges may overlap.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if either range is not within one live allocation.
    pub fn copy(&self, dst: u64, src: u64, bytes: u64) -> Result<()> {
        // Checks both ranges first, so that nothing is written if a part cannot be.
        self.snapshot().range(src, bytes, "copy from")?;
        self.written(dst, bytes, "copy to")?;
        let mut buffer = [0; CHUNK as usize];
        let chunks = bytes.div_ceil(CHUNK);
        for step in 0..chunks {
            // A copy towards higher addresses starts at the end, so that no chunk is overwritten
            // before it is read.
            let start = CHUNK * if dst > src { chunks - 1 - step } else { step };
            let chunk = &mut buffer[..CHUNK.min(bytes - start) as usize];
            self.read(src + start, chunk)?;
            self.write(dst + start, chunk)?;
        }
        Ok(())
    }

    /// Sets `bytes` bytes at `address` to `value`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if no single live allocation contains the bytes.
    pub fn fill(&self, address: u64, value: u8, bytes: u64) -> Result<()> {
        self.written(address, bytes, "fill")?;
        let chunk = [value; CHUNK as usize];
        for start in (0..bytes).step_by(CHUNK as usize) {
            self.write(address + start, &chunk[..CHUNK.min(bytes - start) as usize])?;
        }
        Ok(())
    }

    /// The current allocations.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let state = self.lock();
        let reaches = &state.gpus[self.gpu].reaches;
        let slots = if reaches.iter().all(|&reached| reached) {
            Arc::clone(&state.slots)
        } else {
            Arc::new(state.slots.iter().map(|slot| slot.seen(reaches)).collect())
        };
        Snapshot { slots, unseen: state.unseen }
    }

    /// The same for a launch; `followed` says whether its writes are followed.
    pub(crate) fn snapshot_for_launch(&self, followed: bool) -> Snapshot {
        self.lock().unseen += u64::from(!followed);
        self.snapshot()
    }

    /// Marks a whole range as written, before it is written piece by piece.
    fn written(&self, address: u64, bytes: u64, what: &str) -> Result<()> {
        let snapshot = self.snapshot();
        let (allocation, offset) = snapshot.range(address, bytes, what)?;
        allocation.written.add(offset, bytes);
        Ok(())
    }

    /// The addresses of a module's variables; `place` makes them if they are not here yet.
    pub(crate) fn module(&self, id: u64, place: impl FnOnce() -> Result<Vec<u64>>) -> Result<Arc<[u64]>> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = modules.get(&id) {
            return Ok(Arc::clone(known));
        }
        let addresses: Arc<[u64]> = place()?.into();
        modules.insert(id, Arc::clone(&addresses));
        Ok(addresses)
    }

    /// Removes the addresses of a module's variables and returns them; empty if there are none.
    pub(crate) fn forget_module(&self, id: u64) -> Arc<[u64]> {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner).remove(&id).unwrap_or_else(|| Arc::new([]))
    }

    /// The heap of kernels, which is locked before the state.
    pub(super) fn heap_of_kernels(&self) -> MutexGuard<'_, OfKernels> {
        self.heap.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // Every critical section leaves the state consistent, so a panic elsewhere does not spoil
        // it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Touched {
    /// Marks `bytes` bytes at an address in `allocation`.
    #[inline]
    pub(crate) fn mark(&self, allocation: &Allocation, ways: Ways, address: u64, bytes: u64) {
        let offset = address.wrapping_sub(allocation.base);
        if allocation.of_host {
            self.add_of_host(allocation.base, ways, offset, bytes);
        } else {
            self.add(number_of(allocation.base), ways, offset, bytes);
        }
    }
}

impl State {
    /// Returns how much of an allocation was written and not read.
    fn unread(&self, number: usize) -> Unread {
        let live = self.slots[number].live().filter(|live| live.born == self.unseen && !live.is_heap());
        let bytes = live.map_or(0, |live| live.written.without(&live.read));
        Unread { allocations: u64::from(bytes > 0), bytes }
    }

    /// Frees the live allocation at an address, of this GPU.
    pub(super) fn remove(&mut self, address: u64, gpu: usize) {
        let Some(bytes) = find(&self.slots, address).map(|live| live.bytes) else { return };
        let number = number_of(address);
        let unread = self.unread(number);
        self.gpus[gpu].unread += unread;
        Arc::make_mut(&mut self.slots)[number] = Slot::Freed { bytes };
        self.gpus[gpu].used -= bytes;
    }

    /// Returns whether the addresses that the host can have are free.
    pub(super) fn has_addresses_of_host(&self) -> bool {
        matches!(self.slots.get(1), Some(Slot::Host(_)))
    }

    /// Leaves the addresses that the host can have free, unless allocations are there already.
    pub(super) fn leave_host_addresses(&mut self) {
        if self.slots.len() < HOST_NUMBERS {
            Arc::make_mut(&mut self.slots).resize_with(HOST_NUMBERS, || Slot::Host(Ranges::default()));
        }
    }

    /// The number of the next allocation: a fresh one, or after many allocations that of one freed
    /// long ago.
    fn number(&mut self) -> usize {
        let count = self.slots.len();
        if count >= FRESH_NUMBERS {
            let start = self.next_reuse;
            let round = (0..count).map(|step| (start + step) % count);
            if let Some(number) = round.into_iter().find(|&number| matches!(self.slots[number], Slot::Freed { .. })) {
                self.next_reuse = number + 1;
                return number;
            }
        }
        count
    }
}

impl Snapshot {
    /// The live allocation whose number is in `address`. The address may still lie beyond its end.
    #[inline]
    pub(crate) fn find(&self, address: u64) -> Option<&Allocation> {
        find(&self.slots, address)
    }

    /// Returns whether all writes to an allocation are known: every launch since its creation was
    /// followed.
    pub(crate) fn knows(&self, allocation: &Allocation) -> bool {
        allocation.born == self.unseen
    }

    /// Makes a record of the bytes that a launch touches; `None` if the host has too little memory.
    pub(crate) fn untouched(&self) -> Option<Touched> {
        let of_host =
            self.slots.iter().filter_map(|slot| if let Slot::Host(ranges) = slot { Some(ranges) } else { None });
        let of_host = of_host.flat_map(Ranges::all).map(|range| (range.base, range.bytes));
        let allocations =
            self.slots.iter().map(|slot| slot.live().map_or((0, false), |live| (live.bytes, live.is_heap())));
        Touched::none(allocations, of_host)
    }

    fn range(&self, address: u64, bytes: u64, what: &str) -> Result<(&Allocation, u64)> {
        let allocation = self.find(address);
        if allocation.is_some_and(Allocation::is_heap) {
            return Err(invalid(format!(
                "cannot {what} {address:#x}, memory that a kernel has allocated and only kernels access; let a kernel \
                 copy it to a buffer"
            )));
        }
        let inside = allocation.and_then(|live| live.offset(address, bytes).map(|offset| (live, offset)));
        inside.ok_or_else(|| {
            let nearest = self.nearest(address).map_or_else(String::new, |nearest| format!("; {nearest}"));
            invalid(format!(
                "cannot {what} {bytes} at {address:#x}: not all in one live allocation{nearest}",
                bytes = counted(bytes, "byte")
            ))
        })
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("limit", &self.limit).field("used", &self.used()).finish_non_exhaustive()
    }
}

/// The number of the slot of an address.
pub(super) fn number_of(address: u64) -> usize {
    (address >> ADDRESS_BITS) as usize
}

fn find(slots: &[Slot], address: u64) -> Option<&Allocation> {
    match slots.get(number_of(address))? {
        Slot::Live(live) => Some(live),
        Slot::Host(ranges) => ranges.find(address),
        Slot::Freed { .. } | Slot::Foreign { .. } => None,
    }
}

/// Bytes before the first whole word of a range.
fn head_bytes(offset: u64, len: usize) -> usize {
    ((4 - offset % 4) as usize % 4).min(len)
}

pub(super) fn out_of_memory(bytes: u64, free: u64) -> Error {
    let context = format!(
        "the software GPU cannot allocate {bytes}: {free} are free; free buffers or use less",
        bytes = counted(bytes, "byte")
    );
    Error::new(ErrorKind::OutOfMemory, context)
}

#[cfg(test)]
mod tests;
