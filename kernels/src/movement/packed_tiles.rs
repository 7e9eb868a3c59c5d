//! Finds the tile of a block, and the positions of its runs, for `packed_quads`.

use crate::abi::{Axis, Digit, Divisor, PackedTiles};
use crate::block;
use crate::index::axes;
use crate::index::{Index, Narrow, quotient};
use crate::thread::{Global, Word};

/// The offset of a run past the end of a chunked axis.
pub const PAST: u32 = u32::MAX;

/// The part of both arrays that a block moves.
pub struct Block<'a> {
    tiles: &'a PackedTiles,
    /// The first element of the source.
    pub src: Global,
    /// The first element of the destination.
    pub dst: Global,
    /// Valid indices of the chunked axes.
    pub valid: [u32; 2],
}

impl<'a> Block<'a> {
    /// Returns the part of this block, with elements of these two widths.
    #[inline(always)]
    pub fn new<F: Word, T: Word>(tiles: &'a PackedTiles) -> Self {
        let number = block::linear::<Narrow>();
        let [first, second] = &tiles.chunks;
        let above = number.divide(&second.extent);
        let images = above.divide(&first.extent);
        let parts = [axes::remainder(above, images, &first.extent), axes::remainder(number, above, &second.extent)];
        let [starts] = axes::offsets([images], &tiles.axes, tiles.rank);
        let along = |stride: fn(&Axis) -> i64, start: Narrow| {
            let step = |axis: &Axis, part: Narrow| part * Narrow::truncate(stride(axis) as u64);
            start + step(first, parts[0]) + step(second, parts[1])
        };
        let valid = |which: usize| {
            let left = Narrow::truncate(tiles.extents[which]) - parts[which] * Narrow::truncate(tiles.chunk[which]);
            let most = tiles.chunk[which] as u32;
            if left < Narrow::new(most) { left.low() } else { most }
        };
        let src = Global::new(tiles.src).offset(along(|axis| axis.src_stride, starts.src).bytes::<F>());
        let dst = Global::new(tiles.dst).offset(along(|axis| axis.dst_stride, starts.dst).bytes::<T>());
        Self { tiles, src, dst, valid: [valid(0), valid(1)] }
    }

    /// Returns the elements of this tile's runs: `len`, or `unit` for each valid index of the
    /// chunked axis that ends them.
    #[inline(always)]
    pub fn len(&self, chunk: u64, unit: u64, len: u64) -> u32 {
        match chunk {
            0 => unit as u32 * self.valid[0],
            1 => unit as u32 * self.valid[1],
            _ => len as u32,
        }
    }

    /// Returns the limits of [`walk`] for the chunked axes at these positions.
    #[inline(always)]
    pub fn limits(&self, chunked: [u64; 2]) -> [(u64, u32); 2] {
        [(chunked[0], self.valid[0]), (chunked[1], self.valid[1])]
    }

    /// Returns whether these bytes of the source may be read although only a part belongs to the
    /// run: they lie inside the elements.
    #[inline(always)]
    pub fn is_inside(&self, at: Global, bytes: u32) -> bool {
        let (start, end) = (Global::new(self.tiles.src_start), Global::new(self.tiles.src_end));
        self.tiles.src_end != 0 && !at.is_before(start) && !end.is_before(at.offset(u64::from(bytes)))
    }
}

/// Offsets in elements, and in bytes of shared memory, or [`PAST`].
pub struct Place {
    /// The offset in global memory.
    pub stride: u32,
    /// The offset in shared memory.
    pub room: u32,
}

/// No axis is limited.
pub const NO_LIMITS: [(u64, u32); 2] = [(u64::MAX, 0); 2];

/// Returns the offsets of a number by its digits; the last digit is not reduced. It returns
/// [`PAST`] if the digit of a limited axis is not below its limit.
#[expect(unused_assignments, reason = "the last axis has no rest to go on with")]
#[inline(always)]
pub fn walk<const AXES: usize>(number: u32, digits: &[Digit; AXES], rank: u64, limits: [(u64, u32); 2]) -> Place {
    let (mut rest, mut place, mut past) = (number, Place { stride: 0, room: 0 }, false);
    macro_rules! walk {
        ($($axis:literal)*) => {
            'walk: {$(
                if AXES <= $axis || rank as u32 <= $axis {
                    break 'walk;
                }
                let Digit { extent, multiplier, shift, room, stride } = digits[$axis];
                let by = Divisor {
                    value: u64::from(extent), multiplier: u64::from(multiplier), shift: u64::from(shift)
                };
                let above = if rank as u32 == $axis + 1 { 0 } else { quotient(rest, &by) };
                let position = rest - above * extent;
                for (of, limit) in limits {
                    past |= of as u32 == $axis && position >= limit;
                }
                place.stride = place.stride.wrapping_add(position.wrapping_mul(stride as u32));
                place.room = place.room.wrapping_add(position.wrapping_mul(room));
                rest = above;
            )*}
        };
    }
    walk!(0 1 2 3 4 5);
    Place { room: if past { PAST } else { place.room }, ..place }
}
