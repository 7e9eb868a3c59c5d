//! Attributes of kernels.

use std::ffi::{c_char, c_int, c_uint};

use crate::arguments::{Opaque, Out};
use crate::code::Outcome;
use crate::context;
use crate::driver::driver;
use crate::export::export;
use crate::registry::{function, kernel};
use crate::types::{Function, Kernel};

driver! {
    fn cuFuncGetAttribute(value: &mut c_int, attribute: c_uint, function: Function);
    fn cuFuncSetAttribute(function: Function, attribute: c_uint, value: c_int);
    fn cuFuncSetCacheConfig(function: Function, config: c_uint);
    fn cuFuncGetParamInfo(function: Function, index: usize, offset: Out<usize>, bytes: Out<usize>);
    fn cuKernelGetName(name: Out<*const c_char>, kernel: Kernel);
    fn cuKernelSetAttribute(attribute: c_uint, value: c_int, kernel: Kernel, device: c_int);
}

/// The attributes of a kernel, as `driver_types.h` has them.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Attributes {
    shared: usize,
    constant: usize,
    local: usize,
    max_threads: c_int,
    registers: c_int,
    ptx: c_int,
    binary: c_int,
    cache_ca: c_int,
    max_dynamic_shared: c_int,
    carveout: c_int,
    must_set_cluster: c_int,
    cluster_width: c_int,
    cluster_height: c_int,
    cluster_depth: c_int,
    cluster_policy: c_int,
    non_portable_cluster: c_int,
    reserved: [c_int; 16],
}

/// Reads all attributes of a function; the numbers are the driver's.
fn read(function: Function) -> Outcome<Attributes> {
    let get = |number| {
        let mut value = 0;
        cuFuncGetAttribute(&mut value, number, function).map(|()| value)
    };
    let bytes = |number| get(number).map(|bytes| usize::try_from(bytes).unwrap_or(0));
    Ok(Attributes {
        max_threads: get(0)?,
        shared: bytes(1)?,
        constant: bytes(2)?,
        local: bytes(3)?,
        registers: get(4)?,
        ptx: get(5)?,
        binary: get(6)?,
        cache_ca: get(7)?,
        max_dynamic_shared: get(8)?,
        carveout: get(9)?,
        must_set_cluster: get(10)?,
        cluster_width: get(11)?,
        cluster_height: get(12)?,
        cluster_depth: get(13)?,
        non_portable_cluster: get(14)?,
        cluster_policy: get(15)?,
        reserved: [0; 16],
    })
}

export! {
    /// Returns the attributes of a kernel.
    fn cudaFuncGetAttributes(out: Out<Attributes>, host: Opaque) {
        out.check()?;
        out.set(read(function(host)?)?)
    }

    /// Sets an attribute of a kernel.
    fn cudaFuncSetAttribute(host: Opaque, attribute: c_uint, value: c_int) {
        cuFuncSetAttribute(function(host)?, attribute, value)
    }

    /// Prefers shared memory or the L1 cache.
    fn cudaFuncSetCacheConfig(host: Opaque, config: c_uint) {
        cuFuncSetCacheConfig(function(host)?, config)
    }

    /// Sets the width of the banks of shared memory, which no GPU since Maxwell changes.
    fn cudaFuncSetSharedMemConfig(host: Opaque, _config: c_uint) {
        function(host).map(drop)
    }

    /// Returns the name of a kernel.
    fn cudaFuncGetName(name: Out<*const c_char>, host: Opaque) {
        context::ready()?;
        cuKernelGetName(name, kernel(host)?)
    }

    /// Returns the place of a parameter of a kernel.
    fn cudaFuncGetParamInfo(host: Opaque, index: usize, offset: Out<usize>, bytes: Out<usize>) {
        cuFuncGetParamInfo(function(host)?, index, offset, bytes)
    }

    /// Sets an attribute of a kernel on a device.
    fn cudaKernelSetAttributeForDevice(host: Opaque, attribute: c_uint, value: c_int, device: c_int) {
        context::ready()?;
        context::check(device)?;
        cuKernelSetAttribute(attribute, value, kernel(host)?, device)
    }
}

#[cfg(cuda_12)]
export! {
    /// Leaves a number as it is: devices without `double` are gone.
    fn cudaSetDoubleForDevice as cudaSetDoubleForHost(number: Opaque) {
        if number.is_null() { Err(crate::code::Failure::value("the pointer to the number is null")) } else { Ok(()) }
    }
}

#[cfg(not(cuda_12))]
export! {
    /// Returns the number of parameters of a kernel.
    fn cudaFuncGetParamCount(host: Opaque, count: Out<usize>) {
        count.check()?;
        let function = function(host)?;
        let has = |&index: &usize| cuFuncGetParamInfo(function, index, Out::NULL, Out::NULL).is_ok();
        let found = (0..MOST_PARAMETERS).position(|index| !has(&index));
        count.set(found.unwrap_or(MOST_PARAMETERS))
    }
}

/// The most parameters of a kernel: each has a byte at least.
#[cfg(not(cuda_12))]
const MOST_PARAMETERS: usize = 32_764;
