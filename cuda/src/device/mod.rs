//! Devices, and what programs ask about them.

mod attributes;
pub(crate) mod identity;

use std::ffi::{c_char, c_int, c_uint};

use self::attributes::attribute;
use crate::arguments::{Out, Text};
use crate::code::{Failure, Outcome, code};
use crate::export::export;
use crate::process::{Gpu, initialize, process};

/// The version of the API that this library has: CUDA 13.0.
pub(crate) const VERSION: c_int = 13_000;

/// The length of a place on the PCI bus, with its NUL.
const PCI_LENGTH: c_int = 13;

/// Copies a text into a caller's buffer, cut to it and ended by NUL.
fn set_text(out: Out<c_char>, room: c_int, text: &str) -> Outcome {
    let Some(most) = usize::try_from(room).ok().and_then(|room| room.checked_sub(1)) else {
        return Err(Failure::value("the buffer for a text has no byte"));
    };
    let cut = text.bytes().take(most).map(|byte| byte as c_char).chain([0]);
    out.set_all(cut, most + 1)
}

/// Returns the UUID of a GPU.
fn uuid(gpu: &Gpu) -> [u8; 16] {
    identity::uuid(&gpu.model, gpu.number)
}

/// Returns an attribute that every device has.
fn known(gpu: &Gpu, number: c_uint) -> c_int {
    attribute(gpu, number).unwrap_or(0)
}

/// Refuses a pair of devices of which there is not each.
fn check_pair(device: c_int, peer: c_int) -> Outcome {
    process()?.gpu(device)?;
    process()?.gpu(peer).map(drop)
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
        set_text(name, room, &identity::name(process()?.gpu(device)?))
    }

    /// Returns an attribute of a device.
    fn cuDeviceGetAttribute(value: Out<c_int>, number: c_uint, device: c_int) {
        let gpu = process()?.gpu(device)?;
        let found = attribute(gpu, number).ok_or_else(|| {
            Failure::value(format!("{number} is not an attribute of a device in CUDA {VERSION}"))
        });
        value.set(found?)
    }

    /// Returns the bytes of a device's memory.
    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: c_int) {
        bytes.set(process()?.gpu(device)?.soft.memory().limit() as usize)
    }

    /// Returns the bytes of a device's memory to a program of CUDA 3.1 or older, which has 32 bits
    /// for them.
    fn cuDeviceTotalMem(bytes: Out<c_uint>, device: c_int) {
        bytes.set(c_uint::try_from(process()?.gpu(device)?.soft.memory().limit()).unwrap_or(c_uint::MAX))
    }

    /// Returns the compute capability of a device.
    fn cuDeviceComputeCapability(major: Out<c_int>, minor: Out<c_int>, device: c_int) {
        let gpu = process()?.gpu(device)?;
        minor.check()?;
        major.set((gpu.model.architecture / 10) as c_int)?;
        minor.set((gpu.model.architecture % 10) as c_int)
    }

    /// Returns some attributes of a device as a `CUdevprop`: threads of a block and along its axes,
    /// blocks along the axes of a grid, shared and constant memory, threads of a warp, pitch,
    /// registers, clock and alignment.
    fn cuDeviceGetProperties(properties: Out<[c_int; 14]>, device: c_int) {
        let gpu = process()?.gpu(device)?;
        properties.set([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14].map(|number| known(gpu, number)))
    }

    /// Returns the UUID of a device.
    fn cuDeviceGetUuid_v2 as cuDeviceGetUuid(out: Out<[u8; 16]>, device: c_int) {
        out.set(uuid(process()?.gpu(device)?))
    }

    /// Returns the LUID of a device, which only Windows has.
    fn cuDeviceGetLuid(_luid: Out<c_char>, _mask: Out<c_uint>, device: c_int) {
        process()?.gpu(device)?;
        Err(Failure::unsupported("devices have LUIDs on Windows only; use the UUID"))
    }

    /// Returns the place of a device on the PCI bus.
    fn cuDeviceGetPCIBusId(place: Out<c_char>, room: c_int, device: c_int) {
        let gpu = process()?.gpu(device)?;
        if room < PCI_LENGTH {
            let why = format!("a place on the PCI bus takes {PCI_LENGTH} bytes, and the buffer has {room}");
            return Err(Failure::value(why));
        }
        set_text(place, room, &identity::pci(gpu))
    }

    /// Finds the device at a place on the PCI bus.
    fn cuDeviceGetByPCIBusId(device: Out<c_int>, place: Text) {
        device.check()?;
        let text = place.string()?;
        let wanted = identity::parse_pci(&text).ok_or_else(|| {
            Failure::value(format!("{text} is not a place on the PCI bus, such as 0000:01:00.0"))
        })?;
        let found = process()?.gpus.iter().position(|gpu| identity::parse_pci(&identity::pci(gpu)) == Some(wanted));
        let found = found.ok_or_else(|| Failure::new(code::INVALID_DEVICE, format!("there is no device at {text}")))?;
        device.set(found as c_int)
    }

    /// Returns whether a device can use the memory of another one: it can.
    fn cuDeviceCanAccessPeer(can: Out<c_int>, device: c_int, peer: c_int) {
        check_pair(device, peer)?;
        can.set(c_int::from(device != peer))
    }

    /// Returns an attribute of two devices: the rank of the link, use of memory, atomics, and use
    /// of arrays.
    fn cuDeviceGetP2PAttribute(value: Out<c_int>, number: c_uint, device: c_int, peer: c_int) {
        check_pair(device, peer)?;
        if device == peer {
            return Err(Failure::new(code::INVALID_DEVICE, "a device is not its own peer; name two devices"));
        }
        value.set(match number {
            1 | 4 | 5 => 0,
            2 | 3 => 1,
            _ => return Err(Failure::value(format!("{number} is not an attribute of two devices"))),
        })
    }
}
