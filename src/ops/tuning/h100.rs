//! The H100's policy, with the measurement that each value comes from.
//!
//! Cases give shape, width of an element and order of the axes. Speeds are relative to a copy of
//! the same bytes, or in GB/s. The runs are in `benches/record`.

use super::arithmetic::{Arithmetic, ColumnBlocks, Maps};
use super::measured::Measured;
use super::movement::{
    Boxes, BoxesBlock, BoxesGuess, BoxesIssue, BoxesLatency, BoxesLayout, BoxesMemory, BoxesSearch, BoxesShared,
    Estimates, Fields, InPlace, Permutes, Quads, Rows, Small, Splits, Tiles,
};
use super::tile_shape::TileShape;
use super::{Tuning, multiprocessor};
use crate::abi::boxes_registers;
use crate::device::Weights;
use crate::ops::Target;

/// The driver's figures for an H100 SXM with 80 GB: 3352 GB/s for 132 multiprocessors.
const TARGET: Target = {
    let mut target = Target::new((9, 0));
    target.bandwidth_per_multiprocessor = 25_396_363_636;
    target.l2_bytes = 50 << 20;
    target
};

pub(super) const H100: Measured = Measured { gpu: "an NVIDIA H100", target: TARGET, tuning: TUNING };

const TUNING: Tuning = Tuning {
    // The kernel that reads next does not find data that was stored to be evicted first. A copy of
    // what a copy with hints had just written took 9 % more time at 17 MiB, both together, and 3 %
    // at 24; from 32 MiB on the loss was no more than the hints had gained.
    unhinted: 32 << 20,
    tile_shapes: TILE_SHAPES,
    permutes: Permutes {
        small: SMALL,
        rows: ROWS,
        fields: FIELDS,
        quads: QUADS,
        tiles: TILES,
        boxes: BOXES,
        estimates: ESTIMATES,
    },
    in_place: IN_PLACE,
    arithmetic: ARITHMETIC,
    // With one 16-byte access a thread, the best copy found uses full blocks.
    copy_block: 1024,
    probe_threads: [128, 256, 512, 1024],
};

/// Measured on 16384 x 16384 and similar matrices: runs of 256 bytes on both sides matter, and
/// longer ones gain nothing.
const TILE_SHAPES: [TileShape; 5] = [
    TileShape { width: 1, micro_tiles_log2: 7, across_log2: 3, ragged_micro_tiles_log2: 7, ragged_across_log2: 3 },
    TileShape { width: 2, micro_tiles_log2: 8, across_log2: 4, ragged_micro_tiles_log2: 7, ragged_across_log2: 3 },
    TileShape { width: 4, micro_tiles_log2: 8, across_log2: 4, ragged_micro_tiles_log2: 7, ragged_across_log2: 4 },
    TileShape { width: 8, micro_tiles_log2: 9, across_log2: 4, ragged_micro_tiles_log2: 7, ragged_across_log2: 4 },
    TileShape { width: 16, micro_tiles_log2: 10, across_log2: 4, ragged_micro_tiles_log2: 8, ragged_across_log2: 4 },
];

/// `benches/record/small` has the sweeps that gave these bounds.
const SMALL: Small = Small {
    bytes: [1 << 20, 1 << 20, 2 << 20, 4 << 20, 8 << 20],
    cached: 16 << 20,
    patch_elements: 1 << 16,
    patch_bytes: 256 << 10,
    patches_elements: 1 << 18,
    patch_threads: 4,
    patch_across_log2: [3, 4],
    matrix_bytes: 8 << 20,
    micro_tiles_bytes: 1 << 20,
    micro_tiles_width: 4,
    filled_part: 2,
};

/// A run of 32 bytes has a whole vector wherever it starts.
const ROWS: Rows = Rows { shortest: 32, long: 4096 };

const FIELDS: Fields = Fields {
    most: 64,
    // The candidates were 128, 256 and 512 threads with 2, 3, 4, 6 and 8 vectors. Those with 3 were
    // slightly the best for large arrays, and for small ones only those with 2 were better.
    vector_threads: 128,
    // More bytes, or evicting all first, is 0.5 to 1 % slower.
    in_flight: 64 << 10,
    shared: multiprocessor::of(TARGET.compute_capability).shared,
    shared_of_block: multiprocessor::of(TARGET.compute_capability).shared_of_block,
};

