//! Plans by tiles: the kernel of each size, and how its tiles are cut and numbered. Where sizes
//! decide, an H100 was found to move them faster so.

use warpstride::layout::Layout;
use warpstride::ops::{Align, PermutePlan, Plan, TileShape};

use crate::plan::{TARGET, c_order, permute, permuted};

/// A plan's kernel begins with the first, and its text holds the parts of the second.
type Says = (&'static str, &'static str);

#[track_caller]
fn check(shape: &[usize], axes: &[usize], width: usize, (kernel, says): Says) {
    let plan = permuted(shape, axes, width);
    assert!(plan.entry().unwrap().starts_with(kernel), "{shape:?} by {axes:?}: {plan}, not {kernel}");
    let missing = says.split("; ").find(|part| !plan.to_string().contains(part));
    assert_eq!(missing, None, "{shape:?} by {axes:?}: {plan}");
}

#[test]
fn a_matrix_has_the_kernel_of_its_size() {
    for (rows, cols, width, kernel) in [
        (1, 1, 4, "copy_"),
        (3, 5, 4, "patch_"),
        (256, 256, 1, "patch_"),
        (256, 260, 1, "staggered_"),
        (1023, 1025, 1, "staggered_"),
        (1024, 1024, 1, "small_tile_"),
        (512, 512, 2, "staggered_"),
        (256, 256, 4, "patch_"),
        (256, 260, 4, "small_tile_"),
        (255, 260, 4, "staggered_"),
        (181, 181, 8, "patch_"),
        (182, 182, 8, "small_tile_"),
        (129, 127, 16, "patch_"),
        (129, 129, 16, "small_tile_"),
        (2048, 1024, 4, "small_tile_"),
        (2048, 1028, 4, "vector_tile_"),
        (2047, 1025, 4, "ragged_tile_"),
        // If the result is larger than 16 MiB, two tiles' parts of one sector may not meet in the
        // L2 cache.
        (2056, 2052, 4, "vector_tile_"),
        (2060, 2052, 4, "ragged_tile_"),
        // Rows of the source that start between lines of 128 bytes are slow to tile.
        (1088, 1032, 16, "vector_tile_"),
        (1088, 1025, 16, "packed_quads_"),
        (1031, 1025, 16, "ragged_tile_"),
        // With few columns, most of a tile would be empty.
        (4096, 3, 1, "patch_"),
        (40_001, 3, 4, "elements_"),
        (1_000_001, 3, 4, "deinterleave_b"),
        (1_000_000, 3, 4, "deinterleave_quads_"),
        // Whole structs fill the blocks; of 16 fields, lanes that move vectors would share banks.
        (1 << 24, 8, 4, "deinterleave_quads_b32"),
        (8, 1 << 24, 4, "interleave_quads_b32"),
        (1 << 23, 24, 2, "deinterleave_quads_b16"),
        (1 << 22, 8, 8, "deinterleave_quads_b64"),
        (1 << 24, 16, 4, "deinterleave_b32"),
        (1 << 22, 16, 2, "deinterleave_b16"),
    ] {
        check(&[rows, cols], &[1, 0], width, (kernel, ""));
    }
}

#[test]
fn batches_of_matrices_have_the_kernel_of_their_sizes() {
    for (shape, width, kernel) in [
        ([16, 64, 64], 4, "patch_"),
        ([64, 64, 64], 4, "patch_"),
        ([65, 64, 64], 4, "elements_"),
        ([1024, 64, 64], 4, "vector_tile_"),
        // As many patches that are mostly empty are no longer small.
        ([1024, 3, 5], 4, "patch_"),
        ([16_384, 3, 5], 4, "elements_"),
        ([65_536, 64, 64], 2, "boxes_b16"),
        ([65_536, 16, 16], 1, "packed_quads_b8"),
        ([65_536, 16, 16], 2, "packed_quads_b16"),
        ([65_536, 16, 16], 4, "packed_quads_b32"),
        ([65_536, 32, 32], 4, "vector_tile_b32"),
        // Images of structs fill a part of a block.
        ([20_000, 24, 24], 4, "packed_quads_b32"),
    ] {
        check(&shape, &[0, 2, 1], width, (kernel, ""));
    }
}

