//! What accesses to global memory tell the L2 cache of what they move.

use crate::thread::{self, Global, Policy, Quad, Word};

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

/// Accesses by eviction policies: what is loaded goes last, and what is stored first.
#[derive(Clone, Copy)]
pub struct Hinted {
    loads: Policy,
    stores: Policy,
}

impl Hinted {
    #[inline(always)]
    fn policies() -> Self {
        Hinted { loads: Policy::evict_last(), stores: Policy::evict_first() }
    }
}

impl<W: Word> Cache<W> for Hinted {
    #[inline(always)]
    fn new() -> Self {
        Self::policies()
    }

    #[inline(always)]
    unsafe fn load(self, from: Global) -> W {
        // SAFETY: as the caller promises.
        unsafe { W::load_global_by(self.loads, from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: Global, value: W) {
        // SAFETY: as the caller promises.
        unsafe { value.store_global_by(self.stores, to) }
    }
}

impl Cache<Quad> for Hinted {
    #[inline(always)]
    fn new() -> Self {
        Self::policies()
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

impl LineCache for Hinted {
    #[inline(always)]
    unsafe fn load_of_line(self, from: Global) -> Quad {
        // SAFETY: as the caller promises.
        unsafe { thread::load_quad_of_line_by(self.loads, from) }
    }
}
