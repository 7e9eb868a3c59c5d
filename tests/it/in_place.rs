//! Plans of transposes in place: which passes, in which grids, with how much scratch.

use warpstride::ErrorKind;
use warpstride::abi::WIDTHS;
use warpstride::layout::Layout;
use warpstride::ops::{InPlacePlan, Plan};

fn plan(shape: &[usize], width: usize) -> InPlacePlan {
    InPlacePlan::new(&Layout::row_major(shape).unwrap(), width).unwrap()
}

#[test]
fn a_square_matrix_is_one_launch_of_half_its_tiles() {
    for (width, bits) in WIDTHS.into_iter().zip(["b8", "b16", "b32", "b64", "b128"]) {
        let plan = plan(&[1000, 1000], width);
        assert_eq!((plan.launches(), plan.scratch_bytes()), (1, 0), "{plan}");
        assert_eq!(plan.entries().collect::<Vec<_>>(), [format!("swap_tiles_{bits}")]);
        let tiles: u32 = if width <= 4 { 16 } else { 32 };
        let expected = format!("grid {} x 1 x 1 of", tiles * (tiles + 1) / 2);
        assert!(plan.to_string().contains(&expected), "{plan}");
    }
}

#[test]
fn others_take_two_passes_and_a_third_for_a_common_divisor() {
    let lines = |shape: &[usize]| {
        let plan = plan(shape, 4);
        assert_eq!((plan.launches(), plan.scratch_bytes()), (plan.entries().count() as u64, 0), "{plan}");
        let text = plan.to_string();
        let order: Vec<_> = ["columns", "rows"]
            .into_iter()
            .flat_map(|lines| text.match_indices(lines).map(move |(at, _)| (at, lines)))
            .collect::<std::collections::BTreeMap<_, _>>()
            .into_values()
            .collect();
        order.join(" ")
    };
    assert_eq!(lines(&[100, 101]), "rows columns");
    assert_eq!(lines(&[101, 100]), "columns rows");
    assert_eq!(lines(&[100, 120]), "columns rows columns");
    assert_eq!(lines(&[120, 100]), "columns rows columns");
}

#[test]
fn nothing_is_launched_where_no_element_moves() {
    for shape in [&[0, 0][..], &[0, 7], &[7, 0], &[1, 1], &[1, 7], &[7, 1], &[0, 3, 4], &[5, 1, 9]] {
        let plan = plan(shape, 4);
        assert_eq!((plan.launches(), plan.scratch_bytes()), (0, 0));
        assert_eq!((plan.entries().count(), plan.to_string().as_str()), (0, "nothing to transpose"));
    }
}

#[test]
fn the_scratch_keeps_its_bound() {
    let extents = [2, 3, 7, 100, 1536, 1537, 5000, 12_289, 49_153, 1_000_003, 1 << 24];
    for rows in extents {
        for cols in extents {
            for width in WIDTHS {
                for batches in [1, 1000].into_iter().filter(|batches| batches * rows * cols < 1 << 45) {
                    let plan = plan(&[batches, rows, cols], width);
                    let whole = batches * rows * cols * width;
                    let most = (whole / 64).max(width * rows.max(cols)).max(32 * rows.min(cols));
                    assert!(plan.scratch_bytes() <= most, "{batches} x {rows} x {cols}: {plan}");
                    let spilled = plan.entries().any(|entry| entry.starts_with("spill_lines"));
                    assert_eq!(plan.scratch_bytes() > 0, spilled, "{plan}");
                }
            }
        }
    }
}

/// With room for all of the matrix, a transpose into other memory would be as frugal.
#[test]
fn long_rows_need_room_for_one_of_them() {
    for (shape, width, bytes) in [
        ([2, 1 << 30], 1, 1 << 30),
        ([32, 49_153], 1, 49_153),
        ([8, 20_000], 4, 80_000),
        ([20_000, 8], 4, 80_000),
        // A sixty-fourth of the matrix.
        ([640, 49_153], 1, 10 * 49_153),
    ] {
        assert_eq!(plan(&shape, width).scratch_bytes(), bytes, "{shape:?} of {width} bytes");
    }
}

#[test]
fn lines_go_through_the_scratch_from_the_first_that_shared_memory_does_not_hold() {
    let spilled =
        |shape: &[usize], width| plan(shape, width).entries().map(|entry| entry.starts_with("spill")).collect();
    let none: Vec<bool> = spilled(&[2, 12_289], 4);
    assert_eq!(none, [true, false]);
    assert_eq!(spilled(&[2, 12_287], 4), [false, false]);
    // A column's panel is 32 bytes wide at least.
    assert_eq!(spilled(&[1536, 1537], 1), [false, false]);
    assert_eq!(spilled(&[1537, 1538], 1), [false, true]);
    assert_eq!(spilled(&[1538, 1537], 1), [true, false]);
}

#[test]
fn arithmetic_is_wide_from_2_to_the_31_elements() {
    let entries = |shape: &[usize]| plan(shape, 1).entries().collect::<Vec<_>>();
    assert!(entries(&[3, (1 << 31) / 3]).iter().all(|entry| entry.ends_with("_b8")));
    assert!(entries(&[3, (1 << 31) / 3 + 1]).iter().all(|entry| entry.ends_with("_b8_wide")));
    assert_eq!(entries(&[46_340, 46_340]), ["swap_tiles_b8"]);
    assert_eq!(entries(&[46_342, 46_342]), ["swap_tiles_b8_wide"]);
}

#[test]
fn plans_can_be_read_and_compared() {
    assert_eq!(
        plan(&[100, 200], 4).to_string(),
        "permute_lines_b32 on columns, 32 a panel; permute_lines_b32 on rows, 1 a panel; permute_lines_b32 on columns, 32 a \
         panel; 3 launches, 0 bytes of scratch"
    );
    assert_eq!(
        plan(&[3, 5, 5], 8).to_string(),
        "swap_tiles_b64: 3 x 5 x 5 elements in place, grid 1 x 3 x 1 of blocks 32 x 8 x 1"
    );
    assert_eq!(plan(&[3, 5], 4), plan(&[3, 5], 4));
    assert_ne!(plan(&[3, 5], 4), plan(&[5, 3], 4));
}

#[test]
fn more_tiles_than_a_grid_covers_are_refused() {
    let square = |n: usize| InPlacePlan::new(&Layout::row_major(&[n, n]).unwrap(), 1);
    assert!(square(65_535 * 64).is_ok());
    let error = square(65_536 * 64).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Layout);
    assert!(error.to_string().contains("[4194304, 4194304]"), "{error}");
}