#[test]
fn arrays_of_many_axes_have_the_kernel_of_their_sizes() {
    check(&[3, 4, 5], &[2, 1, 0], 4, ("patch_", ""));
    check(&[3, 4, 5, 6], &[3, 2, 1, 0], 4, ("patch_", ""));
    // Beyond two axes of images no parameters for patches are left.
    assert!(!permuted(&[3, 4, 5, 6, 7], &[4, 3, 2, 1, 0], 4).entry().unwrap().starts_with("patch"));
    // With folded rows, tiles of two axes are faster than those of several.
    check(&[512, 512, 511], &[2, 1, 0], 1, ("boxes_b8_hinted", ""));
    check(&[508, 512, 511], &[2, 1, 0], 1, ("ragged_tile_b8_hinted", ""));
    check(&[24, 25, 26, 27, 28], &[4, 2, 0, 3, 1], 4, ("ragged_tile_b32_hinted", ""));
    // With nine quads a row, most of a tile's second column would be empty.
    check(&[24, 25, 26, 27, 33], &[4, 2, 0, 3, 1], 4, ("packed_quads_b32_hinted", ""));
    // Runs of 509 bytes move by vectors in tiles of several axes. These have no kernel beyond
    // narrow indices, and boxes do.
    check(&[2, 43_000, 509], &[1, 0, 2], 1, ("packed_quads_", ""));
    check(&[2, 4_300_000, 509], &[1, 0, 2], 1, ("boxes_b8_hinted", ""));
    let src = Layout::row_major(&[6249, 9, 2048]).unwrap().reverse(2).unwrap().permuted_axes(&[1, 0, 2]).unwrap();
    let turned = |width| permute(&src, &Layout::row_major(src.shape()).unwrap(), width).entry().unwrap();
    assert!(turned(1).starts_with("boxes_") && turned(4).starts_with("elements_"));
}

/// Blocks that run together move what is contiguous on one side.
#[test]
fn whole_tiles_follow_each_other_along_the_side_whose_axis_is_shorter() {
    for (shape, axes, width, says) in [
        (&[8192, 8192][..], &[1, 0][..], 4, "1 of 8192 x 8192 elements; of 16 micro-tiles; along the rows"),
        (&[512, 512, 512], &[1, 2, 0], 4, "1 of 512 x 262144 elements; of 16 micro-tiles; down the columns"),
        (&[512, 512, 512], &[2, 0, 1], 4, "1 of 262144 x 512 elements; of 16 micro-tiles; along the rows"),
        // The axis between goes to either side.
        (&[512, 512, 512], &[2, 1, 0], 4, "1 of 512 x 262144 elements; of 16 micro-tiles; along the rows"),
        (&[640, 512, 384], &[2, 1, 0], 2, "1 of 640 x 196608 elements; of 16 micro-tiles; along the rows"),
        (&[384, 512, 640], &[2, 1, 0], 2, "1 of 196608 x 640 elements; of 16 micro-tiles; down the columns"),
        // With 416 columns, the last tile of each row would be half empty.
        (&[384, 400, 416], &[2, 1, 0], 4, "1 of 384 x 166400 elements; of 16 micro-tiles; along the rows"),
        // Short runs go on on both sides.
        (&[24, 24, 24, 24, 24, 24], &[5, 3, 1, 4, 2, 0], 4, "576 of 576 x 576 elements; of 16 micro-tiles"),
    ] {
        check(shape, axes, width, ("", says));
    }
}

#[test]
fn ragged_tiles_are_numbered_down_the_columns_that_stay_in_the_cache() {
    for (rows, cols, width, says) in [
        (8191, 8193, 4, "down the columns"),
        (16_383, 513, 8, "down the columns"),
        (16_385, 513, 8, "along the rows"),
        (129, 100_003, 4, "down the columns"),
        // Tiles of whole rows share nothing.
        (8192, 8192, 4, "along the rows"),
    ] {
        let plan = permute(&c_order(rows, cols).t(), &c_order(cols, rows), width).to_string();
        assert!(plan.contains(says), "{plan}, not {says}");
    }
}

/// Returns the text of the plan of the same work by tiles, which may not be the fastest.
fn by_tiles(plan: &PermutePlan) -> String {
    let mut ways = plan.ways().into_iter().map(|way| way.to_string());
    let is_by_tiles = |way: &String| way.starts_with("vector_tile_") || way.starts_with("ragged_tile_");
    ways.find(is_by_tiles).unwrap_or_else(|| panic!("no tiles for {plan}"))
}

/// The tiles tuned for large matrices would be half empty.
#[test]
fn ragged_tiles_are_cut_to_be_full() {
    for (shape, axes, width, says) in [
        (&[33, 65, 127, 129][..], &[3, 1, 0, 2][..], 4, "65 of 4191 x 129 elements; of 8 micro-tiles"),
        (&[1000, 255, 257], &[0, 2, 1], 4, "1000 of 255 x 257 elements; of 8 micro-tiles"),
        (&[2000, 257, 255], &[0, 2, 1], 1, "2000 of 257 x 255 elements; of 16 micro-tiles"),
        (&[511, 257, 1025], &[2, 1, 0], 1, "1 of 131327 x 1025 elements; of 8 micro-tiles"),
        (&[65, 257, 1025], &[2, 1, 0], 8, "1 of 16705 x 1025 elements; of 16 micro-tiles"),
        (&[100_003, 65], &[1, 0], 8, "1 of 100003 x 65 elements; of 8 micro-tiles"),
        // As they were tuned.
        (&[16_383, 16_385], &[1, 0], 1, "1 of 16383 x 16385 elements; of 8 micro-tiles"),
        (&[8191, 8193], &[1, 0], 2, "1 of 8191 x 8193 elements; of 8 micro-tiles"),
        (&[8191, 8193], &[1, 0], 4, "1 of 8191 x 8193 elements; of 16 micro-tiles"),
        (&[8191, 8193], &[1, 0], 8, "1 of 8191 x 8193 elements; of 16 micro-tiles"),
        // Rows that end on sectors gain nothing by being one.
        (&[128, 64, 1025], &[2, 1, 0], 4, "64 of 128 x 1025 elements; of 8 micro-tiles"),
    ] {
        let plan = by_tiles(&permuted(shape, axes, width));
        let missing = says.split("; ").find(|part| !plan.contains(part));
        assert!(plan.starts_with("ragged_tile_") && missing.is_none(), "{shape:?} by {axes:?}: {plan}");
    }
}

