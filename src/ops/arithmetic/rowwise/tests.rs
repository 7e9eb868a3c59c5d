use super::*;
use crate::abi::SOFTMAX_PARTS;
use crate::ops::arithmetic::kernel;

#[test]
fn groups_hold_rows_where_registers_have_room() {
    let most = u64::from(ROWWISE_THREADS);
    assert_eq!([16384, 16387, 16388].map(|n| group(n, 4, 8, most)), [Some(most), Some(most), None]);
    assert_eq!(
        [[16384, 8, 4], [2048, 4, 8], [3, 2, 5], [3, 8, 4]].map(|[n, lanes, held]| group(n, lanes, held, most)),
        [most, 64, 4, 16].map(Some)
    );
}

#[test]
fn a_thread_has_no_two_elements_outside_of_vectors() {
    for lanes in [2, 4, 8] {
        for n in 1..200 {
            let group = group(n, lanes, 8, 512).unwrap();
            assert!(group >= n.min(2 * (lanes - 1)), "{n} by {lanes}: {group}");
        }
    }
}

#[test]
fn blocks_hold_the_parts_of_long_rows() {
    let few = Target::new((9, 0));
    let many = Target { multiprocessors: 132, ..few };
    let entry = kernel(SOFTMAX_PARTS, "softmax", DType::F32).unwrap();
    for [lanes, held] in [[8, 4], [4, 8], [2, 5]] {
        let most = u64::from(ROWWISE_THREADS) * held * lanes;
        for n in [most + lanes, 100_003, 1 << 20, 12_345_678_901] {
            let params = parts([7, n], [lanes, held], true);
            let (part, count) = (params.part, params.parts);
            assert!(part % lanes == 0 && part <= most && (count - 1) * part < n && n <= count * part, "{params:?}");
            for (target, multiprocessors) in [(few, 4), (many, 132)] {
                let Step { shape, params, .. } = in_teams(entry, params, target);
                assert!(params.team <= count && (1..=7).contains(&params.teams), "{params:?}");
                assert_eq!(u64::from(shape.grid[0]), params.teams * params.team);
                assert!((1..=2 * multiprocessors).contains(&shape.grid[0]), "{params:?} cannot run at once");
            }
        }
    }
}
