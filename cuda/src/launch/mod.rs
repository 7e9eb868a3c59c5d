//! Launches, and how many blocks a GPU holds.

mod clusters;
mod config;
mod fault;
mod occupancy;
mod prepared;

use std::ffi::c_uint;
use std::sync::Arc;
use warpstride::error::counted;

use warpstride::driver::{StreamHandle, Streams as _};
use warpstride::interp::MAX_BEGUN;
use warpstride::interp::launch_shape::LaunchShape;

pub(crate) use fault::fault;
pub(crate) use prepared::Prepared;

use crate::arguments::{Handle, In, Opaque};
use crate::code::{Failure, Outcome, code};
use crate::export::export;
use crate::graph::Work;
use crate::module::{Function, function_in};
use crate::process::{Gpu, process};
use crate::stream::{Stream, stream};
use config::{Config, Extras};

/// The marks of the list of extras: its end, a buffer of parameters, and the size of that.
const END: u64 = 0;
const BUFFER: u64 = 1;
const BUFFER_SIZE: u64 = 2;
/// The most entries of that list.
const MOST_EXTRAS: usize = 64;
/// The bytes to whose multiple a structure of parameters may be longer than what the kernel takes.
const STRUCTURE: usize = 16;

/// How the blocks of a launch run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Manner {
    /// True if all of them run at the same time.
    pub(crate) is_cooperative: bool,
    /// The shape of a cluster in blocks, if the launch or its function gives one.
    pub(crate) cluster: Option<[c_uint; 3]>,
}

/// A launch, which can be queued many times.
pub(crate) struct Launch {
    /// The handle of the kernel, as the program gave it.
    pub(crate) handle: Handle<Function>,
    pub(crate) function: Arc<Function>,
    pub(crate) shape: LaunchShape,
    pub(crate) manner: Manner,
    params: Box<[u8]>,
    /// The address of each parameter within `params`, for programs that ask for them.
    addresses: Box<[Opaque]>,
}

impl Launch {
    /// Makes the work that a launch is.
    pub(crate) fn work(
        handle: Handle<Function>,
        function: Arc<Function>,
        shape: LaunchShape,
        params: Vec<u8>,
        manner: Manner,
    ) -> Work {
        let mut params = params.into_boxed_slice();
        let first = params.as_mut_ptr();
        let address = |param: &warpstride::interp::Param| Opaque(first.wrapping_add(param.offset));
        let addresses = function.kernel.params().iter().map(address).collect();
        Work::Kernel(Arc::new(Self { handle, function, shape, manner, params, addresses }))
    }

    /// Returns the list of the addresses of the parameters, which lasts as long as the launch.
    pub(crate) fn addresses(&self) -> Opaque {
        Opaque(self.addresses.as_ptr().cast_mut().cast())
    }

    pub(crate) fn queue(&self, gpu: &Gpu, soft: StreamHandle) -> warpstride::Result<()> {
        let function = self.function.soft;
        let Manner { is_cooperative, cluster } = self.manner;
        // SAFETY: the software GPU checks the handles and the addresses.
        unsafe { gpu.soft.launch_in_clusters(function, &self.shape, cluster, &self.params, soft, is_cooperative) }
    }
}

/// Collects the bytes of a launch's parameters, from a list of addresses or a buffer.
pub(crate) fn parameters(function: &Function, each: In<Opaque>, extra: In<Opaque>) -> Outcome<Vec<u8>> {
    let kernel = &function.kernel;
    let mut bytes = vec![0; kernel.param_bytes()];
    if !each.is_null() && !extra.is_null() {
        return Err(Failure::value("a launch has both a list of parameters and extras; pass one of them"));
    }
    if !each.is_null() {
        let addresses = each.list(kernel.params().len())?;
        for (param, address) in kernel.params().iter().zip(addresses) {
            bytes[param.offset..][..param.size].copy_from_slice(&address.bytes(param.size)?);
        }
        return Ok(bytes);
    }
    if extra.is_null() {
        if bytes.is_empty() {
            return Ok(bytes);
        }
        let (name, count) = (kernel.name(), kernel.params().len());
        return Err(Failure::value(format!(
            "kernel {name:?} takes parameters, and the launch has none of the {count}"
        )));
    }
    let (buffer, size) = buffer(extra)?;
    if size < bytes.len() || size > bytes.len().next_multiple_of(STRUCTURE) {
        return Err(Failure::value(format!(
            "the parameters have {size}, and the kernel takes {}",
            bytes.len(),
            size = counted(size, "byte")
        )));
    }
    buffer.bytes(bytes.len())
}

