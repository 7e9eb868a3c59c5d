use super::*;

fn walk(layouts: [&Layout; SIDES]) -> Walk {
    Walk::new(layouts.map(Some))
}

#[test]
fn contiguous_operands_are_one_axis_and_a_vector_that_repeats_makes_two() {
    let matrix = Layout::row_major(&[3, 4, 5]).unwrap();
    assert_eq!(walk([&matrix; SIDES]).axes(), [Axis { extent: 60, strides: [1; SIDES] }]);
    let row = Layout::row_major(&[5]).unwrap().broadcast(&[3, 4, 5]).unwrap();
    let [inner, outer] = walk([&matrix, &matrix, &row]).axes().try_into().unwrap();
    assert_eq!((inner, outer.extent), (Axis { extent: 5, strides: [1; SIDES] }, 12));
    assert_eq!(outer.strides, [5, 5, 0]);
    assert_eq!(walk([&matrix, &matrix, &row]).distinct(2), 5);
}

#[test]
fn a_destination_that_runs_backwards_is_walked_forwards() {
    let line = Layout::row_major(&[10]).unwrap();
    let back = line.reverse(0).unwrap();
    let walk = walk([&back, &line, &back]);
    assert_eq!((walk.starts, walk.axes()), ([0, 9, 0], &[Axis { extent: 10, strides: [1, -1, 1] }][..]));
}

#[test]
fn no_element_is_no_work() {
    let none = Layout::row_major(&[3, 0]).unwrap();
    assert_eq!(walk([&none; SIDES]).len(), 0);
    assert_eq!(walk([&none; SIDES]), walk([&Layout::row_major(&[0]).unwrap(); SIDES]));
    assert_eq!(Walk::new([Some(&Layout::row_major(&[]).unwrap()), None, None]).len(), 1);
}
