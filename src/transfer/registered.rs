//! Host memory that a scope page-locks.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::driver::{Driver, PAGE};
use crate::error::Result;

/// Most bytes that one call page-locks: CUDA's driver refuses half a TiB. Pieces end with a page,
/// so no two share one. The device's driver cuts copies that cross from one to another.
pub(super) const PIECE: usize = 64 << 30;

/// Host memory that a [`Scope`](super::Scope) has page-locked until its end: a mutable slice of
/// the scope's lifetime.
///
/// Copies take it as they take slices, and run as fast as from pinned memory.
/// [`Registered::into_slice`] returns the slice, to copy parts of it.
#[derive(Debug)]
pub struct Registered<'scope, T>(pub(super) &'scope mut [T]);

impl<'scope, T> Registered<'scope, T> {
    /// Returns the slice, which stays page-locked until the end of the scope.
    pub fn into_slice(self) -> &'scope mut [T] {
        self.0
    }
}

impl<T> Deref for Registered<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0
    }
}

impl<T> DerefMut for Registered<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.0
    }
}

/// The pieces that a scope has page-locked. Dropping them unlocks what is left.
pub(super) struct Pieces<'d> {
    driver: &'d dyn Driver,
    /// The first byte of each piece.
    locked: RefCell<Vec<NonNull<u8>>>,
    piece: usize,
}

impl<'d> Pieces<'d> {
    pub(super) fn new(driver: &'d dyn Driver, piece: usize) -> Self {
        Self { driver, locked: RefCell::default(), piece }
    }

    /// Page-locks memory piece by piece. A failure unlocks the earlier pieces with the rest.
    ///
    /// # Safety
    ///
    /// - `memory .. memory + bytes` lies within one live allocation until `self` has unlocked it.
    pub(super) unsafe fn lock(&self, memory: NonNull<u8>, bytes: usize) -> Result<()> {
        let (first, end) = (memory.addr().get(), memory.addr().get() + bytes);
        let mut start = first;
        while start < end {
            let next = (start.saturating_add(self.piece) / PAGE * PAGE).min(end);
            // SAFETY: `start - first` is less than `bytes`, of one allocation.
            let piece = unsafe { memory.byte_add(start - first) };
            // SAFETY: the piece lies within the caller's memory.
            unsafe { self.driver.register_host(piece, next - start) }?;
            self.locked.borrow_mut().push(piece);
            start = next;
        }
        Ok(())
    }

    /// Unlocks all pieces, even after a failure, and returns the first failure. All copies have
    /// run, as the scope waited.
    pub(super) fn unlock(&self) -> Result<()> {
        let mut outcome = Ok(());
        loop {
            let Some(memory) = self.locked.borrow_mut().pop() else { return outcome };
            // SAFETY: `lock` registered memory that begins here, once; no work uses it from now
            // on, since the scope has waited for its copies and makes no more.
            outcome = outcome.and(unsafe { self.driver.unregister_host(memory) });
        }
    }
}

impl Drop for Pieces<'_> {
    fn drop(&mut self) {
        // Only a panic leaves pieces here, which is the failure that the caller sees.
        let _ = self.unlock();
    }
}

#[cfg(all(test, feature = "interp"))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::driver::soft::Soft;
    use crate::driver::{Counted, Memory, Streams};

    /// The software GPU refuses a copy that crosses from one piece to another, as CUDA does.
    #[test]
    fn copies_cross_from_one_piece_to_another() {
        let driver = Counted::new(Arc::new(Soft::new()));
        let mut host: Vec<u8> = (0..10 * PAGE).map(|at| (at * 7 % 251) as u8).collect();
        let (stream, address) = (driver.stream_create().unwrap(), driver.alloc(host.len() as u64).unwrap());
        let sent = host.clone();
        let (memory, bytes) = (NonNull::from(host.as_mut_slice()).cast::<u8>(), host.len());
        let pieces = Pieces::new(&driver, PAGE);
        // SAFETY: the vector has more bytes.
        let part = unsafe { memory.byte_add(5) };
        // SAFETY: the part lies within the vector, which outlives the pieces.
        unsafe { pieces.lock(part, bytes - 2 * PAGE) }.unwrap();
        // SAFETY: both have these bytes, and nothing else uses them before the wait.
        unsafe { driver.copy_h2d(address, memory.as_ptr(), bytes, stream) }.unwrap();
        // SAFETY: the stream is live.
        unsafe { driver.stream_synchronize(stream) }.unwrap();
        assert!(driver.stats().calls_of("copy_h2d") >= 10);
        // SAFETY: nothing else uses the vector.
        unsafe { memory.write_bytes(0, bytes) };
        // SAFETY: as above.
        unsafe { driver.copy_d2h(memory.as_ptr(), address, bytes, stream) }.unwrap();
        pieces.unlock().unwrap();
        assert!(host == sent);
    }
}
