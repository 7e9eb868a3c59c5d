//! The H200's policy: the rule's, with what was measured in its place.

use super::measured::Measured;
use super::tile_shape::TileShape;
use super::{Tuning, rule};
use crate::ops::Target;

/// The driver's figures for an H200 SXM with 141 GB: 4.9 TB/s for 132 multiprocessors.
const TARGET: Target = {
    let mut target = Target::new((9, 0));
    target.bandwidth_per_multiprocessor = 37_000_000_000;
    target.l2_bytes = 60 << 20;
    target
};

pub(super) const H200: Measured = Measured { gpu: "an NVIDIA H200", target: TARGET, tuning: TUNING };

/// `bench --tune` found the blocks of a copy and the tiles
/// (benches/record/2026-11-23-h200/tune.md).
const TUNING: Tuning = {
    let mut tuning = rule::of(TARGET);
    // Copies of blocks of 1024 were slower, so that permutes were faster than they.
    tuning.copy_block = 256;
    tuning.tile_shapes = TILE_SHAPES;
    tuning
};

/// Ragged tiles of 4 and 8 bytes are 8 and 9 % faster with 8 micro-tiles a row than with 16.
const TILE_SHAPES: [TileShape; 5] = [
    TileShape { width: 1, micro_tiles_log2: 7, across_log2: 3, ragged_micro_tiles_log2: 7, ragged_across_log2: 3 },
    TileShape { width: 2, micro_tiles_log2: 8, across_log2: 4, ragged_micro_tiles_log2: 7, ragged_across_log2: 3 },
    TileShape { width: 4, micro_tiles_log2: 8, across_log2: 4, ragged_micro_tiles_log2: 7, ragged_across_log2: 3 },
    TileShape { width: 8, micro_tiles_log2: 9, across_log2: 4, ragged_micro_tiles_log2: 7, ragged_across_log2: 3 },
    TileShape { width: 16, micro_tiles_log2: 10, across_log2: 4, ragged_micro_tiles_log2: 8, ragged_across_log2: 4 },
];
