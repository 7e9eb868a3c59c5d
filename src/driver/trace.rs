//! A driver that records the calls of another and injects failures, for tests: every call can be made to fail, and what is
//! still alive afterwards is known.
//!
//! An injected failure stands before or after the real call, so that it leaves a state that a real failure could leave:
//!
//! - A call that makes or queues something fails *before*: nothing was made or queued.
//! - A call that releases something fails *after*: it is released. This is the driver's contract too, and so the books
//!   are right: an error from a release is no leak.
//! - A wait for an event fails *before*: nothing was waited for, and what is queued stays queued.
//! - A wait for a stream fails *after*: what it waited for has run. It is the driver's contract that no copy touches host
//!   memory after it, error or not; a `Trace` that broke it would let safe code free memory under a queued copy.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{DeviceInfo, Driver, EventHandle, FunctionHandle, ModuleHandle, StreamHandle};
use crate::counters::Counters;
use crate::error::{Error, ErrorKind, Result};
use crate::launch_shape::LaunchShape;

macro_rules! calls {
    ($($(#[$doc:meta])* $call:ident = $name:literal { $($(#[$field_doc:meta])* $field:ident: $type:ty),* };)*) => {
        /// A call of a [`Driver`] method, with its operands. `Display` writes it like a call.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Call {
            $($(#[$doc])* $call { $($(#[$field_doc])* $field: $type),* },)*
        }

        /// A method of [`Driver`] that can fail.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Method {
            $($(#[$doc])* $call,)*
        }

        impl Call {
            /// The method called.
            pub fn method(&self) -> Method {
                match self {
                    $(Self::$call { .. } => Method::$call,)*
                }
            }

            /// The method's name.
            pub fn name(&self) -> &'static str {
                self.method().name()
            }
        }

        impl Method {
            /// Every method that can fail.
            pub const ALL: &[Self] = &[$(Self::$call),*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$call => $name,)*
                }
            }
        }

        impl fmt::Display for Call {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$call { $($field),* } => {
                        let mut operands = f.debug_struct($name);
                        $(operands.field(stringify!($field), $field);)*
                        operands.finish()
                    })*
                }
            }
        }
    };
}

calls! {
    /// [`Driver::memory`].
    Memory = "memory" {};
    /// [`Driver::reset_persisting_l2`].
    ResetPersistingL2 = "reset_persisting_l2" {};
    /// [`Driver::alloc`].
    Alloc = "alloc" {
        /// Bytes asked for.
        bytes: u64
    };
    /// [`Driver::free`].
    Free = "free" {
        /// What is freed.
        address: Address
    };
    /// [`Driver::alloc_host`].
    AllocHost = "alloc_host" {
        /// Bytes asked for.
        bytes: usize
    };
    /// [`Driver::free_host`].
    FreeHost = "free_host" {
        /// What is freed.
        memory: Address
    };
    /// [`Driver::copy_h2d`].
    CopyH2d = "copy_h2d" {
        /// Device address.
        dst: Address,
        /// Host address.
        src: Address,
        /// Bytes.
        bytes: usize,
        /// On this stream.
        stream: StreamHandle
    };
    /// [`Driver::copy_d2h`].
    CopyD2h = "copy_d2h" {
        /// Host address.
        dst: Address,
        /// Device address.
        src: Address,
        /// Bytes.
        bytes: usize,
        /// On this stream.
        stream: StreamHandle
    };
    /// [`Driver::copy_d2d`].
    CopyD2d = "copy_d2d" {
        /// Device address.
        dst: Address,
        /// Device address.
        src: Address,
        /// Bytes.
        bytes: u64,
        /// On this stream.
        stream: StreamHandle
    };
    /// [`Driver::fill`].
    Fill = "fill" {
        /// Device address.
        dst: Address,
        /// What every byte becomes.
        value: u8,
        /// Bytes.
        bytes: u64,
        /// On this stream.
        stream: StreamHandle
    };
    /// [`Driver::stream_create`].
    StreamCreate = "stream_create" {};
    /// [`Driver::stream_destroy`].
    StreamDestroy = "stream_destroy" {
        /// Which.
        stream: StreamHandle
    };
    /// [`Driver::stream_synchronize`].
    StreamSynchronize = "stream_synchronize" {
        /// Which.
        stream: StreamHandle
    };
    /// [`Driver::event_create`].
    EventCreate = "event_create" {};
    /// [`Driver::event_destroy`].
    EventDestroy = "event_destroy" {
        /// Which.
        event: EventHandle
    };
    /// [`Driver::event_record`].
    EventRecord = "event_record" {
        /// Which.
        event: EventHandle,
        /// On this stream.
        stream: StreamHandle
    };
    /// [`Driver::event_wait`].
    EventWait = "event_wait" {
        /// For this one.
        event: EventHandle,
        /// On this stream.
        stream: StreamHandle
    };
    /// [`Driver::event_query`].
    EventQuery = "event_query" {
        /// Which.
        event: EventHandle
    };
    /// [`Driver::event_synchronize`].
    EventSynchronize = "event_synchronize" {
        /// Which.
        event: EventHandle
    };
    /// [`Driver::event_elapsed_ms`].
    EventElapsedMs = "event_elapsed_ms" {
        /// From this one.
        start: EventHandle,
        /// To this one.
        end: EventHandle
    };
    /// [`Driver::module_load`].
    ModuleLoad = "module_load" {
        /// Bytes of PTX.
        bytes: usize
    };
    /// [`Driver::module_unload`].
    ModuleUnload = "module_unload" {
        /// Which.
        module: ModuleHandle
    };
    /// [`Driver::function`].
    Function = "function" {
        /// Of this module.
        module: ModuleHandle,
        /// The entry.
        name: String
    };
    /// [`Driver::launch`].
    Launch = "launch" {
        /// What runs.
        function: FunctionHandle,
        /// Its grid and blocks.
        shape: LaunchShape,
        /// Bytes of parameters.
        params: usize,
        /// On this stream.
        stream: StreamHandle
    };
}

