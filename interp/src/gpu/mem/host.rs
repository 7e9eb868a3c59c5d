//! Memory of the host that kernels and copies address as the host does.
//!
//! This file has unsafe code, because contents that the host reads and writes too are not in a box
//! that this crate alone knows.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use super::allocation::Allocation;
use super::global::{ADDRESS_BITS, Memory, Slot, number_of, out_of_memory};
use super::space;
use crate::error::Result;
use crate::gpu::invalid;

/// The number of slots whose addresses are the host's, which have 47 bits.
pub(super) const HOST_NUMBERS: usize = 1 << (47 - ADDRESS_BITS);
/// The first address of the host that kernels can use: no system gives a program a lower one.
const LOWEST: u64 = 1 << 16;
/// Bytes of a page.
const PAGE: usize = 4096;
/// The first address of memory that this crate allocates.
const FIRST: u64 = 1 << ADDRESS_BITS;
/// Bytes that an allocator of the host asks the system for, instead of the heap, which a program
/// at a fixed address has below [`FIRST`]. The C library of GNU does so above 32 MiB.
const OF_SYSTEM: usize = 64 << 20;
/// Bytes of the widest access.
const WIDEST: usize = 16;
/// The alignment of what kernels see of a caller's memory: that of a word.
const GRAIN: u64 = 4;

/// Contents: words that this crate has allocated, or that a caller lends.
pub(super) struct Words {
    list: NonNull<[AtomicU32]>,
    /// The whole box, where this crate has allocated it.
    owned: Option<NonNull<[AtomicU32]>>,
}

// SAFETY: the words are atomic, and the box is freed once, by the last owner on any thread.
unsafe impl Send for Words {}
// SAFETY: the words are atomic.
unsafe impl Sync for Words {}

impl Words {
    /// Makes zero words that begin with a page, `bytes` bytes of them; `None` if the host has too
    /// little memory. The host provides memory only for the parts that are accessed.
    fn pages(bytes: u64) -> Option<Self> {
        let bytes = usize::try_from(bytes).ok()?.checked_next_multiple_of(WIDEST)?;
        let zeroed = |bytes: usize| bytemuck::allocation::try_zeroed_slice_box(bytes / 4).ok().map(Self::from);
        let room = bytes.checked_add(PAGE)?;
        let mut words = zeroed(room)?;
        if (words.address() as u64) < FIRST && room < OF_SYSTEM {
            words = zeroed(OF_SYSTEM)?;
        }
        let skipped = words.address().next_multiple_of(PAGE) - words.address();
        words.list = NonNull::from(&words[skipped / 4..][..bytes / 4]);
        Some(words)
    }

    /// Returns the address of the first word, which code outside of Rust may use too.
    fn address(&self) -> usize {
        self.list.cast::<AtomicU32>().as_ptr().expose_provenance()
    }
}

impl From<Box<[AtomicU32]>> for Words {
    fn from(words: Box<[AtomicU32]>) -> Self {
        let list = NonNull::from(Box::leak(words));
        Self { list, owned: Some(list) }
    }
}

impl Deref for Words {
    type Target = [AtomicU32];

    #[inline(always)]
    fn deref(&self) -> &[AtomicU32] {
        // SAFETY: the words are in our box, or the caller of `Memory::map_host` promised them.
        unsafe { self.list.as_ref() }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        if let Some(owned) = self.owned {
            // SAFETY: it is the box that `from` leaked, and nothing uses it from now on.
            drop(unsafe { Box::from_raw(owned.as_ptr()) });
        }
    }
}

/// The ranges of the host's memory that begin or go on in a slot, by first address.
#[derive(Clone, Default)]
pub(super) struct Ranges(BTreeMap<u64, Arc<Allocation>>);

impl Ranges {
    /// The range that contains an address, or else one before it.
    #[cold]
    pub(super) fn find(&self, address: u64) -> Option<&Allocation> {
        self.0.range(..=address).next_back().map(|(_, range)| &**range)
    }

    /// The first range beyond an address.
    pub(super) fn after(&self, address: u64) -> Option<&Allocation> {
        self.0.range(address.checked_add(1)?..).next().map(|(_, range)| &**range)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Allocation> {
        self.0.values().map(|range| &**range)
    }
}

impl Memory {
    /// Makes memory whose addresses leave those of the host free, so that kernels can use memory of
    /// the host at the host's own addresses.
    #[doc(hidden)]
    pub fn with_addresses_of_host(limit: u64) -> Self {
        let memory = Self::new(limit);
        memory.lock().leave_host_addresses();
        memory
    }

