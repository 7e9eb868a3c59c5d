//! Streams and events.

use std::ptr;

use super::error::code;
use super::{Cuda, api};
use crate::driver::{EventHandle, Multiprocessors, StreamHandle, Streams};
use crate::error::{Result, refuse};

impl Cuda {
    fn event(&self, flags: u32) -> Result<EventHandle> {
        let api = self.enter()?;
        let mut event = ptr::null_mut();
        // SAFETY: `event` takes the result.
        let code = unsafe { (api.cuEventCreate)(&mut event, flags) };
        self.check(code, format_args!("cuEventCreate({flags})"))?;
        Ok(EventHandle(event as usize as u64))
    }
}

// SAFETY: the CUDA driver's documentation promises the order that the trait requires. A wait that
// fails is tried in a second way; `stream_synchronize` says why nothing runs if both fail.
unsafe impl Streams for Cuda {
    fn stream_create(&self) -> Result<StreamHandle> {
        let api = self.enter()?;
        let mut stream = ptr::null_mut();
        // SAFETY: `stream` takes the result.
        let code = unsafe { (api.cuStreamCreate)(&mut stream, api::STREAM_NON_BLOCKING) };
        self.check(code, format_args!("cuStreamCreate"))?;
        Ok(StreamHandle(stream as usize as u64))
    }

    fn stream_create_on(&self, of: Multiprocessors) -> Result<StreamHandle> {
        self.stream_on(of)
    }

    unsafe fn stream_destroy(&self, stream: StreamHandle) -> Result<()> {
        let _entered = self.enter_to_release();
        // SAFETY: the caller promises a live stream. The driver lets its work run to the end.
        let code = unsafe { (self.api.cuStreamDestroy_v2)(stream.raw()) };
        self.check(code, format_args!("cuStreamDestroy({:#x})", stream.0))
    }

    unsafe fn stream_synchronize(&self, stream: StreamHandle) -> Result<()> {
        // The handle identifies the context, so this waits even if ours cannot be made current.
        let entered = self.enter_to_release();
        // SAFETY: the caller promises a live stream.
        let code = unsafe { (self.api.cuStreamSynchronize)(stream.raw()) };
        let waited = self.check(code, format_args!("cuStreamSynchronize({:#x})", stream.0));
        // A stream has no copies of host memory when its capture begins, and captured ones run by
        // launches alone. So there is nothing to wait for if a capture is the reason, and a wait
        // for the context would break the captures of other streams.
        let captured = (code::STREAM_CAPTURE_UNSUPPORTED..=code::STREAM_CAPTURE_WRONG_THREAD).contains(&code);
        if waited.is_err() && !captured {
            // Copies of borrowed memory end with this wait, so a second way is tried before the
            // error is returned. If it fails too, the context is lost or torn down: the driver has
            // stopped its work and never resumes it.
            let _ = self.drain(&entered, "cuStreamSynchronize is given up");
        }
        waited
    }

    fn event_create(&self) -> Result<EventHandle> {
        self.event(api::EVENT_DEFAULT)
    }

    fn event_create_untimed(&self) -> Result<EventHandle> {
        self.event(api::EVENT_DISABLE_TIMING)
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
            // Both events are live, so an invalid one was never recorded.
            code::INVALID_HANDLE => refuse!(InvalidArgument, "{call}: never recorded; record both events first"),
            code::NOT_READY => refuse!(InvalidArgument, "{call}: not passed yet; wait for both events first"),
            code => self.check(code, call).map(|()| milliseconds),
        }
    }
}
