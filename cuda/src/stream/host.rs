//! Functions of the host in streams.

use std::ffi::c_uint;

use warpstride::driver::StreamHandle;

use super::{Stream, stream};
use crate::arguments::{Handle, Opaque};
use crate::code::{CUresult, Failure, Outcome, code};
use crate::export::{export, within_work};
use crate::graph::{HostFunction, Work};
use crate::process::Gpu;

/// A function that is told how the work before it ended.
type Callback = Option<unsafe extern "C" fn(Handle<Stream>, CUresult, Opaque)>;

/// Queues a call of a C function.
pub(crate) fn call(gpu: &Gpu, soft: StreamHandle, function: HostFunction, data: Opaque) -> warpstride::Result<()> {
    let call = move || {
        within_work(|| {
            // SAFETY: the caller of the C function that queued it promises a function that takes
            // this data, until it has run.
            unsafe { function(data) }
        });
        Ok(())
    };
    gpu.soft.call_host(soft, "calling a function of the host", None, Box::new(call))
}

/// Refuses the null pointer to a function.
pub(crate) fn given<T>(function: Option<T>) -> Outcome<T> {
    function.ok_or_else(|| Failure::value("the pointer to the function is null; pass the address of one"))
}

export! {
    /// Queues a call of a function of the host, which must not call CUDA.
    fn cuLaunchHostFunc, per_thread cuLaunchHostFunc_ptsz (
        on: Handle<Stream>, function: Option<HostFunction>, data: Opaque,
    ) {
        let function = given(function)?;
        stream(on)?.queue_work(Work::Host { function, data })
    }

    /// Queues a call of a function of the host, which is told that the work before it succeeded:
    /// after a failure, no work runs.
    fn cuStreamAddCallback, per_thread cuStreamAddCallback_ptsz (
        on: Handle<Stream>, callback: Callback, data: Opaque, flags: c_uint,
    ) {
        let callback = given(callback)?;
        if flags != 0 {
            return Err(Failure::value(format!("the flags of a callback must be 0, and are {flags:#x}")));
        }
        let call = move || {
            within_work(|| {
                // SAFETY: the caller promises a function that takes this data, until it has run.
                unsafe { callback(on, code::SUCCESS, data) }
            });
            Ok(())
        };
        stream(on)?.queue_now("a callback", |gpu, soft| {
            gpu.soft.call_host(soft, "calling a callback of the host", None, Box::new(call))
        })
    }
}
