//! The primary context of a device, and making it current for the length of a call.
//!
//! Each thread has a current context, and the CUDA runtime's current device follows it. A caller
//! who uses the runtime too (cust, candle, a C library) must find it as it was, so ours is put on
//! the thread's stack of contexts where another one is current, or none, and taken off again.
//!
//! That costs about 30 ns a call, and asking which one is current 8, where the driver takes 2300 to
//! queue a launch (H100, driver 580; `benches/launch.rs` measures both). A thread that has the
//! primary context current, as the runtime and cudarc make it, pays for asking only. Leaving ours
//! behind would save the 30 ns of other threads, and change their current device.

use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr;

use super::api::{Api, CUcontext};
use super::error::code;

/// The primary context of a device, retained.
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
    /// The stack is the thread's: this stays on it.
    of_thread: PhantomData<*const ()>,
}

impl Context {
    /// Makes the context current to this thread until the result is dropped; else the code and the
    /// call that gave it.
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
            // The call that this ends has reported what there was to report: a pop fails only with
            // an earlier error.
            // SAFETY: `popped` takes the result; the top of this thread's stack is what `enter`
            // pushed.
            let _ = unsafe { (self.api.cuCtxPopCurrent_v2)(&mut popped) };
        }
    }
}
