//! Drives an NVIDIA GPU through the CUDA driver that is found at run time.
//!
//! Each device has one context, its *primary* one, so memory and streams are shared with everything
//! else in the process that uses it (the CUDA runtime, cudarc, candle). It is current within a
//! call, whichever thread calls, and afterwards the thread has its former context. Releasing memory
//! or a module waits for the whole context; while this crate captures a stream of it, the release
//! waits for the end of the capture (`graphs.rs`). Memory is plain device memory, never managed.
//! `docs/adr/0004-host-binding.md` has the reasons.

mod api;
mod context;
mod error;
mod facts;
mod graphs;
mod green;
mod host;
#[cfg(target_os = "linux")]
mod mapping;
#[cfg(not(target_os = "linux"))]
#[path = "no_mapping.rs"]
mod mapping;
mod memory;
mod modules;
mod peers;
mod pool;
#[cfg(all(unix, feature = "distributed"))]
pub(crate) mod processes;
mod streams;

use std::fmt;
use std::sync::{Mutex, OnceLock};

use self::api::{Api, CUdevice, CUevent, CUfunction, CUgraph, CUgraphExec, CUmodule, CUstream};
use self::context::{Context, Entered};
use self::error::code;
use self::facts::{device, device_count, device_info, has_pools, initialized, text};
use self::graphs::Captures;
use self::green::Part;
use self::peers::Peer;
use self::pool::Pool;
use super::{
    DeviceInfo, Driver, EventHandle, FunctionHandle, GraphExecHandle, GraphHandle, Memory, ModuleHandle, StreamHandle,
};
use crate::counters::Counters;
use crate::error::{Error, ErrorKind, Result, counted};

/// Returns the number of CUDA devices.
///
/// # Errors
///
/// `Unavailable` if there is no driver or no device, with the libraries that were tried;
/// `DriverTooOld` if the driver lacks a function that we need.
pub fn count() -> Result<u32> {
    device_count(initialized()?)
}

/// Returns the properties and limits of device `ordinal` without opening it.
///
/// # Errors
///
/// As [`count`]; `Unavailable` also if there are fewer devices.
pub fn describe(ordinal: u32) -> Result<DeviceInfo> {
    let api = initialized()?;
    device_info(api, device(api, ordinal)?, ordinal)
}

/// Returns whether kernels of device `ordinal` can use the memory of device `peer`, without opening
/// either.
///
/// # Errors
///
/// As [`describe`].
pub fn can_reach(ordinal: u32, peer: u32) -> Result<bool> {
    let api = initialized()?;
    peers::can_reach(api, device(api, ordinal)?, device(api, peer)?)
}

/// Makes the primary context of device `ordinal` current to this thread while `work` runs: the CUDA
/// runtime, and libraries over it, then take the device for the current one.
///
/// # Errors
///
/// As [`Cuda::open`].
#[cfg(all(unix, feature = "distributed"))]
pub(crate) fn with_current<R>(ordinal: u32, work: impl FnOnce() -> R) -> Result<R> {
    let api = initialized()?;
    let device = device(api, ordinal)?;
    let context = Context::retain(api, device)?;
    let entered = context.enter(api).map_err(|(code, call)| error::error(code, call, text(api, code)));
    let result = entered.map(|_entered| work());
    // SAFETY: it stands against the retain, and the context was left.
    unsafe { Context::release(api, device) };
    result
}

/// An open CUDA device.
pub struct Cuda {
    api: &'static Api,
    device: CUdevice,
    context: Context,
    info: DeviceInfo,
    /// `None` where the device supports none.
    pool: Option<Pool>,
    /// The error of the first call that found the context lost.
    lost: OnceLock<Error>,
    /// Shared by all devices that were opened over this context.
    captures: &'static Mutex<Captures>,
    peers: Mutex<Vec<Peer>>,
    parts: Mutex<Vec<Part>>,
}

impl Cuda {
    /// Opens CUDA device `ordinal`, counted from 0.
    ///
    /// # Errors
    ///
    /// As [`describe`], and the driver's error when it makes the context: out of memory, or a
    /// device in another process's exclusive use.
    pub fn open(ordinal: u32) -> Result<Self> {
        let api = initialized()?;
        let device = device(api, ordinal)?;
        let info = device_info(api, device, ordinal)?;
        let context = Context::retain(api, device)?;
        let captures = Captures::of(context.0);
        let mut cuda = Self {
            api,
            device,
            context,
            info,
            pool: None,
            lost: OnceLock::new(),
            captures,
            peers: Mutex::default(),
            parts: Mutex::default(),
        };
        if has_pools(api, device)? {
            cuda.pool = Some(cuda.make_pool()?);
        }
        Ok(cuda)
    }

    /// Makes the context current to this thread for a call that makes or queues something. A lost
    /// device is an error.
    fn enter(&self) -> Result<Entered> {
        match self.lost.get() {
            None => self.enter_to_release(),
            Some(cause) => {
                Err(cause.clone().while_doing("the device was lost earlier and this process cannot use it again"))
            }
        }
    }

    /// Does the same for a call that releases something or waits, even on a lost device. If it
    /// fails, such calls continue without it: their handles and addresses identify their context.
    fn enter_to_release(&self) -> Result<Entered> {
        self.context.enter(self.api).map_err(|(code, call)| self.failure(code, format_args!("{call}")))
    }

    fn check(&self, code: u32, call: fmt::Arguments<'_>) -> Result<()> {
        if code == code::SUCCESS { Ok(()) } else { Err(self.failure(code, call)) }
    }

    /// Returns the error for a code that is not success. The first code that reports a lost context
    /// is kept, and later errors end with it.
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

    /// Waits for all work that is queued in the context, as releasing calls promise. Today CUDA's
    /// own free also waits, but does not promise to.
    fn drain(&self, entered: &Result<Entered>, call: &str) -> Result<()> {
        let api = entered.as_ref().map_err(Clone::clone)?;
        // SAFETY: it only requires a current context.
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
        self.destroy_pool();
        self.destroy_parts();
        self.release_peers();
        // SAFETY: `open` retained it, and this is the end.
        unsafe { Context::release(self.api, self.device) };
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

/// The handles as the CUDA driver has them.
macro_rules! raw {
    ($($handle:ident as $raw:ident;)*) => {$(
        impl $handle {
            fn raw(self) -> $raw {
                self.0 as usize as $raw
            }
        }
    )*};
}

raw! {
    StreamHandle as CUstream;
    EventHandle as CUevent;
    ModuleHandle as CUmodule;
    FunctionHandle as CUfunction;
    GraphHandle as CUgraph;
    GraphExecHandle as CUgraphExec;
}

// SAFETY: all parts use one context, whose handles and addresses the CUDA driver keeps.
unsafe impl Driver for Cuda {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn counters(&self) -> Option<Counters> {
        None
    }
}

#[cfg(test)]
mod tests;
