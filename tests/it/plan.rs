//! Plans from layouts alone: which kernel, in which grid, and what is refused.

use warpstride::abi::{TILE, TILE_ROWS, WIDTHS};
use warpstride::launch_shape::MAX_GRID_YZ;
use warpstride::layout::Layout;
use warpstride::ops::{Align, PermutePlan, Plan, Target, TileShape, TransposePlan, Variant};
use warpstride::{Error, ErrorKind};

pub(crate) fn c_order(rows: usize, cols: usize) -> Layout {
    Layout::row_major(&[rows, cols]).unwrap()
}

/// The plan of a C-order source into a C-order destination.
fn plan(rows: usize, cols: usize, width: usize, variant: Variant) -> TransposePlan {
    TransposePlan::new(&c_order(rows, cols), &c_order(cols, rows), width, variant).unwrap()
}

pub(crate) const TARGET: Target = Target::new((9, 0));

/// The plan between storages that are aligned as allocations are, by the kernels for large arrays.
pub(crate) fn permute(src: &Layout, dst: &Layout, width: usize) -> PermutePlan {
    large(src, Align::ALLOCATION, dst, Align::ALLOCATION, width)
}

fn large(src: &Layout, src_align: Align, dst: &Layout, dst_align: Align, width: usize) -> PermutePlan {
    PermutePlan::tuned(src, src_align, dst, dst_align, width, TARGET, &TileShape::of(TARGET)).unwrap()
}

/// The plan of a C-order array's axes in another order, into C order.
pub(crate) fn permuted(shape: &[usize], axes: &[usize], width: usize) -> PermutePlan {
    let src = Layout::row_major(shape).unwrap().permuted_axes(axes).unwrap();
    let dst = Layout::row_major(src.shape()).unwrap();
    PermutePlan::new(&src, Align::ALLOCATION, &dst, Align::ALLOCATION, width, TARGET).unwrap()
}

#[test]
fn variants_have_the_names_that_scripts_rely_on() {
    let names = Variant::ALL.map(|variant| variant.to_string());
    assert_eq!(names, ["column_loop", "naive", "tiled", "padded", "staggered"]);
    for variant in Variant::ALL {
        assert_eq!(variant.name().parse(), Ok(variant));
    }
    assert_eq!("swizzled".parse(), Ok(Variant::Staggered));
    let error: Error = "Padded".parse::<Variant>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("`Padded`") && error.to_string().contains("staggered"), "{error}");
}

#[test]
fn a_variant_is_taken_as_it_is_at_every_width() {
    for (width, bits) in WIDTHS.into_iter().zip(["b8", "b16", "b32", "b64", "b128"]) {
        for variant in Variant::ALL {
            let plan = plan(100, 33, width, variant);
            assert_eq!(plan.entry().unwrap(), format!("{variant}_{bits}"));
            let columns = variant == Variant::ColumnLoop;
            assert_eq!(plan.launches(), if columns { 33 } else { 1 });
            let shape = plan.shape().unwrap();
            if columns {
                assert_eq!((shape.grid, shape.block), ([1, 1, 1], [256, 1, 1]));
            } else {
                assert_eq!((shape.grid, shape.block), ([2, 4, 1], [TILE, TILE_ROWS, 1]));
            }
        }
    }
}

#[test]
fn what_lies_in_memory_alike_is_a_copy() {
    let fortran = Layout::column_major(&[100, 33]).unwrap();
    let backwards = fortran.reverse(0).unwrap();
    let cube = Layout::row_major(&[4, 5, 6]).unwrap().permuted_axes(&[2, 0, 1]).unwrap();
    let one = Layout::new(&[1, 1], &[7, -9], 3, 5).unwrap();
    for layout in [c_order(100, 33), fortran, backwards, backwards.t(), cube, cube.reverse(1).unwrap(), one] {
        let plan = permute(&layout, &layout, 4);
        let expected = if layout == one { "elements_b32" } else { "copy_b128_hinted" };
        assert_eq!((plan.entry(), plan.explain().written), (Some(expected), 4 * layout.len() as u64), "{layout:?}");
    }
    // Layouts that only shapes tell apart, and an axis cut in two.
    let column = Layout::new(&[7, 1], &[1, 100], 0, 7).unwrap();
    assert_eq!(permute(&column, &c_order(7, 1), 4).entry(), Some("copy_b128_hinted"));
    let halves = Layout::row_major(&[12]).unwrap().split_axis(0, &[3, 4]).unwrap();
    assert_eq!(permute(&halves, &c_order(3, 4), 8).entry(), Some("copy_b128_hinted"));
    // Backwards on one side only, with gaps, repeated: no copies of bytes.
    let gaps = c_order(4, 8).slice(1, ..6, 1).unwrap();
    let repeated = Layout::row_major(&[6]).unwrap().broadcast(&[4, 6]).unwrap();
    for src in [c_order(4, 6).reverse(0).unwrap(), Layout::column_major(&[4, 6]).unwrap(), gaps, repeated] {
        let entry = permute(&src, &c_order(4, 6), 16).entry();
        assert!(entry.is_some_and(|entry| !entry.starts_with("copy")), "{src:?}: {entry:?}");
    }
}

