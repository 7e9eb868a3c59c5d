//! The boxes of tensors that copies in bulk move: `cp.async.bulk.tensor` in its tiled mode.

use super::transfer::{Piece, Place, Source};
use super::{aligned, inside};
use crate::gpu::code::Tensor;
use crate::gpu::exec::Context;
use crate::gpu::exec::warp::Warp;
use crate::gpu::mem::cells::Cells;
use crate::gpu::mem::space;
use crate::gpu::reason::Reason;
use crate::gpu::tensor_map::{self, Element, TensorMap};
use crate::gpu::vocabulary::AccessKind;

/// Bytes of which the place of a box in shared memory is a multiple.
const BOX_ALIGN: u64 = 128;
/// Bytes that a swizzle moves together.
const UNIT: u32 = 16;

/// A box of a tensor.
pub(super) struct TensorBox {
    map: TensorMap,
    /// The place in the tensor where it begins.
    at: Vec<i64>,
    /// Its rows in each dimension but the first.
    rows: Vec<u32>,
}

/// A part of a row: elements within the tensor, or outside of it.
struct Part {
    /// The address of its first element, if the elements are within the tensor.
    address: Option<u64>,
    bytes: u32,
}

impl TensorBox {
    /// The box that an instruction names in a lane.
    pub(super) fn of(cx: &Context, warp: &Warp, tensor: Tensor, lane: usize) -> Result<Self, Reason> {
        let address = warp.registers.b64[usize::from(tensor.map)][lane];
        aligned("tensor map", address, tensor_map::ALIGN)?;
        let map = map_at(cx, address).ok_or(Reason::NoTensorMap { address })?;
        let dimensions = [map.extents.len() as u32, u32::from(tensor.dimensions)];
        if dimensions[0] != dimensions[1] {
            return Err(Reason::OtherTensor { dimensions });
        }
        let coordinates = &tensor.at[..usize::from(tensor.dimensions)];
        let coordinate = |&slot: &u16| i64::from(warp.registers.b32[usize::from(slot)][lane] as i32);
        let at: Vec<i64> = coordinates.iter().map(coordinate).collect();
        let first = at[0] * i64::from(map.element.bytes());
        // An H200 stops at an illegal instruction.
        if first.rem_euclid(tensor_map::UNIT as i64) != 0 {
            return Err(Reason::BulkAlignment {
                what: "first coordinate",
                value: first.unsigned_abs(),
                align: tensor_map::UNIT,
            });
        }
        let rows = map.rows().collect();
        Ok(Self { map, at, rows })
    }

    /// The type of its elements.
    pub(super) fn element(&self) -> Element {
        self.map.element
    }

    /// The number of its rows.
    fn count(&self) -> u64 {
        self.rows.iter().map(|&rows| u64::from(rows)).product()
    }

    /// Bytes of its elements. Those of a box that fits into shared memory are exact.
    pub(super) fn bytes(&self) -> u32 {
        u32::try_from(self.count() * u64::from(self.map.row_bytes())).unwrap_or(u32::MAX)
    }

    /// Checks that the box fits into shared memory, at this place.
    fn fits(&self, cx: &Context, place: Place, access: AccessKind) -> Result<(), Reason> {
        aligned("box in shared memory", place.address(), BOX_ALIGN)?;
        let bytes = self.count() * u64::from(self.map.pitch());
        inside(cx, place, access, u32::try_from(bytes).unwrap_or(u32::MAX))
    }

