//! Copies of boxes: rows of bytes, and slices of rows.

use std::ffi::{c_int, c_uint};

use super::copy::Direction;
use crate::arguments::{In, Opaque};
use crate::code::{Failure, Outcome, code};
use crate::context;
use crate::driver::driver;
use crate::export::export;
use crate::types::{Context, Extent, PitchedPtr, Pos, Stream};

driver! {
    fn cuMemcpy2DUnaligned_v2(copy: &DriverCopy2d);
    fn cuMemcpy2DAsync_v2(copy: &DriverCopy2d, stream: Stream);
    fn cuMemcpy3D_v2(copy: &DriverCopy3d);
    fn cuMemcpy3DAsync_v2(copy: &DriverCopy3d, stream: Stream);
    fn cuMemcpy3DPeer(copy: &DriverCopy3d);
    fn cuMemcpy3DPeerAsync(copy: &DriverCopy3d, stream: Stream);
}

/// The kinds of memory of the driver; of unified memory, the address says the kind.
const OF_HOST: c_uint = 1;
const OF_DEVICE: c_uint = 2;
const OF_ARRAY: c_uint = 3;
const UNIFIED: c_uint = 4;

impl Direction {
    /// Returns the kinds of memory of the source and the destination.
    fn kinds(self) -> (c_uint, c_uint) {
        match self {
            Self::HostToHost => (OF_HOST, OF_HOST),
            Self::HostToDevice => (OF_HOST, OF_DEVICE),
            Self::DeviceToHost => (OF_DEVICE, OF_HOST),
            Self::DeviceToDevice => (OF_DEVICE, OF_DEVICE),
            Self::Default => (UNIFIED, UNIFIED),
        }
    }
}

/// A side of a copy of rows, as the driver has it.
#[repr(C)]
struct Side2d {
    x: usize,
    y: usize,
    kind: c_uint,
    host: Opaque,
    device: Opaque,
    array: Opaque,
    pitch: usize,
}

/// A copy of rows, as the driver has it.
#[repr(C)]
pub(crate) struct DriverCopy2d {
    src: Side2d,
    dst: Side2d,
    width: usize,
    height: usize,
}

/// A side of a copy of slices, as the driver has it.
#[derive(Clone, Copy)]
#[repr(C)]
struct Side3d {
    x: usize,
    y: usize,
    z: usize,
    level: usize,
    kind: c_uint,
    host: Opaque,
    device: Opaque,
    array: Opaque,
    context: Context,
    pitch: usize,
    height: usize,
}

/// A copy of slices, as the driver has it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct DriverCopy3d {
    src: Side3d,
    dst: Side3d,
    width: usize,
    height: usize,
    depth: usize,
}

/// A copy of slices, as the runtime has it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Copy3d {
    src_array: Opaque,
    src_pos: Pos,
    src: PitchedPtr,
    dst_array: Opaque,
    dst_pos: Pos,
    dst: PitchedPtr,
    extent: Extent,
    kind: c_uint,
}

/// A copy of slices between devices, as the runtime has it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Copy3dPeer {
    src_array: Opaque,
    src_pos: Pos,
    src: PitchedPtr,
    src_device: c_int,
    dst_array: Opaque,
    dst_pos: Pos,
    dst: PitchedPtr,
    dst_device: c_int,
    extent: Extent,
}

impl Side2d {
    fn new(pointer: Opaque, pitch: usize, kind: c_uint) -> Self {
        Self { x: 0, y: 0, kind, host: pointer, device: pointer, array: Opaque::at(0), pitch }
    }
}

impl Side3d {
    fn new(pos: Pos, at: PitchedPtr, kind: c_uint, context: Context) -> Self {
        let Pos { x, y, z } = pos;
        let PitchedPtr { pointer, pitch, height, .. } = at;
        let array = Opaque::at(0);
        Self { x, y, z, level: 0, kind, host: pointer, device: pointer, array, context, pitch, height }
    }

    /// Returns the place and the memory for the runtime.
    fn at(&self) -> (Pos, PitchedPtr) {
        let pointer = if self.kind == OF_HOST { self.host } else { self.device };
        let pos = Pos { x: self.x, y: self.y, z: self.z };
        (pos, PitchedPtr { pointer, pitch: self.pitch, width: self.pitch, height: self.height })
    }
}

fn refuse_arrays(arrays: [Opaque; 2]) -> Outcome {
    if arrays.iter().all(|array| array.is_null()) {
        return Ok(());
    }
    Err(no_arrays())
}

fn no_arrays() -> Failure {
    Failure::unsupported("the software GPU has no arrays; copy from and to memory")
}

impl Copy3d {
    /// Returns the copy for the driver.
    pub(crate) fn for_driver(&self) -> Outcome<DriverCopy3d> {
        refuse_arrays([self.src_array, self.dst_array])?;
        let (from, to) = Direction::of(self.kind)?.kinds();
        let Extent { width, height, depth } = self.extent;
        let src = Side3d::new(self.src_pos, self.src, from, Context::NULL);
        let dst = Side3d::new(self.dst_pos, self.dst, to, Context::NULL);
        Ok(DriverCopy3d { src, dst, width, height, depth })
    }
}