#[test]
fn elements_that_stay_together_move_together() {
    let at = |align: u64, offset: usize, pitch: isize, width: usize| {
        let src = Layout::new(&[10, 16], &[pitch, 1], offset, 1 << 20).unwrap();
        let plan = large(&src, Align::of(align), &c_order(10, 16), Align::ALLOCATION, width);
        plan.entry().unwrap()
    };
    assert_eq!(at(256, 0, 64, 1), "elements_b128");
    assert_eq!(at(256, 16, 64, 1), "elements_b128");
    assert_eq!(at(8, 0, 64, 1), "elements_b64");
    assert_eq!(at(256, 12, 64, 1), "elements_b32");
    assert_eq!(at(256, 0, 50, 1), "elements_b16");
    assert_eq!(at(256, 0, 49, 1), "elements_b8");
    assert_eq!(at(256, 0, 49, 8), "elements_b64");
    assert_eq!(at(256, 0, 50, 8), "elements_b128_hinted");
    assert_eq!(at(16, 0, 49, 16), "elements_b128_hinted");
    let patch = |start: usize, run: usize| {
        let rows = Layout::new(&[3, run], &[run as isize + 16, 1], start, 1 << 10).unwrap();
        PermutePlan::new(&rows, Align::of(16), &c_order(3, run), Align::of(16), 1, TARGET).unwrap().entry().unwrap()
    };
    assert_eq!([patch(16, 256), patch(1, 63)], ["patch_b128", "patch_b8"]);
}

#[test]
fn elements_are_moved_one_by_one_for_a_reason() {
    let why = |src: Layout, width: usize| {
        let plan = permute(&src, &Layout::row_major(src.shape()).unwrap(), width);
        assert!(plan.entry().unwrap().starts_with("elements"), "{plan}");
        plan.explain().reason
    };
    let line = |len: usize| Layout::row_major(&[len]).unwrap();
    assert!(why(line(20).slice(0, .., 2).unwrap(), 4).contains("lie apart"));
    assert!(why(line(20).reverse(0).unwrap(), 4).contains("opposite order"));
    assert!(why(c_order(10, 49).slice(1, ..16, 1).unwrap(), 1).contains("start or end between"));
    assert!(why(c_order(10, 64).slice(1, ..48, 1).unwrap(), 1).contains("whole 16-byte accesses"));
    assert!(why(c_order(5, 7).t(), 4).contains("along different axes"));
    assert!(why(line(9).slice(0, 3..4, 1).unwrap(), 4).contains("one element"));
}

#[test]
fn nothing_is_launched_for_no_elements() {
    for (rows, cols) in [(0, 5), (5, 0), (0, 0)] {
        let copy = permute(&c_order(rows, cols), &c_order(rows, cols), 4);
        assert_eq!((copy.explain().written, copy.entry(), copy.shape()), (0, None, None));
        assert_eq!(copy.to_string(), "nothing to move");
        for variant in [Variant::ColumnLoop, Variant::Padded] {
            let plan = plan(rows, cols, 4, variant);
            assert_eq!((plan.launches(), plan.entry(), plan.shape()), (0, None, None));
            assert_eq!(plan.to_string(), "nothing to transpose");
        }
    }
}

#[test]
fn rows_beyond_the_grids_y_go_to_z() {
    let tile = TILE as usize;
    let most = MAX_GRID_YZ as usize;
    let grid = |rows| plan(rows, 1 << 10, 1, Variant::Padded).shape().unwrap().grid;
    assert_eq!(grid(most * tile), [32, 65_535, 1]);
    assert_eq!(grid(most * tile + 1), [32, 65_535, 2]);
    // Columns have x to themselves.
    assert_eq!(plan(1 << 10, most * tile + 1, 1, Variant::Padded).shape().unwrap().grid, [65_536, 32, 1]);
    let blocks = plan(1 << 33, 1, 1, Variant::ColumnLoop).shape().unwrap().grid;
    assert_eq!(blocks, [1 << 25, 1, 1]);
    for (rows, cols) in [(1, (1 << 36) + 1), (1 << 40, 1)] {
        let error = TransposePlan::new(&c_order(rows, cols), &c_order(cols, rows), 1, Variant::Naive).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Layout, "{error}");
    }
}

