use super::*;

#[test]
fn a_phase_ends_with_the_last_arrival_and_the_last_byte() {
    let start = initial(3);
    let two = arrive(start, 2, 0);
    assert!(!has_left(two, start) && pending(two) == 1);
    let all = arrive(two, 1, 0);
    assert!(has_left(all, start) && pending(all) == 3);
    let bytes = arrive(arrive(all, 0, 64), 3, 0);
    assert!(!has_left(bytes, all) && pending(bytes) == 0);
    assert!(has_left(arrive(bytes, 0, 64_u64.wrapping_neg()), all));
    // Bytes may come first.
    let early = arrive(all, 0, 64_u64.wrapping_neg());
    assert!(!has_left(arrive(early, 2, 0), all) && has_left(arrive(arrive(early, 2, 0), 1, 64), all));
}

#[test]
fn threads_that_drop_out_are_not_expected_again() {
    let next = drop_out(arrive(initial(3), 2, 0), 1, 0);
    assert!(has_left(next, 0) && pending(next) == 2);
    assert!(!has_left(arrive(arrive(next, 1, 0), 1, 0), 0));
}
