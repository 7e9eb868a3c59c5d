use super::*;

#[test]
fn lanes_are_one_number_while_they_are_alike() {
    let mut known = Known::nothing(2);
    known.raise(1, FULL, 5);
    assert_eq!(known.own[1], Lanes::Alike(5));
    known.raise(1, 1 << 3, 7);
    let [zero, one] = [&known.own[0], &known.own[1]];
    assert!(one.hold(1 << 3, 6) && !one.hold(1 << 3 | 1, 5) && one.hold(FULL, 4));
    assert!(one.hold_any(1 << 3 | 1, 6) && !one.hold_any(1, 5) && !zero.hold(1, 0));
    known.raise(1, !(1 << 3), 7);
    assert_eq!(known.own[1], Lanes::Alike(7));
}

#[test]
fn trees_share_what_they_have_in_common() {
    let mut known = Known::nothing(1);
    for block in 0..100 {
        known = known.moved(block, block + 1).0;
    }
    let before = known.others.clone();
    let mut joined = known.clone();
    joined.join(&known.clone());
    let older = Known { own: known.own.clone(), others: before };
    joined.join(&older);
    assert!(Rc::ptr_eq(joined.others.0.as_ref().unwrap(), known.others.0.as_ref().unwrap()));
}
