//! Tensor maps, by which kernels copy boxes of tensors.

use std::ffi::{c_int, c_uint};

use warpstride::interp::tensor_map::{ALIGN, BYTES, Element, TensorMap};

use crate::arguments::{In, Opaque};
use crate::code::{Failure, Outcome, code};
use crate::export::export;
use crate::process::process;

/// The most dimensions that are read of a caller's lists; the map itself may refuse fewer.
const MOST_DIMENSIONS: u32 = 5;
/// The elements side by side, without an interleaved layout.
const NOT_INTERLEAVED: c_int = 0;
/// The swizzles of 0, 32, 64 and 128 bytes by their numbers.
const SWIZZLES: [u32; 4] = [0, 32, 64, 128];
/// The greatest number of a promotion in L2, which changes no result.
const MOST_PROMOTION: c_int = 3;

/// The place for a map.
fn place(map: Opaque) -> Outcome<Opaque> {
    match map.is_null() || !map.address().is_multiple_of(ALIGN) {
        true => Err(Failure::value(format!("the map at {:#x} is not at a multiple of {ALIGN} bytes", map.address()))),
        false => Ok(map),
    }
}

/// Refuses a map that a GPU would refuse, and writes any other one.
fn write(to: Opaque, map: &TensorMap) -> Outcome {
    if let Some(wrong) = map.wrong() {
        return Err(Failure::value(wrong));
    }
    to.write_at(0, &map.encode());
    Ok(())
}

/// Refuses the modes that CUDA or the software GPU does not have.
fn check_modes(interleave: c_int, swizzle: c_int, promotion: c_int, fill: c_int) -> Outcome {
    if interleave != NOT_INTERLEAVED {
        let why = "the software GPU has no interleaved layouts of tensors; use CU_TENSOR_MAP_INTERLEAVE_NONE";
        return Err(Failure::new(code::NOT_SUPPORTED, why));
    }
    if usize::try_from(swizzle).is_ok_and(|number| (SWIZZLES.len()..SWIZZLES.len() + 3).contains(&number)) {
        let why = "the software GPU has swizzles of units of 16 bytes alone";
        return Err(Failure::new(code::NOT_SUPPORTED, why));
    }
    let is_known = (0..SWIZZLES.len() as c_int).contains(&swizzle)
        && (0..=MOST_PROMOTION).contains(&promotion)
        && (0..=1).contains(&fill);
    match is_known {
        true => Ok(()),
        false => Err(Failure::value("a swizzle, a promotion or a filling is not one of CUDA's")),
    }
}

export! {
    /// Describes a tensor, of which kernels copy boxes in tiled mode.
    fn cuTensorMapEncodeTiled(
        map: Opaque,
        element: c_uint,
        rank: c_uint,
        address: u64,
        extents: In<u64>,
        strides: In<u64>,
        boxes: In<c_uint>,
        steps: In<c_uint>,
        interleave: c_int,
        swizzle: c_int,
        promotion: c_int,
        fill: c_int,
    ) {
        process()?;
        let map = place(map)?;
        if !(1..=MOST_DIMENSIONS).contains(&rank) {
            return Err(Failure::value(format!("a tensor has 1 to {MOST_DIMENSIONS} dimensions, and {rank} are given")));
        }
        check_modes(interleave, swizzle, promotion, fill)?;
        let count = rank as usize;
        let element =
            Element::new(element).ok_or_else(|| Failure::value(format!("{element} is not a type of elements")))?;
        write(map, &TensorMap {
            address,
            element,
            extents: extents.list(count)?,
            strides: strides.list(count - 1)?,
            boxes: boxes.list(count)?,
            steps: steps.list(count)?,
            swizzle: SWIZZLES[swizzle as usize],
            fills_with_nan: fill == 1,
        })
    }

    /// Gives a map the address of another tensor.
    fn cuTensorMapReplaceAddress(map: Opaque, address: u64) {
        process()?;
        let to = place(map)?;
        let mut bytes = [0; BYTES];
        to.read_at(0, &mut bytes);
        let before = TensorMap::decode(&bytes)
            .ok_or_else(|| Failure::value("the bytes are not a tensor map of this library"))?;
        write(to, &TensorMap { address, ..before })
    }
}
