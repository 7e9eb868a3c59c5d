use proptest::prelude::*;

use super::*;
use crate::error::ErrorKind;

/// Moves elements as the device does: from one layout to another.
fn moved(tile: &Tile<'_>, input: &[usize]) -> Vec<usize> {
    let (from, to) = (tile.input().unwrap().offsets(), tile.output().unwrap().offsets());
    let mut output = vec![usize::MAX; input.len()];
    from.into_iter().zip(to).for_each(|(from, to)| output[to] = input[from]);
    output
}

/// The numbers of a source's elements in the order of the result, element by element.
fn expected(shape: &[usize], axes: &[usize], is_fortran: bool) -> Vec<usize> {
    let source = if is_fortran { Layout::column_major(shape) } else { Layout::row_major(shape) };
    source.unwrap().permuted_axes(axes).unwrap().offsets()
}

fn cases() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
    let extent = prop_oneof![1 => Just(0_usize), 3 => Just(1), 12 => 2_usize..7];
    prop::collection::vec(extent, 0..=6).prop_flat_map(|shape| {
        let axes: Vec<usize> = (0..shape.len()).collect();
        (Just(shape), Just(axes).prop_shuffle())
    })
}

proptest! {
    #[test]
    fn tiles_move_each_element_once(
        (shape, axes) in cases(),
        is_fortran in any::<bool>(),
        width in prop_oneof![Just(1_usize), Just(2), Just(4), Just(8), Just(16)],
        slots in 1_usize..4,
        elements in 1_usize..600,
        lean in 1_usize..20,
    ) {
        let permute = Permute::new(&shape, &axes, is_fortran).unwrap();
        let budget = 2 * slots * width * elements;
        let tiling = Tiling::new(permute, width, slots, budget, Cut { most_bytes: usize::MAX, lean }).unwrap();
        prop_assert!(tiling.largest() <= elements);
        let len = tiling.permute.len();
        prop_assert_eq!(len, shape.iter().product::<usize>());
        let mut result = vec![usize::MAX; len];
        for number in 0..tiling.len() {
            let tile = tiling.tile(number);
            let input: Vec<usize> = tile.source().pieces(3).flat_map(|(at, len)| at..at + len).collect();
            prop_assert!(input.len() == tile.len() && tile.len() <= tiling.largest() && tile.len() > 0);
            let output = moved(&tile, &input);
            let mut done = 0;
            let mut last = None;
            for (at, len) in tile.result().pieces(1000) {
                prop_assert!(Some(at) > last, "runs are in order");
                last = Some(at + len - 1);
                prop_assert!(result[at..at + len].iter().all(|&taken| taken == usize::MAX), "written once");
                result[at..at + len].copy_from_slice(&output[done..done + len]);
                done += len;
            }
            prop_assert_eq!((done, tile.result().count() * tile.result().run()), (tile.len(), tile.len()));
        }
        prop_assert_eq!(result, expected(&shape, &axes, is_fortran));
    }
}

const SQUARE: Cut = Cut { most_bytes: 64 << 20, lean: 1 };

fn tiling(shape: &[usize], axes: &[usize], width: usize, budget: usize) -> Tiling {
    Tiling::new(Permute::new(shape, axes, false).unwrap(), width, 6, budget, SQUARE).unwrap()
}

#[test]
fn matrices_have_long_runs_on_both_sides() {
    // 32 GiB of floats through 4 GiB.
    let tiling = tiling(&[92_682, 92_682], &[1, 0], 4, 4 << 30);
    let tile = tiling.tile(0);
    let runs = [tile.source().run(), tile.result().run()].map(|run| run * 4);
    assert!(runs.iter().all(|run| (15 << 10..=32 << 10).contains(run)), "{runs:?}");
    assert!(tiling.largest() <= 16 << 20 && tiling.len() < 600, "{}", tiling.len());
}

#[test]
fn runs_in_the_result_may_be_longer() {
    let permute = Permute::new(&[65_536, 65_536], &[1, 0], false).unwrap();
    let tiling = Tiling::new(permute, 4, 6, 4 << 30, Cut { lean: 16, ..SQUARE }).unwrap();
    assert_eq!([tiling.tile(0).source().run(), tiling.tile(0).result().run()], [1024, 16_384]);
}

#[test]
fn axes_of_one_index_may_be_in_excess() {
    let (mut shape, axes): (Vec<usize>, Vec<usize>) = (vec![1; 64], (0..64).rev().collect());
    (shape[5], shape[63]) = (2, 3);
    let permute = Permute::new(&shape, &axes, false).unwrap();
    assert_eq!(permute, Permute { extents: vec![2, 3], order: vec![1, 0] });
    assert!(Permute::new(&[2; 17], &axes[47..], false).unwrap_err().to_string().contains("17 axes"));
    let refused = |axes: &[usize]| Permute::new(&shape, axes, false).unwrap_err().kind();
    let mut twice = axes.clone();
    twice[1] = 61;
    for wrong in [&[64; 64], &axes[1..], &axes[..63], &twice] {
        assert_eq!(refused(wrong), ErrorKind::InvalidArgument);
    }
}

#[test]
fn neighbours_stay_together() {
    let permute = Permute::new(&[2, 3, 1, 4, 5], &[3, 4, 0, 2, 1], false).unwrap();
    assert_eq!(permute, Permute { extents: vec![6, 20], order: vec![1, 0] });
    let same = Permute::new(&[2, 3, 4], &[2, 1, 0], true).unwrap();
    assert_eq!(same, Permute { extents: vec![24], order: vec![0] });
    // One axis: a tile is one run on both sides.
    let tiling = tiling(&[1 << 20, 4], &[0, 1], 1, 12 << 12);
    assert_eq!((tiling.extents(), tiling.tile(1).source().count()), (&[1 << 12][..], 1));
}

#[test]
fn whole_inner_axes_make_whole_runs() {
    // Rows of three: all of each tile is one run of the source.
    let tiling = tiling(&[1 << 20, 3], &[1, 0], 1, 12 * 3 * 1024);
    let tile = tiling.tile(3);
    assert_eq!(tile.source().count(), 1);
    assert_eq!((tile.result().count(), tile.result().run()), (3, 1024));
}

#[test]
fn the_least_budget_is_named() {
    let permute = Permute::new(&[5, 5], &[1, 0], false).unwrap();
    let error = Tiling::new(permute.clone(), 8, 6, 95, SQUARE).unwrap_err().to_string();
    assert!(error.contains("95 bytes") && error.contains("at least 96"), "{error}");
    assert_eq!(Tiling::new(permute, 8, 6, 96, SQUARE).unwrap().largest(), 1);
}
