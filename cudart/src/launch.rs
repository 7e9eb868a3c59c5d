//! Launches of kernels.

use std::cell::RefCell;
use std::ffi::c_uint;

use crate::arguments::{In, Opaque, Out};
use crate::code::{Failure, Outcome, code};
use crate::context;
use crate::driver::driver;
use crate::export::export;
use crate::registry::function;
use crate::types::{Dim3, Function, Stream};

driver! {
    fn cuLaunchKernel(
        function: Function, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: Stream, arguments: Opaque, extra: Opaque,
    );
    fn cuLaunchCooperativeKernel(
        function: Function, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: Stream, arguments: Opaque,
    );
    fn cuLaunchKernelEx(config: &DriverConfig, function: Function, arguments: Opaque, extra: Opaque);
}

/// A launch as the runtime describes it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Config {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: Stream,
    attributes: Opaque,
    count: c_uint,
}

/// A launch as the driver describes it.
#[repr(C)]
pub(crate) struct DriverConfig {
    grid: Dim3,
    block: Dim3,
    shared: c_uint,
    stream: Stream,
    attributes: Opaque,
    count: c_uint,
}

impl Config {
    /// Returns the launch for the driver: the attributes have the same structure there.
    pub(crate) fn for_driver(self) -> Outcome<DriverConfig> {
        let Self { grid, block, shared, stream, attributes, count } = self;
        Ok(DriverConfig { grid, block, shared: shared_bytes(shared)?, stream, attributes, count })
    }
}

/// A configuration between `<<<` and `>>>`.
#[derive(Clone, Copy)]
struct Pushed {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: Stream,
}

thread_local! {
    static PUSHED: RefCell<Vec<Pushed>> = const { RefCell::new(Vec::new()) };
}

/// Returns bytes of shared memory as the driver takes them.
pub(crate) fn shared_bytes(bytes: usize) -> Outcome<c_uint> {
    c_uint::try_from(bytes)
        .map_err(|_| Failure::value(format!("a block cannot have {bytes} B of shared memory; use less")))
}

fn launch(host: Opaque, config: Pushed, arguments: Opaque, is_cooperative: bool) -> Outcome {
    let Pushed { grid, block, shared, stream } = config;
    let (function, shared) = (function(host)?, shared_bytes(shared)?);
    if is_cooperative {
        return cuLaunchCooperativeKernel(
            function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream, arguments,
        );
    }
    let extra = Opaque::at(0);
    cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream, arguments, extra)
        .map_err(misconfigured)
}

/// Names the runtime's code of a launch whose numbers of blocks and threads no device has.
fn misconfigured(failure: Failure) -> Failure {
    if failure.code == code::INVALID_VALUE { Failure { code: code::INVALID_CONFIGURATION, ..failure } } else { failure }
}

/// Notes the configuration of the next launch of the thread. Returns 0.
#[unsafe(no_mangle)]
extern "C" fn __cudaPushCallConfiguration(grid: Dim3, block: Dim3, shared: usize, stream: Stream) -> c_uint {
    PUSHED.with_borrow_mut(|pushed| pushed.push(Pushed { grid, block, shared, stream }));
    0
}

export! {
    /// Takes the configuration that the thread pushed last.
    fn __cudaPopCallConfiguration(grid: Out<Dim3>, block: Out<Dim3>, shared: Out<usize>, stream: Out<Stream>) {
        let popped = PUSHED.with_borrow_mut(Vec::pop);
        let popped = popped.ok_or_else(|| {
            Failure::new(code::MISSING_CONFIGURATION, "a kernel was called without <<< and >>>; configure its launch")
        })?;
        grid.set(popped.grid)?;
        block.set(popped.block)?;
        shared.set(popped.shared)?;
        stream.set(popped.stream)
    }

    /// Launches a kernel.
    fn cudaLaunchKernel as __cudaLaunchKernel, per_thread cudaLaunchKernel_ptsz, per_thread __cudaLaunchKernel_ptsz (
        host: Opaque, grid: Dim3, block: Dim3, arguments: Opaque, shared: usize, stream: Stream,
    ) {
        launch(host, Pushed { grid, block, shared, stream }, arguments, false)
    }

    /// Launches a kernel whose blocks wait for each other.
    fn cudaLaunchCooperativeKernel, per_thread cudaLaunchCooperativeKernel_ptsz (
        host: Opaque, grid: Dim3, block: Dim3, arguments: Opaque, shared: usize, stream: Stream,
    ) {
        launch(host, Pushed { grid, block, shared, stream }, arguments, true)
    }

    /// Launches a kernel with attributes.
    fn cudaLaunchKernelExC, per_thread cudaLaunchKernelExC_ptsz (config: In<Config>, host: Opaque, arguments: Opaque) {
        let config = config.get()?.for_driver()?;
        context::ready()?;
        cuLaunchKernelEx(&config, function(host)?, arguments, Opaque::at(0)).map_err(misconfigured)
    }
}
