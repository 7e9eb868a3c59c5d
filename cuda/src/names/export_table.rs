//! The private tables of NVIDIA's driver, which this library does not have:
//! `docs/adr/0020-cuda-programs-without-a-gpu.md` says why.

use std::ffi::c_void;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::arguments::{In, Out};
use crate::code::Failure;
use crate::export::export;

/// The message for a program that asks for a table.
const WHY: &str = "NVIDIA's runtime library (libcudart) asked for a private table of NVIDIA's driver, and it runs on \
                   that driver alone; the software GPU runs programs that use the driver API (libcuda)";

export! {
    /// Refuses the table of functions that a UUID names, and says why the first time.
    fn cuGetExportTable(table: Out<*const c_void>, id: In<[u8; 16]>) {
        static TOLD: AtomicBool = AtomicBool::new(false);
        table.set(std::ptr::null())?;
        id.get()?;
        if !TOLD.swap(true, Ordering::Relaxed) {
            // A program without standard error gets the code.
            let _ = writeln!(std::io::stderr(), "warpstride: {WHY}");
        }
        Err(Failure::unsupported(WHY))
    }
}