/// Axes that are short, or that end within a sector, go on along the next axis.
#[test]
fn rows_and_columns_of_tiles_are_runs_of_two_axes() {
    for (shape, width, says) in [
        (&[16, 6, 2, 3, 8, 16][..], 4, "6 of 96 x 128 elements"),
        (&[16, 6, 2, 3, 8, 16], 16, "36 of 16 x 128 elements"),
        (&[16, 9, 3, 2, 8, 12], 2, "6 of 144 x 96 elements"),
        (&[16, 14, 1, 2, 13, 8], 8, "2 of 224 x 104 elements"),
        (&[16, 5, 3, 2, 17, 6], 8, "6 of 80 x 102 elements"),
        (&[33, 5, 3, 133], 4, "3 of 165 x 133 elements"),
        (&[61, 7, 2, 67], 8, "2 of 427 x 67 elements"),
        (&[61, 7, 2, 67], 16, "1 of 427 x 134 elements"),
        (&[37, 41, 1, 300], 4, "1 of 1517 x 300 elements"),
    ] {
        let src = Layout::row_major(shape).unwrap().t();
        let plan = by_tiles(&permute(&src, &Layout::row_major(src.shape()).unwrap(), width));
        assert!(plan.contains(says), "{shape:?} of {width} bytes: {plan}, not {says}");
    }
}

#[test]
fn images_follow_each_other_along_the_side_that_tiles_follow() {
    let order = |shape: &[usize]| {
        let plan = format!("{:?}", permuted(shape, &[4, 3, 2, 1, 0], 4));
        let numbers = |after: &str, before: &str| -> Vec<usize> {
            let rest = plan.split_once(after).unwrap().1;
            let texts = rest.split(before).map(|text| text.trim_start_matches('['));
            texts.filter_map(|text| text.split([',', ']']).next().unwrap().parse().ok()).collect()
        };
        // The batch names axes of the work by their places.
        let extents = numbers("canonical: Canonical", "extent: ");
        numbers("batch: ", ", ")[..2].iter().map(|&place| extents[place]).collect::<Vec<_>>()
    };
    // Along the source's rows, which the last two axes are, or along the destination's, which the
    // first two are.
    assert_eq!(order(&[128, 36, 40, 32, 64]), [40, 36]);
    assert_eq!(order(&[64, 32, 36, 40, 128]), [36, 40]);
}

#[test]
fn short_ragged_runs_of_large_arrays_move_in_tiles_of_several_axes() {
    for (images, width) in [(5000, 8), (20_000, 2), (50_000, 2)] {
        // They lie apart, so that they are not structs.
        let src = Layout::row_major(&[images, 15, 41]).unwrap().slice(2, ..39, 1).unwrap();
        let src = src.permuted_axes(&[0, 2, 1]).unwrap();
        let dst = Layout::row_major(&[images, 39, 17]).unwrap().slice(2, ..15, 1).unwrap();
        let (align, target) = (Align::ALLOCATION, TARGET);
        let plan = PermutePlan::new(&src, align, &dst, align, width, target).unwrap().to_string();
        assert!(plan.starts_with("packed_quads"), "{plan}");
    }
}

/// `bench --tune` times tiles of each shape, also those that the estimates say are slow.
#[test]
fn tiles_that_are_given_are_taken() {
    for (tile, (rows, cols)) in
        TileShape::of(TARGET).into_iter().flat_map(|tile| [(2048, 8192), (4096, 4099)].map(|sides| (tile, sides)))
    {
        for across in 0..=tile.most_across(cols % 2 == 1) {
            let (src, dst) = (c_order(rows, cols).t(), c_order(cols, rows));
            let (align, tiles) = (Align::ALLOCATION, [tile.with_across(across, across)]);
            let plan = PermutePlan::tuned(&src, align, &dst, align, tile.width(), TARGET, &tiles).unwrap();
            let is_ragged = cols % 2 == 1 && tile.width() < 16;
            let kernel = if is_ragged { "ragged_tile_" } else { "vector_tile_" };
            assert!(plan.entry().is_some_and(|entry| entry.starts_with(kernel)), "{plan}, not {kernel}");
        }
    }
}