/// An address of device or host memory, shown in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// What has been made through a [`Trace`] and not released.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Live {
    /// Device allocations: address and bytes.
    pub allocations: BTreeMap<Address, u64>,
    /// Page-locked allocations: address and bytes.
    pub host_allocations: BTreeMap<Address, usize>,
    /// Streams.
    pub streams: BTreeSet<StreamHandle>,
    /// Events.
    pub events: BTreeSet<EventHandle>,
    /// Modules.
    pub modules: BTreeSet<ModuleHandle>,
}

impl Live {
    /// Whether everything has been released.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A driver that records calls of another and makes some of them fail.
#[derive(Debug)]
pub struct Trace {
    inner: Arc<dyn Driver>,
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    calls: Vec<Call>,
    live: Live,
    fail_at: Option<usize>,
    fail_methods: BTreeSet<Method>,
}

/// When an injected failure comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fails {
    Before,
    After,
}

impl Trace {
    /// Wraps `inner`.
    pub fn new(inner: Arc<dyn Driver>) -> Self {
        Self { inner, books: Mutex::default() }
    }

    /// The calls so far, failed ones included. [`Driver::info`] and [`Driver::counters`] cannot fail and are left out.
    pub fn calls(&self) -> Vec<Call> {
        self.books().calls.clone()
    }

    /// What has been made and not released.
    pub fn live(&self) -> Live {
        self.books().live.clone()
    }

    /// Lets call `index` fail, counted from 0 over all calls that are recorded.
    pub fn fail_nth(&self, index: usize) {
        self.books().fail_at = Some(index);
    }

    /// Lets every call of `method` fail from now on.
    pub fn fail_method(&self, method: Method) {
        self.books().fail_methods.insert(method);
    }

