use super::*;
use warpstride::counters::Counters;
use warpstride::element::DType;
use warpstride::roofline::measure::Clocks;
use warpstride::roofline::record::{Drawn, Group, Subject};

fn times(median: f64, spread: f64) -> Record {
    let at = |part: f64| median * (1.0 + part * spread);
    let subject = Subject::new(Group::Stream, "copy", DType::F32, &[32], [128; 2]);
    Record {
        ms: Some(Milliseconds { median, p10: at(-0.8), p25: at(-0.5), p75: at(0.5), p90: at(0.8) }),
        gapless: Some(true),
        ..Record::new(subject, None, true)
    }
}

fn verdict(before: &Record, now: &Record) -> Verdict {
    Change::of(Some(before), Some(now)).expect("a case").verdict
}

#[test]
fn a_change_is_beyond_the_noise_and_beyond_the_threshold() {
    let of = |now| verdict(&times(1.0, 0.01), &now);
    assert_eq!(of(times(1.05, 0.01)), Verdict::Slower);
    assert_eq!(of(times(0.95, 0.01)), Verdict::Faster);
    // Apart, but by no more than two runs are.
    assert_eq!(of(times(1.015, 0.001)), Verdict::Same);
    // Far apart, but so are the samples.
    assert_eq!(of(times(1.05, 0.2)), Verdict::Same);
    let hot = Clocks { sm_mhz: 1980, sm_max_mhz: 1980, memory_mhz: 2619, slowed: true, held: false };
    let hot = Record { clocks: Some(hot), ..times(2.0, 0.01) };
    assert_eq!(verdict(&hot, &times(1.0, 0.01)), Verdict::Undecided);
    let set = Clocks { sm_mhz: 1200, sm_max_mhz: 1980, memory_mhz: 2619, slowed: false, held: true };
    let set = Record { clocks: Some(set), ..times(2.0, 0.01) };
    assert_eq!(of(set.clone()), Verdict::Undecided);
    assert_eq!(verdict(&set, &Record { clocks: set.clocks, ..times(1.0, 0.01) }), Verdict::Faster);
}

/// A permute of a list, at a part of the speed of a copy of `copy` GB/s.
fn permute(ms: f64, copy: f64, strategy: &str) -> Record {
    let drawn = Drawn { kind: "structs".into(), strategy: strategy.into(), touched: 256 };
    let fraction_of_copy = Some(3000.0 / ms / copy);
    Record { copy_gbps: Some(copy), fraction_of_copy, drawn: Some(drawn), ..times(ms, 0.001) }
}

#[test]
fn permutes_of_a_list_are_compared_by_their_speed_beside_the_copy() {
    let before = permute(1.0, 3000.0, "rows");
    let of = |now: Record| Change::of(Some(&before), Some(&now)).expect("a case");
    assert_eq!(of(permute(1.03, 3000.0, "rows")).verdict, Verdict::Slower);
    assert_eq!(of(permute(1.01, 3000.0, "rows")).verdict, Verdict::Same);
    // On a GPU whose copies take 3 % more, too, and on one whose copies do not.
    let card = of(permute(1.03, 3000.0 / 1.03, "rows"));
    assert_eq!((card.verdict, card.is_news()), (Verdict::Same, false));
    assert!((card.now_of_copy.expect("timed") - 1.0).abs() < 1e-9, "{card:?}");
    assert_eq!(of(permute(1.0, 3000.0 * 1.03, "rows")).verdict, Verdict::Slower);
    assert_eq!(of(permute(1.0, 3000.0 / 1.03, "rows")).verdict, Verdict::Faster);
    // Another strategy is told, however fast it is.
    let other = of(permute(1.01, 3000.0, "boxes"));
    assert_eq!((other.verdict, other.is_news()), (Verdict::Same, true));
    assert_eq!(other.choice.as_deref(), Some("boxes -, was rows -"));
}

#[test]
fn bytes_are_compared_beside_the_counters_where_nothing_is_timed() {
    let counted = Record { counters: Some(Counters::default()), ms: None, gapless: None, ..times(1.0, 0.0) };
    assert_eq!(verdict(&Record { counters: None, ..counted.clone() }, &counted), Verdict::Undecided);
    let mut fewer = counted.clone();
    fewer.subject.read += 64;
    let change = Change::of(Some(&fewer), Some(&counted)).expect("a case");
    assert!(change.difference.is_some_and(|difference| difference.starts_with("read ")));
}
