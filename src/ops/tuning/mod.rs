//! The tuning policy: every number that chooses a kernel or cuts work, by architecture.
//!
//! Measurements found these numbers; `warpstride bench --tune` finds the shapes of tiles again, on
//! any GPU. An architecture has a file with one [`Tuning`]; those without one take the H100's.

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

/// What measurements on one architecture chose.
#[derive(Debug)]
pub(in crate::ops) struct Tuning {
    /// The architecture that was measured.
    compute_capability: (u32, u32),
    /// Most bytes of one side that are moved without hints to the L2 cache.
    unhinted: u64,
    /// How tiles are cut, by element width.
    tile_shapes: [TileShape; 5],
    /// Constants of permutes.
    pub(in crate::ops) permutes: Permutes,
    /// Constants of transposes in place.
    pub(in crate::ops) in_place: InPlace,
}

/// The H100 comes first, because others take its policy.
static ALL: [Tuning; 1] = [sm_90::SM_90];

impl Tuning {
    /// The policy of an architecture: its own, or that of an H100.
    pub(in crate::ops) fn of(target: Target) -> &'static Self {
        let own = ALL.iter().find(|tuning| tuning.compute_capability == target.compute_capability);
        own.unwrap_or(&ALL[0])
    }

    /// The policy of plans that are the same on every architecture.
    pub(in crate::ops) fn common() -> &'static Self {
        &ALL[0]
    }

    /// The dynamic shared memory of a block that moves `chunk` bytes of a large array of structs.
    /// What exceeds the chunk keeps other blocks off the multiprocessor. Of architectures without
    /// an own policy none was measured, and theirs is the chunk.
    pub(in crate::ops) fn fields_room(&self, chunk: u32, target: Target) -> u32 {
        if target.compute_capability != self.compute_capability {
            return chunk;
        }
        let Fields { in_flight, shared, shared_of_block, .. } = self.permutes.fields;
        let blocks = (in_flight + chunk / 2) / chunk;
        let part = shared / blocks.max(1) - shared_of_block;
        // At most what a launch has without asking.
        chunk.max(part.min(MAX_SHARED_BYTES) / VECTOR as u32 * VECTOR as u32)
    }
}

/// The entry for that many bytes of one side: with hints to the L2 cache, where the array is large
/// enough for them, the kernel comes with them and the target knows them.
pub(super) fn hinted(entry: EntryId, bytes: u64, target: Target) -> EntryId {
    if bytes <= Tuning::of(target).unhinted { entry } else { entry.hinted(target.compute_capability) }
}

// A policy that breaks what kernels demand does not build.
const _: () = sm_90::SM_90.check();

impl Tuning {
    /// Holds the policy to what kernels demand.
    const fn check(&self) {
        let mut width = 0;
        while width < self.tile_shapes.len() {
            // Tiles have the micro-tiles that the kernel was compiled with.
            let shape = &self.tile_shapes[width];
            let [whole, ragged] = shape.micro_tiles();
            assert!(VECTOR_TILE_THREADS * vector_tile_squares(shape.width() as u32) == whole);
            assert!(VECTOR_TILE_THREADS * ragged_tile_squares(shape.width() as u32) == ragged);
            width += 1;
        }
        let Permutes { rows, fields, stacked, .. } = &self.permutes;
        // No vector holds both ends of a run, of either side.
        assert!(rows.shortest >= 2 * VECTOR);
        // Each thread of a block that moves words moves one element of those that fill none: of
        // bytes, up to three of each field.
        assert!(3 * fields.most <= FIELDS_THREADS as usize);
        // Smaller matrices of wide elements are not taken, and must not be.
        assert!(stacked.cached_matrix >= STACKED_QUADS * VECTOR);
    }
}
