//! Launches of CUDA 3: a program sets the block and the parameters of a kernel, and then launches
//! it. PyCUDA still does.

use std::ffi::{c_int, c_uint};
use std::ops::Range;
use std::sync::{MutexGuard, PoisonError};

use warpstride::error::counted;
use warpstride::interp::Kernel;
use warpstride::interp::launch_shape::LaunchShape;

use super::config::Extras;
use super::{STRUCTURE, launch};
use crate::arguments::{Handle, Opaque};
use crate::code::{Failure, Outcome};
use crate::export::export;
use crate::module::{Function, function};
use crate::stream::Stream;

/// The launch of a kernel that a program has prepared so far.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    block: Option<[c_uint; 3]>,
    dynamic_shared: c_uint,
    has_size: bool,
    params: Vec<u8>,
}

impl Prepared {
    /// Returns the place of bytes in the parameters, of which a structure may have some behind the
    /// last one.
    fn place(kernel: &Kernel, offset: c_int, bytes: usize) -> Outcome<Range<usize>> {
        let room = kernel.param_bytes().next_multiple_of(STRUCTURE);
        let begin = usize::try_from(offset).ok();
        let place = begin.and_then(|begin| Some(begin..begin.checked_add(bytes)?)).filter(|place| place.end <= room);
        place.ok_or_else(|| {
            Failure::value(format!(
                "{} at offset {offset} do not fit into the parameters of kernel {:?}, which have {}",
                counted(bytes, "byte"),
                kernel.name(),
                counted(kernel.param_bytes(), "byte")
            ))
        })
    }

    fn write(&mut self, kernel: &Kernel, place: Range<usize>, bytes: &[u8]) {
        self.params.resize(kernel.param_bytes().next_multiple_of(STRUCTURE), 0);
        self.params[place].copy_from_slice(bytes);
    }

    /// Returns the parameters of a launch.
    fn params(&self, kernel: &Kernel) -> Outcome<Vec<u8>> {
        let bytes = kernel.param_bytes();
        if bytes > 0 && !self.has_size {
            let name = kernel.name();
            return Err(Failure::value(format!("the parameters of kernel {name:?} have no size; call cuParamSetSize")));
        }
        let mut params = self.params.clone();
        params.resize(bytes, 0);
        Ok(params)
    }
}

fn prepared(of: &Function) -> MutexGuard<'_, Prepared> {
    of.prepared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets parameters to the bytes that `read` returns. It reads the caller's memory only if they fit.
fn set_params(of: Handle<Function>, offset: c_int, bytes: usize, read: impl FnOnce() -> Outcome<Vec<u8>>) -> Outcome {
    let function = function(of)?;
    let place = Prepared::place(&function.kernel, offset, bytes)?;
    prepared(&function).write(&function.kernel, place, &read()?);
    Ok(())
}

/// Returns an extent that C has as a signed number.
fn extent(number: c_int) -> Outcome<c_uint> {
    let positive = c_uint::try_from(number).ok().filter(|&number| number > 0);
    positive.ok_or_else(|| Failure::value(format!("{number} is not an extent of a grid or a block; it is at least 1")))
}

fn launch_prepared(of: Handle<Function>, width: c_int, height: c_int, on: Handle<Stream>) -> Outcome {
    let grid = [extent(width)?, extent(height)?, 1];
    let (block, dynamic_shared, params) = {
        let function = function(of)?;
        let prepared = prepared(&function);
        (prepared.block, prepared.dynamic_shared, prepared.params(&function.kernel)?)
    };
    let block =
        block.ok_or_else(|| Failure::value("the block of the launch has no shape; call cuFuncSetBlockShape"))?;
    launch(of, LaunchShape { grid, block, dynamic_shared }, on, |_| Ok(params), &Extras::default())
}

export! {
    /// Sets the block of the launches that follow.
    fn cuFuncSetBlockShape(of: Handle<Function>, x: c_int, y: c_int, z: c_int) {
        let block = [extent(x)?, extent(y)?, extent(z)?];
        prepared(&*function(of)?).block = Some(block);
        Ok(())
    }

    /// Sets the dynamic shared memory of the launches that follow.
    fn cuFuncSetSharedSize(of: Handle<Function>, bytes: c_uint) {
        prepared(&*function(of)?).dynamic_shared = bytes;
        Ok(())
    }

    /// Sets how many bytes the parameters of the launches have.
    fn cuParamSetSize(of: Handle<Function>, bytes: c_uint) {
        let function = function(of)?;
        let own = function.kernel.param_bytes();
        if !(own..=own.next_multiple_of(STRUCTURE)).contains(&(bytes as usize)) {
            return Err(Failure::value(format!(
                "the parameters of kernel {:?} have {}, and the size says {bytes}", function.kernel.name(), counted(own, "byte")
            )));
        }
        prepared(&function).has_size = true;
        Ok(())
    }

    /// Sets a parameter that is a number.
    fn cuParamSeti(of: Handle<Function>, offset: c_int, value: c_uint) {
        set_params(of, offset, size_of_val(&value), || Ok(value.to_ne_bytes().into()))
    }

    /// Sets a parameter that is a float.
    fn cuParamSetf(of: Handle<Function>, offset: c_int, value: f32) {
        set_params(of, offset, size_of_val(&value), || Ok(value.to_ne_bytes().into()))
    }

    /// Sets parameters of any type.
    fn cuParamSetv(of: Handle<Function>, offset: c_int, from: Opaque, bytes: c_uint) {
        set_params(of, offset, bytes as usize, || from.bytes(bytes as usize))
    }

    /// Queues a launch of one block.
    fn cuLaunch(of: Handle<Function>) {
        launch_prepared(of, 1, 1, Handle::NULL)
    }

    /// Queues a launch on the default stream.
    fn cuLaunchGrid(of: Handle<Function>, width: c_int, height: c_int) {
        launch_prepared(of, width, height, Handle::NULL)
    }

    /// Queues a launch on a stream.
    fn cuLaunchGridAsync(of: Handle<Function>, width: c_int, height: c_int, on: Handle<Stream>) {
        launch_prepared(of, width, height, on)
    }
}