    /// The pieces of a copy between a place in shared memory and the tensor; `loads`: to that
    /// place.
    pub(super) fn pieces(&self, cx: &Context, shared: Place, loads: bool) -> Result<Vec<Piece>, Reason> {
        self.fits(cx, shared, if loads { AccessKind::Store } else { AccessKind::Load })?;
        let Place::Shared { rank, offset: base } = shared else { return Ok(Vec::new()) };
        let (row_bytes, swizzle) = (self.map.row_bytes(), self.map.swizzle);
        let unit = if swizzle == 0 { row_bytes } else { UNIT };
        let mut pieces = Vec::new();
        for row in 0..self.count() {
            let start = self.start(row);
            let place = base + row * u64::from(self.map.pitch());
            for first in (0..row_bytes).step_by(unit as usize) {
                let mut offset = self.map.swizzled(place + u64::from(first));
                for Part { address, bytes } in self.parts(start, first, unit) {
                    let there = Place::Shared { rank, offset };
                    offset += u64::from(bytes);
                    let Some(address) = address.map(Place::Global) else {
                        if loads {
                            pieces.push(Piece { to: there, from: Source::Held(self.filling(bytes), true), bytes });
                        }
                        continue;
                    };
                    let access = if loads { AccessKind::Load } else { AccessKind::Store };
                    inside(cx, address, access, bytes)?;
                    let (to, from) = if loads { (there, address) } else { (address, there) };
                    pieces.push(Piece { to, from: Source::At(from), bytes });
                }
            }
        }
        Ok(pieces)
    }

    /// The address where a row of the box begins, which may lie before the tensor; `None` if the
    /// row is outside of it.
    fn start(&self, mut row: u64) -> Option<u64> {
        let mut address = self.map.address;
        for (index, &rows) in self.rows.iter().enumerate() {
            let dimension = index + 1;
            let within = (row % u64::from(rows)) as i64 * i64::from(self.map.steps[dimension]);
            row /= u64::from(rows);
            let place = u64::try_from(self.at[dimension] + within).ok()?;
            if place >= self.map.extents[dimension] {
                return None;
            }
            address = address.wrapping_add(place.wrapping_mul(self.map.strides[index]));
        }
        Some(address)
    }

    /// The parts of `bytes` bytes of a row, from byte `first` of it on.
    fn parts(&self, start: Option<u64>, first: u32, bytes: u32) -> Vec<Part> {
        let outside = |bytes: i64| Part { address: None, bytes: bytes as u32 };
        let Some(start) = start else { return vec![outside(i64::from(bytes))] };
        let width = i64::from(self.map.element.bytes());
        // The bytes of the tensor's row, counted from the first one of these.
        let begin = -(self.at[0] * width + i64::from(first));
        let end = begin.saturating_add((self.map.extents[0] as i64).saturating_mul(width));
        let [begin, end] = [begin, end].map(|place| place.clamp(0, i64::from(bytes)));
        let from = (self.at[0] * width + i64::from(first) + begin) as u64;
        let inside = Part { address: Some(start.wrapping_add(from)), bytes: (end - begin) as u32 };
        let parts = [outside(begin), inside, outside(i64::from(bytes) - end)];
        parts.into_iter().filter(|part| part.bytes != 0).collect()
    }

    /// The bytes of elements outside of the tensor.
    fn filling(&self, bytes: u32) -> Vec<u8> {
        let nan = tensor_map::NAN;
        let byte = |index: usize| if self.map.fills_with_nan { nan[index % nan.len()] } else { 0 };
        (0..bytes as usize).map(byte).collect()
    }
}

/// The map at a generic address of the parameters or of global memory.
fn map_at(cx: &Context, address: u64) -> Option<TensorMap> {
    let read = |cells: &dyn Fn(u64) -> u8| std::array::from_fn(|index| cells(index as u64));
    let bytes = match space::window(address) {
        space::PARAM => {
            let offset = address - space::PARAM;
            let end = offset + tensor_map::BYTES as u64;
            (end <= cx.params.bytes).then(|| read(&|index| cx.params.load8(offset + index)))?
        }
        _ => {
            let live = cx.global.find(address)?;
            live.offset(address, tensor_map::BYTES as u64)?;
            let offset = live.place(address);
            read(&|index| live.load8(offset + index))
        }
    };
    TensorMap::decode(&bytes)
}
