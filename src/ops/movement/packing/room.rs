//! Places a tile in shared memory as its runs lie in the source.

use super::growth::Packing;
use crate::layout::MAX_RANK;
use crate::ops::units::VECTOR;

/// The strides of a tile's axes in shared memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Bytes from one index to the next of each axis.
    pub(super) strides: [usize; MAX_RANK],
    /// Bytes of the whole tile.
    pub(super) bytes: usize,
}

impl Packing {
    /// Returns the shortest strides in shared memory with which each vector keeps its place: in the
    /// source's order, each run at its offset from a multiple of 16 bytes. Along the destination's
    /// nearest axis runs have some more bytes `between` them, a multiple of 16.
    pub(super) fn room(&self, aligned: bool, between: usize) -> Room {
        let (mut strides, mut bytes, in_vector) = ([0; MAX_RANK], self.src.width, VECTOR - 1);
        let inner = &self.src.axes[..self.src.inner];
        for (place, axis) in inner.iter().copied().chain(self.outer(&self.src)).enumerate() {
            let outside = place >= self.src.inner;
            strides[axis] = if !outside && (!aligned || bytes & in_vector != 0) {
                bytes
            } else {
                let natural = (self.axes[axis].src as usize).wrapping_mul(self.src.width);
                // The end of a run and the start of the next must not share a vector.
                let least = if outside && !aligned { bytes + in_vector } else { bytes };
                let between = if outside && axis == self.dst.axes[0] { between } else { 0 };
                between + least + (natural.wrapping_sub(least) & in_vector)
            };
            bytes = strides[axis] * self.taken[axis];
        }
        Room { strides, bytes }
    }
}