#[test]
fn arithmetic_is_wide_from_the_first_offset_that_needs_it() {
    let at = |src: &Layout, dst: &Layout| TransposePlan::new(src, dst, 1, Variant::Padded).unwrap().entry().unwrap();
    let dst = c_order(33, 2);
    // The last element lies `stride + 32` behind the first.
    let src = |stride: isize| Layout::new(&[2, 33], &[stride, 1], 0, 1 << 40).unwrap();
    let last_narrow = i32::MAX as isize - 32;
    assert_eq!(at(&src(last_narrow), &dst), "padded_b8");
    assert_eq!(at(&src(last_narrow + 1), &dst), "padded_b8_wide");
    assert_eq!(at(&src(last_narrow).reverse(0).unwrap().reverse(1).unwrap(), &dst), "padded_b8");
    assert_eq!(at(&src(last_narrow + 1).reverse(0).unwrap().reverse(1).unwrap(), &dst), "padded_b8_wide");
    // A part far behind in a large storage is near to itself.
    assert_eq!(at(&src(1 << 35).slice(0, 1.., 1).unwrap(), &c_order(33, 1)), "padded_b8");
    // The same holds of the destination, and of every kernel.
    assert_eq!(at(&c_order(33, 2), &src(last_narrow + 1)), "padded_b8_wide");
    let columns = TransposePlan::new(&src(1 << 35), &dst, 16, Variant::ColumnLoop).unwrap();
    assert_eq!(columns.entry(), Some("column_loop_b128_wide"));
}

/// Tiles walk forwards in the source, from another corner than the destination's first element
/// where the source runs backwards: what is as far from neither end as it is long must be reached
/// from both.
#[test]
fn arithmetic_is_wide_wherever_a_tile_may_start_too_far_from_an_element() {
    let (rows, cols) = (80, 70_000);
    let most = i32::MAX as usize - (1 << 16);
    let at = |apart: usize, backwards: &[usize]| {
        let src = Layout::new(&[2, rows, cols], &[apart as isize, cols as isize, 1], 0, apart + rows * cols).unwrap();
        let src = backwards.iter().fold(src, |layout, &axis| layout.reverse(axis).unwrap());
        let dst = Layout::row_major(&[2, cols, rows]).unwrap().permuted_axes(&[0, 2, 1]).unwrap();
        // The same walk with the sides exchanged.
        [permute(&src, &dst, 1), permute(&dst, &src, 1)].map(|plan| plan.entry().unwrap())
    };
    // So many elements apart, in whole quads, the last element lies as far from the first as narrow
    // arithmetic reaches.
    let apart = (most + 1 - rows * cols) / 16 * 16;
    for backwards in [&[][..], &[1], &[2], &[1, 2], &[0, 2], &[0, 1, 2]] {
        assert_eq!(at(apart, backwards), ["vector_tile_b8_hinted"; 2], "{backwards:?} backwards");
        assert_eq!(at(apart + 16, backwards), ["vector_tile_b8_wide_hinted"; 2], "{backwards:?} backwards");
    }
}

#[test]
fn only_what_starts_on_16_bytes_on_both_sides_is_copied_without_shifts() {
    let layout = |offset| Layout::new(&[5000], &[1], offset, 8000).unwrap();
    let aligned = |from, to, src, dst, width| {
        let plan = large(&layout(src), Align::of(from), &layout(dst), Align::of(to), width);
        plan.entry().unwrap()
    };
    let entry = |src, dst, width| aligned(256, 256, src, dst, width);
    assert_eq!(entry(0, 0, 1), "copy_b128_hinted");
    assert_eq!(entry(16, 32, 1), "copy_b128_hinted");
    assert_eq!(entry(0, 8, 1), "rows");
    assert_eq!(entry(4, 0, 1), "rows");
    assert_eq!(entry(1, 1, 1), "rows");
    assert_eq!(entry(1, 1, 4), "rows");
    assert_eq!(entry(1, 1, 16), "copy_b128_hinted");
    assert_eq!(aligned(0x1004, 0x2000, 0, 0, 4), "rows");
    assert_eq!(aligned(0x1010, 0x2000, 0, 0, 4), "copy_b128_hinted");
}

