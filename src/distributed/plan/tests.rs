use super::*;

fn split(shape: &[usize], cuts: &str) -> Split {
    Split::parse(shape, cuts).unwrap()
}

/// Each copy is known to both of its ranks alike.
#[test]
fn the_copies_to_the_ranks_are_those_from_the_ranks() {
    for (from, to) in [("0:3", "0:2"), ("", "1:5"), ("0:2,1:2", "1:0+3+1,0:2"), ("1:4", "")] {
        let plan = Redistribution::new(&split(&[4, 5], from), [1, 0], &split(&[5, 4], to), 2).unwrap();
        let all = |moves: &dyn Fn(usize) -> Vec<Move>| {
            let mut all: Vec<Move> = (0..plan.ranks()).flat_map(moves).collect();
            all.sort_by_key(|part| (part.from, part.to));
            all
        };
        assert_eq!(all(&|rank| plan.moves_from(rank)), all(&|rank| plan.moves_to(rank)), "{plan}");
    }
    let plan = Redistribution::new(&split(&[4, 4], "0:4"), [1, 0], &split(&[4, 4], "0:4"), 8).unwrap();
    assert_eq!(plan.moves_to(1).iter().map(|part| part.from).collect::<Vec<_>>(), [0, 3, 2, 1]);
}

fn to(plan: &Redistribution, rank: usize) -> Vec<(usize, u64)> {
    plan.moves_from(rank).iter().map(|part| (part.to, part.bytes)).collect()
}

#[test]
fn nothing_moves_of_an_empty_array_or_part() {
    let plan = Redistribution::new(&split(&[0, 6], "1:3"), [1, 0], &split(&[6, 0], "0:2"), 4).unwrap();
    assert!((0..3).all(|rank| plan.moves_from(rank).is_empty()));
    assert_eq!((plan.crossing_bytes(), plan.busiest_bytes(), plan.ranks()), (0, 0, 3));
    let plan = Redistribution::new(&split(&[2, 1], "0:4"), [0, 1], &split(&[2, 1], "1:3"), 1).unwrap();
    assert_eq!([0, 1, 2, 3, 9].map(|rank| to(&plan, rank)), [vec![(0, 1)], vec![(0, 1)], vec![], vec![], vec![]]);
    assert_eq!((plan.crossing_bytes(), plan.busiest_bytes()), (1, 1));
}

#[test]
fn a_rank_begins_with_the_one_behind_it() {
    let plan = Redistribution::new(&split(&[4, 4], "0:4"), [1, 0], &split(&[4, 4], "0:4"), 8).unwrap();
    assert_eq!(to(&plan, 1), [(2, 8), (3, 8), (0, 8), (1, 8)]);
    assert_eq!(to(&plan, 3), [(0, 8), (1, 8), (2, 8), (3, 8)]);
    assert_eq!((plan.crossing_bytes(), plan.busiest_bytes()), (96, 24));
}

#[test]
fn a_move_names_the_same_elements_on_both_sides() {
    let from = split(&[3, 5], "1:2").padded(&[4, 4]).unwrap();
    let plan = Redistribution::new(&from, [1, 0], &split(&[5, 3], "0:2+3"), 2).unwrap();
    let moves = plan.moves_from(0);
    assert_eq!(moves.iter().map(|part| (part.to, part.bytes)).collect::<Vec<_>>(), [(1, 6), (0, 12)]);
    let Move { src, dst, .. } = &moves[0];
    assert_eq!((src.shape(), dst.shape()), ([1, 3].as_slice(), [1, 3].as_slice()));
    // Column 2 of the rows of 4, to the first row behind the second column.
    assert_eq!([src.offset_of(&[0, 2]), dst.offset_of(&[0, 2])], [Some(10), Some(2)]);
}

#[test]
fn one_of_4096_ranks_is_planned_alone() {
    let shape = [1 << 20, 1 << 20];
    let plan = Redistribution::new(&split(&shape, "0:4096"), [1, 0], &split(&shape, "0:4096"), 16).unwrap();
    let moves = plan.moves_from(4095);
    assert_eq!((moves.len(), moves[0].to, moves[4095].to), (4096, 0, 4095));
    assert!(moves.iter().all(|part| part.bytes == 256 * 256 * 16));
    let rows = Redistribution::new(&split(&shape, "0:65536"), [0, 1], &split(&shape, "0:65536"), 1).unwrap();
    assert_eq!(to(&rows, 65_535), [(65_535, 16 << 20)]);
}

/// A plan says how many bytes cross without a look at each of the copies, of which many ranks
/// have billions.
#[test]
fn the_bytes_that_cross_are_those_of_the_moves() {
    for (from, to) in [("0:3", "0:2"), ("", "1:5"), ("0:2,1:2", "1:0+3+1,0:2"), ("1:4", "")] {
        let plan = Redistribution::new(&split(&[4, 5], from), [1, 0], &split(&[5, 4], to), 2).unwrap();
        let mut ends = vec![[0; 2]; plan.ranks()];
        for part in (0..plan.ranks()).flat_map(|rank| plan.moves_from(rank)).filter(|part| part.from != part.to) {
            ends[part.from][0] += part.bytes;
            ends[part.to][1] += part.bytes;
        }
        assert_eq!(plan.crossing_bytes(), ends.iter().map(|[sent, _]| sent).sum::<u64>(), "{plan}");
        assert_eq!(plan.busiest_bytes(), ends.into_iter().flatten().max().unwrap(), "{plan}");
    }
    let shape = [1 << 16, 1 << 16];
    let plan = Redistribution::new(&split(&shape, "0:65536"), [1, 0], &split(&shape, "0:65536"), 1).unwrap();
    assert_eq!((plan.crossing_bytes(), plan.busiest_bytes()), ((1 << 32) - (1 << 16), (1 << 16) - 1));
}

#[test]
fn few_ranks_are_printed() {
    let plan = Redistribution::new(&split(&[9, 9], "0:9"), [1, 0], &split(&[9, 9], ""), 1).unwrap();
    let text = plan.to_string();
    assert!(text.starts_with("[9, 9] by 0:9 to [9, 9], axes [1, 0], elements of 1 byte\n72 bytes from rank"), "{text}");
    assert!(text.contains("\n  rank 0: 9 to 0 (itself)\n  rank 1: 9 to 0\n"), "{text}");
    assert!(text.ends_with("\n  and 1 rank more"), "{text}");
}
