//! Makes the primary context of a device current for the length of a call.
//!
//! Each thread has a current context, and the CUDA runtime's current device follows it. A caller
//! that also uses the runtime (cust, candle, a C library) must find its context unchanged. So if
//! ours is not current, it is pushed on the thread's stack of contexts and popped afterwards.
//!
//! That costs little beside a launch (`benches/record/experiments.md`). A thread that has the
//! primary context current, as the runtime and cudarc make it, pays for a query only. Leaving ours
//! current would save other threads the cost, but change their current device.

use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr;

use super::api::{Api, CUcontext, CUdevice};
use super::error::code;
use super::facts::check;
use crate::error::Result as Outcome;

/// A retained primary context of a device.
pub(super) struct Context(pub(super) CUcontext);

// SAFETY: a context belongs to the process; any number of threads may make it current and use it at
// the same time.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// The driver's functions while our context is current to this thread.
pub(super) struct Entered {
    api: &'static Api,
    pushed: bool,
    /// The stack belongs to the thread, so this must stay on it.
    of_thread: PhantomData<*const ()>,
}

impl Context {
    /// Retains the primary context of a device: see [`Context::release`].
    pub(super) fn retain(api: &Api, device: CUdevice) -> Outcome<Self> {
        let mut context = ptr::null_mut();
        // SAFETY: `device` is one of the driver's, and `context` takes the result.
        let code = unsafe { (api.cuDevicePrimaryCtxRetain)(&mut context, device) };
        check(api, code, format_args!("cuDevicePrimaryCtxRetain(device {device})"))?;
        Ok(Self(context))
    }

    /// Gives up the primary context of a device. A failure allows no reaction: the process keeps
    /// the context a little longer.
    ///
    /// # Safety
    ///
    /// - It stands against one [`Context::retain`] of the device, whose result is not used again.
    pub(super) unsafe fn release(api: &Api, device: CUdevice) {
        // SAFETY: as the caller promises.
        let _ = unsafe { (api.cuDevicePrimaryCtxRelease_v2)(device) };
    }

    /// Makes the context current to this thread until the result is dropped. The error has the code
    /// and the call that gave it.
    pub(super) fn enter(&self, api: &'static Api) -> Result<Entered, (u32, &'static str)> {
        let mut current = ptr::null_mut();
        // SAFETY: `current` takes the result.
        let code = unsafe { (api.cuCtxGetCurrent)(&mut current) };
        if code != code::SUCCESS {
            return Err((code, "cuCtxGetCurrent"));
        }
        let pushed = current != self.0;
        if pushed {
            // SAFETY: the context is retained as long as `self` lives.
            let code = unsafe { (api.cuCtxPushCurrent_v2)(self.0) };
            if code != code::SUCCESS {
                return Err((code, "cuCtxPushCurrent"));
            }
        }
        Ok(Entered { api, pushed, of_thread: PhantomData })
    }
}

impl Deref for Entered {
    type Target = Api;

    fn deref(&self) -> &Api {
        self.api
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if self.pushed {
            let mut popped = ptr::null_mut();
            // The call that this ends has already reported its errors: a pop fails only with an
            // earlier one. SAFETY: `popped` takes the result; the top of this thread's stack is
            // what `enter` pushed.
            let _ = unsafe { (self.api.cuCtxPopCurrent_v2)(&mut popped) };
        }
    }
}
