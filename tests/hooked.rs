//! A driver that passes every call on, and lets a test change some of them.
//!
//! Test binaries share this file.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use warpstride::Result;
use warpstride::counters::Counters;
use warpstride::driver::trace::Method;
use warpstride::driver::{
    Copy3d, DeviceInfo, Driver, EventHandle, FunctionHandle, GraphExecHandle, GraphHandle, Graphs, HostKind, Memory,
    ModuleHandle, Modules, StreamHandle, Streams,
};
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
    /// Whether the wait of a stream for an event that a method would queue now is left out.
    pub(crate) forgets_wait: Box<dyn Fn() -> bool + Send + Sync>,
    /// Whether the copy between host and device that a method would queue now is lost.
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

macro_rules! forward {
    ($(fn $safe:ident($($operand:ident: $type:ty),*) -> $result:ty;)* ---
     $(unsafe fn $name:ident($($given:ident: $of:ty),*) -> $gives:ty;)*) => {
        $(fn $safe(&self, $($operand: $type),*) -> $result {
            self.inner.$safe($($operand),*)
        })*
        $(unsafe fn $name(&self, $($given: $of),*) -> $gives {
            // SAFETY: the caller's promises are the inner driver's.
            unsafe { self.inner.$name($($given),*) }
        })*
    };
}

// SAFETY: all parts belong to the inner driver.
unsafe impl Driver for Hooked {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    forward! {
        fn counters() -> Option<Counters>;
        fn has_checkers() -> bool;
        ---
    }
}

// SAFETY: all calls are the inner driver's.
unsafe impl Memory for Hooked {
    forward! {
        fn memory() -> Result<(u64, u64)>;
        fn reset_persisting_l2() -> Result<()>;
        fn alloc(bytes: u64) -> Result<u64>;
        fn has_pool() -> bool;
        fn pool_trim(keep: u64) -> Result<()>;
        fn alloc_host(bytes: usize, kind: HostKind) -> Result<NonNull<u8>>;
        ---
        unsafe fn free(address: u64) -> Result<()>;
        unsafe fn pool_alloc(bytes: u64, stream: StreamHandle) -> Result<u64>;
        unsafe fn pool_free(address: u64, stream: StreamHandle) -> Result<()>;
        unsafe fn free_host(memory: NonNull<u8>) -> Result<()>;
        unsafe fn register_host(memory: NonNull<u8>, bytes: usize) -> Result<()>;
        unsafe fn unregister_host(memory: NonNull<u8>) -> Result<()>;
        unsafe fn copy_d2d(dst: u64, src: u64, bytes: u64, stream: StreamHandle) -> Result<()>;
        unsafe fn copy_3d(copy: &Copy3d, stream: StreamHandle) -> Result<()>;
        unsafe fn fill(dst: u64, value: u8, bytes: u64, stream: StreamHandle) -> Result<()>;
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
}

// SAFETY: all calls are the inner driver's.
unsafe impl Streams for Hooked {
    forward! {
        fn stream_create() -> Result<StreamHandle>;
        fn event_create() -> Result<EventHandle>;
        ---
        unsafe fn stream_destroy(stream: StreamHandle) -> Result<()>;
        unsafe fn stream_synchronize(stream: StreamHandle) -> Result<()>;
        unsafe fn event_destroy(event: EventHandle) -> Result<()>;
        unsafe fn event_record(event: EventHandle, stream: StreamHandle) -> Result<()>;
        unsafe fn event_elapsed_ms(start: EventHandle, end: EventHandle) -> Result<f32>;
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
}

// SAFETY: all calls are the inner driver's; only the text of a module and the shape of a launch may
// differ.
unsafe impl Modules for Hooked {
    fn module_load(&self, ptx: &str) -> Result<ModuleHandle> {
        self.inner.module_load((self.ptx)(ptx).as_deref().unwrap_or(ptx))
    }

    forward! {
        ---
        unsafe fn module_unload(module: ModuleHandle) -> Result<()>;
        unsafe fn function(module: ModuleHandle, name: &str) -> Result<FunctionHandle>;
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

// SAFETY: all calls are the inner driver's.
unsafe impl Graphs for Hooked {
    forward! {
        ---
        unsafe fn capture_begin(stream: StreamHandle) -> Result<()>;
        unsafe fn capture_end(stream: StreamHandle) -> Result<GraphHandle>;
        unsafe fn graph_nodes(graph: GraphHandle) -> Result<usize>;
        unsafe fn graph_destroy(graph: GraphHandle) -> Result<()>;
        unsafe fn graph_instantiate(graph: GraphHandle) -> Result<GraphExecHandle>;
        unsafe fn graph_update(exec: GraphExecHandle, graph: GraphHandle) -> Result<bool>;
        unsafe fn graph_launch(exec: GraphExecHandle, stream: StreamHandle) -> Result<()>;
        unsafe fn graph_exec_destroy(exec: GraphExecHandle) -> Result<()>;
    }
}
