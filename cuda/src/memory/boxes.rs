//! Copies of boxes: rows of bytes, and slices of rows.

use std::ffi::c_uint;

use super::copy::{Extent, Operand, Planned, Timing, Wanted, check_context, copy};
use crate::arguments::{Handle, In};
use crate::code::{Failure, Outcome};
use crate::context::Context;
use crate::export::export;
use crate::stream::{Stream, stream};

const OF_HOST: c_uint = 1;
const OF_DEVICE: c_uint = 2;
const OF_ARRAY: c_uint = 3;
const UNIFIED: c_uint = 4;

/// A side of a copy of rows, as in `CUDA_MEMCPY2D`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Side2d {
    x: usize,
    y: usize,
    kind: c_uint,
    host: u64,
    device: u64,
    array: u64,
    pitch: usize,
}

/// A copy of rows, as in `CUDA_MEMCPY2D`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Copy2d {
    src: Side2d,
    dst: Side2d,
    width: usize,
    height: usize,
}

/// A side of a copy of slices, as in `CUDA_MEMCPY3D` and `CUDA_MEMCPY3D_PEER`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Side3d {
    x: usize,
    y: usize,
    z: usize,
    level: usize,
    kind: c_uint,
    host: u64,
    device: u64,
    array: u64,
    /// The context in a copy between devices, and otherwise reserved.
    context: Handle<Context>,
    pitch: usize,
    height: usize,
}

/// A copy of slices, as in `CUDA_MEMCPY3D` and `CUDA_MEMCPY3D_PEER`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Copy3d {
    src: Side3d,
    dst: Side3d,
    width: usize,
    height: usize,
    depth: usize,
}

/// Returns the first address of a kind of memory, and the sides that it may be.
fn place(kind: c_uint, host: u64, device: u64, extent: Extent) -> Outcome<(u64, Wanted)> {
    let place = match kind {
        OF_HOST => (host, Wanted::Host),
        OF_DEVICE => (device, Wanted::Device),
        UNIFIED => (device, Wanted::Any),
        OF_ARRAY => return Err(Failure::unsupported("the software GPU has no CUDA arrays; copy to linear memory")),
        _ => return Err(Failure::value(format!("{kind} is not a type of memory"))),
    };
    // A place within the box could hide it.
    if place.0 == 0 && !extent.is_empty() {
        return Err(Failure::value("the memory of a side of the copy is null; pass the address of its first row"));
    }
    Ok(place)
}

fn too_far() -> Failure {
    Failure::value("a side of the copy begins beyond the last address")
}

/// Returns the address of a place in a box.
fn at(base: u64, places: [(usize, usize); 3]) -> Outcome<u64> {
    places.into_iter().try_fold(base, |address, (count, step)| {
        let offset = count.checked_mul(step).ok_or_else(too_far)?;
        address.checked_add(offset as u64).ok_or_else(too_far)
    })
}

/// Refuses rows that end beyond the pitch.
fn check_pitch(x: usize, pitch: usize, extent: Extent) -> Outcome {
    let end = x.checked_add(extent.width).ok_or_else(too_far)?;
    if (extent.height > 1 || extent.depth > 1) && end > pitch {
        return Err(Failure::value(format!(
            "a row of the copy ends at byte {end}, beyond the pitch, which is {pitch}; pass the bytes between rows"
        )));
    }
    Ok(())
}

impl Side2d {
    fn operand(&self, extent: Extent) -> Outcome<Operand> {
        let (base, wanted) = place(self.kind, self.host, self.device, extent)?;
        check_pitch(self.x, self.pitch, extent)?;
        let address = at(base, [(self.x, 1), (self.y, self.pitch), (0, 0)])?;
        Ok(Operand { address, wanted, row_pitch: self.pitch, slice_pitch: 0 })
    }
}

