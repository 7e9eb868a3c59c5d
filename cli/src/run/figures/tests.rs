use super::*;

#[test]
fn code_stands_between_backticks_and_one_alone_begins_none() {
    assert_eq!(parts_of_code(&format!("the kernel {} moves", code("a`b"))), ["the kernel ", "a'b", " moves"]);
    assert_eq!(parts_of_code("a`b"), ["a`b"]);
}

#[test]
fn figures_have_three_digits_and_a_unit() {
    let times = [10.2153, 0.08924, 0.9996, 43.2160, 0.00157, 1234.4].map(time);
    assert_eq!(times.join("; ").replace(SPACE, " "), "10.2 ms; 89.2 us; 1.00 ms; 43.2 ms; 1.57 us; 1,234 ms");
    assert_eq!(of_time(3.1602, 4.6994).replace(SPACE, " "), "3.16 of the 4.70 ms");
    assert_eq!(of_time(0.7022, 4.6994).replace(SPACE, " "), "702 us of the 4.70 ms");
    assert_eq!([three(0.0), three(99.96), three(f64::NAN), three(f64::MAX)], ["0.00", "100", "-", "1.80e308"]);
    assert_eq!([short(32.0), short(4.5)], ["32", "4.5"]);
    assert_eq!([0, 999, 16_777_216].map(thousands), ["0", "999", "16,777,216"]);
    assert_eq!([1, 2, 3, 4, 11, 22, 113].map(ordinal), ["1st", "2nd", "3rd", "4th", "11th", "22nd", "113th"]);
}
