//! An NVIDIA GPU, through the CUDA driver that is found at run time.
//!
//! One context a device, its *primary* one, so that memory and streams are shared with everything else in the process that
//! uses it (the CUDA runtime, cudarc, candle). It is current within a call, whichever thread calls, and afterwards the
//! thread has the context that it had. Releasing memory or a module waits for the whole context, so none must be dropped
//! while a stream is captured into a graph. Memory is plain device memory, never managed. `docs/adr/0004-host-binding.md` says why it is made so.

mod api;
mod context;
mod error;
mod facts;

use std::ffi::{CString, c_void};
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;

use self::api::{Api, CUdevice, CUevent, CUfunction, CUmodule, CUstream, JitOption};
use self::context::{Context, Entered};
use self::error::code;
use self::facts::{check, device, device_count, device_info, initialized, text, until_nul};
use super::{DeviceInfo, Driver, EventHandle, FunctionHandle, ModuleHandle, StreamHandle};
use crate::counters::Counters;
use crate::error::{Error, ErrorKind, Result, counted};
use crate::launch_shape::LaunchShape;

/// Bytes of compiler messages kept from a failed load.
const LOG_BYTES: usize = 16 * 1024;

/// How many CUDA devices there are.
///
/// # Errors
///
/// `Unavailable` where there is no driver or no device, with what was looked for; `DriverTooOld` where the driver lacks a
/// function that we need.
pub fn count() -> Result<u32> {
    device_count(initialized()?)
}

/// What device `ordinal` is and allows, without opening it.
///
/// # Errors
///
/// Those of [`count`], and `Unavailable` where there are fewer devices.
pub fn describe(ordinal: u32) -> Result<DeviceInfo> {
    let api = initialized()?;
    device_info(api, device(api, ordinal)?, ordinal)
}

/// An open CUDA device.
pub struct Cuda {
    api: &'static Api,
    device: CUdevice,
    context: Context,
    info: DeviceInfo,
    /// The error of the first call that found the context lost.
    lost: OnceLock<Error>,
}

impl Cuda {
    /// Opens CUDA device `ordinal`, counted from 0.
    ///
    /// # Errors
    ///
    /// Those of [`describe`], and what the driver answers when it makes the context: out of memory, or a device that
    /// another process has to itself.
    pub fn open(ordinal: u32) -> Result<Self> {
        let api = initialized()?;
        let device = device(api, ordinal)?;
        let info = device_info(api, device, ordinal)?;
        let mut context = ptr::null_mut();
        // SAFETY: `device` is one of the driver's, and `context` takes the result.
        let code = unsafe { (api.cuDevicePrimaryCtxRetain)(&mut context, device) };
        check(api, code, format_args!("cuDevicePrimaryCtxRetain(device {ordinal})"))?;
        Ok(Self { api, device, context: Context(context), info, lost: OnceLock::new() })
    }

    /// Makes the context current to this thread for a call that makes or queues something; an error on a lost device.
    fn enter(&self) -> Result<Entered> {
        match self.lost.get() {
            None => self.enter_to_release(),
            Some(cause) => {
                Err(cause.clone().while_doing("the device was lost earlier and this process cannot use it again"))
            }
        }
    }

    /// The same for a call that releases something or waits: tried also on a lost device. Where it fails, the calls of this
    /// kind go on without: their handles and addresses say of which context they are.
    fn enter_to_release(&self) -> Result<Entered> {
        self.context.enter(self.api).map_err(|(code, call)| self.failure(code, format_args!("{call}")))
    }

    fn check(&self, code: u32, call: fmt::Arguments<'_>) -> Result<()> {
        if code == code::SUCCESS { Ok(()) } else { Err(self.failure(code, call)) }
    }

    /// The error for a code that is none of success. The first that tells of a lost context is kept, and later ones end in it.
    #[cold]
    fn failure(&self, code: u32, call: fmt::Arguments<'_>) -> Error {
        let error = error::error(code, call, text(self.api, code));
        let cause =
            if error::is_sticky(code) { Some(self.lost.get_or_init(|| error.clone())) } else { self.lost.get() };
        match cause {
            Some(cause) if *cause != error => {
                let context = format!("{call}: {}; the device was lost earlier: {cause}", text(self.api, code));
                Error::new(cause.kind(), context)
            }
            _ => error,
        }
    }