impl Side3d {
    fn operand(&self, extent: Extent) -> Outcome<Operand> {
        let (base, wanted) = place(self.kind, self.host, self.device, extent)?;
        if self.level != 0 {
            return Err(Failure::value("the level of detail of a copy must be 0"));
        }
        check_pitch(self.x, self.pitch, extent)?;
        let rows = self.y.checked_add(extent.height).ok_or_else(too_far)?;
        if extent.depth > 1 && self.height < rows {
            return Err(Failure::value(format!(
                "a slice of the copy ends at row {rows}, beyond the height, which is {}; pass the rows between slices",
                self.height
            )));
        }
        let slice_pitch = self.pitch.checked_mul(self.height).ok_or_else(too_far)?;
        let address = at(base, [(self.x, 1), (self.y, self.pitch), (self.z, slice_pitch)])?;
        Ok(Operand { address, wanted, row_pitch: self.pitch, slice_pitch })
    }
}

fn copy_2d(of: In<Copy2d>, on: Handle<Stream>, timing: Timing) -> Outcome {
    let of = of.get()?;
    let stream = stream(on)?;
    let extent = Extent { width: of.width, height: of.height, depth: 1 };
    copy(of.dst.operand(extent)?, of.src.operand(extent)?, extent, &stream, timing)
}

impl Copy3d {
    fn extent(&self) -> Extent {
        Extent { width: self.width, height: self.height, depth: self.depth }
    }

    /// Checks the operands of a copy that a graph queues; returns `None` if it moves nothing.
    pub(crate) fn plan(&self) -> Outcome<Option<Planned>> {
        let extent = self.extent();
        Planned::new(self.dst.operand(extent)?, self.src.operand(extent)?, extent)
    }
}

fn copy_3d(of: &Copy3d, on: Handle<Stream>, timing: Timing) -> Outcome {
    let stream = stream(on)?;
    let extent = of.extent();
    copy(of.dst.operand(extent)?, of.src.operand(extent)?, extent, &stream, timing)
}

fn copy_3d_peer(of: In<Copy3d>, on: Handle<Stream>, timing: Timing) -> Outcome {
    let of = of.get()?;
    for side in [&of.src, &of.dst].into_iter().filter(|side| side.kind != OF_HOST) {
        check_context(side.context)?;
    }
    copy_3d(&of, on, timing)
}

use Timing::{Asynchronous, Synchronous};

export! {
    /// Copies rows.
    fn cuMemcpy2D_v2 as cuMemcpy2D, per_thread cuMemcpy2D_v2_ptds (of: In<Copy2d>) {
        copy_2d(of, Handle::NULL, Synchronous)
    }

    /// Copies rows of any pitch.
    fn cuMemcpy2DUnaligned_v2 as cuMemcpy2DUnaligned, per_thread cuMemcpy2DUnaligned_v2_ptds (of: In<Copy2d>) {
        copy_2d(of, Handle::NULL, Synchronous)
    }

    /// Queues a copy of rows.
    fn cuMemcpy2DAsync_v2 as cuMemcpy2DAsync, per_thread cuMemcpy2DAsync_v2_ptsz (
        of: In<Copy2d>, on: Handle<Stream>,
    ) {
        copy_2d(of, on, Asynchronous)
    }

    /// Copies slices.
    fn cuMemcpy3D_v2 as cuMemcpy3D, per_thread cuMemcpy3D_v2_ptds (of: In<Copy3d>) {
        copy_3d(&of.get()?, Handle::NULL, Synchronous)
    }

    /// Queues a copy of slices.
    fn cuMemcpy3DAsync_v2 as cuMemcpy3DAsync, per_thread cuMemcpy3DAsync_v2_ptsz (
        of: In<Copy3d>, on: Handle<Stream>,
    ) {
        copy_3d(&of.get()?, on, Asynchronous)
    }

    /// Copies slices between the devices of two contexts.
    fn cuMemcpy3DPeer, per_thread cuMemcpy3DPeer_ptds (of: In<Copy3d>) {
        copy_3d_peer(of, Handle::NULL, Synchronous)
    }

    /// Queues a copy of slices between the devices of two contexts.
    fn cuMemcpy3DPeerAsync, per_thread cuMemcpy3DPeerAsync_ptsz (of: In<Copy3d>, on: Handle<Stream>) {
        copy_3d_peer(of, on, Asynchronous)
    }
}
