//! Contexts: primary ones and others, and the stack of each thread.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use warpstride::driver::Peers as _;

use crate::arguments::{Handle, In, Opaque, Out};
use crate::code::{Failure, Outcome, code};
use crate::export::export;
use crate::process::{Gpu, Process, process};
use crate::stream::Streams;

/// A context.
pub(crate) struct Context {
    /// Its own handle.
    pub(crate) handle: Handle<Context>,
    pub(crate) device: c_int,
    pub(crate) flags: AtomicU32,
    pub(crate) is_primary: bool,
    /// Its default streams, and the order of its others.
    pub(crate) streams: Streams,
    limits: Mutex<[usize; LIMITS.len()]>,
    cache_config: AtomicU32,
    shared_config: AtomicU32,
}

/// The parameters of a context, as `CUctxCreateParams`: some multiprocessors, or the data of a
/// graphics API.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Parameters {
    affinities: Opaque,
    count: c_int,
    graphics: Opaque,
}

impl Parameters {
    fn are_none(&self) -> bool {
        self.affinities.is_null() && self.count == 0 && self.graphics.is_null()
    }
}

/// A device's primary context, of which there is one as long as a call retains it.
#[derive(Default)]
pub(crate) struct Primary(Mutex<Retained>);

#[derive(Default)]
struct Retained {
    live: Option<Handle<Context>>,
    times: u32,
    flags: c_uint,
}

/// The limits of `CUlimit` from 0 on, with what a Hopper GPU begins with: the stack of a thread,
/// the buffer of `printf`, the heap, two of dynamic parallelism, the bytes that the L2 cache
/// fetches, and those that persist in it.
const LIMITS: [usize; 7] = [1024, 8_650_752, 8_388_608, 0, 2048, 64, 0];
/// The limit of the heap from which kernels allocate.
const HEAP: usize = 2;
/// The limit whose number no device without dynamic parallelism has.
const SYNC_DEPTH: usize = 3;

/// The versions of the API that a context may have.
const API_VERSION: c_uint = 3020;

/// The flags that a context may have: how a thread waits, mapped host memory, and others that
/// change nothing here.
const KNOWN_FLAGS: c_uint = 0xff;

thread_local! {
    /// The current context, or null. It has nothing to drop, so functions that C calls at the end
    /// of a thread or of the process still find it.
    static CURRENT: Cell<Handle<Context>> = const { Cell::new(Handle::NULL) };
    /// The contexts below it on the stack. They are gone once the thread ends.
    static BELOW: RefCell<Vec<Handle<Context>>> = const { RefCell::new(Vec::new()) };
}

/// Puts a context on top of the thread's stack.
fn push(context: Handle<Context>) {
    let before = CURRENT.replace(context);
    if !before.is_null() {
        // A thread that ends forgets it.
        let _ = BELOW.try_with(|below| below.borrow_mut().push(before));
    }
}

/// Takes the context from the top of the thread's stack; null if the stack is empty.
fn pop() -> Handle<Context> {
    let next = BELOW.try_with(|below| below.borrow_mut().pop()).ok().flatten();
    CURRENT.replace(next.unwrap_or(Handle::NULL))
}

/// Returns the calling thread's current context.
pub(crate) fn current() -> Outcome<Arc<Context>> {
    let process = process()?;
    let top = CURRENT.get();
    if top.is_null() {
        return Err(Failure::new(code::INVALID_CONTEXT, "the thread has no current context; make one current first"));
    }
    process.contexts.find(top).ok_or_else(|| {
        Failure::new(code::CONTEXT_IS_DESTROYED, "the thread's current context was destroyed; make another one current")
    })
}

impl Context {
    fn make(process: &Process, device: c_int, flags: c_uint, is_primary: bool) -> Outcome<Handle<Self>> {
        let streams = Streams::new(process.gpu(device)?)?;
        Ok(process.contexts.add_with(|handle| Self {
            handle,
            device,
            flags: AtomicU32::new(flags),
            is_primary,
            streams,
            limits: Mutex::new(LIMITS),
            cache_config: AtomicU32::new(0),
            shared_config: AtomicU32::new(0),
        }))
    }

