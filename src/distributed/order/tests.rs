use super::*;
use crate::distributed::Split;

fn order(shape: &[usize], from: &str, to: &str) -> Vec<Vec<usize>> {
    let result: Vec<usize> = shape.iter().rev().copied().collect();
    let (from, to) = (Split::parse(shape, from).unwrap(), Split::parse(&result, to).unwrap());
    let plan = Redistribution::new(&from, [1, 0], &to, 4).unwrap();
    of_host(&plan).iter().map(|moves| moves.iter().map(|part| part.to).collect()).collect()
}

#[test]
fn ranks_take_turns_around_the_ring() {
    assert_eq!(order(&[8, 8], "0:4", "0:4"), [[1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2], [0, 1, 2, 3]]);
    assert_eq!(order(&[8, 8], "0:2", "0:2"), [[1, 0], [0, 1]]);
}

/// In the order of the ring, ranks 1 and 3 would both begin with rank 2, and it would take a
/// half longer.
#[test]
fn ranks_with_a_choice_leave_a_gpu_to_those_without() {
    assert_eq!(order(&[8, 8], "0:2,1:2", "0:4"), [vec![1, 0], vec![3, 2], vec![0, 1], vec![2, 3]]);
    assert_eq!(order(&[8, 8], "0:4", ""), [[0], [0], [0], [0]]);
}

#[test]
fn many_ranks_keep_the_order_of_the_ring() {
    let many = order(&[65, 65], "0:65", "0:65");
    assert_eq!((many.len(), many[3][..3].to_vec()), (65, vec![4, 5, 6]));
}
