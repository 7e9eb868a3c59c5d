//! C's formats, as `printf` in a kernel supports them: flags, width, precision, size, and the
//! conversions `cdiouxXpeEfFgGaAs%`.

/// The arguments of a format.
pub(super) trait Values {
    type Error;
    /// The next value, of 4 or 8 bytes.
    fn value(&mut self, bytes: u64) -> Result<u64, Self::Error>;
    /// The string at an address.
    fn text(&mut self, address: u64) -> Result<Vec<u8>, Self::Error>;
}

/// The part of a conversion between the percent sign and its letter.
#[derive(Debug, Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    zero: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    /// `l`, `ll` and similar: the value has 8 bytes.
    long: bool,
    /// `h` and `hh`: the number of bits that count.
    short: u32,
}

/// The largest width or precision; larger ones are clamped to it.
const MOST: usize = 512;

/// Prints to `out`; returns the number of values that it took.
pub(super) fn format<V: Values>(text: &[u8], values: &mut V, out: &mut Vec<u8>) -> Result<u32, V::Error> {
    let mut taken = 0;
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'%' {
            out.push(first);
            continue;
        }
        let (spec, tail) = spec(tail, values, &mut taken)?;
        let Some((&kind, tail)) = tail.split_first() else { break };
        rest = tail;
        let body = match kind {
            b'%' => {
                out.push(b'%');
                continue;
            }
            b'd' | b'i' | b'u' | b'o' | b'x' | b'X' => spec.integer(kind, values.value(if spec.long { 8 } else { 4 })?),
            b'c' => vec![values.value(4)? as u8],
            b'p' => format!("{:#x}", values.value(8)?).into_bytes(),
            b's' => {
                let address = values.value(8)?;
                let mut text = if address == 0 { b"(null)".to_vec() } else { values.text(address)? };
                text.truncate(spec.precision.unwrap_or(usize::MAX));
                text
            }
            b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => {
                spec.real(kind, f64::from_bits(values.value(8)?)).into_bytes()
            }
            // C does not know this conversion: it is printed unchanged.
            other => {
                out.extend([b'%', other]);
                continue;
            }
        };
        taken += 1;
        spec.pad(kind, &body, out);
    }
    Ok(taken)
}

fn spec<'t, V: Values>(mut rest: &'t [u8], values: &mut V, taken: &mut u32) -> Result<(Spec, &'t [u8]), V::Error> {
    let mut spec = Spec::default();
    while let Some((&flag, tail)) = rest.split_first() {
        match flag {
            b'-' => spec.left = true,
            b'+' => spec.plus = true,
            b' ' => spec.space = true,
            b'0' => spec.zero = true,
            b'#' => spec.alternate = true,
            _ => break,
        }
        rest = tail;
    }
    let most = MOST as i32;
    let mut number = |rest: &mut &'t [u8]| {
        if let Some(tail) = rest.strip_prefix(b"*") {
            *rest = tail;
            *taken += 1;
            return Ok((values.value(4)? as i32).clamp(-most, most));
        }
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let value = rest[..digits].iter().fold(0, |value, digit| (value * 10 + i32::from(digit - b'0')).min(most));
        *rest = &rest[digits..];
        Ok(value)
    };
    let width = number(&mut rest)?;
    spec.left |= width < 0;
    spec.width = width.unsigned_abs() as usize;
    if let Some(tail) = rest.strip_prefix(b".") {
        rest = tail;
        // A negative precision counts as absent.
        spec.precision = usize::try_from(number(&mut rest)?).ok();
    }
    while let Some((&size, tail)) = rest.split_first() {
        match size {
            b'l' | b'j' | b'z' | b't' => spec.long = true,
            b'h' => spec.short = if spec.short == 0 { 16 } else { 8 },
            _ => break,
        }
        rest = tail;
    }
    Ok((spec, rest))
}

