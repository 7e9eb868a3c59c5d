use super::super::ast::RegisterName;
use super::*;

/// The first name that is declared twice.
fn twice<'t>(names: &[(&'t str, Option<u64>)]) -> Option<&'t str> {
    let names = names.iter().map(|&(name, count)| RegisterName { name, count }).collect();
    Declarations::default().add(&Statement::Registers { kind: "b32", lanes: 1, names }).err()
}

#[test]
fn a_name_belongs_to_the_range_that_has_its_number() {
    let mut ranges = Ranges::default();
    ranges.insert("%r", 12, 'a');
    ranges.insert("%r1", 0, 'b');
    ranges.insert("%q1", 5, 'c');
    let found = ["%r0", "%r11", "%r12", "%r00", "%r01", "%r", "%q14", "%q15", "%q1", "%q10"];
    let expected = [Some('a'), Some('a'), None, None, None, None, Some('c'), None, None, Some('c')];
    assert_eq!(found.map(|name| ranges.get(name).copied()), expected);
    assert_eq!(ranges.get("%r99999999999999999999999"), None);
}

#[test]
fn what_shares_a_name_is_found_in_either_order() {
    for (a, b) in [
        (("%r", Some(20)), ("%r1", Some(5))),
        (("%r", Some(20)), ("%r7", None)),
        (("%r", Some(4)), ("%r", Some(2))),
        (("r", None), ("r", None)),
        (("%r1", Some(2)), ("%r10", None)),
    ] {
        assert_eq!((twice(&[a, b]), twice(&[b, a])), (Some(b.0), Some(a.0)), "{a:?} {b:?}");
    }
    for (a, b) in [
        (("%r", Some(10)), ("%r1", Some(5))),
        (("%r", Some(7)), ("%r7", None)),
        (("%r", Some(20)), ("%r0", Some(5))),
        (("%r", Some(0)), ("%r0", None)),
        (("%r", Some(20)), ("%r1", Some(0))),
        (("%r", Some(20)), ("%r07", None)),
    ] {
        assert_eq!((twice(&[a, b]), twice(&[b, a])), (None, None), "{a:?} {b:?}");
    }
}
