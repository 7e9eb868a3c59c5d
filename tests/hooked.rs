//! A driver that passes every call on, and lets a test change some of them.
//!
//! Test binaries share this file.

use std::fmt;
use std::sync::Arc;

use warpstride::Result;
use warpstride::driver::trace::Method;
use warpstride::driver::{DeviceInfo, Driver, EventHandle, FunctionHandle, Layer, ModuleHandle, StreamHandle};
use warpstride::launch_shape::LaunchShape;

type Replace = dyn Fn(&str) -> Option<String> + Send + Sync;
type Reshape = dyn Fn(LaunchShape, &[u8]) -> LaunchShape + Send + Sync;

pub(crate) struct Hooked {
    pub(crate) inner: Arc<dyn Driver>,
    /// How the device describes itself.
    pub(crate) info: DeviceInfo,
    /// Returns the PTX to load instead of another.
    pub(crate) ptx: Box<Replace>,
    /// Returns the grid and the blocks to launch instead of others; it sees the parameters, too.
    pub(crate) shape: Box<Reshape>,
    /// Runs before each wait for an event.
    pub(crate) before_wait: Box<dyn Fn() + Send + Sync>,
    /// Runs before each question whether an event has been passed.
    pub(crate) before_query: Box<dyn Fn() + Send + Sync>,
    /// Says whether the wait of a stream for an event that a method would queue now is left out.
    pub(crate) forgets_wait: Box<dyn Fn() -> bool + Send + Sync>,
    /// Says whether the copy between host and device that a method would queue now is lost.
    pub(crate) loses: Box<dyn Fn(Method) -> bool + Send + Sync>,
}

impl Hooked {
    /// Wraps `inner`, and changes nothing.
    pub(crate) fn new(inner: Arc<dyn Driver>) -> Self {
        Self {
            info: inner.info().clone(),
            inner,
            ptx: Box::new(|_| None),
            shape: Box::new(|shape, _| shape),
            before_wait: Box::new(|| ()),
            before_query: Box::new(|| ()),
            forgets_wait: Box::new(|| false),
            loses: Box::new(|_| false),
        }
    }
}

impl fmt::Debug for Hooked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooked").field("inner", &self.inner).finish_non_exhaustive()
    }
}

// SAFETY: `inner` is one field, which nothing changes, and all calls are the inner driver's. A test
// may lose copies and waits, and change the text of a module and the shape of a launch; it looks at
// the results alone.
unsafe impl Layer for Hooked {
    fn inner(&self) -> &dyn Driver {
        self.inner.as_ref()
    }

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    unsafe fn copy_h2d(&self, dst: u64, src: *const u8, bytes: usize, stream: StreamHandle) -> Result<()> {
        if (self.loses)(Method::CopyH2d) {
            return Ok(());
        }
        // SAFETY: the caller's promises are the inner driver's.
        unsafe { self.inner.copy_h2d(dst, src, bytes, stream) }
    }

    unsafe fn copy_d2h(&self, dst: *mut u8, src: u64, bytes: usize, stream: StreamHandle) -> Result<()> {
        if (self.loses)(Method::CopyD2h) {
            // The caller may read what it has never written. SAFETY: the bytes are the copy's.
            unsafe { dst.write_bytes(0, bytes) };
            return Ok(());
        }
        // SAFETY: the caller's promises are the inner driver's.
        unsafe { self.inner.copy_d2h(dst, src, bytes, stream) }
    }

    unsafe fn event_wait(&self, event: EventHandle, stream: StreamHandle) -> Result<()> {
        if (self.forgets_wait)() {
            return Ok(());
        }
        // SAFETY: the caller's promises are the inner driver's.
        unsafe { self.inner.event_wait(event, stream) }
    }

    unsafe fn event_query(&self, event: EventHandle) -> Result<bool> {
        (self.before_query)();
        // SAFETY: the caller's promises are the inner driver's.
        unsafe { self.inner.event_query(event) }
    }

    unsafe fn event_synchronize(&self, event: EventHandle) -> Result<()> {
        (self.before_wait)();
        // SAFETY: the caller's promises are the inner driver's.
        unsafe { self.inner.event_synchronize(event) }
    }

    fn module_load(&self, ptx: &str) -> Result<ModuleHandle> {
        self.inner.module_load((self.ptx)(ptx).as_deref().unwrap_or(ptx))
    }

    unsafe fn launch(
        &self,
        function: FunctionHandle,
        shape: &LaunchShape,
        params: &[u8],
        stream: StreamHandle,
    ) -> Result<()> {
        // SAFETY: the caller's promises are the inner driver's; a test that gives another shape
        // gives one for which the kernel moves the same elements.
        unsafe { self.inner.launch(function, &(self.shape)(*shape, params), params, stream) }
    }
}
