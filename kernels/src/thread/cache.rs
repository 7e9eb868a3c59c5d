//! The hints that accesses to global memory give to the L2 cache.

use crate::thread::{self, Global, Policy, Quad, Word};

/// Accesses of one kind. A thread holds one value of it.
pub trait Cache<T>: Copy {
    /// Makes it, once a thread.
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

/// Accesses for runs that end within lines.
pub trait LineCache: Cache<Quad> {
    /// As [`thread::load_quad_of_line`].
    ///
    /// # Safety
    ///
    /// As [`Word::load_global`].
    unsafe fn load_of_line(self, from: Global) -> Quad;
}

/// Accesses without hints.
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

/// Accesses with eviction policies: loaded lines are evicted last, and stored lines first.
#[derive(Clone, Copy)]
pub struct Hinted {
    loads: Policy,
    stores: Policy,
}

impl Hinted {
    /// Returns the policy of loads.
    #[inline(always)]
    pub fn loads(self) -> Policy {
        self.loads
    }

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
