//! The tuning policy of each architecture: every number that chooses a kernel or cuts work.
//!
//! Measurements found these numbers, and `warpstride bench --tune` finds the shapes of tiles again
//! on any GPU. Each architecture has a file with one [`Tuning`]; one without a file uses the
//! H100's.

mod arithmetic;
mod movement;
mod sm_90;
mod tile_shape;

pub use tile_shape::TileShape;

pub(in crate::ops) use arithmetic::Arithmetic;
pub(in crate::ops) use movement::{Fields, InPlace, Packed, Permutes, Tiles};
pub(in crate::ops) use tile_shape::Kind;

use super::Target;
use super::units::VECTOR;
use crate::abi::{
    EntryId, FIELDS_THREADS, STACKED_QUADS, VECTOR_TILE_THREADS, ragged_tile_squares, vector_tile_squares,
};
use crate::launch_shape::MAX_SHARED_BYTES;

/// The policy that measurements on one architecture gave.
#[derive(Debug)]
pub(in crate::ops) struct Tuning {
    /// The architecture that was measured.
    compute_capability: (u32, u32),
    /// Most bytes of one side that move without hints to the L2 cache.
    unhinted: u64,
    /// How tiles are cut, by element width.
    tile_shapes: [TileShape; 5],
    /// Constants of permutes.
    pub(in crate::ops) permutes: Permutes,
    /// Constants of transposes in place.
    pub(in crate::ops) in_place: InPlace,
}

/// The H100 comes first, because other architectures use its policy.
static ALL: [Tuning; 1] = [sm_90::SM_90];

impl Tuning {
    /// Returns the policy of an architecture: its own, or the H100's.
    pub(in crate::ops) fn of(target: Target) -> &'static Self {
        let own = ALL.iter().find(|tuning| tuning.compute_capability == target.compute_capability);
        own.unwrap_or(&ALL[0])
    }

    /// Returns the policy for plans that do not depend on the architecture.
    pub(in crate::ops) fn common() -> &'static Self {
        &ALL[0]
    }

    /// Returns the dynamic shared memory of a block that moves `chunk` bytes of a large array of
    /// structs. The memory beyond the chunk keeps other blocks off the multiprocessor.
    /// Architectures without a policy were not measured and use the chunk alone.
    pub(in crate::ops) fn fields_room(&self, chunk: u32, target: Target) -> u32 {
        if target.compute_capability != self.compute_capability {
            return chunk;
        }
        let Fields { in_flight, shared, shared_of_block, .. } = self.permutes.fields;
        let blocks = (in_flight + chunk / 2) / chunk;
        let part = shared / blocks.max(1) - shared_of_block;
        // At most the memory that a launch may use by default.
        chunk.max(part.min(MAX_SHARED_BYTES) / VECTOR as u32 * VECTOR as u32)
    }
}

/// Returns the entry for a side of `bytes`: with hints to the L2 cache if the array is large
/// enough, the kernel has such a form and the target supports it.
pub(super) fn hinted(entry: EntryId, bytes: u64, target: Target) -> EntryId {
    if bytes <= Tuning::of(target).unhinted { entry } else { entry.hinted(target.compute_capability) }
}

// A policy that breaks a kernel's requirements does not compile.
const _: () = sm_90::SM_90.check();

impl Tuning {
    /// Checks the policy against the kernels' requirements.
    const fn check(&self) {
        let mut width = 0;
        while width < self.tile_shapes.len() {
            // The kernel was compiled for this number of micro-tiles in a tile.
            let shape = &self.tile_shapes[width];
            let [whole, ragged] = shape.micro_tiles();
            assert!(VECTOR_TILE_THREADS * vector_tile_squares(shape.width() as u32) == whole);
            assert!(VECTOR_TILE_THREADS * ragged_tile_squares(shape.width() as u32) == ragged);
            width += 1;
        }
        let Permutes { rows, fields, stacked, .. } = &self.permutes;
        // No vector may hold both ends of a run, on either side.
        let [of_1, of_2, of_4, of_8] = rows.shortest;
        assert!(of_1 >= 2 * VECTOR && of_2 >= 2 * VECTOR && of_4 >= 2 * VECTOR && of_8 >= 2 * VECTOR);
        // In a block that moves words, each thread also moves one of the elements that fill no
        // word: up to three bytes of each field.
        assert!(3 * fields.most <= FIELDS_THREADS as usize);
        // The kernel cannot take smaller matrices of wide elements.
        assert!(stacked.cached_matrix >= STACKED_QUADS * VECTOR);
    }
}