impl Spec {
    fn integer(&self, kind: u8, value: u64) -> Vec<u8> {
        let unused = if self.long { 0 } else { 64 - if self.short == 0 { 32 } else { self.short } };
        let unsigned = value << unused >> unused;
        let signed = (value << unused) as i64 >> unused;
        let (sign, digits) = match kind {
            b'd' | b'i' => (self.sign(signed < 0), signed.unsigned_abs().to_string()),
            b'o' => ("", if self.alternate { format!("0{unsigned:o}") } else { format!("{unsigned:o}") }),
            b'x' => (if self.alternate && unsigned != 0 { "0x" } else { "" }, format!("{unsigned:x}")),
            b'X' => (if self.alternate && unsigned != 0 { "0X" } else { "" }, format!("{unsigned:X}")),
            _ => ("", unsigned.to_string()),
        };
        let digits = if self.precision == Some(0) && unsigned == 0 { String::new() } else { digits };
        let width = self.precision.unwrap_or(0);
        format!("{sign}{digits:0>width$}").into_bytes()
    }

    fn sign(&self, negative: bool) -> &'static str {
        match (negative, self.plus, self.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (.., true) => " ",
            _ => "",
        }
    }

    fn real(&self, kind: u8, value: f64) -> String {
        let (sign, size) = (self.sign(value.is_sign_negative()), value.abs());
        let precision = self.precision.unwrap_or(6);
        let digits = if size.is_nan() {
            "nan".to_owned()
        } else if size.is_infinite() {
            "inf".to_owned()
        } else {
            match kind.to_ascii_lowercase() {
                b'e' => scientific(size, precision),
                b'f' => format!("{size:.precision$}"),
                b'g' => self.general(size, precision.max(1)),
                _ => hexadecimal(size),
            }
        };
        let text = format!("{sign}{digits}");
        if kind.is_ascii_uppercase() { text.to_ascii_uppercase() } else { text }
    }

    /// `%g`: the shorter of the two notations, without trailing zeros.
    fn general(&self, size: f64, precision: usize) -> String {
        let exact = scientific(size, precision - 1);
        let (digits, exponent) = exact.split_once('e').unwrap_or((&exact, "0"));
        let power: i32 = exponent.parse().unwrap_or(0);
        let trim = |digits: &str| match digits.contains('.') && !self.alternate {
            true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => digits.to_owned(),
        };
        if power < -4 || power >= precision as i32 {
            return format!("{}e{exponent}", trim(digits));
        }
        let places = (precision as i32 - 1 - power) as usize;
        trim(&format!("{size:.places$}"))
    }

    fn pad(&self, kind: u8, body: &[u8], out: &mut Vec<u8>) {
        let missing = self.width.saturating_sub(body.len());
        let finite =
            body.last().is_some_and(|last| !matches!(last, b'n' | b'f' | b'N' | b'F') || kind == b'x' || kind == b'X');
        let number = !matches!(kind, b'c' | b's' | b'p');
        let whole = matches!(kind, b'd' | b'i' | b'u' | b'o' | b'x' | b'X');
        let zeros = self.zero && !self.left && number && finite && !(whole && self.precision.is_some());
        let sign = body.iter().take_while(|byte| matches!(byte, b'-' | b'+' | b' ')).count();
        let head = if body[sign..].starts_with(b"0x") || body[sign..].starts_with(b"0X") { sign + 2 } else { sign };
        match (self.left, zeros) {
            (true, _) => out.extend(body.iter().copied().chain(std::iter::repeat_n(b' ', missing))),
            (_, true) => {
                out.extend(&body[..head]);
                out.extend(std::iter::repeat_n(b'0', missing));
                out.extend(&body[head..]);
            }
            _ => out.extend(std::iter::repeat_n(b' ', missing).chain(body.iter().copied())),
        }
    }
}

/// `1.500000e+00`
fn scientific(size: f64, precision: usize) -> String {
    let text = format!("{size:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let power: i32 = exponent.parse().unwrap_or(0);
    let sign = if power < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", power.unsigned_abs())
}

/// `0x1.8p+0`
fn hexadecimal(size: f64) -> String {
    let bits = size.to_bits();
    let (power, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
    let (first, power) = match (power, fraction) {
        (0, 0) => (0, 0),
        (0, _) => (0, -1022),
        _ => (1, power - 1023),
    };
    let digits = format!("{fraction:013x}");
    let digits = digits.trim_end_matches('0');
    let point = if digits.is_empty() { "" } else { "." };
    format!("0x{first}{point}{digits}p{power:+}")
}

#[cfg(test)]
mod tests;
