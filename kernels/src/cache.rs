//! What accesses to global memory tell the L2 cache of what they move.

use crate::quad::Lanes;
use crate::thread::{self, B128, Global, Policy, Quad, Word};

/// Accesses of one kind; a value of it is what a thread needs for them.
pub trait Cache<T>: Copy {
    /// Once a thread.
    fn new() -> Self;

    /// Loads from global memory.
    ///
    /// # Safety
    ///
    /// As [`Word::load_global`].
    unsafe fn load(self, from: Global) -> T;

    /// Stores to global memory.
    ///
    /// # Safety
    ///
    /// As [`Word::store_global`].
    unsafe fn store(self, to: Global, value: T);
}

/// The same where runs end within lines.
pub trait LineCache: Cache<Quad> {
    /// As [`thread::load_quad_of_line`].
    ///
    /// # Safety
    ///
    /// As [`Word::load_global`].
    unsafe fn load_of_line(self, from: Global) -> Quad;
}

/// Accesses that tell it nothing.
#[derive(Clone, Copy)]
pub struct Unhinted;

impl<W: Word> Cache<W> for Unhinted {
    #[inline(always)]
    fn new() -> Self {
        Unhinted
    }

    #[inline(always)]
    unsafe fn load(self, from: Global) -> W {
        // SAFETY: as the caller promises.
        unsafe { W::load_global(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: Global, value: W) {
        // SAFETY: as the caller promises.
        unsafe { value.store_global(to) }
    }
}

impl Cache<Quad> for Unhinted {
    #[inline(always)]
    fn new() -> Self {
        Unhinted
    }

    #[inline(always)]
    unsafe fn load(self, from: Global) -> Quad {
        // SAFETY: as the caller promises.
        unsafe { thread::load_quad(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: Global, value: Quad) {
        // SAFETY: as the caller promises.
        unsafe { thread::store_quad(to, value) }
    }
}

impl LineCache for Unhinted {
    #[inline(always)]
    unsafe fn load_of_line(self, from: Global) -> Quad {
        // SAFETY: as the caller promises.
        unsafe { thread::load_quad_of_line(from) }
    }
}

/// Accesses of 16 bytes by eviction policies: what is stored goes first, and what is loaded goes last or, where not
/// `LOADS_LAST`, first too.
#[derive(Clone, Copy)]
pub struct Hinted<const LOADS_LAST: bool> {
    loads: Policy,
    stores: Policy,
}

impl<const LOADS_LAST: bool> Cache<Quad> for Hinted<LOADS_LAST> {
    #[inline(always)]
    fn new() -> Self {
        let stores = Policy::evict_first();
        Hinted { loads: if LOADS_LAST { Policy::evict_last() } else { stores }, stores }
    }

    #[inline(always)]
    unsafe fn load(self, from: Global) -> Quad {
        // SAFETY: as the caller promises.
        unsafe { thread::load_quad_by(self.loads, from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: Global, value: Quad) {
        // SAFETY: as the caller promises.
        unsafe { thread::store_quad_by(self.stores, to, value) }
    }
}

impl<const LOADS_LAST: bool> LineCache for Hinted<LOADS_LAST> {
    #[inline(always)]
    unsafe fn load_of_line(self, from: Global) -> Quad {
        // SAFETY: as the caller promises.
        unsafe { thread::load_quad_of_line_by(self.loads, from) }
    }
}

impl<const LOADS_LAST: bool> Cache<B128> for Hinted<LOADS_LAST> {
    #[inline(always)]
    fn new() -> Self {
        <Self as Cache<Quad>>::new()
    }

    #[inline(always)]
    unsafe fn load(self, from: Global) -> B128 {
        // SAFETY: as the caller promises.
        B128::get(unsafe { self.load(from) }, 0)
    }

    #[inline(always)]
    unsafe fn store(self, to: Global, value: B128) {
        // SAFETY: as the caller promises.
        unsafe { self.store(to, value.put([0; 4], 0)) }
    }
}
