//! Plans from layouts alone: which kernel, in which grid, and what is refused.

use warpstride::abi::{MAX_GRID_YZ, TILE, TILE_ROWS, WIDTHS};
use warpstride::layout::Layout;
use warpstride::ops::{CopyPlan, TransposePlan, Variant};
use warpstride::{Error, ErrorKind};

fn c_order(rows: usize, cols: usize) -> Layout {
    Layout::row_major(&[rows, cols]).unwrap()
}

/// The plan of a C-order source into a C-order destination.
fn plan(rows: usize, cols: usize, width: usize, variant: Option<Variant>) -> TransposePlan {
    TransposePlan::new(&c_order(rows, cols), &c_order(cols, rows), width, variant).unwrap()
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
            let plan = plan(100, 33, width, Some(variant));
            assert_eq!(plan.variant(), Some(variant));
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
    for (src, dst) in [
        (fortran, c_order(33, 100)),
        (c_order(100, 33), Layout::column_major(&[33, 100]).unwrap()),
        (c_order(1, 7), c_order(7, 1)),
        (c_order(7, 1), c_order(1, 7)),
        (backwards, backwards.t()),
    ] {
        let plan = TransposePlan::new(&src, &dst, 4, None).unwrap();
        assert_eq!((plan.variant(), plan.entry(), plan.launches()), (None, Some("copy_b128"), 1), "{src:?} to {dst:?}");
        // Asked for by name, a kernel runs all the same.
        let padded = TransposePlan::new(&src, &dst, 4, Some(Variant::Padded)).unwrap();
        assert_eq!(padded.entry(), Some("padded_b32"));
    }
}

#[test]
fn the_choice_follows_the_shorter_strides() {
    assert_eq!(plan(100, 33, 4, None).variant(), Some(Variant::Padded));
    let chosen = |src: Layout, dst: Layout| {
        let plan = TransposePlan::new(&src, &dst, 4, None).unwrap();
        (plan.variant().unwrap(), plan.shape().unwrap().grid)
    };
    let big = c_order(200, 200);
    let part = big.slice(0, ..100, 1).unwrap().slice(1, ..40, 1).unwrap();
    assert_eq!(chosen(part, c_order(40, 100)), (Variant::Padded, [2, 4, 1]));
    // Both sides run along the source's columns, or both along its rows: there is nothing to turn.
    assert_eq!(chosen(part, Layout::column_major(&[40, 100]).unwrap()), (Variant::Naive, [2, 4, 1]));
    assert_eq!(chosen(part.t(), c_order(100, 40)), (Variant::Naive, [2, 4, 1]));
    // Fortran order on both sides is C order on both sides with the axes exchanged.
    let fortran = Layout::column_major(&[100, 40]).unwrap();
    assert_eq!(chosen(fortran, Layout::column_major(&[40, 100]).unwrap()), (Variant::Padded, [4, 2, 1]));
    // A broadcast source has no order of its own on the repeated axis.
    let row = Layout::row_major(&[40]).unwrap().broadcast(&[100, 40]).unwrap();
    assert_eq!(chosen(row, c_order(40, 100)), (Variant::Padded, [2, 4, 1]));
    let one = Layout::row_major(&[1]).unwrap().broadcast(&[100, 40]).unwrap();
    assert_eq!(chosen(one, c_order(40, 100)), (Variant::Naive, [4, 2, 1]));
}

#[test]
fn nothing_is_launched_for_no_elements() {
    for (rows, cols) in [(0, 5), (5, 0), (0, 0)] {
        for variant in [None, Some(Variant::ColumnLoop), Some(Variant::Padded)] {
            let plan = plan(rows, cols, 4, variant);
            assert_eq!((plan.launches(), plan.entry(), plan.shape()), (0, None, None));
            assert_eq!(plan.to_string(), "nothing to transpose");
        }
    }
    let copy = CopyPlan::new(&c_order(0, 5), &c_order(0, 5), 4).unwrap();
    assert_eq!((copy.bytes(), copy.entry()), (0, None));
}