    /// Returns the context's GPU.
    pub(crate) fn gpu(&self) -> Outcome<&'static Gpu> {
        process()?.gpu(self.device)
    }

    /// Ends a context, with all that was made in it.
    fn end(process: &Process, handle: Handle<Self>) -> Outcome {
        let context = process.contexts.remove(handle)?;
        crate::stream::end_of(process, &context);
        crate::module::end_of(process, &context);
        crate::memory::end_of(process, &context);
        // The contexts of a device share the heap of its kernels.
        if process.contexts.all().iter().all(|(_, other)| other.device != context.device) {
            context.gpu()?.soft.end_heap();
        }
        Ok(())
    }
}

/// Returns the context that a handle names, or the current one for null.
fn named(handle: Handle<Context>) -> Outcome<Arc<Context>> {
    if handle.is_null() { current() } else { live(handle) }
}

fn live(handle: Handle<Context>) -> Outcome<Arc<Context>> {
    process()?.contexts.find(handle).ok_or_else(|| {
        Failure::new(code::INVALID_CONTEXT, format!("{handle:?} is not a live context; use one until it is destroyed"))
    })
}

fn check_flags(flags: c_uint) -> Outcome {
    // The low bits name one way to wait.
    if flags & !KNOWN_FLAGS == 0 && matches!(flags & 7, 0 | 1 | 2 | 4) {
        return Ok(());
    }
    Err(Failure::value(format!("{flags:#x} are not flags of a context; CUDA's documentation lists them")))
}

fn limit_of(limit: c_uint) -> Outcome<usize> {
    match limit as usize {
        SYNC_DEPTH => Err(Failure::new(code::UNSUPPORTED_LIMIT, "the device has no limit of the depth of waits")),
        known if known < LIMITS.len() => Ok(known),
        _ => Err(Failure::value(format!("{limit} is not a limit of a context"))),
    }
}

impl Primary {
    fn lock(&self) -> std::sync::MutexGuard<'_, Retained> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn create(context: Out<Handle<Context>>, flags: c_uint, device: c_int) -> Outcome {
    context.check()?;
    check_flags(flags)?;
    let made = Context::make(process()?, device, flags, false)?;
    push(made);
    context.set(made)
}

