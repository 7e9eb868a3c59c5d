//! Devices, and what programs ask about them.

use std::ffi::{c_char, c_int, c_uint};

use crate::arguments::Out;
use crate::code::{Failure, Outcome};
use crate::export::export;
use crate::process::{Gpu, initialize, process};

/// The version of the API that this library has: CUDA 13.0.
const VERSION: c_int = 13_000;

/// Returns an attribute of a device; `None` if CUDA has no such attribute.
fn attribute(gpu: &Gpu, attribute: c_uint) -> Option<c_int> {
    let architecture = gpu.model.architecture as c_int;
    Some(match attribute {
        1 => 1024,
        5 => c_int::MAX,
        6 | 7 => 65_535,
        8 => 48 << 10,
        16 => gpu.model.multiprocessors as c_int,
        75 => architecture / 10,
        76 => architecture % 10,
        115 => 1,
        _ => 0,
    })
}

/// Copies a text into a caller's buffer, cut to it and ended by NUL.
fn set_text(out: Out<c_char>, room: c_int, text: &str) -> Outcome {
    let Some(most) = usize::try_from(room).ok().and_then(|room| room.checked_sub(1)) else {
        return Err(Failure::value("the buffer for a text has no byte"));
    };
    let cut = text.bytes().take(most).map(|byte| byte as c_char).chain([0]);
    out.set_all(cut, most + 1)
}

export! {
    /// Begins: every other function needs it first.
    fn cuInit(flags: c_uint) {
        if flags != 0 {
            return Err(Failure::value("the flags of cuInit must be 0"));
        }
        initialize()
    }

    /// Returns the version of the API.
    fn cuDriverGetVersion(version: Out<c_int>) {
        version.set(VERSION)
    }

    /// Returns the number of devices.
    fn cuDeviceGetCount(count: Out<c_int>) {
        count.set(process()?.gpus.len() as c_int)
    }

    /// Returns the device of a number.
    fn cuDeviceGet(device: Out<c_int>, ordinal: c_int) {
        process()?.gpu(ordinal)?;
        device.set(ordinal)
    }

    /// Returns the name of a device.
    fn cuDeviceGetName(name: Out<c_char>, room: c_int, device: c_int) {
        let gpu = process()?.gpu(device)?;
        set_text(name, room, &format!("warpstride software GPU ({})", gpu.model.name))
    }

    /// Returns an attribute of a device.
    fn cuDeviceGetAttribute(value: Out<c_int>, number: c_uint, device: c_int) {
        let gpu = process()?.gpu(device)?;
        let found = attribute(gpu, number).ok_or_else(|| Failure::value(format!("{number} is not an attribute of a device")));
        value.set(found?)
    }

    /// Returns the bytes of a device's memory.
    fn cuDeviceTotalMem_v2 as cuDeviceTotalMem(bytes: Out<usize>, device: c_int) {
        bytes.set(process()?.gpu(device)?.soft.memory().limit() as usize)
    }
}
