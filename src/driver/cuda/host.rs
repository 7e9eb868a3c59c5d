//! Page-locked host memory.
//!
//! The driver's own allocation touches each page on one thread, which takes 0.57 s for a GiB. Large
//! memory is faster in three steps: it is mapped with huge pages advised, several threads touch it
//! at once, and the driver registers it. The idea is libcudf's (its pull request 23457).
//!
//! Memory beyond some size is registered in pieces: a driver refuses to register hundreds of GiB at
//! once (LMCache's pull request 5177). A copy must not cross two pieces, so copies are cut there.

use std::collections::BTreeMap;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::error::code;
use super::mapping::Mapping;
use super::{Cuda, api};
use crate::driver::HostKind;
use crate::error::{Error, ErrorKind, Result, counted};

/// Most bytes that are registered at once.
pub(super) const PIECE: usize = 16 << 30;

/// Bytes from which memory is mapped, touched and registered. Threads cost more than they save for
/// less.
const FEWEST_MAPPED: usize = 4 << 20;

/// The page-locked memory that the driver registered: first address, and what lies there.
pub(super) struct HostBlocks {
    blocks: RwLock<BTreeMap<usize, HostBlock>>,
    /// Whether a block ever had more than one piece, so that copies look for theirs.
    cut: AtomicBool,
    /// Most bytes of a piece.
    piece: usize,
}

/// Memory that was registered, in pieces of [`HostBlocks::piece`] bytes from its start.
struct HostBlock {
    bytes: usize,
    /// The memory itself, unless it is the caller's.
    mapping: Option<Mapping>,
}

impl HostBlocks {
    /// Makes a list without blocks, whose pieces have at most `piece` bytes.
    pub(super) fn new(piece: usize) -> Self {
        Self { blocks: RwLock::default(), cut: AtomicBool::new(false), piece }
    }

    /// Returns the pieces of a block, by their offsets.
    fn pieces(&self, bytes: usize) -> impl DoubleEndedIterator<Item = Range<usize>> + use<> {
        let piece = self.piece;
        (0..bytes.div_ceil(piece)).map(move |at| at * piece..bytes.min((at + 1) * piece))
    }

