use super::*;
use crate::error::ErrorKind;
use crate::ops::tuning::Tuning;

fn tuning() -> &'static Arithmetic {
    &Tuning::common().arithmetic
}

fn cut(reduction: Reduction, extents: [u64; 3]) -> Cut {
    Cut::new(reduction, DType::F32, extents, Phase::ALIGNED, tuning()).unwrap()
}

#[test]
fn what_cannot_be_addressed_is_refused_and_what_can_is_planned() {
    let cut = |extents| Cut::new(Reduction::ArgMax, DType::F16, extents, Phase::ALIGNED, tuning());
    for extents in [[1 << 40, 1 << 40, 1], [1 << 62, 1, 1], [0, 1 << 40, 1 << 40], [1, u64::MAX, 1]] {
        assert_eq!(cut(extents).unwrap_err().kind(), ErrorKind::InvalidArgument, "{extents:?}");
    }
    for extents in [[1 << 61, 1, 1], [1, 1 << 61, 1], [1, 1, 1 << 61], [0, 0, 0], [5, 0, 3]] {
        assert!(cut(extents).unwrap().parts > 0, "{extents:?}");
    }
}

#[test]
fn few_results_are_split_and_many_are_not() {
    for extents in [[1, 1 << 30, 1], [3, 1 << 28, 1], [1, 1 << 20, 256], [1, 1 << 20, 1024], [1, 1 << 28, 3]] {
        for reduction in Reduction::ALL {
            let cut = cut(reduction, extents);
            assert!((64..=BLOCKS).contains(&cut.parts), "{cut:?}");
            let left = cut.parts * extents[0] * extents[2] * reduction.partial_width(DType::F32);
            assert!(left <= Scratch::BYTES as u64, "{cut:?} leaves {left} bytes");
            assert!(cut.part * cut.parts >= extents[1] && cut.part * (cut.parts - 1) < extents[1]);
        }
    }
    let many = [[16384, 16384, 1], [1 << 20, 100, 1], [1, 100, 1 << 20], [1, 5, 1], [100, 1000, 4096]];
    for extents in many.into_iter().chain([[1, 8192, 16384], [1, 8192, 49152], [3, 1 << 14, 8192]]) {
        assert_eq!(cut(Reduction::Sum, extents).parts, 1, "{extents:?}");
    }
    // These have many results, but columns so long that their sums would lose precision.
    for extents in [[1, 1 << 16, 16384], [1, 1 << 18, 16384], [3, 1 << 16, 8192]] {
        assert!(cut(Reduction::Sum, extents).part <= 16 * tuning().longest_column, "{extents:?}");
    }
}

#[test]
fn columns_of_narrow_elements_are_split_by_what_runs_at_once() {
    use DType::{F16, F32, I16, U8};
    use Reduction::{ArgMax, Max, Min, Sum};
    let parts = |reduction, dtype: DType, blocks: u64, rows: u64| {
        let inner = blocks * tuning().column_vectors * VECTOR / dtype.width() as u64;
        Cut::new(reduction, dtype, [1, rows, inner], Phase::ALIGNED, tuning()).unwrap().parts
    };
    // 64 blocks of 256 bytes across are 16,384 bytes.
    let of_64 = |reduction, dtype| parts(reduction, dtype, 64, 16_384);
    assert_eq!([Sum, Min, Max, ArgMax].map(|reduction| of_64(reduction, U8)), [8, 18, 18, 12]);
    assert_eq!([Sum, Min, Max, ArgMax].map(|reduction| of_64(reduction, F16)), [12, 12, 12, 8]);
    assert_eq!([Sum, Min, Max, ArgMax].map(|reduction| of_64(reduction, I16)), [6, 6, 6, 8]);
    assert_eq!(of_64(Sum, F32), 4);
    // As many parts as run at once, and one where two would not, up to the number from which on
    // there are many.
    let of_sums = |dtype, blocks| parts(Sum, dtype, blocks, 8192);
    assert_eq!([132, 198, 199, 396, 397, 768].map(|blocks| of_sums(I16, blocks)), [3, 2, 1, 1, 1, 1]);
    assert_eq!([264, 396, 397, 768].map(|blocks| of_sums(F16, blocks)), [3, 2, 1, 1]);
    assert!(of_sums(I16, 769) > 1);
}

#[test]
fn rows_share_a_block_where_they_are_short() {
    let group = |n| match cut(Reduction::Sum, [1 << 20, n, 1]).threads {
        Threads::Rows { group, .. } => group,
        other => panic!("{other:?}"),
    };
    assert_eq!([3, 256, 1 << 20].map(group), [1, 16, 256]);
}

#[test]
fn columns_are_vectors_where_all_are_aligned() {
    let threads = |inner, address| {
        Cut::new(Reduction::Max, DType::F16, [9, 500, inner], Phase::of(address), tuning()).unwrap().threads
    };
    assert_eq!(threads(64, 256), Threads::Columns { across: 8, vectors: true });
    assert_eq!(threads(64, 258), Threads::Columns { across: 64, vectors: false });
    assert_eq!(threads(60, 256), Threads::Columns { across: 60, vectors: false });
    assert_eq!(threads(3, 256), Threads::Columns { across: 3, vectors: false });
}
