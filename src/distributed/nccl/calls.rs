//! A communicator of NCCL, and how its calls end.

use std::ffi::CStr;
use std::ptr;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::library::{Code, Comm, Config, IN_PROGRESS, Library, SUCCESS, UniqueId};
use crate::driver::cuda;
use crate::error::{Error, ErrorKind, Result};

/// The time after which an abort that does not return is left alone.
const PATIENCE: Duration = Duration::from_secs(10);

/// A live communicator.
pub(super) struct Live {
    library: &'static Library,
    comm: *mut Comm,
    /// The number of the GPU.
    ordinal: Option<u32>,
}

// SAFETY: NCCL's communicators may be used on any thread, one at a time, which the lock around
// this ensures.
unsafe impl Send for Live {}

impl Live {
    /// Begins to make a communicator: [`Live::state`] says when it is made.
    pub(super) fn begin(
        library: &'static Library,
        ordinal: Option<u32>,
        [rank, ranks]: [usize; 2],
        id: UniqueId,
    ) -> Result<Self> {
        let (mut comm, mut config) = (ptr::null_mut(), Config::nonblocking());
        let code = current(ordinal, || {
            // SAFETY: `comm` takes the result, and the configuration is one of NCCL's version 2.18.
            unsafe { (library.functions.ncclCommInitRankConfig)(&mut comm, ranks as i32, id, rank as i32, &mut config) }
        })?;
        let live = Self { library, comm, ordinal };
        if is_fine(code) {
            return Ok(live);
        }
        let error = live.error("ncclCommInitRankConfig", code);
        live.abort();
        Err(error)
    }

    /// Makes a call. The result is NCCL's.
    pub(super) fn call(&self, call: impl FnOnce(&Library, *mut Comm) -> Code) -> Result<Code> {
        current(self.ordinal, || call(self.library, self.comm))
    }

    /// Returns the state of the communicator: success, in progress, or an error's code.
    pub(super) fn state(&self) -> Code {
        let mut state = SUCCESS;
        // SAFETY: the communicator is live, and `state` takes the result.
        let code = unsafe { (self.library.functions.ncclCommGetAsyncError)(self.comm, &mut state) };
        if code == SUCCESS { state } else { code }
    }

    /// Returns the error of a code.
    pub(super) fn error(&self, call: &str, code: Code) -> Error {
        let functions = &self.library.functions;
        // SAFETY: NCCL has a text for each number.
        let name = text(unsafe { (functions.ncclGetErrorString)(code) });
        // SAFETY: the communicator is live; a null one is allowed.
        let last = text(unsafe { (functions.ncclGetLastError)(self.comm) });
        let more = if last.is_empty() { String::new() } else { format!(" ({last})") };
        let context = format!("{call} failed: {name}{more}; set NCCL_DEBUG=WARN to see more");
        Error::new(ErrorKind::Driver, context)
    }

    /// Ends all that the communicator does, and destroys it. It runs on a thread of its own,
    /// because aborts of NCCL are known to hang (NVIDIA/nccl#829): then the communicator is left
    /// alone, and the result is false.
    pub(super) fn abort(self) -> bool {
        self.release(|library, comm| {
            // SAFETY: the communicator is live, and not used from now on.
            unsafe { (library.functions.ncclCommAbort)(comm) }
        })
    }

    /// Destroys a communicator that has nothing left to do.
    pub(super) fn destroy(self) {
        self.release(|library, comm| {
            // SAFETY: as for the abort.
            unsafe { (library.functions.ncclCommDestroy)(comm) }
        });
    }

    /// Returns whether it has ended.
    fn release(self, release: fn(&Library, *mut Comm) -> Code) -> bool {
        if self.comm.is_null() {
            return true;
        }
        let (done, waited) = mpsc::channel();
        // Without a thread the communicator stays, which is all that can be done.
        let _ = thread::Builder::new().name("nccl release".into()).spawn(move || {
            let _ = done.send(self.call(release).is_ok());
        });
        waited.recv_timeout(PATIENCE) == Ok(true)
    }
}

/// Returns whether a call, or a communicator, has not failed.
pub(super) fn is_fine(code: Code) -> bool {
    matches!(code, SUCCESS | IN_PROGRESS)
}

/// Makes the GPU the current one of NVIDIA's runtime, which NCCL asks, and makes a call.
fn current<R>(ordinal: Option<u32>, call: impl FnOnce() -> R) -> Result<R> {
    match ordinal {
        Some(ordinal) => cuda::with_current(ordinal, call),
        None => Ok(call()),
    }
}

fn text(text: *const std::ffi::c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: NCCL's texts end with a zero and live as long as the library or the communicator.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_owned()
}