const QUADS: Quads = Quads {
    smallest: 4 << 20,
    // A block of 40 KiB leaves room for four more on the multiprocessor.
    kept: 40 << 10,
    // Like `whole_axis`, the best of a few values over the drawn permutes of seed 7.
    tile_of_kept: 16 << 10,
    // benches/record/2026-11-25-h100/choices.md has the tiles that these are the best of, and the
    // cases behind the bounds below that name no record.
    tile: [[24 << 10; 2], [12 << 10, 24 << 10], [12 << 10, 24 << 10], [16 << 10, 12 << 10], [16 << 10; 2]],
    longer_stored: [2, 4, 4, 4, 1],
    whole_axis: TILES.run + 8,
    calm: 2,
    spread_run: 64,
    threads: 256,
};

const TILES: Tiles = Tiles {
    run: 256,
    // The writes of a small matrix stay in the L2 cache, so only its reads need long runs.
    small: 16 << 20,
    small_down_log2: 2,
    // Rows of 256 to 520 bytes that end within a sector moved 2 to 23 % faster when they were
    // joined with the axis that continues them.
    folded_row: 1024,
    // Columns of 2 MiB gained by this order, columns of 4 little, and columns of 8 and 12 lost: the
    // next column came too late for the lines that the two share.
    column: 4 << 20,
    fuller_part: 64,
    // Runs of the source of four micro-tiles are less than a line of the L2 cache.
    narrowest_log2: 2,
    narrow_part: 7,
    filled_part: 4,
};

/// The least expected loss of the choice among 17,433 timed boxes gave the figures of the estimate:
/// benches/record/2026-11-27-h100/boxes.md.
const BOXES: Boxes = Boxes {
    line: [48, 8192],
    tile: [1500, 62_000],
    blocks: [
        BoxesBlock { threads: 128, tile: [0, 14_000] },
        BoxesBlock { threads: 256, tile: [5000, 32_000] },
        BoxesBlock { threads: 512, tile: [12_000, u64::MAX] },
    ],
    // benches/record/2026-11-27-h100/boxes.md has the cases that this bound is for.
    smallest: 16 << 20,
    // Planning takes microseconds with so many boxes, and more of them gained little.
    search: BoxesSearch {
        most: 4096,
        longest_row: 1 << 17,
        cuts: [42, 56],
        parts: [1 << 14, 1 << 12],
        starts: 5,
        laid_out: 2,
        excess: 1.2,
        few: 64,
    },
    layout: BoxesLayout {
        gaps: [[0, 0], [0, 1], [0, 3], [1, 0], [1, 1], [1, 3]],
        gap: 0.02,
        turned: 0.3,
        slices: [1, 2, 3, 4, 6, 8, 12, 16, 32, 64],
        vector: [20, 5],
        line: [10, 3],
    },
    guess: BoxesGuess { conflicts: 2.0, slice: 8.0, rounds: 1.15 },
    splits: Splits {
        gap: 8,
        read: 0.45,
        read_end: 0.5,
        written_heads: 0.6,
        written_vectors: 3.7,
        written_elements: 6.0,
    },
    memory: BoxesMemory {
        byte: 0.05778,
        split_read: [0.7784, 1.622],
        split_written: [0.843, 1.053],
        row: 23.1,
        line: 7.619,
        far: 0.1809,
        long: 256.0,
        short_row: 0.0009523,
        short_line: 0.0009803,
    },
    shared: BoxesShared {
        gather: 0.5977,
        granule: [0.1681, 15.15],
        look_up: 0.1236,
        store: 0.4759,
        edge: 1.696,
        narrow: 0.9319,
    },
    issue: BoxesIssue {
        granule: 0.1191,
        element: 0.02397,
        vector: 0.2641,
        look_up: 0.09817,
        edge: 1.566,
        rebuilt: 3.518,
    },
    latency: BoxesLatency {
        load: 2177.0,
        load_round: 103.0,
        round: 518.5,
        element: 50.15,
        line: 289.1,
        thread: 0.03404,
        edges: 917.3,
        rebuilt: 200.0,
        tail: 2.582,
        start: 828.7,
        tables: [234.5, 998.1, 280.9],
    },
    multiprocessors: 132,
    threads: multiprocessor::of(TARGET.compute_capability).threads,
    registers: [1 << 16, boxes_registers(TARGET.compute_capability)],
    room: {
        let of = multiprocessor::of(TARGET.compute_capability);
        [of.shared, of.shared_of_block]
    },
    // benches/record/2026-11-28-h100/larger_boxes.md has the runs.
    larger: 1.06,
};

