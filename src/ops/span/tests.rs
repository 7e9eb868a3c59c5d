use super::*;

fn of<const N: usize>(addresses: [u64; N]) -> [Phase; N] {
    addresses.map(Phase::of)
}

#[test]
fn vectors_start_at_the_first_boundary_that_all_have() {
    assert_eq!(span(100, 4, &of([256, 512])), Span { len: 100, first: 0, quads: 25 });
    assert_eq!(span(100, 4, &of([260, 516])), Span { len: 100, first: 3, quads: 24 });
    assert_eq!(span(100, 4, &of([260, 512])), Span { len: 100, first: 0, quads: 0 });
    assert_eq!(span(2, 4, &of([260])), Span { len: 2, first: 2, quads: 0 });
    let sides = |sides: [(u64, u64); 2]| sides.map(|(address, width)| (Phase::of(address), width));
    assert_eq!(common_span(100, 4, sides([(3, 1), (12, 4)])), Span { len: 100, first: 1, quads: 24 });
    assert_eq!(common_span(100, 4, sides([(3, 1), (16, 4)])), Span { len: 100, first: 0, quads: 0 });
    assert_eq!(span(0, 8, &of([264])), Span { len: 0, first: 0, quads: 0 });
}

#[test]
fn lanes_reach_every_element() {
    assert_eq!(lanes(&Span { len: 100, first: 3, quads: 24 }, 4), 24);
    assert_eq!(lanes(&Span { len: 9, first: 3, quads: 1 }, 4), 5);
    assert_eq!(lanes(&Span { len: 100, first: 0, quads: 0 }, 4), 100);
}

#[test]
fn a_plan_for_contiguous_elements_takes_no_others() {
    let planned = Contiguous::new("source", DType::F32, 10, Phase::of(0x1234)).unwrap();
    assert_eq!(planned.check_address("source", 0x5004), Ok(()));
    let error = planned.check_address("source", 0x5008).unwrap_err();
    assert!(error.to_string().contains("8 bytes behind a multiple of 16"), "{error}");
    assert!(planned.check_address("source", 0x5005).unwrap_err().to_string().contains("multiple of 4"));
    assert!(Contiguous::new("source", DType::F32, 10, Phase::of(2)).is_err());
}
