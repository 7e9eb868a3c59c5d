use super::*;

struct List(Vec<u64>);

impl Values for List {
    type Error = ();
    fn value(&mut self, bytes: u64) -> Result<u64, ()> {
        let value = self.0.remove(0);
        Ok(if bytes == 4 { value & 0xffff_ffff } else { value })
    }
    fn text(&mut self, _: u64) -> Result<Vec<u8>, ()> {
        Ok(b"text".to_vec())
    }
}

fn printed(format: &str, values: &[u64]) -> String {
    let mut out = Vec::new();
    super::format(format.as_bytes(), &mut List(values.to_vec()), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The expected strings are those of glibc's `printf`.
#[test]
fn formats_are_those_of_c() {
    let real = |value: f64| value.to_bits();
    assert_eq!(printed("%d %5d|%-5d|%05d|%+d", &[-1_i64 as u64, 42, 42, -42_i64 as u64, 7]), "-1    42|42   |-0042|+7");
    assert_eq!(printed("%u %x %X %#x %o", &[u64::MAX, 255, 255, 255, 8]), "4294967295 ff FF 0xff 10");
    assert_eq!(printed("%lld %lu %hhd", &[-2_i64 as u64, 1 << 40, 0x1ff]), "-2 1099511627776 -1");
    assert_eq!(printed("%f %.2f %8.3f|", &[real(1.5), real(-2.675), real(3.25)]), "1.500000 -2.67    3.250|");
    assert_eq!(printed("%e %.0e %E", &[real(12345.678), real(0.0), real(1e-300)]), "1.234568e+04 0e+00 1.000000E-300");
    assert_eq!(
        printed("%g %g %g %g", &[real(0.0001), real(1e-5), real(123456.0), real(1234567.0)]),
        "0.0001 1e-05 123456 1.23457e+06"
    );
    assert_eq!(
        printed("%g %a %f %5.1f%%", &[real(100.0), real(1.5), real(f64::INFINITY), real(99.5)]),
        "100 0x1.8p+0 inf  99.5%"
    );
    assert_eq!(printed("%c|%s|%.2s|%6s|%p", &[65, 1, 1, 1, 0x10]), "A|text|te|  text|0x10");
    assert_eq!(printed("%*d|%.*f|%q|%", &[4, 7, 1, real(0.25)]), "   7|0.2|%q|");
    let negative = u64::from(u32::MAX);
    assert_eq!(printed("%*d|%.*f", &[negative - 3, 7, negative, real(0.25)]), "7   |0.250000");
}