impl Copy3dPeer {
    fn for_driver(&self) -> Outcome<DriverCopy3d> {
        refuse_arrays([self.src_array, self.dst_array])?;
        context::check(self.src_device)?;
        context::check(self.dst_device)?;
        let Extent { width, height, depth } = self.extent;
        let src = Side3d::new(self.src_pos, self.src, OF_DEVICE, context::primary(self.src_device)?);
        let dst = Side3d::new(self.dst_pos, self.dst, OF_DEVICE, context::primary(self.dst_device)?);
        Ok(DriverCopy3d { src, dst, width, height, depth })
    }
}

impl DriverCopy3d {
    /// A copy of nothing, as a place for the driver's result.
    pub(crate) fn none() -> Self {
        let at = PitchedPtr { pointer: Opaque::at(0), pitch: 0, width: 0, height: 0 };
        let side = Side3d::new(Pos::default(), at, UNIFIED, Context::NULL);
        Self { src: side, dst: side, width: 0, height: 0, depth: 0 }
    }

    /// A copy of bytes in one row.
    pub(crate) fn of_bytes(dst: Opaque, src: Opaque, count: usize, kind: c_uint) -> Outcome<Self> {
        let (from, to) = Direction::of(kind)?.kinds();
        let side = |pointer, kind| {
            let at = PitchedPtr { pointer, pitch: count, width: count, height: 1 };
            Side3d::new(Pos::default(), at, kind, Context::NULL)
        };
        Ok(Self { src: side(src, from), dst: side(dst, to), width: count, height: 1, depth: 1 })
    }

    /// Returns the copy for the runtime.
    pub(crate) fn for_runtime(&self) -> Outcome<Copy3d> {
        let kind = match (self.src.kind, self.dst.kind) {
            (OF_ARRAY, _) | (_, OF_ARRAY) => return Err(no_arrays()),
            (OF_HOST, OF_HOST) => 0,
            (OF_HOST, OF_DEVICE) => 1,
            (OF_DEVICE, OF_HOST) => 2,
            (OF_DEVICE, OF_DEVICE) => 3,
            _ => 4,
        };
        let ((src_pos, src), (dst_pos, dst)) = (self.src.at(), self.dst.at());
        let extent = Extent { width: self.width, height: self.height, depth: self.depth };
        let none = Opaque::at(0);
        Ok(Copy3d { src_array: none, src_pos, src, dst_array: none, dst_pos, dst, extent, kind })
    }
}

/// Makes the driver's copy of rows.
fn rows(
    (dst, dst_pitch): (Opaque, usize),
    (src, src_pitch): (Opaque, usize),
    width: usize,
    height: usize,
    kind: c_uint,
) -> Outcome<DriverCopy2d> {
    let (from, to) = Direction::of(kind)?.kinds();
    if width > dst_pitch || width > src_pitch {
        let why = format!(
            "rows of {width} B are wider than one of the pitches, {dst_pitch} B and {src_pitch} B; pass larger ones"
        );
        return Err(Failure::new(code::INVALID_PITCH, why));
    }
    context::ready()?;
    Ok(DriverCopy2d { src: Side2d::new(src, src_pitch, from), dst: Side2d::new(dst, dst_pitch, to), width, height })
}

export! {
    /// Copies rows.
    fn cudaMemcpy2D, per_thread cudaMemcpy2D_ptds (
        dst: Opaque, dst_pitch: usize, src: Opaque, src_pitch: usize, width: usize, height: usize, kind: c_uint,
    ) {
        cuMemcpy2DUnaligned_v2(&rows((dst, dst_pitch), (src, src_pitch), width, height, kind)?)
    }

    /// Copies rows in a stream.
    fn cudaMemcpy2DAsync, per_thread cudaMemcpy2DAsync_ptsz (
        dst: Opaque, dst_pitch: usize, src: Opaque, src_pitch: usize, width: usize, height: usize, kind: c_uint,
        stream: Stream,
    ) {
        cuMemcpy2DAsync_v2(&rows((dst, dst_pitch), (src, src_pitch), width, height, kind)?, stream)
    }

    /// Copies slices.
    fn cudaMemcpy3D, per_thread cudaMemcpy3D_ptds (copy: In<Copy3d>) {
        let copy = copy.get()?.for_driver()?;
        context::ready()?;
        cuMemcpy3D_v2(&copy)
    }

    /// Copies slices in a stream.
    fn cudaMemcpy3DAsync, per_thread cudaMemcpy3DAsync_ptsz (copy: In<Copy3d>, stream: Stream) {
        let copy = copy.get()?.for_driver()?;
        context::ready()?;
        cuMemcpy3DAsync_v2(&copy, stream)
    }

    /// Copies slices between devices.
    fn cudaMemcpy3DPeer, per_thread cudaMemcpy3DPeer_ptds (copy: In<Copy3dPeer>) {
        let copy = copy.get()?.for_driver()?;
        context::ready()?;
        cuMemcpy3DPeer(&copy)
    }

    /// Copies slices between devices in a stream.
    fn cudaMemcpy3DPeerAsync, per_thread cudaMemcpy3DPeerAsync_ptsz (copy: In<Copy3dPeer>, stream: Stream) {
        let copy = copy.get()?.for_driver()?;
        context::ready()?;
        cuMemcpy3DPeerAsync(&copy, stream)
    }
}