    /// Waits for everything queued in the context: what releasing calls promise. CUDA's own free as it stands waits too, but
    /// does not promise to.
    fn drain(&self, entered: &Result<Entered>, call: &str) -> Result<()> {
        let api = entered.as_ref().map_err(Clone::clone)?;
        // SAFETY: has no preconditions but a current context.
        let code = unsafe { (api.cuCtxSynchronize)() };
        self.check(code, format_args!("cuCtxSynchronize before {call}"))
    }

    fn out_of_memory(&self, call: &str, bytes: u64) -> Error {
        let left = match self.memory() {
            Ok((free, total)) => format!("{free} of {total} are free", total = counted(total, "byte")),
            Err(_) => format!("the device has {}", counted(self.info.memory_bytes, "byte")),
        };
        let context = format!(
            "{call}({bytes}) on {}: out of memory: {left}; free buffers, or use a smaller size",
            self.info.name,
            bytes = counted(bytes, "byte")
        );
        Error::new(ErrorKind::OutOfMemory, context)
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // A failure to release cannot be acted upon: the process keeps the context a little longer.
        // SAFETY: gives back what `open` retained, once.
        let _ = unsafe { (self.api.cuDevicePrimaryCtxRelease_v2)(self.device) };
    }
}

impl fmt::Debug for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cuda")
            .field("ordinal", &self.info.ordinal)
            .field("name", &self.info.name)
            .finish_non_exhaustive()
    }
}

impl StreamHandle {
    fn raw(self) -> CUstream {
        self.0 as usize as CUstream
    }
}

impl EventHandle {
    fn raw(self) -> CUevent {
        self.0 as usize as CUevent
    }
}

// SAFETY: the CUDA driver's documentation promises what the trait asks for of allocations, order and copies. A wait that fails
// is tried in a second way; `stream_synchronize` says why nothing runs where both fail.
unsafe impl Driver for Cuda {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory(&self) -> Result<(u64, u64)> {
        let api = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both take the result.
        let code = unsafe { (api.cuMemGetInfo_v2)(&mut free, &mut total) };
        self.check(code, format_args!("cuMemGetInfo"))?;
        Ok((free as u64, total as u64))
    }

    fn counters(&self) -> Option<Counters> {
        None
    }

    fn reset_persisting_l2(&self) -> Result<()> {
        // Policies and what keeps lines by them came with compute capability 8.0.
        if self.info.compute_capability < (8, 0) {
            return Ok(());
        }
        let api = self.enter()?;
        // SAFETY: has no preconditions but a current context.
        let code = unsafe { (api.cuCtxResetPersistingL2Cache)() };
        // A part of a GPU may not have the call: there is nothing to wait for then.
        if code == code::NOT_SUPPORTED {
            return Ok(());
        }
        self.check(code, format_args!("cuCtxResetPersistingL2Cache"))
    }

    fn alloc(&self, bytes: u64) -> Result<u64> {
        let api = self.enter()?;
        let size = usize::try_from(bytes).map_err(|_| self.out_of_memory("cuMemAlloc", bytes))?;
        let mut address = 0;
        // SAFETY: `address` takes the result.
        match unsafe { (api.cuMemAlloc_v2)(&mut address, size) } {
            code::OUT_OF_MEMORY => Err(self.out_of_memory("cuMemAlloc", bytes)),
            // How the driver answers a size that no device could have.
            code::INVALID_VALUE if bytes > self.info.memory_bytes => Err(self.out_of_memory("cuMemAlloc", bytes)),
            code => {
                self.check(code, format_args!("cuMemAlloc({bytes})", bytes = counted(bytes, "byte"))).map(|()| address)
            }
        }
    }

    unsafe fn free(&self, address: u64) -> Result<()> {
        let entered = self.enter_to_release();
        let drained = self.drain(&entered, "cuMemFree");
        // SAFETY: the caller promises a live allocation that nothing will use. If the context was drained, nothing queued uses
        // it any more. If it could not be, it is lost or torn down, and nothing runs in it; or a stream is being captured,
        // and the driver refuses this call too and frees nothing.
        let code = unsafe { (self.api.cuMemFree_v2)(address) };
        drained.and(self.check(code, format_args!("cuMemFree({address:#x})")))
    }