    /// Returns whether kernels can use memory of the host.
    #[doc(hidden)]
    pub fn has_addresses_of_host(&self) -> bool {
        self.lock().has_addresses_of_host()
    }

    /// Allocates zeroed memory of the host, which begins with a page and which all GPUs of the host
    /// reach at the same address.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` if the host has too little memory; `InvalidArgument` for 0 bytes, or without
    /// [room](Memory::with_addresses_of_host) for such memory.
    #[doc(hidden)]
    pub fn alloc_host(&self, bytes: u64) -> Result<NonNull<u8>> {
        let words = Words::pages(bytes).ok_or_else(|| out_of_memory(bytes, 0))?;
        let memory = words.list.cast();
        self.add_host_range(words.address() as u64, bytes, words)?;
        Ok(memory)
    }

    /// Lets kernels and copies use a caller's memory at its own address, from the word of 4 bytes
    /// on in which it begins.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for 0 bytes, for addresses at which kernels have something else, or
    /// without [room](Memory::with_addresses_of_host) for such memory.
    ///
    /// # Safety
    ///
    /// - The pages around these bytes are valid for reads and writes until
    ///   [`Memory::free_host`] has returned and no launch is running.
    #[doc(hidden)]
    pub unsafe fn map_host(&self, memory: NonNull<u8>, bytes: u64) -> Result<()> {
        let first = memory.as_ptr().expose_provenance() as u64;
        let base = first / GRAIN * GRAIN;
        let end = first.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(GRAIN));
        let Some(count) = end.and_then(|end| usize::try_from((end - base) / 4).ok()) else {
            return Err(invalid("memory of the host does not go beyond the last address"));
        };
        let start = std::ptr::with_exposed_provenance_mut::<AtomicU32>(base as usize);
        let Some(start) = NonNull::new(start) else { return Err(invalid("memory of the host does not begin at 0")) };
        let words = Words { list: NonNull::slice_from_raw_parts(start, count), owned: None };
        self.add_host_range(base, first - base + bytes, words)
    }

    /// Takes memory of the host away from kernels: frees what [`Memory::alloc_host`] returned, or
    /// gives back what [`Memory::map_host`] was lent.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if no such memory begins there.
    #[doc(hidden)]
    pub fn free_host(&self, memory: NonNull<u8>) -> Result<()> {
        let base = memory.addr().get() as u64 / GRAIN * GRAIN;
        let mut state = self.lock();
        let mut found = false;
        for slot in Arc::make_mut(&mut state.slots).iter_mut().take(HOST_NUMBERS) {
            if let Slot::Host(ranges) = slot {
                found |= ranges.0.remove(&base).is_some();
            }
        }
        if found {
            Ok(())
        } else {
            Err(invalid(format!("no memory of the host that kernels use begins at {memory:p}")))
        }
    }

    /// Returns the first address and the bytes of the live allocation that contains these bytes.
    #[doc(hidden)]
    pub fn allocation_around(&self, address: u64, bytes: u64) -> Option<(u64, u64)> {
        let snapshot = self.snapshot();
        let live = snapshot.find(address)?;
        live.offset(address, bytes).map(|_| (live.base, live.bytes))
    }