#[test]
fn there_is_a_lane_for_every_access_and_byte_of_the_tail() {
    let grid = |len: usize| {
        let layout = Layout::row_major(&[len]).unwrap();
        let shape = permute(&layout, &layout, 1).shape().unwrap();
        assert_eq!(shape.block, [1024, 1, 1]);
        shape.grid
    };
    assert_eq!(grid(15), [1, 1, 1]);
    assert_eq!(grid(16 * 1024), [1, 1, 1]);
    assert_eq!(grid(16 * 1024 + 16), [2, 1, 1]);
    let most = i32::MAX as usize;
    assert_eq!(grid(most * 16 * 1024), [most as u32, 1, 1]);
    assert_eq!(grid(most * 16 * 1024 + 16), [most as u32, 2, 1]);
}

#[test]
fn there_is_a_lane_for_every_four_elements() {
    let plan = |len: usize| {
        let backwards = Layout::row_major(&[len]).unwrap().reverse(0).unwrap();
        permute(&backwards, &Layout::row_major(&[len]).unwrap(), 4)
    };
    let grid = |len: usize| plan(len).shape().unwrap().grid;
    assert_eq!(plan(1025).shape().unwrap().block, [256, 1, 1]);
    assert_eq!((grid(2), grid(1024), grid(1025)), ([1, 1, 1], [1, 1, 1], [2, 1, 1]));
    let most = i32::MAX as usize;
    // Tiles at an edge reach up to 2^16 elements beyond it, and all kernels have one bound.
    let narrow = most - (1 << 16);
    assert_eq!((plan(narrow).entry(), plan(narrow + 1).entry()), (Some("elements_b32"), Some("elements_b32_wide")));
    assert_eq!((grid(most * 1024), grid(most * 1024 + 1)), ([most as u32, 1, 1], [most as u32, 2, 1]));
}

/// As they were measured. The next reader may want what stays in the L2 cache.
#[test]
fn large_arrays_have_hints_to_the_cache_where_the_architecture_has_them() {
    let heads = |len: usize| {
        let src = Layout::row_major(&[len, 32, 128]).unwrap().permuted_axes(&[1, 0, 2]).unwrap();
        (src, Layout::row_major(src.shape()).unwrap(), 2, "elements_b128")
    };
    let matrix = |side: usize| (c_order(side, side).t(), c_order(side, side), 4, "vector_tile_b32");
    let odd = |side: usize| (c_order(side, side).t(), c_order(side, side), 4, "ragged_tile_b32");
    let structs = |len: usize| (c_order(len, 3).t(), c_order(3, len), 4, "deinterleave_quads_b32");
    let planes = |len: usize| (c_order(3, len).t(), c_order(len, 3), 4, "interleave_quads_b32");
    let same = |len: usize| {
        let bytes = Layout::row_major(&[len]).unwrap();
        (bytes, bytes, 1, "copy_b128")
    };
    let turned = |shape: &[usize], axes: &[usize], width: usize, kernel: &'static str| {
        let src = Layout::row_major(shape).unwrap().permuted_axes(axes).unwrap();
        (src, Layout::row_major(src.shape()).unwrap(), width, kernel)
    };
    let whole = |images: usize| turned(&[images, 33, 32], &[0, 2, 1], 4, "packed_quads_b32");
    let short = |first: usize| turned(&[first, 17, 18, 19, 20, 5], &[5, 4, 3, 2, 1, 0], 2, "ragged_tile_b16");
    let apart = Layout::row_major(&[1 << 22]).unwrap().slice(0, .., 2).unwrap();
    let apart = (apart, Layout::row_major(apart.shape()).unwrap(), 16, "elements_b128");
    for ((src, dst, width, kernel), is_hinted) in [
        (same(1 << 25), false),
        (same((1 << 25) + 1), true),
        (heads(1 << 12), false),
        (heads((1 << 12) + 8), true),
        (matrix(2888), false),
        (matrix(2912), true),
        (odd(2889), false),
        (odd(2913), true),
        (structs(1 << 21), false),
        (structs(3 << 20), true),
        (planes(3 << 20), true),
        (whole(7943), false),
        (whole(7944), true),
        (short(28), false),
        (short(29), true),
        (apart, false),
    ] {
        for (compute_capability, has_hints) in [((7, 5), false), ((8, 0), true), ((9, 0), true), ((12, 0), true)] {
            let target = Target::new(compute_capability);
            let plan = PermutePlan::new(&src, Align::ALLOCATION, &dst, Align::ALLOCATION, width, target).unwrap();
            let hint = if is_hinted && has_hints { "_hinted" } else { "" };
            assert_eq!(plan.entry(), Some(&*format!("{kernel}{hint}")), "{plan} for {compute_capability:?}");
            assert!(plan.to_string().starts_with(&format!("{kernel}{hint}:")), "{plan}");
        }
    }
}