    /// Lets nothing fail any more.
    pub fn fail_nothing(&self) {
        let mut books = self.books();
        books.fail_at = None;
        books.fail_methods.clear();
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        // Every critical section leaves the books whole.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records `call` and makes it with `real`.
    fn call<T>(&self, call: Call, fails: Fails, real: impl FnOnce() -> Result<T>) -> Result<T> {
        let injected = self.books().record(call);
        // Not under the lock: the call may take long.
        match (injected, fails) {
            (None, _) => real(),
            (Some(error), Fails::Before) => Err(error),
            (Some(error), Fails::After) => real().and(Err(error)),
        }
    }

    fn make<T>(&self, call: Call, real: impl FnOnce() -> Result<T>, enter: impl FnOnce(&mut Live, &T)) -> Result<T> {
        let made = self.call(call, Fails::Before, real)?;
        enter(&mut self.books().live, &made);
        Ok(made)
    }

    fn queue<T>(&self, call: Call, real: impl FnOnce() -> Result<T>) -> Result<T> {
        self.call(call, Fails::Before, real)
    }

    fn release(&self, call: Call, real: impl FnOnce() -> Result<()>, enter: impl FnOnce(&mut Live)) -> Result<()> {
        // Entered first: once released, another thread may be given the same address.
        enter(&mut self.books().live);
        self.call(call, Fails::After, real)
    }
}

impl Books {
    /// Enters a call; the error if it is to fail.
    fn record(&mut self, call: Call) -> Option<Error> {
        let index = self.calls.len();
        let fails = self.fail_at == Some(index) || self.fail_methods.contains(&call.method());
        let error = fails.then(|| Error::new(ErrorKind::Driver, format!("injected failure of call {index}: {call}")));
        self.calls.push(call);
        error
    }
}

// Every unsafe method passes its caller's promises on, with the operands as they came.
// SAFETY: an injected failure of a release or of `stream_synchronize` comes after the real call, and other calls are the
// inner driver's or none: what the inner driver promises holds.
unsafe impl Driver for Trace {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn memory(&self) -> Result<(u64, u64)> {
        self.queue(Call::Memory {}, || self.inner.memory())
    }

    fn counters(&self) -> Option<Counters> {
        self.inner.counters()
    }

    fn reset_persisting_l2(&self) -> Result<()> {
        self.queue(Call::ResetPersistingL2 {}, || self.inner.reset_persisting_l2())
    }

    fn alloc(&self, bytes: u64) -> Result<u64> {
        self.make(
            Call::Alloc { bytes },
            || self.inner.alloc(bytes),
            |live, &address| {
                live.allocations.insert(Address(address), bytes);
            },
        )
    }

    unsafe fn free(&self, address: u64) -> Result<()> {
        // SAFETY: the caller's promise is the inner driver's.
        let real = || unsafe { self.inner.free(address) };
        self.release(Call::Free { address: Address(address) }, real, |live| {
            live.allocations.remove(&Address(address));
        })
    }

    fn alloc_host(&self, bytes: usize) -> Result<NonNull<u8>> {
        self.make(
            Call::AllocHost { bytes },
            || self.inner.alloc_host(bytes),
            |live, &memory| {
                live.host_allocations.insert(host(memory.as_ptr()), bytes);
            },
        )
    }

    unsafe fn free_host(&self, memory: NonNull<u8>) -> Result<()> {
        // SAFETY: the caller's promise is the inner driver's.
        let real = || unsafe { self.inner.free_host(memory) };
        let memory = host(memory.as_ptr());
        self.release(Call::FreeHost { memory }, real, |live| {
            live.host_allocations.remove(&memory);
        })
    }

    unsafe fn copy_h2d(&self, dst: u64, src: *const u8, bytes: usize, stream: StreamHandle) -> Result<()> {
        let call = Call::CopyH2d { dst: Address(dst), src: host(src), bytes, stream };
        // SAFETY: the caller's promises are the inner driver's.
        self.queue(call, || unsafe { self.inner.copy_h2d(dst, src, bytes, stream) })
    }

    unsafe fn copy_d2h(&self, dst: *mut u8, src: u64, bytes: usize, stream: StreamHandle) -> Result<()> {
        let call = Call::CopyD2h { dst: host(dst), src: Address(src), bytes, stream };
        // SAFETY: the caller's promises are the inner driver's.
        self.queue(call, || unsafe { self.inner.copy_d2h(dst, src, bytes, stream) })
    }

    unsafe fn copy_d2d(&self, dst: u64, src: u64, bytes: u64, stream: StreamHandle) -> Result<()> {
        let call = Call::CopyD2d { dst: Address(dst), src: Address(src), bytes, stream };
        // SAFETY: the caller's promises are the inner driver's.
        self.queue(call, || unsafe { self.inner.copy_d2d(dst, src, bytes, stream) })
    }

    unsafe fn fill(&self, dst: u64, value: u8, bytes: u64, stream: StreamHandle) -> Result<()> {
        let call = Call::Fill { dst: Address(dst), value, bytes, stream };
        // SAFETY: the caller's promise is the inner driver's.
        self.queue(call, || unsafe { self.inner.fill(dst, value, bytes, stream) })
    }

