//! Devices: their properties, limits and peers, and the one of each thread.

mod properties;

use std::ffi::{c_char, c_int, c_uint};

use self::properties::Properties;
use crate::arguments::{In, Opaque, Out, Text};
use crate::code::{Failure, Outcome};
use crate::context;
use crate::driver::{driver, forward, initialize};
use crate::export::export;
use crate::types::{Context, Pool};

/// The flag of mapped host memory, which every device has.
const MAP_HOST: c_uint = 8;
/// The flag that says that the flags of a device are to be set.
const FLAGS_ARE_VALID: c_uint = 1;

driver! {
    fn cuCtxEnablePeerAccess(peer: Context, flags: c_uint);
    fn cuCtxDisablePeerAccess(peer: Context);
    fn cuCtxSynchronize();
    #[cfg(cuda_12)]
    fn cuCtxGetLimit(value: Out<usize>, limit: c_uint);
    #[cfg(cuda_12)]
    fn cuCtxSetLimit(limit: c_uint, value: usize);
    #[cfg(cuda_12)]
    fn cuCtxGetCacheConfig(config: Out<c_uint>);
    #[cfg(cuda_12)]
    fn cuCtxSetCacheConfig(config: c_uint);
}

forward! {
    /// Returns a limit of the current device.
    fn cudaDeviceGetLimit(value: Out<usize>, limit: c_uint) = cuCtxGetLimit;
    /// Sets a limit of the current device.
    fn cudaDeviceSetLimit(limit: c_uint, value: usize) = cuCtxSetLimit;
    /// Returns the preference between shared memory and the L1 cache.
    fn cudaDeviceGetCacheConfig(config: Out<c_uint>) = cuCtxGetCacheConfig;
    /// Sets that preference.
    fn cudaDeviceSetCacheConfig(config: c_uint) = cuCtxSetCacheConfig;
    /// Returns the width of the banks of shared memory.
    fn cudaDeviceGetSharedMemConfig(config: Out<c_uint>) = cuCtxGetSharedMemConfig;
    /// Sets that width.
    fn cudaDeviceSetSharedMemConfig(config: c_uint) = cuCtxSetSharedMemConfig;
    /// Returns the least and the greatest priority of streams.
    fn cudaDeviceGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) = cuCtxGetStreamPriorityRange;
    /// Resets the lines that persist in the L2 cache.
    fn cudaCtxResetPersistingL2Cache() = cuCtxResetPersistingL2Cache;
}

forward! { without context;
    /// Returns an attribute of a device.
    fn cudaDeviceGetAttribute(value: Out<c_int>, attribute: c_uint, device: c_int) = cuDeviceGetAttribute;
    /// Writes the place of a device on the PCI bus.
    fn cudaDeviceGetPCIBusId(place: Out<c_char>, room: c_int, device: c_int) = cuDeviceGetPCIBusId;
    /// Finds a device by that place.
    fn cudaDeviceGetByPCIBusId(device: Out<c_int>, place: Text) = cuDeviceGetByPCIBusId;
    /// Returns whether a device can use the memory of another one.
    fn cudaDeviceCanAccessPeer(can: Out<c_int>, device: c_int, peer: c_int) = cuDeviceCanAccessPeer;
    /// Returns an attribute of two devices.
    fn cudaDeviceGetP2PAttribute(value: Out<c_int>, attribute: c_uint, from: c_int, to: c_int)
        = cuDeviceGetP2PAttribute;
    /// Returns the pool with which a device begins.
    fn cudaDeviceGetDefaultMemPool(pool: Out<Pool>, device: c_int) = cuDeviceGetDefaultMemPool;
    /// Returns the pool from which a device allocates.
    fn cudaDeviceGetMemPool(pool: Out<Pool>, device: c_int) = cuDeviceGetMemPool;
    /// Sets the pool from which a device allocates.
    fn cudaDeviceSetMemPool(device: c_int, pool: Pool) = cuDeviceSetMemPool;
    /// Returns an attribute of the memory of a device's graphs.
    fn cudaDeviceGetGraphMemAttribute(device: c_int, attribute: c_uint, value: Opaque) = cuDeviceGetGraphMemAttribute;
    /// Sets an attribute of that memory.
    fn cudaDeviceSetGraphMemAttribute(device: c_int, attribute: c_uint, value: Opaque) = cuDeviceSetGraphMemAttribute;
    /// Gives up the memory that no graph uses.
    fn cudaDeviceGraphMemTrim(device: c_int) = cuDeviceGraphMemTrim;
}

