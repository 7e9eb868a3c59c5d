use super::*;
use warpstride::element::DType;
use warpstride::roofline::record::{Group, Subject};

#[test]
fn a_case_that_was_not_timed_counts_as_0() {
    let case = |fraction_of_copy| {
        let subject = Subject::new(Group::Permute, "permute", DType::F32, &[1], [4; 2]);
        Record { fraction_of_copy, ..Record::new(subject, None, fraction_of_copy.is_some()) }
    };
    let Score { score, lowest, .. } = Score::of(&[case(Some(0.9)), case(Some(0.5)), case(Some(0.4))]);
    assert!((score.expect("a mean") - 0.18_f64.cbrt()).abs() < 1e-12);
    assert_eq!(lowest, Some(0.4));
    assert_eq!(
        Score::of(&[case(Some(0.9)), case(None)]),
        Score { score: Some(0.0), lowest: Some(0.0), loss_of_choice: None }
    );
    let losses = Score::default().with_losses(&[1.0, 1.21]).loss_of_choice.expect("plans were measured");
    assert!((losses - 1.1).abs() < 1e-12 && Score::default().with_losses(&[]).loss_of_choice.is_none());
}
