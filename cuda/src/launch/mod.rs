//! Launches.

use std::ffi::c_uint;

use warpstride::driver::Modules as _;
use warpstride::interp::launch_shape::LaunchShape;

use crate::arguments::{Handle, In, Opaque};
use crate::code::{Failure, Outcome, code};
use crate::export::export;
use crate::module::Function;
use crate::process::process;
use crate::stream::{Stream, stream};

/// The marks of the list of extras: its end, a buffer of parameters, and the size of that.
const END: u64 = 0;
const BUFFER: u64 = 1;
const BUFFER_SIZE: u64 = 2;

/// Collects the bytes of a launch's parameters, from a list of addresses or a buffer.
fn parameters(function: &Function, each: In<Opaque>, extra: In<Opaque>) -> Outcome<Vec<u8>> {
    let kernel = &function.kernel;
    let mut bytes = vec![0; kernel.param_bytes()];
    if !each.is_null() {
        let addresses = each.list(kernel.params().len())?;
        for (param, address) in kernel.params().iter().zip(addresses) {
            bytes[param.offset..][..param.size].copy_from_slice(&address.bytes(param.size)?);
        }
        return Ok(bytes);
    }
    if extra.is_null() {
        return Ok(bytes);
    }
    let (mut buffer, mut size) = (None, None);
    for pair in 0.. {
        let entries = extra.list(2 * pair + 1)?;
        match entries[2 * pair].address() {
            END => break,
            BUFFER => buffer = Some(extra.list(2 * pair + 2)?[2 * pair + 1]),
            BUFFER_SIZE => size = Some(extra.list(2 * pair + 2)?[2 * pair + 1].operands::<usize>().get()?),
            other => return Err(Failure::value(format!("{other:#x} is not a mark of a launch's extras"))),
        }
    }
    let (Some(buffer), Some(size)) = (buffer, size) else {
        return Err(Failure::value("a launch's extras need both a buffer of parameters and its size"));
    };
    if size > bytes.len() {
        return Err(Failure::value(format!("the parameters have {size} bytes, and the kernel takes {}", bytes.len())));
    }
    bytes[..size].copy_from_slice(&buffer.bytes(size)?);
    Ok(bytes)
}

fn launch(
    function: Handle<Function>,
    shape: LaunchShape,
    on: Handle<Stream>,
    each: In<Opaque>,
    extra: In<Opaque>,
    is_cooperative: bool,
) -> Outcome {
    let function = process()?.functions.get(function)?;
    let stream = stream(on)?;
    if stream.context != function.context {
        return Err(Failure::new(code::INVALID_CONTEXT, "the kernel and the stream are of different contexts"));
    }
    let params = parameters(&function, each, extra)?;
    stream.queue(|gpu, soft| {
        if is_cooperative {
            // SAFETY: both are live, since the tables have them; the software GPU checks the addresses.
            unsafe { gpu.soft.launch_cooperative(function.soft, &shape, &params, soft) }
        } else {
            // SAFETY: as above.
            unsafe { gpu.soft.launch(function.soft, &shape, &params, soft) }
        }
    })
}

export! {
    /// Queues a launch.
    fn cuLaunchKernel, per_thread cuLaunchKernel_ptsz (
        function: Handle<Function>, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
        dynamic_shared: c_uint, on: Handle<Stream>, each: In<Opaque>, extra: In<Opaque>,
    ) {
        launch(function, LaunchShape { grid: [gx, gy, gz], block: [bx, by, bz], dynamic_shared }, on, each, extra, false)
    }

    /// Queues a launch whose blocks all run at the same time.
    fn cuLaunchCooperativeKernel, per_thread cuLaunchCooperativeKernel_ptsz (
        function: Handle<Function>, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
        dynamic_shared: c_uint, on: Handle<Stream>, each: In<Opaque>,
    ) {
        let shape = LaunchShape { grid: [gx, gy, gz], block: [bx, by, bz], dynamic_shared };
        launch(function, shape, on, each, In::NULL, true)
    }

    /// Sets a limit or a preference of a kernel.
    fn cuFuncSetAttribute(function: Handle<Function>, attribute: c_uint, value: i32) {
        const MAX_DYNAMIC_SHARED: c_uint = 8;
        let function = process()?.functions.get(function)?;
        if attribute == MAX_DYNAMIC_SHARED {
            let bytes = u32::try_from(value).map_err(|_| Failure::value("a size is not negative"))?;
            // SAFETY: the function is live, since its table has it.
            unsafe { function.gpu()?.soft.allow_dynamic_shared(function.soft, bytes) }?;
        }
        Ok(())
    }
}