/// Writes the properties of a device.
fn properties(out: Out<Properties>, device: c_int) -> Outcome {
    out.check()?;
    context::check(device)?;
    out.set(Properties::of(device)?)
}

/// Waits for all work of the current device.
fn synchronize() -> Outcome {
    context::ready()?;
    cuCtxSynchronize()
}

export! {
    /// Returns the number of devices.
    fn cudaGetDeviceCount(count: Out<c_int>) {
        count.check()?;
        count.set(0)?;
        count.set(context::count()?)
    }

    /// Gives the thread a device.
    fn cudaSetDevice(device: c_int) {
        context::set_device(device)
    }

    /// Returns the thread's device.
    fn cudaGetDevice(device: Out<c_int>) {
        device.check()?;
        device.set(context::device()?)
    }

    /// Makes the context of a device, which stays another than the thread's.
    fn cudaInitDevice(device: c_int, device_flags: c_uint, flags: c_uint) {
        context::check(device)?;
        match flags {
            0 => {}
            FLAGS_ARE_VALID => context::set_flags(device, device_flags)?,
            other => return Err(Failure::value(format!("{other:#x} are not flags of cudaInitDevice; pass 0 or 1"))),
        }
        context::primary(device).map(drop)
    }

    /// Names the devices that threads take which set no device.
    fn cudaSetValidDevices(devices: In<c_int>, count: c_int) {
        let Ok(count) = usize::try_from(count) else {
            return Err(Failure::value(format!("a list cannot have {count} devices")));
        };
        initialize()?;
        context::set_valid(devices.list(count)?)
    }

    /// Returns the device that fits properties best: all devices of the software GPU are alike.
    fn cudaChooseDevice(device: Out<c_int>, wanted: Opaque) {
        if wanted.is_null() {
            return Err(Failure::value("the pointer to the properties is null"));
        }
        context::check(0)?;
        device.set(0)
    }

    /// Sets the flags of the thread's device.
    fn cudaSetDeviceFlags(flags: c_uint) {
        context::set_flags(context::device()?, flags)
    }

    /// Returns the flags of the thread's device.
    fn cudaGetDeviceFlags(flags: Out<c_uint>) {
        flags.check()?;
        flags.set(context::flags(context::device()?)? | MAP_HOST)
    }

    /// Waits for all work of the current device.
    fn cudaDeviceSynchronize() {
        synchronize()
    }

    /// Ends all that the process has made on the current device.
    fn cudaDeviceReset() {
        context::reset()
    }

    /// Lets the current device use the memory of another one.
    fn cudaDeviceEnablePeerAccess(peer: c_int, flags: c_uint) {
        context::check(peer)?;
        context::ready()?;
        cuCtxEnablePeerAccess(context::primary(peer)?, flags)
    }

    /// Ends that use.
    fn cudaDeviceDisablePeerAccess(peer: c_int) {
        context::check(peer)?;
        context::ready()?;
        cuCtxDisablePeerAccess(context::primary(peer)?)
    }
}

#[cfg(not(cuda_12))]
export! {
    /// Returns the properties of a device.
    fn cudaGetDeviceProperties(out: Out<Properties>, device: c_int) {
        properties(out, device)
    }
}

#[cfg(cuda_12)]
export! {
    /// Returns the properties of a device.
    fn cudaGetDeviceProperties_v2(out: Out<Properties>, device: c_int) {
        properties(out, device)
    }

    /// Waits for all work of the current device, under an old name.
    fn cudaThreadSynchronize() {
        synchronize()
    }

    /// Ends all that the process has made on the current device, under an old name.
    fn cudaThreadExit() {
        context::reset()
    }

    /// Returns a limit, under an old name.
    fn cudaThreadGetLimit(value: Out<usize>, limit: c_uint) {
        context::ready()?;
        cuCtxGetLimit(value, limit)
    }

    /// Sets a limit, under an old name.
    fn cudaThreadSetLimit(limit: c_uint, value: usize) {
        context::ready()?;
        cuCtxSetLimit(limit, value)
    }

    /// Returns the preference between shared memory and the L1 cache, under an old name.
    fn cudaThreadGetCacheConfig(config: Out<c_uint>) {
        context::ready()?;
        cuCtxGetCacheConfig(config)
    }

    /// Sets that preference, under an old name.
    fn cudaThreadSetCacheConfig(config: c_uint) {
        context::ready()?;
        cuCtxSetCacheConfig(config)
    }
}
