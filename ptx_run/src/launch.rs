//! One launch: its kernel, the values of its parameters, and the memory that it can use.

use std::ffi::{c_char, c_int, c_void};
use std::io::Write as _;
use std::ptr::NonNull;
use std::sync::OnceLock;

use warpstride_interp::error::counted;
use warpstride_interp::launch_shape::LaunchShape;
use warpstride_interp::{Args, Config, Kernel, MAX_TEXT_BYTES, Memory, Module, run};

use crate::failure::{Failure, code};
use crate::maps::Maps;
use crate::parsed;

/// Bytes of a pointer, and the most of a parameter.
const POINTER: usize = size_of::<*mut c_void>();
/// The most bytes of the variables of a text, and of the heap of its kernels.
const MOST_BYTES: u64 = 1 << 30;

/// The operands of a call.
pub(crate) struct Launch {
    pub(crate) source: *const c_char,
    pub(crate) count: c_int,
    pub(crate) arguments: *const *mut c_void,
    pub(crate) block: [c_int; 3],
    pub(crate) grid: [c_int; 3],
    pub(crate) shared: c_int,
}

impl Launch {
    /// Runs the launch.
    ///
    /// # Safety
    ///
    /// - The operands are what [`crate::ptx_run`] asks for.
    pub(crate) unsafe fn run(&self) -> Result<(), Failure> {
        let shape = self.shape()?;
        // SAFETY: the caller promises a text that ends with a NUL.
        let module = parsed::module(unsafe { text(self.source) }?)?;
        let kernel = only_kernel(&module)?;
        // SAFETY: the caller promises that many values.
        let values = unsafe { self.values(kernel) }?;
        let params = params(kernel, &values)?;
        let memory = Memory::with_addresses_of_host(MOST_BYTES);
        let pointers = kernel.params().iter().zip(&values).filter(|(param, _)| param.size == POINTER);
        // SAFETY: the caller promises that the memory stays until the launch has ended, which is
        // before `memory` does.
        unsafe { lend(&memory, pointers.map(|(_, &value)| value)) }?;
        match run(kernel, &shape, &params, &memory, &config()) {
            Ok(report) => print(&report.printed),
            Err(stop) => {
                print(&stop.printed);
                return Err(stop.into());
            }
        }
        Ok(())
    }

    fn shape(&self) -> Result<LaunchShape, Failure> {
        let [grid, block] = [("grid", self.grid), ("block", self.block)].map(|(name, extents)| {
            let [x, y, z] = extents.map(|extent| u32::try_from(extent).ok().filter(|&extent| extent > 0));
            x.zip(y).zip(z).map(|((x, y), z)| [x, y, z]).ok_or_else(|| {
                let [x, y, z] = extents;
                Failure::value(format!("a {name} of {x} x {y} x {z} is empty; each extent is at least 1"))
            })
        });
        let dynamic_shared = u32::try_from(self.shared).map_err(|_| {
            Failure::value(format!("{} is not a number of bytes of dynamic shared memory; pass 0 or more", self.shared))
        })?;
        Ok(LaunchShape { grid: grid?, block: block?, dynamic_shared })
    }

    /// Returns the values of the parameters.
    ///
    /// # Safety
    ///
    /// - `arguments` is null, or has `count` values.
    unsafe fn values(&self, kernel: &Kernel) -> Result<Vec<u64>, Failure> {
        let wanted = kernel.params().len();
        if usize::try_from(self.count) != Ok(wanted) {
            return Err(Failure::value(format!(
                "kernel {:?} has {} and the call passes {}; pass a value for each",
                kernel.name(),
                counted(wanted, "parameter"),
                self.count
            )));
        }
        if wanted > 0 && self.arguments.is_null() {
            return Err(Failure::value(format!(
                "the list of {} is null; pass the address of their values",
                counted(wanted, "argument")
            )));
        }
        // SAFETY: the caller promises that the list has that many values.
        let value = |at| unsafe { self.arguments.wrapping_add(at).read_unaligned() };
        Ok((0..wanted).map(|at| value(at).addr() as u64).collect())
    }
}

/// Returns a text without the NUL at its end.
///
/// # Safety
///
/// - `source` is null, or the address of a text that ends with a NUL.
unsafe fn text<'t>(source: *const c_char) -> Result<&'t [u8], Failure> {
    if source.is_null() {
        return Err(Failure::value("the PTX is null; pass the address of a text that ends with a NUL"));
    }
    // SAFETY: the text ends with a NUL, or goes on beyond the bytes that are looked at.
    let bytes = unsafe { libc::strnlen(source, MAX_TEXT_BYTES + 1) };
    // SAFETY: that many bytes lie before the NUL.
    Ok(unsafe { std::slice::from_raw_parts(source.cast(), bytes) })
}

fn only_kernel(module: &Module) -> Result<&Kernel, Failure> {
    let mut kernels = module.kernels();
    match (kernels.next(), kernels.next()) {
        (Some(kernel), None) => Ok(kernel),
        (None, _) => Err(Failure::new(code::NOT_FOUND, "the PTX has no kernel; pass a text with one `.entry`")),
        (Some(first), Some(second)) => Err(Failure::value(format!(
            "the PTX has several kernels, such as {:?} and {:?}, and the call names none; pass a text with one `.entry`",
            first.name(),
            second.name()
        ))),
    }
}

/// Returns the bytes of the parameters.
fn params(kernel: &Kernel, values: &[u64]) -> Result<Vec<u8>, Failure> {
    let mut params = Args::new(kernel);
    for (number, (param, value)) in kernel.params().iter().zip(values).enumerate() {
        if param.size > POINTER {
            return Err(Failure::value(format!(
                "{} is wider than a pointer, and a call passes values of pointers; pass a large value in a buffer",
                kernel.argument(number)
            )));
        }
        params = params.bytes(&value.to_le_bytes()[..param.size])?;
    }
    Ok(params.finish()?)
}

/// Lets kernels use the ranges of the program's memory that these values lie in.
///
/// # Safety
///
/// - The ranges stay mapped until `memory` is dropped.
unsafe fn lend(memory: &Memory, values: impl Iterator<Item = u64>) -> Result<(), Failure> {
    let maps = Maps::now()?;
    for value in values {
        let Some(range) = maps.around(value) else { continue };
        let start = NonNull::new(std::ptr::with_exposed_provenance_mut(range.start as usize));
        let is_lent = memory.allocation_around(value, 1).is_some();
        let Some(start) = start.filter(|_| !is_lent) else { continue };
        // SAFETY: the system says that the process can read and write these pages, and the caller
        // promises that they stay.
        unsafe { memory.map_host(start, range.end - range.start) }?;
    }
    Ok(())
}

/// Returns how launches run: on all threads of the host, except in a process that was forked after
/// its first launch, which has not the threads that wait for work.
fn config() -> Config {
    static FIRST: OnceLock<u32> = OnceLock::new();
    let own = std::process::id();
    Config { threads: usize::from(*FIRST.get_or_init(|| own) != own), ..Config::default() }
}

/// Prints what a kernel has printed.
fn print(printed: &str) {
    if !printed.is_empty() {
        let mut out = std::io::stdout();
        // A program may have closed standard output.
        let _ = out.write_all(printed.as_bytes()).and_then(|()| out.flush());
    }
}