export! {
    /// Retains the primary context of a device.
    fn cuDevicePrimaryCtxRetain(context: Out<Handle<Context>>, device: c_int) {
        context.check()?;
        let process = process()?;
        let mut primary = process.gpu(device)?.primary.lock();
        let handle = match primary.live {
            Some(handle) => handle,
            None => Context::make(process, device, primary.flags, true)?,
        };
        primary.live = Some(handle);
        primary.times = primary.times.saturating_add(1);
        context.set(handle)
    }

    /// Gives up the primary context of a device; the last one ends it.
    fn cuDevicePrimaryCtxRelease_v2 as cuDevicePrimaryCtxRelease(device: c_int) {
        let process = process()?;
        let mut primary = process.gpu(device)?.primary.lock();
        let Some(handle) = primary.live.filter(|_| primary.times > 0) else {
            return Err(Failure::new(code::INVALID_CONTEXT, "the primary context was released more often than retained"));
        };
        primary.times -= 1;
        if primary.times == 0 {
            primary.live = None;
            drop(primary);
            return Context::end(process, handle);
        }
        Ok(())
    }

    /// Ends what was made in the primary context of a device. The next call that retains it makes a
    /// new one.
    fn cuDevicePrimaryCtxReset_v2 as cuDevicePrimaryCtxReset(device: c_int) {
        let process = process()?;
        let mut primary = process.gpu(device)?.primary.lock();
        let live = primary.live.take();
        primary.times = 0;
        drop(primary);
        live.map_or(Ok(()), |handle| Context::end(process, handle))
    }

    /// Returns the flags of a device's primary context, and whether there is one.
    fn cuDevicePrimaryCtxGetState(device: c_int, flags: Out<c_uint>, active: Out<c_int>) {
        let primary = process()?.gpu(device)?.primary.lock();
        flags.set(primary.flags)?;
        active.set(c_int::from(primary.live.is_some()))
    }

    /// Sets the flags of a device's primary context.
    fn cuDevicePrimaryCtxSetFlags_v2 as cuDevicePrimaryCtxSetFlags(device: c_int, flags: c_uint) {
        let process = process()?;
        check_flags(flags)?;
        let mut primary = process.gpu(device)?.primary.lock();
        primary.flags = flags;
        if let Some(context) = primary.live.and_then(|handle| process.contexts.find(handle)) {
            context.flags.store(flags, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Makes a context, and makes it current.
    fn cuCtxCreate_v2 as cuCtxCreate(context: Out<Handle<Context>>, flags: c_uint, device: c_int) {
        create(context, flags, device)
    }

    /// Makes a context, and makes it current; limits of its multiprocessors are not supported.
    fn cuCtxCreate_v3(
        context: Out<Handle<Context>>, affinities: Opaque, count: c_int, flags: c_uint, device: c_int,
    ) {
        if count > 0 || !affinities.is_null() {
            return Err(Failure::unsupported("the software GPU limits no context to some multiprocessors"));
        }
        create(context, flags, device)
    }

    /// Makes a context, and makes it current; parameters beyond the flags are not supported.
    fn cuCtxCreate_v4(context: Out<Handle<Context>>, parameters: In<Parameters>, flags: c_uint, device: c_int) {
        if !parameters.is_null() && !parameters.get()?.are_none() {
            return Err(Failure::unsupported("the software GPU has no contexts with parameters"));
        }
        create(context, flags, device)
    }

    /// Ends a context that is not a primary one.
    fn cuCtxDestroy_v2 as cuCtxDestroy(context: Handle<Context>) {
        let process = process()?;
        if live(context)?.is_primary {
            return Err(Failure::new(code::INVALID_CONTEXT, "a primary context is not destroyed but released"));
        }
        if CURRENT.get() == context {
            pop();
        }
        Context::end(process, context)
    }

    /// Makes a context current, on top of the thread's stack.
    fn cuCtxPushCurrent_v2 as cuCtxPushCurrent(context: Handle<Context>) {
        live(context)?;
        push(context);
        Ok(())
    }

    /// Takes the context from the top of the thread's stack.
    fn cuCtxPopCurrent_v2 as cuCtxPopCurrent(context: Out<Handle<Context>>) {
        process()?;
        let popped = pop();
        if popped.is_null() {
            return Err(Failure::new(code::INVALID_CONTEXT, "the thread has no current context"));
        }
        context.set_if_wanted(popped);
        Ok(())
    }

    /// Puts a context in the place of the current one; null takes the current one away.
    fn cuCtxSetCurrent(context: Handle<Context>) {
        process()?;
        if !context.is_null() {
            live(context)?;
        }
        pop();
        if !context.is_null() {
            push(context);
        }
        Ok(())
    }

    /// Returns the current context, or null.
    fn cuCtxGetCurrent(context: Out<Handle<Context>>) {
        process()?;
        context.set(CURRENT.get())
    }

    /// Returns the device of the current context.
    fn cuCtxGetDevice(device: Out<c_int>) {
        device.set(current()?.device)
    }

    /// Returns the device of a context, or of the current one.
    fn cuCtxGetDevice_v2(device: Out<c_int>, context: Handle<Context>) {
        device.set(named(context)?.device)
    }

    /// Returns the flags of the current context.
    fn cuCtxGetFlags(flags: Out<c_uint>) {
        flags.set(current()?.flags.load(Ordering::Relaxed))
    }

    /// Sets the flags of the current context.
    fn cuCtxSetFlags(flags: c_uint) {
        check_flags(flags)?;
        current()?.flags.store(flags, Ordering::Relaxed);
        Ok(())
    }

    /// Returns a number that no other context of the process has.
    fn cuCtxGetId(context: Handle<Context>, id: Out<u64>) {
        id.set(named(context)?.handle.0)
    }

    /// Returns the version of the API that the context was made with.
    fn cuCtxGetApiVersion(context: Handle<Context>, version: Out<c_uint>) {
        named(context)?;
        version.set(API_VERSION)
    }

    /// Waits for all work of the current context.
    fn cuCtxSynchronize() {
        crate::stream::wait_for_context(&*current()?)
    }

    /// Waits for all work of a context.
    fn cuCtxSynchronize_v2(context: Handle<Context>) {
        crate::stream::wait_for_context(&*named(context)?)
    }

    /// Sets a limit. Only that of the heap changes something on the software GPU, for all contexts
    /// of the device.
    fn cuCtxSetLimit(limit: c_uint, value: usize) {
        let limit = limit_of(limit)?;
        let context = current()?;
        if limit == HEAP {
            context.gpu()?.soft.set_heap_limit(value as u64)?;
        }
        context.limits.lock().unwrap_or_else(PoisonError::into_inner)[limit] = value;
        Ok(())
    }

    /// Returns a limit.
    fn cuCtxGetLimit(value: Out<usize>, limit: c_uint) {
        let limit = limit_of(limit)?;
        let found = current()?.limits.lock().unwrap_or_else(PoisonError::into_inner)[limit];
        value.set(found)
    }

    /// Returns the preference between shared memory and the L1 cache.
    fn cuCtxGetCacheConfig(config: Out<c_uint>) {
        config.set(current()?.cache_config.load(Ordering::Relaxed))
    }

    /// Sets that preference, which changes nothing on the software GPU.
    fn cuCtxSetCacheConfig(config: c_uint) {
        current()?.cache_config.store(config, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the width of the banks of shared memory.
    fn cuCtxGetSharedMemConfig(config: Out<c_uint>) {
        config.set(current()?.shared_config.load(Ordering::Relaxed))
    }

    /// Sets that width, which no GPU since Maxwell changes.
    fn cuCtxSetSharedMemConfig(config: c_uint) {
        current()?.shared_config.store(config, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the least and the greatest priority of streams.
    fn cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) {
        current()?;
        least.set_if_wanted(0);
        greatest.set_if_wanted(crate::stream::GREATEST_PRIORITY);
        Ok(())
    }

    /// Resets the lines that persist in the L2 cache, which the software GPU does not have.
    fn cuCtxResetPersistingL2Cache() {
        current().map(drop)
    }

    /// Lets the current context use the memory of another one's device.
    fn cuCtxEnablePeerAccess(peer: Handle<Context>, flags: c_uint) {
        let (current, peer) = (current()?, live(peer)?);
        if flags != 0 {
            return Err(Failure::value("the flags of peer access must be 0"));
        }
        if current.device == peer.device {
            return Err(Failure::new(code::INVALID_DEVICE, "a device is not its own peer"));
        }
        let number = u32::try_from(current.device).unwrap_or(u32::MAX);
        Ok(peer.gpu()?.soft.share_with(number)?)
    }

    /// Ends that use, which the software GPU keeps open.
    fn cuCtxDisablePeerAccess(peer: Handle<Context>) {
        current()?;
        live(peer).map(drop)
    }

    /// Takes the place of `cuCtxCreate` and `cuCtxGetCurrent` in programs of CUDA 3.
    fn cuCtxAttach(context: Out<Handle<Context>>, _flags: c_uint) {
        context.set(current()?.handle)
    }

    /// Takes the place of `cuCtxDestroy` in programs of CUDA 3.
    fn cuCtxDetach(context: Handle<Context>) {
        live(context).map(drop)
    }

    /// Returns whether a context can be limited to some multiprocessors: it cannot.
    fn cuDeviceGetExecAffinitySupport(supported: Out<c_int>, _kind: c_uint, device: c_int) {
        process()?.gpu(device)?;
        supported.set(0)
    }
}