    fn alloc_host(&self, bytes: usize) -> Result<NonNull<u8>> {
        let api = self.enter()?;
        let mut memory = ptr::null_mut();
        // Flags 0: cached by the host, not write-combined, so that reading it back is fast.
        // SAFETY: `memory` takes the result.
        let code = unsafe { (api.cuMemHostAlloc)(&mut memory, bytes, 0) };
        if code == code::OUT_OF_MEMORY {
            let context = format!(
                "cuMemHostAlloc({bytes}): the system gives no more page-locked memory; free some, or copy from \
                 pageable memory",
                bytes = counted(bytes, "byte")
            );
            return Err(Error::new(ErrorKind::OutOfMemory, context));
        }
        self.check(code, format_args!("cuMemHostAlloc({bytes})", bytes = counted(bytes, "byte")))?;
        let memory: NonNull<u8> = NonNull::new(memory)
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::Driver,
                    format!("cuMemHostAlloc({bytes}) gave no address", bytes = counted(bytes, "byte")),
                )
            })?
            .cast();
        // SAFETY: the driver has just allocated `bytes` bytes here for us alone.
        unsafe { memory.write_bytes(0, bytes) };
        Ok(memory)
    }

    unsafe fn free_host(&self, memory: NonNull<u8>) -> Result<()> {
        let entered = self.enter_to_release();
        let drained = self.drain(&entered, "cuMemFreeHost");
        // SAFETY: the caller promises memory from `alloc_host` that nothing will use; nothing queued uses it, by the cases of
        // `free`.
        let code = unsafe { (self.api.cuMemFreeHost)(memory.as_ptr().cast()) };
        drained.and(self.check(code, format_args!("cuMemFreeHost({memory:p})")))
    }

    unsafe fn copy_h2d(&self, dst: u64, src: *const u8, bytes: usize, stream: StreamHandle) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let api = self.enter()?;
        // SAFETY: the caller promises both ranges, and that the source stays as it is until the copy has run.
        let code = unsafe { (api.cuMemcpyHtoDAsync_v2)(dst, src.cast(), bytes, stream.raw()) };
        let StreamHandle(stream) = stream;
        self.check(
            code,
            format_args!(
                "cuMemcpyHtoDAsync({dst:#x} from {src:p}, {bytes}, stream {stream:#x})",
                bytes = counted(bytes, "byte")
            ),
        )
    }

    unsafe fn copy_d2h(&self, dst: *mut u8, src: u64, bytes: usize, stream: StreamHandle) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let api = self.enter()?;
        // SAFETY: the caller promises both ranges, and that nobody else uses the target until the copy has run.
        let code = unsafe { (api.cuMemcpyDtoHAsync_v2)(dst.cast(), src, bytes, stream.raw()) };
        let StreamHandle(stream) = stream;
        self.check(
            code,
            format_args!(
                "cuMemcpyDtoHAsync({dst:p} from {src:#x}, {bytes}, stream {stream:#x})",
                bytes = counted(bytes, "byte")
            ),
        )
    }

    unsafe fn copy_d2d(&self, dst: u64, src: u64, bytes: u64, stream: StreamHandle) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let api = self.enter()?;
        // SAFETY: the caller promises both ranges.
        let code = unsafe { (api.cuMemcpyDtoDAsync_v2)(dst, src, bytes as usize, stream.raw()) };
        let StreamHandle(stream) = stream;
        self.check(
            code,
            format_args!(
                "cuMemcpyDtoDAsync({dst:#x} from {src:#x}, {bytes}, stream {stream:#x})",
                bytes = counted(bytes, "byte")
            ),
        )
    }

    unsafe fn fill(&self, dst: u64, value: u8, bytes: u64, stream: StreamHandle) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let api = self.enter()?;
        // SAFETY: the caller promises the range.
        let code = unsafe { (api.cuMemsetD8Async)(dst, value, bytes as usize, stream.raw()) };
        let StreamHandle(stream) = stream;
        self.check(
            code,
            format_args!(
                "cuMemsetD8Async({dst:#x}, {value}, {bytes}, stream {stream:#x})",
                bytes = counted(bytes, "byte")
            ),
        )
    }

    fn stream_create(&self) -> Result<StreamHandle> {
        let api = self.enter()?;
        let mut stream = ptr::null_mut();
        // SAFETY: `stream` takes the result.
        let code = unsafe { (api.cuStreamCreate)(&mut stream, api::STREAM_NON_BLOCKING) };
        self.check(code, format_args!("cuStreamCreate"))?;
        Ok(StreamHandle(stream as usize as u64))
    }

    unsafe fn stream_destroy(&self, stream: StreamHandle) -> Result<()> {
        let _entered = self.enter_to_release();
        // SAFETY: the caller promises a live stream. The driver lets its work run to the end.
        let code = unsafe { (self.api.cuStreamDestroy_v2)(stream.raw()) };
        self.check(code, format_args!("cuStreamDestroy({:#x})", stream.0))
    }

    unsafe fn stream_synchronize(&self, stream: StreamHandle) -> Result<()> {
        // The handle says which context: this waits also where ours cannot be made current.
        let entered = self.enter_to_release();
        // SAFETY: the caller promises a live stream.
        let code = unsafe { (self.api.cuStreamSynchronize)(stream.raw()) };
        let waited = self.check(code, format_args!("cuStreamSynchronize({:#x})", stream.0));
        if waited.is_err() {
            // Copies of borrowed memory end with this wait, so another way is tried before the error is told. Where this one
            // fails as well, the context is lost or torn down: the driver has stopped its work and runs none again.
            let _ = self.drain(&entered, "cuStreamSynchronize is given up");
        }
        waited
    }

    fn event_create(&self) -> Result<EventHandle> {
        let api = self.enter()?;
        let mut event = ptr::null_mut();
        // SAFETY: `event` takes the result.
        let code = unsafe { (api.cuEventCreate)(&mut event, api::EVENT_DEFAULT) };
        self.check(code, format_args!("cuEventCreate"))?;
        Ok(EventHandle(event as usize as u64))
    }

    unsafe fn event_destroy(&self, event: EventHandle) -> Result<()> {
        let _entered = self.enter_to_release();
        // SAFETY: the caller promises a live event. The driver keeps what still waits for it.
        let code = unsafe { (self.api.cuEventDestroy_v2)(event.raw()) };
        self.check(code, format_args!("cuEventDestroy({:#x})", event.0))
    }

    unsafe fn event_record(&self, event: EventHandle, stream: StreamHandle) -> Result<()> {
        let api = self.enter()?;
        // SAFETY: the caller promises that both are live.
        let code = unsafe { (api.cuEventRecord)(event.raw(), stream.raw()) };
        self.check(code, format_args!("cuEventRecord({:#x} on stream {:#x})", event.0, stream.0))
    }

    unsafe fn event_wait(&self, event: EventHandle, stream: StreamHandle) -> Result<()> {
        let api = self.enter()?;
        // SAFETY: the caller promises that both are live.
        let code = unsafe { (api.cuStreamWaitEvent)(stream.raw(), event.raw(), 0) };
        self.check(code, format_args!("cuStreamWaitEvent(stream {:#x} for {:#x})", stream.0, event.0))
    }

    unsafe fn event_query(&self, event: EventHandle) -> Result<bool> {
        let api = self.enter()?;
        // SAFETY: the caller promises a live event.
        match unsafe { (api.cuEventQuery)(event.raw()) } {
            code::NOT_READY => Ok(false),
            code => self.check(code, format_args!("cuEventQuery({:#x})", event.0)).map(|()| true),
        }
    }

    unsafe fn event_synchronize(&self, event: EventHandle) -> Result<()> {
        let api = self.enter()?;
        // SAFETY: the caller promises a live event.
        let code = unsafe { (api.cuEventSynchronize)(event.raw()) };
        self.check(code, format_args!("cuEventSynchronize({:#x})", event.0))
    }

    unsafe fn event_elapsed_ms(&self, start: EventHandle, end: EventHandle) -> Result<f32> {
        let api = self.enter()?;
        let mut milliseconds = 0.0;
        // SAFETY: the caller promises that both are live; `milliseconds` takes the result.
        let code = unsafe { (api.cuEventElapsedTime)(&mut milliseconds, start.raw(), end.raw()) };
        let call = format_args!("cuEventElapsedTime({:#x} to {:#x})", start.0, end.0);
        match code {
            // Both events live, so an invalid one is one that was never recorded.
            code::INVALID_HANDLE => {
                Err(Error::new(ErrorKind::InvalidArgument, format!("{call}: never recorded; record both events first")))
            }
            code::NOT_READY => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("{call}: not passed yet; wait for both events first"),
            )),
            code => self.check(code, call).map(|()| milliseconds),
        }
    }

    fn module_load(&self, ptx: &str) -> Result<ModuleHandle> {
        let api = self.enter()?;
        let call = format!("cuModuleLoadDataEx(PTX of {})", counted(ptx.len(), "byte"));
        let text = CString::new(ptx).map_err(|_| {
            Error::new(ErrorKind::UnsupportedPtx, format!("{call}: the PTX has a NUL character in it; remove it"))
        })?;
        let mut log = vec![0_u8; LOG_BYTES];
        let mut options = [JitOption::CU_JIT_ERROR_LOG_BUFFER, JitOption::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), ptr::without_provenance_mut(LOG_BYTES)];
        let mut module: CUmodule = ptr::null_mut();
        // SAFETY: `text` ends in NUL, both arrays have two entries, the log has the size its option says, and `module` takes
        // the result.
        let code = unsafe {
            (api.cuModuleLoadDataEx)(
                &mut module,
                text.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        if code == code::SUCCESS {
            return Ok(ModuleHandle(module as usize as u64));
        }
        let log = until_nul(&log);
        if log.is_empty() {
            return Err(self.failure(code, format_args!("{call}")));
        }
        // Drivers before CUDA 11.1 had no code of its own for PTX that is too new.
        let code = if log.contains("Unsupported .version") { code::UNSUPPORTED_PTX_VERSION } else { code };
        let lines = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
        Err(self.failure(code, format_args!("{call}: {lines}")))
    }

    unsafe fn module_unload(&self, module: ModuleHandle) -> Result<()> {
        let entered = self.enter_to_release();
        let drained = self.drain(&entered, "cuModuleUnload");
        // SAFETY: the caller promises a live module that nothing will use; no launch of its functions is left, by the cases of
        // `free`.
        let code = unsafe { (self.api.cuModuleUnload)(module.0 as usize as CUmodule) };
        drained.and(self.check(code, format_args!("cuModuleUnload({:#x})", module.0)))
    }

    unsafe fn function(&self, module: ModuleHandle, name: &str) -> Result<FunctionHandle> {
        let api = self.enter()?;
        let entry = CString::new(name).map_err(|_| {
            Error::new(
                ErrorKind::InvalidArgument,
                format!("an entry has no NUL character in its name, as {name:?} has"),
            )
        })?;
        let mut function: CUfunction = ptr::null_mut();
        // SAFETY: the caller promises a live module; `entry` ends in NUL, and `function` takes the result.
        let code = unsafe { (api.cuModuleGetFunction)(&mut function, module.0 as usize as CUmodule, entry.as_ptr()) };
        self.check(code, format_args!("cuModuleGetFunction({name:?} of module {:#x})", module.0))?;
        Ok(FunctionHandle(function as usize as u64))
    }

    unsafe fn launch(
        &self,
        function: FunctionHandle,
        shape: &LaunchShape,
        params: &[u8],
        stream: StreamHandle,
    ) -> Result<()> {
        let api = self.enter()?;
        let mut size = params.len();
        // The driver copies the parameters before the call returns.
        let mut extra = [
            api::LAUNCH_PARAM_BUFFER_POINTER,
            params.as_ptr().cast_mut().cast(),
            api::LAUNCH_PARAM_BUFFER_SIZE,
            (&raw mut size).cast(),
            api::LAUNCH_PARAM_END,
        ];
        let extra = if params.is_empty() { ptr::null_mut() } else { extra.as_mut_ptr() };
        let LaunchShape { grid, block, dynamic_shared } = *shape;
        let entry = function.0 as usize as CUfunction;
        let kernel_params = ptr::null_mut();
        let [gx, gy, gz] = grid;
        let [bx, by, bz] = block;
        // SAFETY: the caller promises the function, the stream, the layout of the parameters and every address in them.
        let code = unsafe {
            (api.cuLaunchKernel)(entry, gx, gy, gz, bx, by, bz, dynamic_shared, stream.raw(), kernel_params, extra)
        };
        self.check(
            code,
            format_args!(
                "cuLaunchKernel({:#x}, grid {grid:?}, block {block:?}, {dynamic_shared} of dynamic shared memory, {} of parameters, stream {:#x})",
                function.0,
                counted(params.len(), "byte"),
                stream.0, dynamic_shared = counted(dynamic_shared, "byte")
            ),
        )
    }
}

#[cfg(test)]
mod tests;
