//! How plans cut and number tiles, and when they take others: as an H100 was found to move them
//! faster.

use warpstride::layout::Layout;
use warpstride::ops::Plan;

use crate::plan::{c_order, permute, permuted};

#[test]
fn ragged_tiles_are_numbered_down_the_columns_that_stay_in_the_cache() {
    for (rows, cols, width, expected) in [
        (8191, 8193, 4, "down the columns"),
        (16_383, 513, 8, "down the columns"),
        (16_385, 513, 8, "along the rows"),
        (129, 100_003, 4, "down the columns"),
        // Tiles of whole rows share nothing.
        (8192, 8192, 4, "along the rows"),
    ] {
        let src = c_order(rows, cols);
        let plan = permute(&src.t(), &c_order(cols, rows), width).to_string();
        assert!(plan.contains(expected), "{plan}, not {expected}");
    }
}

/// As an H100 was found to move them faster: blocks that run together move what is contiguous on
/// one side.
#[test]
fn whole_tiles_follow_each_other_along_the_side_whose_axis_is_shorter() {
    for (shape, axes, width, expected) in [
        (
            &[8192, 8192][..],
            &[1, 0][..],
            4,
            "1 of 8192 x 8192 elements, tiles of 16 micro-tiles a row, numbered along the rows",
        ),
        (
            &[512, 512, 512],
            &[1, 2, 0],
            4,
            "1 of 512 x 262144 elements, tiles of 16 micro-tiles a row, numbered down the columns",
        ),
        (
            &[512, 512, 512],
            &[2, 0, 1],
            4,
            "1 of 262144 x 512 elements, tiles of 16 micro-tiles a row, numbered along the rows",
        ),
        // The axis between goes to either side.
        (
            &[512, 512, 512],
            &[2, 1, 0],
            4,
            "1 of 512 x 262144 elements, tiles of 16 micro-tiles a row, numbered along the rows",
        ),
        (
            &[640, 512, 384],
            &[2, 1, 0],
            2,
            "1 of 640 x 196608 elements, tiles of 16 micro-tiles a row, numbered along the rows",
        ),
        (
            &[384, 512, 640],
            &[2, 1, 0],
            2,
            "1 of 196608 x 640 elements, tiles of 16 micro-tiles a row, numbered down the columns",
        ),
        // Of 416 columns, the last tile of each row would be half empty.
        (
            &[384, 400, 416],
            &[2, 1, 0],
            4,
            "1 of 384 x 166400 elements, tiles of 16 micro-tiles a row, numbered along the rows",
        ),
        // Short runs go on on both sides.
        (&[24, 24, 24, 24, 24, 24], &[5, 3, 1, 4, 2, 0], 4, "576 of 576 x 576 elements, tiles of 16 micro-tiles a row"),
    ] {
        let plan = permuted(shape, axes, width);
        assert!(plan.to_string().contains(expected), "{plan}, not {expected}");
    }
}

#[test]
fn images_follow_each_other_along_the_side_that_tiles_follow() {
    let order = |shape: &[usize]| {
        let plan = format!("{:?}", permuted(shape, &[4, 3, 2, 1, 0], 4));
        let batch = plan.split(" axes: [").nth(1).unwrap();
        let extents =
            batch.split("value: ").skip(1).map(|rest| rest.split(',').next().unwrap().parse::<usize>().unwrap());
        extents.take(2).collect::<Vec<_>>()
    };
    // Along the source's rows, which the last two axes are, or along the destination's, which the
    // first two are.
    assert_eq!(order(&[128, 36, 40, 32, 64]), [40, 36]);
    assert_eq!(order(&[64, 32, 36, 40, 128]), [36, 40]);
}

#[test]
fn whole_structs_are_moved_by_quads_where_these_fill_the_blocks() {
    for (shape, axes, width, expected) in [
        (&[1 << 24, 8][..], &[1, 0][..], 4, "deinterleave_quads_b32"),
        (&[8, 1 << 24], &[1, 0], 4, "interleave_quads_b32"),
        (&[1 << 23, 24], &[1, 0], 2, "deinterleave_quads_b16"),
        (&[1 << 22, 8], &[1, 0], 8, "deinterleave_quads_b64"),
        // Lanes would share banks.
        (&[1 << 24, 16], &[1, 0], 4, "vector_tile_b32"),
        (&[1 << 22, 16], &[1, 0], 2, "vector_tile_b16"),
        // Images fill a part of a block.
        (&[20_000, 24, 24], &[0, 2, 1], 4, "packed_quads_b32"),
    ] {
        let plan = permuted(shape, axes, width);
        assert_eq!(plan.entry().map(|entry| entry.trim_end_matches("_hinted")), Some(expected), "{plan}");
    }
}