const ESTIMATES: Estimates = Estimates { enough: 1.08, gain: 0.985, weights: &WEIGHTS };

/// `benches/record/2026-11-27-h100/choices.md` says how these weights were fitted.
const WEIGHTS: Weights = Weights {
    whole_tiles: [
        [1.065, 0.047, 0.030, 0.0],
        [1.042, 0.045, 0.026, 0.0],
        [1.046, 0.007, 0.0, 0.0],
        [1.034, 0.022, 0.0, 0.0],
        [1.050, 0.019, 0.0, 0.050],
    ],
    ragged_tiles: [
        [1.121, 0.190, 0.143, 1.027, 0.131],
        [1.065, 0.180, 0.156, 0.778, 0.069],
        [1.015, 0.205, 0.198, 0.414, 0.0],
        [0.999, 0.172, 0.165, 0.173, 0.0],
        [1.026, 0.404, 0.100, 0.065, 0.002],
    ],
    fields: [
        [1.017, 0.090, 0.163, 0.043],
        [1.007, 0.083, 0.338, 0.042],
        [1.003, 0.115, 0.331, 0.052],
        [1.006, 0.032, 0.430, 0.027],
        [0.0; 4],
    ],
    quads: [
        [1.090, 0.165, 2.986, 0.305, 0.019, 1.129],
        [1.033, 0.249, 2.214, 0.203, 0.017, 0.418],
        [1.031, 0.132, 1.201, 0.111, 0.008, 0.525],
        [1.042, 0.130, 0.331, 0.0, 0.003, 0.356],
        [1.038, 0.0, 0.0, 0.060, 0.0, 0.995],
    ],
    boxes: [
        [0.558, 0.421, 0.371],
        [0.265, 0.742, 0.379],
        [0.156, 0.866, 0.208],
        [0.092, 0.939, 0.440],
        [0.103, 0.947, 0.411],
    ],
    rows: [[1.058, 5.149], [1.081, 4.939], [1.077, 3.243], [1.073, 1.748], [0.0; 2]],
    elements: [
        [1.046, 0.0, 0.32],
        [0.990, 0.0, 0.247],
        [1.049, 0.071, 0.085],
        [1.051, 0.054, 0.051],
        [1.026, 0.111, 0.023],
    ],
};

const IN_PLACE: InPlace = InPlace {
    scratch_part: 64,
    // Two for each of 132 multiprocessors.
    enough_panels: 264,
    // Four sectors are a line of the cache.
    panel_sectors: 4,
};

const ARITHMETIC: Arithmetic = Arithmetic {
    elementwise_block: 1024,
    binary_block: 256,
    fill_block: 1024,
    rows_block: 256,
    row_steps: 4,
    rows_of_bytes: [16, 8],
    column_steps: 4,
    column_vectors: 16,
    column_bytes: 512,
    column_blocks: ColumnBlocks {
        of_bytes: [[4 * 128, 5 * 132], [9 * 128, 9 * 132], [6 * 128, 6 * 132]],
        of_halves: [[6 * 128, 6 * 132], [6 * 128, 6 * 132], [4 * 128, 4 * 132]],
        of_shorts: [[3 * 128, 3 * 132], [3 * 128, 5 * 132], [4 * 128, 4 * 132]],
        of_wide: [2 * 128, 6 * 128],
        many: 6 * 128,
    },
    longest_column: 1024,
    part_bytes: 64 << 10,
    rowwise_block: 128,
    split_planes_from: 4,
    // The record has the runs: benches/record/2026-11-27-h100/maps.md.
    maps: Maps {
        enough: 1.1,
        images: 1.06,
        tiles: 1.1,
        quads: 1.05,
        weights: &WEIGHTS,
        elements: 1.1,
        kept: 1.02,
        per_element: 8.5,
        crossed: 5.0,
    },
};