    fn stream_create(&self) -> Result<StreamHandle> {
        self.make(
            Call::StreamCreate {},
            || self.inner.stream_create(),
            |live, &stream| {
                live.streams.insert(stream);
            },
        )
    }

    unsafe fn stream_destroy(&self, stream: StreamHandle) -> Result<()> {
        // SAFETY: the caller's promise is the inner driver's.
        let real = || unsafe { self.inner.stream_destroy(stream) };
        self.release(Call::StreamDestroy { stream }, real, |live| {
            live.streams.remove(&stream);
        })
    }

    unsafe fn stream_synchronize(&self, stream: StreamHandle) -> Result<()> {
        // SAFETY: the caller's promise is the inner driver's.
        self.call(Call::StreamSynchronize { stream }, Fails::After, || unsafe { self.inner.stream_synchronize(stream) })
    }

    fn event_create(&self) -> Result<EventHandle> {
        self.make(
            Call::EventCreate {},
            || self.inner.event_create(),
            |live, &event| {
                live.events.insert(event);
            },
        )
    }

    unsafe fn event_destroy(&self, event: EventHandle) -> Result<()> {
        // SAFETY: the caller's promise is the inner driver's.
        let real = || unsafe { self.inner.event_destroy(event) };
        self.release(Call::EventDestroy { event }, real, |live| {
            live.events.remove(&event);
        })
    }

    unsafe fn event_record(&self, event: EventHandle, stream: StreamHandle) -> Result<()> {
        // SAFETY: the caller's promise is the inner driver's.
        self.queue(Call::EventRecord { event, stream }, || unsafe { self.inner.event_record(event, stream) })
    }

    unsafe fn event_wait(&self, event: EventHandle, stream: StreamHandle) -> Result<()> {
        // SAFETY: the caller's promise is the inner driver's.
        self.queue(Call::EventWait { event, stream }, || unsafe { self.inner.event_wait(event, stream) })
    }

    unsafe fn event_query(&self, event: EventHandle) -> Result<bool> {
        // SAFETY: the caller's promise is the inner driver's.
        self.queue(Call::EventQuery { event }, || unsafe { self.inner.event_query(event) })
    }

    unsafe fn event_synchronize(&self, event: EventHandle) -> Result<()> {
        // SAFETY: the caller's promise is the inner driver's.
        self.queue(Call::EventSynchronize { event }, || unsafe { self.inner.event_synchronize(event) })
    }

    unsafe fn event_elapsed_ms(&self, start: EventHandle, end: EventHandle) -> Result<f32> {
        // SAFETY: the caller's promise is the inner driver's.
        self.queue(Call::EventElapsedMs { start, end }, || unsafe { self.inner.event_elapsed_ms(start, end) })
    }

    fn module_load(&self, ptx: &str) -> Result<ModuleHandle> {
        self.make(
            Call::ModuleLoad { bytes: ptx.len() },
            || self.inner.module_load(ptx),
            |live, &module| {
                live.modules.insert(module);
            },
        )
    }

    unsafe fn module_unload(&self, module: ModuleHandle) -> Result<()> {
        // SAFETY: the caller's promise is the inner driver's.
        let real = || unsafe { self.inner.module_unload(module) };
        self.release(Call::ModuleUnload { module }, real, |live| {
            live.modules.remove(&module);
        })
    }

    unsafe fn function(&self, module: ModuleHandle, name: &str) -> Result<FunctionHandle> {
        // SAFETY: the caller's promise is the inner driver's.
        let real = || unsafe { self.inner.function(module, name) };
        self.queue(Call::Function { module, name: name.to_owned() }, real)
    }

    unsafe fn launch(
        &self,
        function: FunctionHandle,
        shape: &LaunchShape,
        params: &[u8],
        stream: StreamHandle,
    ) -> Result<()> {
        let call = Call::Launch { function, shape: *shape, params: params.len(), stream };
        // SAFETY: the caller's promises are the inner driver's.
        self.queue(call, || unsafe { self.inner.launch(function, shape, params, stream) })
    }
}

fn host(memory: *const u8) -> Address {
    Address(memory.addr() as u64)
}