/// Reads the buffer of parameters, and its size, of a list of extras.
fn buffer(extra: In<Opaque>) -> Outcome<(Opaque, usize)> {
    let (mut buffer, mut size) = (None, None);
    for at in (0..MOST_EXTRAS).step_by(2) {
        let mark = extra.list(at + 1)?[at].address();
        if mark == END {
            break;
        }
        let value = extra.list(at + 2)?[at + 1];
        match mark {
            BUFFER => buffer = Some(value),
            BUFFER_SIZE => size = Some(value.operands::<usize>().get()?),
            other => return Err(Failure::value(format!("{other:#x} is not a mark of a launch's extras"))),
        }
    }
    buffer.zip(size).ok_or_else(|| Failure::value("a launch's extras need both a buffer of parameters and its size"))
}

/// Refuses a cooperative launch whose blocks do not all run at the same time.
fn check_cooperative(function: &Function, shape: &LaunchShape) -> Outcome {
    let threads = shape.block.iter().fold(1_u32, |a, b| a.saturating_mul(*b));
    let blocks = shape.grid.iter().fold(1_u64, |a, b| a.saturating_mul(u64::from(*b)));
    let each = occupancy::blocks(function, threads, shape.dynamic_shared.into())?;
    let most = (u64::from(each) * u64::from(function.gpu()?.model.multiprocessors)).min(MAX_BEGUN);
    if blocks <= most {
        return Ok(());
    }
    let why = format!(
        "a cooperative launch of {:?} has {blocks}, and the software GPU runs {most} of them at a time; use a smaller grid",
        function.kernel.name(),
        blocks = counted(blocks, "block")
    );
    Err(Failure::new(code::COOPERATIVE_LAUNCH_TOO_LARGE, why))
}

impl Manner {
    /// Returns how the blocks of a launch run, in clusters of this shape if the launch gives one;
    /// refuses a launch that cannot run so.
    pub(crate) fn of(
        function: &Function,
        shape: &LaunchShape,
        cluster: Option<[c_uint; 3]>,
        is_cooperative: bool,
    ) -> Outcome<Self> {
        let cluster = cluster.or_else(|| function.set_cluster());
        clusters::check(function, shape, cluster)?;
        if is_cooperative {
            check_cooperative(function, shape)?;
        }
        Ok(Self { is_cooperative, cluster })
    }
}

fn launch(
    of: Handle<Function>,
    shape: LaunchShape,
    on: Handle<Stream>,
    params: impl FnOnce(&Function) -> Outcome<Vec<u8>>,
    extras: &Extras,
) -> Outcome {
    let stream = stream(on)?;
    let function = function_in(of, stream.context)?;
    if stream.context != function.context {
        return Err(Failure::new(code::INVALID_HANDLE, "the kernel and the stream are of different contexts"));
    }
    let manner = Manner::of(&function, &shape, extras.cluster, extras.is_cooperative)?;
    let params = params(&function)?;
    let events = extras.events.iter().map(|&event| process()?.events.get(event)).collect::<Outcome<Vec<_>>>()?;
    stream.queue_work(Launch::work(of, function, shape, params, manner))?;
    for event in events {
        stream.queue(move |gpu, soft| {
            // SAFETY: the software GPU refuses handles that are not live.
            unsafe { gpu.soft.event_record(event.soft, soft) }
        })?;
    }
    Ok(())
}

export! {
    /// Queues a launch.
    fn cuLaunchKernel, per_thread cuLaunchKernel_ptsz (
        function: Handle<Function>, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
        dynamic_shared: c_uint, on: Handle<Stream>, each: In<Opaque>, extra: In<Opaque>,
    ) {
        let shape = LaunchShape { grid: [gx, gy, gz], block: [bx, by, bz], dynamic_shared };
        launch(function, shape, on, |function| parameters(function, each, extra), &Extras::default())
    }

    /// Queues a launch with attributes.
    fn cuLaunchKernelEx, per_thread cuLaunchKernelEx_ptsz (
        config: In<Config>, function: Handle<Function>, each: In<Opaque>, extra: In<Opaque>,
    ) {
        let config = config.get()?;
        let shape = LaunchShape { grid: config.grid, block: config.block, dynamic_shared: config.dynamic_shared };
        let params = |function: &Function| parameters(function, each, extra);
        launch(function, shape, config.stream, params, &Extras::read(&config)?)
    }

    /// Queues a launch whose blocks all run at the same time.
    fn cuLaunchCooperativeKernel, per_thread cuLaunchCooperativeKernel_ptsz (
        function: Handle<Function>, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
        dynamic_shared: c_uint, on: Handle<Stream>, each: In<Opaque>,
    ) {
        let shape = LaunchShape { grid: [gx, gy, gz], block: [bx, by, bz], dynamic_shared };
        let extras = Extras { is_cooperative: true, ..Extras::default() };
        launch(function, shape, on, |function| parameters(function, each, In::NULL), &extras)
    }
}
