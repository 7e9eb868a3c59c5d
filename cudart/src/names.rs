//! Results by name, versions, and functions of the driver by name.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::arguments::{Opaque, Out, Text};
use crate::code::{CUresult, described};
use crate::context;
use crate::driver::{cuDriverGetVersion, driver};
use crate::export::{export, is_per_thread, last, take_last};

/// The version of this library: that of the headers whose structures it has.
const VERSION: c_int = if cfg!(cuda_12) { 12_090 } else { 13_050 };

/// The flags of a search for a function: the default, the legacy stream, and the thread's stream.
const DEFAULT: u64 = 0;
const PER_THREAD: u64 = 2;

driver! {
    fn cuGetProcAddress_v2(
        name: Text, function: Out<*mut c_void>, version: c_int, flags: u64, status: Out<c_uint>,
    );
    fn cuGetExportTable(table: Opaque, id: Opaque);
    fn cuProfilerStart();
    fn cuProfilerStop();
}

/// Returns the code of the thread's last failed call, and forgets it unless the device has failed.
#[unsafe(no_mangle)]
extern "C" fn cudaGetLastError() -> CUresult {
    take_last()
}

/// Returns the code of the thread's last failed call.
#[unsafe(no_mangle)]
extern "C" fn cudaPeekAtLastError() -> CUresult {
    last()
}

/// Returns the name of a result.
#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorName(result: CUresult) -> *const c_char {
    described(result).0.as_ptr()
}

/// Returns the description of a result.
#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorString(result: CUresult) -> *const c_char {
    described(result).1.as_ptr()
}

/// Returns the flags for a search: the thread's stream is the default of some programs.
fn search_flags(flags: u64) -> u64 {
    if flags == DEFAULT && is_per_thread() { PER_THREAD } else { flags }
}

export! {
    /// Returns the version of this library.
    fn cudaRuntimeGetVersion(version: Out<c_int>) {
        version.set(VERSION)
    }

    /// Returns the version of CUDA that the driver supports, or 0 without a driver.
    fn cudaDriverGetVersion(version: Out<c_int>) {
        version.check()?;
        let mut found = 0;
        // The documentation has no driver as success.
        let _ = cuDriverGetVersion(&mut found);
        version.set(found)
    }

    /// Finds a function of the driver, as of the version of this library.
    fn cudaGetDriverEntryPoint, per_thread cudaGetDriverEntryPoint_ptsz (
        name: Text, function: Out<*mut c_void>, flags: u64, status: Out<c_uint>,
    ) {
        context::ready()?;
        found(cuGetProcAddress_v2(name, function, VERSION, search_flags(flags), status), status)
    }

    /// Finds a function of the driver, as of a version.
    fn cudaGetDriverEntryPointByVersion, per_thread cudaGetDriverEntryPointByVersion_ptsz (
        name: Text, function: Out<*mut c_void>, version: c_uint, flags: u64, status: Out<c_uint>,
    ) {
        context::ready()?;
        let version = c_int::try_from(version).unwrap_or(c_int::MAX);
        found(cuGetProcAddress_v2(name, function, version, search_flags(flags), status), status)
    }

    /// Returns a table of functions of the driver that no header has.
    fn cudaGetExportTable(table: Opaque, id: Opaque) {
        cuGetExportTable(table, id)
    }

    /// Begins what a profiler records.
    fn cudaProfilerStart() {
        context::ready()?;
        cuProfilerStart()
    }

    /// Ends what a profiler records.
    fn cudaProfilerStop() {
        context::ready()?;
        cuProfilerStop()
    }
}

/// Turns a search that found nothing into success for a caller that reads the status.
fn found(outcome: crate::code::Outcome, status: Out<c_uint>) -> crate::code::Outcome {
    match outcome {
        Err(failure) if failure.code == crate::code::code::NOT_FOUND && !status.is_null() => Ok(()),
        other => other,
    }
}
