//! Questions about addresses.

use std::ffi::{c_int, c_uint, c_void};

use crate::arguments::{Opaque, Out};
use crate::code::Outcome;
use crate::context;
use crate::driver::driver;
use crate::export::export;

driver! {
    fn cuPointerGetAttributes(count: c_uint, attributes: &[c_uint; 5], data: &mut [*mut c_void; 5], at: Opaque);
}

/// The driver's numbers of: kind of memory, address on the device, address on the host, managed or
/// not, device.
const ASKED: [c_uint; 5] = [2, 3, 4, 8, 9];

/// The kind of memory of the driver that is the host's; 0 is unknown memory.
const OF_HOST: c_uint = 1;

/// The kinds of memory of the runtime.
const UNREGISTERED: c_uint = 0;
const HOST: c_uint = 1;
const DEVICE: c_uint = 2;
const MANAGED: c_uint = 3;

/// The facts that the runtime has about an address.
#[repr(C)]
pub(crate) struct Attributes {
    kind: c_uint,
    device: c_int,
    on_device: Opaque,
    on_host: Opaque,
    #[cfg(not(cuda_12))]
    reserved: [i64; 8],
}

fn read(at: Opaque) -> Outcome<Attributes> {
    let (mut kind, mut is_managed, mut device) = (0_u32, 0_u32, 0_i32);
    let (mut on_device, mut on_host) = (Opaque::at(0), Opaque::at(0));
    let mut places: [*mut c_void; 5] = [
        std::ptr::from_mut(&mut kind).cast(),
        std::ptr::from_mut(&mut on_device).cast(),
        std::ptr::from_mut(&mut on_host).cast(),
        std::ptr::from_mut(&mut is_managed).cast(),
        std::ptr::from_mut(&mut device).cast(),
    ];
    cuPointerGetAttributes(5, &ASKED, &mut places, at)?;
    let is_unknown = kind == 0;
    let kind = match (kind, is_managed) {
        (0, _) => UNREGISTERED,
        (_, 1) => MANAGED,
        (OF_HOST, _) => HOST,
        _ => DEVICE,
    };
    let on_host = if is_unknown { at } else { on_host };
    Ok(Attributes {
        kind,
        device,
        on_device,
        on_host,
        #[cfg(not(cuda_12))]
        reserved: [0; 8],
    })
}

export! {
    /// Returns what is known of an address.
    fn cudaPointerGetAttributes(out: Out<Attributes>, at: Opaque) {
        out.check()?;
        context::ready()?;
        out.set(read(at)?)
    }
}