    /// Returns the parts of a range of the host's memory that lie within one piece each, by their
    /// offsets in the range.
    pub(super) fn parts(&self, memory: *const u8, bytes: usize) -> impl Iterator<Item = Range<usize>> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let part = start..bytes.min(self.within_piece(memory.addr() + start).saturating_add(start));
            start = part.end;
            (!part.is_empty()).then_some(part)
        })
    }

    /// Whether a range of the host's memory lies within one piece, or within none.
    pub(super) fn is_whole(&self, memory: *const u8, bytes: usize) -> bool {
        bytes <= self.within_piece(memory.addr())
    }

    /// Returns the number of bytes from an address to the end of its piece; all there are if it
    /// lies in none.
    fn within_piece(&self, address: usize) -> usize {
        // A block is entered before its address is known to any caller.
        if !self.cut.load(Ordering::Relaxed) {
            return usize::MAX;
        }
        let blocks = self.read();
        let block = blocks.range(..=address).next_back().filter(|(first, block)| address - *first < block.bytes);
        block.map_or(usize::MAX, |(first, _)| self.piece - (address - first) % self.piece)
    }

    fn enter(&self, first: usize, block: HostBlock) {
        if block.bytes > self.piece {
            self.cut.store(true, Ordering::Relaxed);
        }
        self.write().insert(first, block);
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<usize, HostBlock>> {
        // Every critical section is one call of the map.
        self.blocks.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<usize, HostBlock>> {
        self.blocks.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cuda {
    /// Allocates zeroed, page-locked memory, the fast way where that is one.
    pub(super) fn lock_new(&self, bytes: usize, kind: HostKind) -> Result<NonNull<u8>> {
        if kind == HostKind::Cached && bytes >= FEWEST_MAPPED {
            // What fails here may still work in the driver's own way, whose error is the caller's.
            if let Some(memory) = Mapping::new(bytes).and_then(|mapping| self.lock_mapping(mapping).ok()) {
                return Ok(memory);
            }
        }
        self.alloc_locked(bytes, kind)
    }

    fn lock_mapping(&self, mut mapping: Mapping) -> Result<NonNull<u8>> {
        let (memory, bytes) = (mapping.memory(), mapping.bytes());
        // SAFETY: the mapping has these bytes, and stays until it is unregistered.
        unsafe { self.register_pieces(memory, bytes) }?;
        self.host.enter(memory.addr().get(), HostBlock { bytes, mapping: Some(mapping) });
        Ok(memory)
    }

    fn alloc_locked(&self, bytes: usize, kind: HostKind) -> Result<NonNull<u8>> {
        let api = self.enter()?;
        let mut memory = ptr::null_mut();
        let flags = match kind {
            HostKind::Cached => 0,
            HostKind::WriteCombined => api::MEMHOSTALLOC_WRITECOMBINED,
        };
        // SAFETY: `memory` takes the result.
        let code = unsafe { (api.cuMemHostAlloc)(&mut memory, bytes, flags) };
        let call = format!("cuMemHostAlloc({bytes})", bytes = counted(bytes, "byte"));
        if code == code::OUT_OF_MEMORY {
            let context =
                format!("{call}: the system gives no more page-locked memory; free some, or copy from pageable memory");
            return Err(Error::new(ErrorKind::OutOfMemory, context));
        }
        self.check(code, format_args!("{call}"))?;
        let memory: NonNull<u8> = NonNull::new(memory)
            .ok_or_else(|| Error::new(ErrorKind::Driver, format!("{call} gave no address")))?
            .cast();
        // SAFETY: the driver has just allocated `bytes` bytes here for us alone.
        unsafe { memory.write_bytes(0, bytes) };
        Ok(memory)
    }

    /// Frees memory of [`Cuda::lock_new`], which no queued work uses.
    ///
    /// # Safety
    ///
    /// - `lock_new` returned `memory`, which has not been freed since.
    /// - Nothing uses the memory, and no queued work does.
    pub(super) unsafe fn free_locked(&self, memory: NonNull<u8>) -> Result<()> {
        let block = self.host.write().remove(&memory.addr().get());
        let Some(HostBlock { bytes, mapping }) = block else {
            // SAFETY: the driver allocated it, since it is not among the mapped blocks.
            let code = unsafe { (self.api.cuMemFreeHost)(memory.as_ptr().cast()) };
            return self.check(code, format_args!("cuMemFreeHost({memory:p})"));
        };
        // SAFETY: the block was registered in these pieces.
        let unregistered = unsafe { self.unregister_pieces(memory, bytes) };
        if unregistered.is_err() {
            // Memory that the driver takes for page-locked must not go back: the next mapping at
            // its address would be another memory.
            std::mem::forget(mapping);
        }
        unregistered
    }

    /// Registers memory of a caller.
    ///
    /// # Safety
    ///
    /// - As [`Memory::register_host`](crate::driver::Memory::register_host).
    pub(super) unsafe fn lock_old(&self, memory: NonNull<u8>, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.register_pieces(memory, bytes) }?;
        // A block of one piece needs no cuts, and no look when it goes.
        if bytes > self.host.piece {
            self.host.enter(memory.addr().get(), HostBlock { bytes, mapping: None });
        }
        Ok(())
    }

    /// Unregisters memory of a caller, which no queued work uses.
    ///
    /// # Safety
    ///
    /// - As [`Memory::unregister_host`](crate::driver::Memory::unregister_host).
    pub(super) unsafe fn unlock_old(&self, memory: NonNull<u8>) -> Result<()> {
        let block = self.host.write().remove(&memory.addr().get());
        // SAFETY: the caller's promise. A block that is not listed has one piece, whose size no
        // call needs.
        unsafe { self.unregister_pieces(memory, block.map_or(1, |block| block.bytes)) }
    }

    /// Registers all pieces of a range, or none.
    ///
    /// # Safety
    ///
    /// - The range is live memory of the host, and stays until it is unregistered.
    unsafe fn register_pieces(&self, memory: NonNull<u8>, bytes: usize) -> Result<()> {
        let api = self.enter()?;
        for piece in self.host.pieces(bytes) {
            let first = memory.as_ptr().wrapping_add(piece.start);
            // SAFETY: the caller promises live memory of this size.
            let code = unsafe { (api.cuMemHostRegister_v2)(first.cast(), piece.len(), 0) };
            if code == code::SUCCESS {
                continue;
            }
            // The first error is the caller's. SAFETY: the pieces before this one are registered,
            // and no work uses them.
            let _ = unsafe { self.unregister_pieces(memory, piece.start) };
            return Err(self.not_registered(code, first, piece.len()));
        }
        Ok(())
    }

    fn not_registered(&self, code: u32, memory: *mut u8, bytes: usize) -> Error {
        let call = format!("cuMemHostRegister({bytes} at {memory:p})", bytes = counted(bytes, "byte"));
        if code == code::OUT_OF_MEMORY {
            let context = format!(
                "{call}: the system page-locks no more memory; unregister some, raise `ulimit -l`, or copy from pageable \
                 memory"
            );
            return Error::new(ErrorKind::OutOfMemory, context);
        }
        self.failure(code, format_args!("{call}"))
    }

    /// Unregisters all pieces of a range, also after a failure. Returns the first failure.
    ///
    /// # Safety
    ///
    /// - The pieces of the range are registered, and no queued work uses them.
    unsafe fn unregister_pieces(&self, memory: NonNull<u8>, bytes: usize) -> Result<()> {
        let mut outcome = Ok(());
        for piece in self.host.pieces(bytes) {
            let first = memory.as_ptr().wrapping_add(piece.start);
            // SAFETY: the caller's promise.
            let code = unsafe { (self.api.cuMemHostUnregister)(first.cast()) };
            outcome = outcome.and(self.check(code, format_args!("cuMemHostUnregister({first:p})")));
        }
        outcome
    }
}