    fn add_host_range(&self, base: u64, bytes: u64, words: Words) -> Result<()> {
        if bytes == 0 {
            return Err(invalid("0 bytes of the host were requested; a range has at least 1"));
        }
        let mut state = self.lock();
        if !state.has_addresses_of_host() {
            return Err(invalid("the software GPU was opened without room for memory of the host"));
        }
        let last = base.saturating_add(bytes - 1);
        let (from, to) = (number_of(base), number_of(last));
        if base < LOWEST || to >= HOST_NUMBERS || space::has_window_in(base, last) {
            return Err(invalid(format!(
                "kernels cannot use memory of the host from {base:#x} to {last:#x}: its addresses go from {LOWEST:#x} \
                 to 1 << 47, except those from 1 << 32 to 5 << 32, where kernels have windows onto other memory"
            )));
        }
        let overlaps = |slot: &Slot| match slot {
            Slot::Host(ranges) => ranges.find(last).is_some_and(|range| base < range.base.saturating_add(range.bytes)),
            _ => false,
        };
        if state.slots[from..=to].iter().any(overlaps) {
            return Err(invalid(format!("kernels use memory of the host from {base:#x} to {last:#x} already")));
        }
        let range = Arc::new(Allocation::of_host(base, bytes, state.unseen, words));
        for slot in &mut Arc::make_mut(&mut state.slots)[from..=to] {
            if let Slot::Host(ranges) = slot {
                ranges.0.insert(base, Arc::clone(&range));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::mem::space;

    fn memory() -> Memory {
        Memory::with_addresses_of_host(1 << 20)
    }

    #[test]
    fn memory_of_the_host_is_at_its_own_address_for_all_gpus() {
        let first = memory();
        let second = first.beside(100);
        let shared = first.alloc_host(100).unwrap();
        let address = shared.addr().get() as u64;
        assert!(address.is_multiple_of(PAGE as u64));
        let mut read = [1; 100];
        second.read(address, &mut read).unwrap();
        assert_eq!(read, [0; 100]);
        second.write(address + 3, &[7, 8]).unwrap();
        first.read(address, &mut read).unwrap();
        assert_eq!(read[..6], [0, 0, 0, 7, 8, 0]);
        assert_eq!(first.allocation_around(address + 99, 1), Some((address, 100)));
        let error = first.read(address + 99, &mut [0; 2]).unwrap_err();
        assert!(error.to_string().contains(&format!("(live) has 100 bytes at {address:#x}")), "{error}");
        assert_eq!(first.used(), 0);
        first.free_host(shared).unwrap();
        assert!(first.free_host(shared).is_err() && second.read(address, &mut [0]).is_err());
    }

    #[test]
    fn a_callers_memory_is_used_until_it_is_given_back() {
        let memory = memory();
        let lent: Vec<AtomicU32> = (0..64).map(AtomicU32::new).collect();
        let first = NonNull::from(&lent[9]).cast::<u8>();
        let address = first.addr().get() as u64;
        // SAFETY: the list is whole until the end of the test, and shares its pages with no code
        // that could take them away.
        unsafe { memory.map_host(first, 40) }.unwrap();
        let device = memory.alloc(8).unwrap();
        assert!(device >= 1 << 47);
        memory.copy(device, address, 8).unwrap();
        memory.copy(address + 4, device, 4).unwrap();
        assert_eq!([9, 10, 11].map(|at: usize| lent[at].load(std::sync::atomic::Ordering::Relaxed)), [9, 9, 11]);
        // SAFETY: as above.
        let again = unsafe { memory.map_host(first, 4) };
        assert!(again.unwrap_err().to_string().contains("already"));
        memory.free_host(first).unwrap();
        // SAFETY: as above.
        unsafe { memory.map_host(first, 10) }.unwrap();
        let within = memory.read(address + 6, &mut [0; 4]);
        assert!(within.is_ok() && memory.read(address + 6, &mut [0; 5]).is_err());
        memory.free_host(first).unwrap();
        assert!(memory.read(address, &mut [0]).is_err());
    }

    #[test]
    fn what_kernels_cannot_use_is_refused() {
        assert!(Memory::new(100).alloc_host(8).is_err());
        let memory = memory();
        assert!(memory.alloc_host(0).is_err() && memory.alloc_host(u64::MAX).is_err());
        let map = |address: usize| {
            let place = NonNull::new(std::ptr::without_provenance_mut(address)).unwrap();
            // SAFETY: such addresses are refused, or not followed.
            unsafe { memory.map_host(place, 64) }
        };
        for address in [16, (1 << 32) - 32, (5 << 32) - 4, 1 << 47, usize::MAX - 15] {
            assert!(map(address).is_err(), "{address:#x}");
        }
        for address in [1 << 16, (1 << 32) - 64, 5 << 32, (1 << 40) - 64] {
            map(address).unwrap();
            let around = |at: usize| memory.allocation_around(at as u64, 1);
            assert_eq!((around(address + 63), around(address + 64)), (Some((address as u64, 64)), None));
        }
        let device = memory.alloc(8).unwrap();
        let nearest = memory.snapshot().nearest(device - 1).unwrap();
        assert_eq!((device, nearest.base), (1 << 47, device));
        assert_eq!(memory.allocation_around(1 << 46, 1), None);
        let variable = memory.alloc_variable(8, true).unwrap();
        assert!(space::is_constant(variable) && !space::is_constant(0x7fff_8000_0000), "a stack of the host");
    }
}
