//! Streams on a part of a GPU's multiprocessors: CUDA's green contexts, from drivers for CUDA 12.5
//! on.
//!
//! A green context shares the memory and the modules of the primary one. It stays until the driver
//! ends, because streams are made on it again and again.

use std::ffi::{c_int, c_uchar, c_uint};
use std::{fmt, ptr};

use super::Cuda;
use super::api::{CUdevice, CUstream, STREAM_NON_BLOCKING, later_table};
use super::error::code;
use crate::driver::{Multiprocessors, StreamHandle};
use crate::error::{Error, ErrorKind, Result, counted, require};
use crate::sync::lock;

/// A resource of the kind multiprocessors, in CUDA's header `CUdevResource` with its field `sm`.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Resource {
    kind: c_uint,
    internal: [c_uchar; 92],
    multiprocessors: c_uint,
    // From CUDA 13.1 on, the last 8 bytes are a link to another resource.
    rest: [c_uchar; 44],
}

// The size and the offset of `CUdevResource` in all headers from 12.4 to 13.4.
const _: () = assert!(size_of::<Resource>() == 144 && std::mem::offset_of!(Resource, multiprocessors) == 96);
#[cfg(feature = "cudarc")]
const _: () = assert!(MULTIPROCESSORS == 1 && DEFAULT_STREAM == 1);

/// `CU_DEV_RESOURCE_TYPE_SM`.
const MULTIPROCESSORS: c_uint = 1;
/// `CU_GREEN_CTX_DEFAULT_STREAM`, without which no green context is made.
const DEFAULT_STREAM: c_uint = 1;

enum Green {}
enum Descriptor {}

later_table! {
    /// The functions of green contexts.
    Functions;

    cuDeviceGetDevResource(CUdevice, *mut Resource, c_uint);
    cuDevSmResourceSplitByCount(*mut Resource, *mut c_uint, *const Resource, *mut Resource, c_uint, c_uint);
    cuDevResourceGenerateDesc(*mut *mut Descriptor, *mut Resource, c_uint);
    cuGreenCtxCreate(*mut *mut Green, *mut Descriptor, CUdevice, c_uint);
    cuGreenCtxStreamCreate(*mut CUstream, *mut Green, c_uint, c_int);
    cuGreenCtxDestroy(*mut Green);
}

/// A green context on a part of the multiprocessors.
pub(super) struct Part {
    of: Multiprocessors,
    green: *mut Green,
}

// SAFETY: a green context belongs to the process, and any number of threads may use it.
unsafe impl Send for Part {}

impl Cuda {
    /// Makes a stream on a part of the multiprocessors.
    pub(super) fn stream_on(&self, of: Multiprocessors) -> Result<StreamHandle> {
        let functions = Functions::get().ok_or_else(|| {
            Error::new(
                ErrorKind::Unavailable,
                "the NVIDIA driver has no streams on a part of the multiprocessors; install one for CUDA 12.5 or newer",
            )
        })?;
        let _entered = self.enter()?;
        let mut parts = lock(&self.parts);
        let known = parts.iter().find(|part| part.of == of).map(|part| part.green);
        let green = match known {
            Some(green) => green,
            None => {
                let green = self.green(functions, of)?;
                parts.push(Part { of, green });
                green
            }
        };
        let mut stream = ptr::null_mut();
        // SAFETY: the green context is live until the driver ends, and `stream` takes the result.
        let code = unsafe { (functions.cuGreenCtxStreamCreate)(&mut stream, green, STREAM_NON_BLOCKING, 0) };
        self.check(code, format_args!("cuGreenCtxStreamCreate"))?;
        Ok(StreamHandle(stream as usize as u64))
    }

    fn green(&self, functions: &Functions, of: Multiprocessors) -> Result<*mut Green> {
        let mut all = Resource { kind: 0, internal: [0; 92], multiprocessors: 0, rest: [0; 44] };
        // SAFETY: `all` takes the result.
        let code = unsafe { (functions.cuDeviceGetDevResource)(self.device, &mut all, MULTIPROCESSORS) };
        self.check_part(code, format_args!("cuDeviceGetDevResource"))?;
        let behind = if of.first == 0 { all } else { self.split(functions, &all, of.first)?[1] };
        let mut part =
            if of.count >= behind.multiprocessors { behind } else { self.split(functions, &behind, of.count)?[0] };
        let (mut descriptor, mut green) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: `part` is one resource of the device, and `descriptor` takes the result.
        let code = unsafe { (functions.cuDevResourceGenerateDesc)(&mut descriptor, &mut part, 1) };
        self.check_part(code, format_args!("cuDevResourceGenerateDesc"))?;
        // SAFETY: the descriptor is of this device, and `green` takes the result.
        let code = unsafe { (functions.cuGreenCtxCreate)(&mut green, descriptor, self.device, DEFAULT_STREAM) };
        self.check_part(code, format_args!("cuGreenCtxCreate({} multiprocessors)", part.multiprocessors))?;
        Ok(green)
    }

    /// Checks a call that makes a part. A device that cannot be divided so is not a failed one.
    fn check_part(&self, code: u32, call: fmt::Arguments<'_>) -> Result<()> {
        self.check(code, call).map_err(|error| match code {
            code::NOT_SUPPORTED | code::INVALID_RESOURCE_TYPE | code::INVALID_RESOURCE_CONFIGURATION => {
                Error::new(ErrorKind::Unavailable, error.to_string())
            }
            _ => error,
        })
    }

    /// Splits multiprocessors into at least so many and the others.
    fn split(&self, functions: &Functions, all: &Resource, count: u32) -> Result<[Resource; 2]> {
        let (mut first, mut rest, mut groups) = (*all, *all, 1);
        // SAFETY: `first` takes one group, `rest` what is left.
        let code =
            unsafe { (functions.cuDevSmResourceSplitByCount)(&mut first, &mut groups, all, &mut rest, 0, count) };
        let of = counted(all.multiprocessors, "multiprocessor");
        self.check_part(code, format_args!("cuDevSmResourceSplitByCount({count} of {of})"))?;
        require!(groups == 1, Unavailable, "the device cannot divide {of} into {count} and the others");
        Ok([first, rest])
    }

    /// Destroys the green contexts at the end of the driver, whose streams are destroyed by then.
    pub(super) fn destroy_parts(&mut self) {
        if self.parts.get_mut().is_ok_and(|parts| !parts.is_empty()) {
            // Kernels of destroyed streams may still run there.
            let _ = self.drain(&self.enter_to_release(), "green contexts are destroyed");
        }
        let parts = std::mem::take(self.parts.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner));
        let Some(functions) = Functions::get() else { return };
        for part in parts {
            // A failure allows no reaction. SAFETY: it is live until now.
            let _ = unsafe { (functions.cuGreenCtxDestroy)(part.green) };
        }
    }
}
