//! The H100's policy, with the measurement that each value comes from.
//!
//! Cases give shape, width of an element and order of the axes. Speeds are relative to a copy of
//! the same bytes, or in GB/s. The runs are in `benches/record`.

use super::arithmetic::Arithmetic;
use super::measured::Measured;
use super::movement::{
    Boxes, BoxesBlock, BoxesIssue, BoxesLatency, BoxesMemory, BoxesShared, Fields, InPlace, Packed, Permutes, Quads,
    Rows, Small, Splits, Stacked, Tiles,
};
use super::tile_shape::TileShape;
use super::{Tuning, multiprocessor};
use crate::abi::boxes_registers;
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
        stacked: STACKED,
        packed: PACKED,
        quads: QUADS,
        tiles: TILES,
        boxes: BOXES,
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

/// `benches/record/2026-11-23-h100/strategies.md` has the runs beside `elements`: from 4 bytes on,
/// `elements` was up to 38 % faster with runs of 132 to 520 bytes, and as fast with long ones. Of 2
/// bytes it was 19 % faster with runs of 130 bytes, and 11 % slower with 16380.
///
/// Runs of 509 and 670 bytes had 0.70 and 0.74 of the copy, and 0.87 both in tiles
/// (`benches/record/2026-11-25-h100/choices.md`).
const ROWS: Rows = Rows { shortest: [64, 528, 4096, 4096], shortest_of_large: [1024, 1024, 4096, 4096], long: 4096 };

const FIELDS: Fields = Fields {
    most: 64,
    // By words, structs of 2 bytes to 41 floats were between 1 % slower and 10 % faster than by
    // `packed_quads`, with blocks that are at most a quarter idle. Two cases with more idle were 18
    // and 21 % slower: benches/record/2026-11-24-h100/choices.md.
    few: 16,
    few_idle_part: 4,
    // Two words of 4 bytes a thread.
    smallest_image: 2048,
    // Structs of 4 to 56 fields without idle bytes were 0 to 2 % faster than by tiles.
    idle_part: 16,
    // The candidates were 128, 256 and 512 threads with 2, 3, 4, 6 and 8 vectors. Those with 3 were
    // slightly the best for large arrays, and for small ones only those with 2 were better.
    vector_threads: 128,
    // More bytes, or evicting all first, is 0.5 to 1 % slower.
    in_flight: 64 << 10,
    shared: multiprocessor::of(TARGET.compute_capability).shared,
    shared_of_block: multiprocessor::of(TARGET.compute_capability).shared_of_block,
};

const STACKED: Stacked = Stacked {
    cached_matrix: 1024,
    // u16 8 x 8 reach 0.87 of the copy by `packed` and 0.85 stacked; 8 x 16 reach 0.81 and 0.90.
    packed_matrix: 128,
    filled_part: 4,
};

const PACKED: Packed = Packed {
    // The best sum over the cases swept, from 8, 12, 16 and 24 KiB. Wide elements need more bytes
    // for runs of 256 bytes and longer on both sides.
    tile: [12 << 10, 16 << 10],
    // The software GPU's counts of tiles of 256 and of 1024 bytes beside `elements` gave this, not
    // times.
    smallest_tile: 1024,
    smallest: 2048,
    short_run: TILES.run / 2,
    // Tiles of 33 x 34 are half empty and slower than packed ones; 61 x 73 is faster by tiles.
    short_run_of_8: 3 * TILES.run / 2,
    short_run_of_16: 4 * TILES.run,
    // With sources of runs of 20 to 84 bytes, ragged tiles were 1.17 to 1.51 times as fast as
    // `packed` where the destination's axis has 652 to 12791 bytes, and 0.57 times with 46:
    // benches/record/2026-11-24-h100/choices.md.
    long_stored: TILES.run,
    // Compared with equal runs and 128 threads, these weights and the costs below were the best.
    weights: [[1, 1], [2, 1], [1, 2]],
    split_costs: [1, 2],
    start_steps: 4,
    threads: [128, 160, 192, 224, 256],
    spread_part: 4,
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
    threads: 256,
    // With 4 and 8 lanes on a bank, tiles of bytes were 1.17 and 1.33 times as fast as `packed`:
    // benches/record/2026-11-23-h100/alternatives.md. With 8 and 16 bytes no more than 16 and 8
    // lanes load at once, so these take any number.
    ways: [[8, 4, 16, 16, 8], [8, 8, 16, 16, 8]],
    empty_part: 16,
    longest_of_vectors: TILES.run / 2 - 1,
    longest_together: [4 * TILES.run, 4 * TILES.run, 2 * TILES.run, 2 * TILES.run, 2 * TILES.run],
    // benches/record/2026-11-23-h200/random.md has u16 in runs of 6 bytes by `packed` at a third of
    // PyTorch's speed, and f32 in runs of 28 by `packed_quads` at a half; an H100 has f64 in runs
    // of 152 behind CuPy, and by `elements` such runs at a copy's speed.
    shortest_with_gaps: [0, 16, TILES.run, TILES.run, 0],
    shortest_apart: 3 * TILES.run,
    shortest: 64,
    // The same record has bytes in runs of 82 to 189 bytes at 0.65 to 1.00 of the speed of
    // `packed`, and 2 bytes in runs of 372 at 1.31.
    shortest_stored: [2 * TILES.run, TILES.run + TILES.run / 4],
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
    empty_part: 4,
    // benches/record/2026-11-25-h100/choices.md has cases that full ragged tiles are better for.
    long_tenths: [7, 6],
    sparse_hundredths: 65,
    long_row: 320,
    narrow_run: 32,
};

/// The least expected loss of the choice among 17,433 timed boxes gave the figures of the estimate:
/// benches/record/2026-11-27-h100/boxes.md.
const BOXES: Boxes = Boxes {
    line: [48, 8192],
    tile: [1500, 45_000],
    blocks: [
        BoxesBlock { threads: 128, tile: [0, 14_000] },
        BoxesBlock { threads: 256, tile: [5000, 32_000] },
        BoxesBlock { threads: 512, tile: [12_000, u64::MAX] },
    ],
    // benches/record/2026-11-27-h100/boxes.md has the cases that these bounds are for.
    smallest: 16 << 20,
    smallest_stepped: 32 << 20,
    shortest_run: 128,
    ways: 3,
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
    fill_block: 1024,
    rows_block: 256,
    row_steps: 4,
    column_steps: 4,
    column_vectors: 16,
    column_bytes: 512,
    vector_blocks: 256,
    vector_blocks_at_once: 768,
    longest_column: 1024,
    part_bytes: 64 << 10,
    rowwise_block: 128,
    split_planes_from: 4,
    padded_part: 4,
};