/// Tests run small arrays as if they were large, so that must be how large ones run.
#[test]
fn a_large_array_is_planned_as_if_large() {
    let mut kernels = std::collections::BTreeSet::new();
    for (shape, axes) in [
        (&[16_384, 16_384][..], &[1, 0][..]),
        (&[16_381, 16_383], &[1, 0]),
        (&[8_000_000, 33], &[1, 0]),
        (&[3, 40_000_000], &[1, 0]),
        (&[50_000_000, 3], &[1, 0]),
        (&[200_000, 32, 32], &[0, 2, 1]),
        (&[200_000, 33, 31], &[0, 2, 1]),
        (&[3000, 95, 93, 9], &[0, 2, 1, 3]),
        (&[64, 65, 66, 67, 12], &[4, 2, 0, 3, 1]),
        (&[13, 11, 9, 12, 14, 300], &[4, 3, 5, 2, 1, 0]),
        (&[300_000, 7, 99], &[1, 0, 2]),
        (&[200_000_000], &[0]),
    ] {
        for width in WIDTHS {
            let plan = permuted(shape, axes, width);
            let case = format!("{shape:?} by {axes:?} of {width} bytes");
            assert_eq!(plan.as_if_large().to_string(), plan.to_string(), "{case}");
            kernels.extend(plan.entry().and_then(|entry| entry.split_once("_b")).map(|(family, _)| family));
        }
    }
    for kernel in ["vector_tile", "ragged_tile", "packed_quads", "boxes", "deinterleave_quads", "elements", "copy"] {
        assert!(kernels.contains(kernel), "{kernel} is not among {kernels:?}");
    }
}

#[test]
fn structs_are_moved_by_quads_where_images_and_planes_start_on_them() {
    let align = |bytes| Align::of(bytes);
    let planes = |pitch: usize| c_order(3, pitch).slice(1, ..4001, 1).unwrap().t();
    for (pitch, src_align, dst_align, kernel) in [
        (4004, align(256), align(256), "deinterleave_quads_b32"),
        (4004, align(16), align(16), "deinterleave_quads_b32"),
        (4004, align(8), align(16), "deinterleave_b32"),
        (4004, align(16), align(4), "deinterleave_b32"),
        (4002, align(16), align(16), "deinterleave_b32"),
    ] {
        let plan = large(&c_order(4001, 3), src_align, &planes(pitch), dst_align, 4);
        let entry = plan.entry().unwrap().trim_end_matches("_hinted");
        assert_eq!(entry, kernel, "planes {pitch} elements apart, {src_align:?} and {dst_align:?}");
        let reason = plan.explain().reason;
        assert_eq!(reason.contains("16 bytes a lane"), kernel.contains("quads"), "{reason}");
    }
}

/// These are the faster ones by `benches/record/2026-11-25-h100/before_after.md`, where images
/// start on vectors, and `benches/record/2026-11-23-h100/strategies.md`, where they start on words.
#[test]
fn images_and_structs_of_bytes_take_the_kernels_that_were_measured_faster() {
    let cases = [
        (&[50_000, 3, 32, 32][..], &[0, 2, 3, 1][..], 1, "packed_quads_b8_hinted"),
        (&[50_000, 32, 32, 3], &[0, 3, 1, 2], 1, "packed_quads_b8_hinted"),
        (&[64, 1079, 1916, 3], &[0, 3, 1, 2], 1, "deinterleave_b8"),
        (&[64, 3, 1079, 1916], &[0, 2, 3, 1], 1, "interleave_b8"),
        (&[33_554_430, 3], &[1, 0], 2, "deinterleave_b16"),
    ];
    let found = cases.map(|(shape, axes, width, _)| permuted(shape, axes, width).entry());
    assert_eq!(found, cases.map(|(.., kernel)| Some(kernel)));
}

