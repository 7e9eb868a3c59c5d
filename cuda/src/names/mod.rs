//! Functions that are found by name, those that are not supported, and the names and descriptions
//! of results.

mod address;
mod export_table;
mod unsupported;

use std::ffi::{CStr, c_char};

use crate::arguments::Out;
use crate::code::{CODES, CUresult, Failure, Outcome};
use crate::export::export;

fn described(result: CUresult) -> Outcome<(&'static CStr, &'static CStr)> {
    let found = CODES.iter().find(|(number, ..)| *number == result);
    found
        .map(|&(_, name, text)| (name, text))
        .ok_or_else(|| Failure::value(format!("{result} is not a result of CUDA")))
}

export! {
    /// Returns the name of a result.
    fn cuGetErrorName(result: CUresult, name: Out<*const c_char>) {
        let found = described(result);
        name.set(found.as_ref().map_or(std::ptr::null(), |(name, _)| name.as_ptr()))?;
        found.map(drop)
    }

    /// Returns the description of a result.
    fn cuGetErrorString(result: CUresult, text: Out<*const c_char>) {
        let found = described(result);
        text.set(found.as_ref().map_or(std::ptr::null(), |(_, text)| text.as_ptr()))?;
        found.map(drop)
    }

    /// Begins what a profiler records, which changes nothing on the software GPU.
    fn cuProfilerStart() {
        Ok(())
    }

    /// Ends what a profiler records.
    fn cuProfilerStop() {
        Ok(())
    }
}
