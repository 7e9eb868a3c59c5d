//! The description of an array's elements, which programs make without an array.

use std::ffi::{c_int, c_uint};

/// The bits of each channel of an element, and the kind of number.
#[repr(C)]
struct ChannelDesc {
    x: c_int,
    y: c_int,
    z: c_int,
    w: c_int,
    kind: c_uint,
}

/// Returns the description of an element.
#[unsafe(no_mangle)]
extern "C" fn cudaCreateChannelDesc(x: c_int, y: c_int, z: c_int, w: c_int, kind: c_uint) -> ChannelDesc {
    ChannelDesc { x, y, z, w, kind }
}