#[test]
fn plans_can_be_read_and_compared() {
    assert_eq!(
        plan(1024, 100, 4, Variant::Padded).to_string(),
        "padded_b32: 1024 x 100 elements, grid 4 x 32 x 1 of blocks 32 x 8 x 1"
    );
    assert_eq!(
        plan(1024, 100, 8, Variant::ColumnLoop).to_string(),
        "column_loop_b64: 100 launches of 1024 elements each, grid 4 x 1 x 1 of blocks 256 x 1 x 1"
    );
    assert_eq!(
        permute(&c_order(1, 100), &c_order(1, 100), 8).to_string(),
        "copy_b128_hinted: 800 bytes, grid 1 x 1 x 1 of blocks 1024 x 1 x 1: both sides lie alike in memory"
    );
    let (forwards, backwards) = (c_order(5, 3), c_order(5, 3).reverse(0).unwrap());
    assert_eq!(
        permute(&backwards, &forwards, 4).to_string(),
        "elements_b32: 15 elements along 2 axes, grid 1 x 1 x 1 of blocks 256 x 1 x 1"
    );
    // The same work, said differently.
    let turned = |layout: &Layout| layout.t().insert_axis(1).unwrap();
    let (same, other) = (permute(&turned(&backwards), &turned(&forwards), 4), permute(&forwards.t(), &forwards.t(), 4));
    assert_eq!(permute(&backwards, &forwards, 4), same);
    assert_ne!(same, other);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let matrix = c_order(2, 3);
    let cube = Layout::row_major(&[2, 3, 1]).unwrap();
    let rows_in_one_place = Layout::new(&[3, 2], &[0, 1], 0, 2).unwrap();
    let beyond = Layout::new(&[3, 2], &[2, 1], 0, 1 << 62).unwrap();
    for (src, dst, width, kind, names) in [
        (matrix, c_order(2, 3), 4, ErrorKind::Layout, "[2, 3]"),
        (cube, c_order(3, 2), 4, ErrorKind::Layout, "[2, 3, 1]"),
        (matrix, cube, 4, ErrorKind::Layout, "destination of a transpose"),
        (matrix, c_order(3, 2), 3, ErrorKind::InvalidArgument, "3 bytes"),
        (matrix, c_order(3, 2), 0, ErrorKind::InvalidArgument, "0 bytes"),
        (matrix, rows_in_one_place, 4, ErrorKind::Layout, "[0, 1]"),
        (matrix, beyond, 16, ErrorKind::Layout, "destination's storage"),
    ] {
        let error = TransposePlan::new(&src, &dst, width, Variant::Padded).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(names), "{error}");
    }
}

#[test]
fn permutes_of_what_does_not_go_together_are_refused() {
    let matrix = c_order(2, 3);
    let in_one_place = Layout::new(&[2, 3], &[0, 1], 0, 3).unwrap();
    let beyond = Layout::new(&[2, 3], &[3, 1], 0, 1 << 62).unwrap();
    for (src, dst, align, width, kind, names) in [
        (matrix, c_order(3, 2), 256, 4, ErrorKind::Layout, "[3, 2]"),
        (matrix, matrix.insert_axis(0).unwrap(), 256, 4, ErrorKind::Layout, "[1, 2, 3]"),
        (matrix, matrix, 256, 3, ErrorKind::InvalidArgument, "3 bytes"),
        (matrix, in_one_place, 256, 4, ErrorKind::Layout, "[0, 1]"),
        (beyond, matrix, 256, 16, ErrorKind::Layout, "source's storage"),
        (matrix, beyond, 256, 16, ErrorKind::Layout, "destination's storage"),
        (matrix, matrix, 2, 4, ErrorKind::InvalidArgument, "aligned to 2 bytes"),
    ] {
        let align = Align::of(align);
        let error = PermutePlan::new(&src, align, &dst, align, width, TARGET).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(names), "{error}");
    }
}

#[test]
fn boxes_fill_the_multiprocessors_that_a_target_has() {
    let src = c_order(582, 3 * 52_576).slice(1, .., 3).unwrap().t();
    let dst = Layout::row_major(src.shape()).unwrap();
    let blocks = |multiprocessors: u32| {
        let (mut target, align) = (TARGET, Align::ALLOCATION);
        target.multiprocessors = multiprocessors;
        let plan = PermutePlan::new(&src, align, &dst, align, 1, target).unwrap();
        assert!(plan.entry().unwrap().starts_with("boxes_"), "{plan}");
        plan.shape().unwrap().grid[0]
    };
    // A number that is not known is an H100's, and no number overflows.
    assert_eq!(blocks(0), blocks(132));
    assert_eq!(2 * blocks(66), blocks(132));
    assert!(blocks(u32::MAX) >= blocks(132));
}