#[test]
fn rows_beyond_the_grids_y_go_to_z() {
    let tile = TILE as usize;
    let most = MAX_GRID_YZ as usize;
    let grid = |rows| plan(rows, 1 << 10, 1, Some(Variant::Padded)).shape().unwrap().grid;
    assert_eq!(grid(most * tile), [32, 65_535, 1]);
    assert_eq!(grid(most * tile + 1), [32, 65_535, 2]);
    // Columns have x to themselves.
    assert_eq!(plan(1 << 10, most * tile + 1, 1, Some(Variant::Padded)).shape().unwrap().grid, [65_536, 32, 1]);
    let blocks = plan(1 << 33, 1, 1, Some(Variant::ColumnLoop)).shape().unwrap().grid;
    assert_eq!(blocks, [1 << 25, 1, 1]);
    for (rows, cols) in [(1, (1 << 36) + 1), (1 << 40, 1)] {
        let error =
            TransposePlan::new(&c_order(rows, cols), &c_order(cols, rows), 1, Some(Variant::Naive)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Layout, "{error}");
    }
}

#[test]
fn arithmetic_is_wide_from_the_first_offset_that_needs_it() {
    let at =
        |src: &Layout, dst: &Layout| TransposePlan::new(src, dst, 1, Some(Variant::Padded)).unwrap().entry().unwrap();
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
    let columns = TransposePlan::new(&src(1 << 35), &dst, 16, Some(Variant::ColumnLoop)).unwrap();
    assert_eq!(columns.entry(), Some("column_loop_b128_wide"));
}

#[test]
fn copies_use_the_widest_access_that_both_sides_allow() {
    let layout = |offset| Layout::new(&[100], &[1], offset, 1000).unwrap();
    let access = |src, dst, width| CopyPlan::new(&layout(src), &layout(dst), width).unwrap().access();
    assert_eq!(access(0, 0, 1), 16);
    assert_eq!(access(16, 32, 1), 16);
    assert_eq!(access(0, 8, 1), 8);
    assert_eq!(access(4, 0, 1), 4);
    assert_eq!(access(2, 4, 1), 2);
    assert_eq!(access(1, 1, 1), 1);
    assert_eq!(access(1, 1, 4), 4);
    let plan = CopyPlan::new(&layout(0), &layout(0), 4).unwrap();
    let (near, far) = (plan.clone().at(0x1004, 0x2000), plan.clone().at(0x1000, 0x2000));
    assert_eq!((near.entry(), far), (Some("copy_b32"), plan));
}

#[test]
fn copies_have_a_lane_for_every_access_and_byte_of_the_tail() {
    let grid = |len: usize| {
        let layout = Layout::row_major(&[len]).unwrap();
        let shape = CopyPlan::new(&layout, &layout, 1).unwrap().shape();
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
fn plans_can_be_read_and_compared() {
    assert_eq!(
        plan(1024, 100, 4, Some(Variant::Padded)).to_string(),
        "padded_b32: 1024 x 100 elements, grid 4 x 32 x 1 of blocks 32 x 8 x 1"
    );
    assert_eq!(
        plan(1024, 100, 8, Some(Variant::ColumnLoop)).to_string(),
        "column_loop_b64: 100 launches of 1024 elements each, grid 4 x 1 x 1 of blocks 256 x 1 x 1"
    );
    assert_eq!(
        plan(1, 100, 8, None).to_string(),
        "copy_b128: 800 bytes, grid 1 x 1 x 1 of blocks 1024 x 1 x 1: the result lies in memory as the source does"
    );
    assert_eq!(plan(3, 5, 4, None), plan(3, 5, 4, None));
    assert_ne!(plan(3, 5, 4, None), plan(5, 3, 4, None));
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
        let error = TransposePlan::new(&src, &dst, width, None).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(names), "{error}");
    }
}

#[test]
fn copies_that_are_no_copy_of_bytes_are_refused_with_the_remedy() {
    let c = c_order(4, 6);
    let f = Layout::column_major(&[4, 6]).unwrap();
    let gaps = c_order(4, 8).slice(1, ..6, 1).unwrap();
    let repeated = Layout::row_major(&[6]).unwrap().broadcast(&[4, 6]).unwrap();
    for (src, dst, names) in [(c, f, "t()"), (gaps, c, "strides [8, 1]"), (c, gaps, "[8, 1]"), (repeated, c, "[0, 1]")]
    {
        let error = CopyPlan::new(&src, &dst, 4).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Layout);
        assert!(error.to_string().contains(names), "{error}");
    }
    let error = CopyPlan::new(&c, &c_order(6, 4), 4).unwrap_err();
    assert!(error.to_string().contains("[4, 6]") && error.to_string().contains("[6, 4]"), "{error}");
    let backwards = c.reverse(0).unwrap();
    assert_eq!(CopyPlan::new(&backwards, &backwards, 4).unwrap().bytes(), 96);
    let error = CopyPlan::new(&backwards, &c, 4).unwrap_err();
    assert!(error.to_string().contains("[-6, 1]"), "{error}");
}
