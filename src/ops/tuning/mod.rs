//! The tuning policy of each GPU: every number that chooses a kernel or cuts work.
//!
//! A policy is keyed on what decides these numbers: the compute capability, the speed of memory for
//! each multiprocessor, and the size of the L2 cache ([`Target`]). GPUs that were measured have a
//! file each (`h100.rs`, `h200.rs`). Every other GPU gets the H100's numbers by a rule (`rule.rs`):
//! thresholds that stand for a part of the L2 cache stay the same part of it, and so on. A
//! [`Target`] has the numbers that `warpstride bench --tune` found on the user's GPU as a value,
//! which replaces those.
//!
//! A policy is a value that [`Tuning::of`] makes from a [`Target`] alone, some hundred bytes of
//! constants and a few products. So plans stay functions of layouts and a target, nothing is
//! allocated, and no table grows with the targets that a program asks for.

mod arithmetic;
mod h100;
mod h200;
mod measured;
mod movement;
mod multiprocessor;
mod policy;
mod rule;
mod tile_shape;

pub use policy::Policy;
pub use tile_shape::TileShape;

pub(in crate::ops) use arithmetic::{Arithmetic, Maps};
pub(in crate::ops) use movement::{
    Boxes, BoxesBlock, BoxesLayout, BoxesSearch, Fields, InPlace, Permutes, Quads, Splits, Tiles,
};
pub(in crate::ops) use tile_shape::RowEnds;

use super::Target;
use super::units::VECTOR;
use crate::abi::{EntryId, FIELDS_THREADS, VECTOR_TILE_THREADS, ragged_tile_squares, vector_tile_squares};
use crate::device::Weights;
use crate::launch_shape::{MAX_SHARED_BYTES, is_block};
use measured::Measured;

/// The policy of one GPU.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Tuning {
    /// Most bytes of one side that move without hints to the L2 cache.
    unhinted: u64,
    /// How tiles are cut, by element width.
    tile_shapes: [TileShape; 5],
    /// Constants of permutes.
    pub(in crate::ops) permutes: Permutes,
    /// Constants of transposes in place.
    pub(in crate::ops) in_place: InPlace,
    /// Constants of arithmetic and conversions.
    pub(in crate::ops) arithmetic: Arithmetic,
    /// Threads in a block of a copy.
    pub(in crate::ops) copy_block: u32,
    /// Threads in a block of a probe: the numbers that a search for ceilings tries.
    pub(in crate::ops) probe_threads: [u32; 4],
}

impl Weights {
    /// Returns the weights by which plans for a target choose.
    pub fn of(target: Target) -> Self {
        *Tuning::of(target).permutes.estimates.weights
    }
}

impl Tuning {
    /// Returns the policy of a target.
    pub(in crate::ops) fn of(target: Target) -> Self {
        let mut tuning = Measured::find(target).map_or_else(|| rule::of(target), |row| row.tuning);
        if target.multiprocessors != 0 {
            tuning.permutes.boxes.multiprocessors = target.multiprocessors;
        }
        if let Some(tuned) = target.tuned {
            for (shape, across) in tuning.tile_shapes.iter_mut().zip(tuned.across_log2()) {
                *shape = shape.with_across(across[0], across[1]);
            }
            tuning.copy_block = tuned.copy_block();
            tuning.arithmetic.fill_block = tuned.fill_block();
        }
        if let Some(tuned) = target.weights {
            tuning.permutes.estimates.weights = tuned.weights();
        }
        tuning
    }

    /// Returns the policy for plans that do not depend on the GPU.
    pub(in crate::ops) fn common() -> &'static Self {
        &measured::MEASURED[0].tuning
    }

    /// Returns how tiles of elements of this width are cut, if there are such tiles.
    pub(in crate::ops) fn tile_shape(&self, width: usize) -> Option<TileShape> {
        self.tile_shapes.iter().find(|shape| shape.width() == width).copied()
    }

    /// Returns the entry for a side of `bytes`: with hints to the L2 cache if the array is large
    /// enough, the kernel has such a form and the target supports it.
    pub(in crate::ops) fn hinted(&self, entry: EntryId, bytes: u64, target: Target) -> EntryId {
        if bytes <= self.unhinted { entry } else { entry.hinted(target.compute_capability) }
    }

    /// Returns the dynamic shared memory of a block that moves `chunk` bytes of a large array of
    /// structs. The memory beyond the chunk keeps other blocks off the multiprocessor.
    pub(in crate::ops) fn fields_room(&self, chunk: u32) -> u32 {
        let Fields { in_flight, shared, shared_of_block, .. } = self.permutes.fields;
        let blocks = (in_flight + chunk / 2) / chunk;
        let part = (shared / blocks.max(1)).saturating_sub(shared_of_block);
        // At most the memory that a launch may use by default.
        chunk.max(part.min(MAX_SHARED_BYTES) / VECTOR as u32 * VECTOR as u32)
    }

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
        // The kernels take whole warps, up to the most of a block.
        let Arithmetic { elementwise_block, fill_block, .. } = self.arithmetic;
        assert!(is_block(self.copy_block) && is_block(elementwise_block) && is_block(fill_block));
        let Permutes { rows, fields, .. } = &self.permutes;
        // No vector may hold both ends of a run, on either side.
        assert!(rows.shortest >= 2 * VECTOR);
        // In a block that moves words, each thread also moves one of the elements that fill no
        // word: up to three bytes of each field.
        assert!(3 * fields.most <= FIELDS_THREADS as usize);
    }
}

// A policy that breaks a kernel's requirements does not compile; a test checks the rule's.
const _: () = {
    h100::H100.tuning.check();
    h200::H200.tuning.check();
};