#[test]
fn small_matrices_of_narrow_elements_are_stacked() {
    for (shape, width, expected) in [
        ([65_536, 64, 64], 2, "stacked_tile_b16"),
        ([65_536, 16, 16], 1, "stacked_tile_b8"),
        // As an H100 was found to move them faster.
        ([65_536, 16, 16], 2, "packed_quads_b16"),
        ([65_536, 16, 16], 4, "packed_quads_b32"),
        ([65_536, 32, 32], 4, "packed_quads_b32"),
    ] {
        let plan = permuted(&shape, &[0, 2, 1], width);
        assert_eq!(plan.entry().map(|entry| entry.trim_end_matches("_hinted")), Some(expected), "{plan}");
    }
}

/// As an H100 was found to move them faster, where the tiles tuned for large matrices are half
/// empty.
#[test]
fn ragged_tiles_are_cut_to_be_full() {
    for (shape, axes, width, expected) in [
        (&[33, 65, 127, 129][..], &[3, 1, 0, 2][..], 4, "65 of 4191 x 129 elements, tiles of 8 micro-tiles a row"),
        (&[1000, 255, 257], &[0, 2, 1], 4, "1000 of 255 x 257 elements, tiles of 8 micro-tiles a row"),
        (&[2000, 257, 255], &[0, 2, 1], 1, "2000 of 257 x 255 elements, tiles of 16 micro-tiles a row"),
        (&[511, 257, 1025], &[2, 1, 0], 1, "1 of 131327 x 1025 elements, tiles of 8 micro-tiles a row"),
        (&[65, 257, 1025], &[2, 1, 0], 8, "1 of 16705 x 1025 elements, tiles of 16 micro-tiles a row"),
        (&[100_003, 65], &[1, 0], 8, "1 of 100003 x 65 elements, tiles of 8 micro-tiles a row"),
        // As they were tuned.
        (&[16_383, 16_385], &[1, 0], 1, "1 of 16383 x 16385 elements, tiles of 8 micro-tiles a row"),
        (&[8191, 8193], &[1, 0], 2, "1 of 8191 x 8193 elements, tiles of 8 micro-tiles a row"),
        (&[8191, 8193], &[1, 0], 4, "1 of 8191 x 8193 elements, tiles of 16 micro-tiles a row"),
        (&[8191, 8193], &[1, 0], 8, "1 of 8191 x 8193 elements, tiles of 16 micro-tiles a row"),
        // Rows that end on sectors gain nothing by being one.
        (&[128, 64, 1025], &[2, 1, 0], 4, "64 of 128 x 1025 elements, tiles of 8 micro-tiles a row"),
    ] {
        let plan = permuted(shape, axes, width);
        assert!(plan.to_string().contains(expected), "{plan}, not {expected}");
    }
}

/// With joined or folded rows, tiles are faster than what packs axes.
#[test]
fn full_ragged_tiles_are_taken_rather_than_packed_axes() {
    for (shape, axes, width, expected) in [
        (&[512, 512, 511][..], &[2, 1, 0][..], 1, "ragged_tile_b8_hinted"),
        (&[508, 512, 511], &[2, 1, 0], 1, "ragged_tile_b8_hinted"),
        (&[24, 25, 26, 27, 28], &[4, 2, 0, 3, 1], 4, "ragged_tile_b32_hinted"),
        // Of nine quads a row, most of a tile's second column would be empty.
        (&[24, 25, 26, 27, 33], &[4, 2, 0, 3, 1], 4, "packed_quads_b32_hinted"),
    ] {
        let plan = permuted(shape, axes, width);
        assert_eq!(plan.entry(), Some(expected), "{plan}");
    }
}

#[test]
fn short_ragged_runs_are_packed_whatever_the_array_s_size() {
    for (images, width) in [(500, 2), (500, 4), (500, 8), (5000, 8)] {
        // Apart, so that they are no structs.
        let src = Layout::row_major(&[images, 15, 41]).unwrap().slice(2, ..39, 1).unwrap();
        let src = src.permuted_axes(&[0, 2, 1]).unwrap();
        let dst = Layout::row_major(&[images, 39, 17]).unwrap().slice(2, ..15, 1).unwrap();
        let plan = permute(&src, &dst, width).to_string();
        assert!(plan.starts_with("packed"), "{plan}");
    }
}
