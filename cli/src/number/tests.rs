use super::*;

#[test]
fn numbers_are_short_for_the_reader() {
    let of = |value: f32| text(DType::F32, &value.to_le_bytes());
    let numbers = [-2.873_518_2e-16, 0.591_189_7, 993.0, -0.0, f32::MAX, f32::NAN].map(of);
    assert_eq!(numbers, ["-2.8735182e-16", "0.5911897", "993", "-0", "3.4028235e38", "NaN"]);
    assert_eq!(text(DType::C128, &[0; 16]), "0 + 0i");
}

#[test]
fn halves_are_rounded_once() {
    let halves = |value| [f16::from_f32(odd(value)).to_bits(), bf16::from_f32(odd(value)).to_bits()];
    // A little more than the middle between two halves, which 24 bits do not show.
    let above = |last: i32| 1.0 + 2.0_f64.powi(-last) + 2.0_f64.powi(-40);
    assert_eq!((halves(above(11))[0], halves(above(8))[1]), (0x3c01, 0x3f81));
    assert_eq!((halves(-above(11))[0], halves(-above(8))[1]), (0xbc01, 0xbf81));
    assert_eq!((halves(1.0 + 2.0_f64.powi(-11))[0], halves(1.0 + 2.0_f64.powi(-8))[1]), (0x3c00, 0x3f80));
    assert_eq!(
        [halves(0.0), halves(-0.0), halves(1e300), halves(-1e300)],
        [[0, 0], [0x8000; 2], [0x7c00, 0x7f80], [0xfc00, 0xff80]]
    );
    assert_eq!((halves(1e-300), halves(-1e-300)), ([0, 0], [0x8000; 2]));
    assert!(f16::from_bits(halves(f64::NAN)[0]).is_nan());
    assert!(odd_sum(f64::INFINITY, 1.0) == f64::INFINITY && odd_sum(f64::INFINITY, f64::NEG_INFINITY).is_nan());
    assert_eq!(odd_sum(1.0, -1.0), 0.0);
}
