//! Figures in sentences: three digits, a unit that suits them, and a space that no line breaks at.

/// A space where no line is broken.
const SPACE: char = '\u{a0}';

/// A number with three digits, or whole with separators from 1000.
pub(crate) fn three(value: f64) -> String {
    let digits = |least: &f64| value.abs() >= *least;
    match [999.5, 99.95, 9.995].iter().position(digits) {
        Some(0) if value < 1e18 => thousands(value.round() as u64),
        Some(0) => format!("{value:.2e}"),
        Some(1) => format!("{value:.0}"),
        Some(_) => format!("{value:.1}"),
        None if value.is_nan() => "-".into(),
        None => format!("{value:.2}"),
    }
}

/// A number with one digit behind its point, or none where that is 0.
pub(crate) fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), Into::into)
}

/// A whole number with a separator between thousands.
pub(crate) fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let parts: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|part| str::from_utf8(part).ok()).collect();
    parts.join(",")
}

/// A figure and its unit.
pub(crate) fn with_unit(figure: &str, unit: &str) -> String {
    format!("{figure}{SPACE}{unit}")
}

/// A speed.
pub(crate) fn speed(gbps: f64) -> String {
    with_unit(&three(gbps), "GB/s")
}

/// A part of 1 in percent.
pub(crate) fn percent(part: f64) -> String {
    with_unit(&format!("{:.1}", 100.0 * part), "%")
}

/// A time, in milliseconds or microseconds.
pub(crate) fn time(ms: f64) -> String {
    let (figure, unit) = scaled(ms);
    with_unit(&three(figure), unit)
}

/// A part of a time: `3.16 of the 4.70 ms`.
pub(crate) fn of_time(part: f64, ms: f64) -> String {
    let ((figure, unit), (_, whole)) = (scaled(part), scaled(ms));
    let part = if unit == whole { three(figure) } else { time(part) };
    format!("{part} of the {}", time(ms))
}

fn scaled(ms: f64) -> (f64, &'static str) {
    if ms < 0.9995 { (1e3 * ms, "us") } else { (ms, "ms") }
}

/// A name in code type, between backticks, of which it keeps none of its own.
pub(crate) fn code(name: &str) -> String {
    format!("`{}`", name.replace('`', "'"))
}

/// The parts of a text that are outside of backticks and those between them, in turn.
pub(crate) fn parts_of_code(text: &str) -> Vec<&str> {
    let parts: Vec<&str> = text.split('`').collect();
    // A name may have one that begins nothing.
    if parts.len() % 2 == 1 { parts } else { vec![text] }
}

/// A place in an order: `1st`.
pub(crate) fn ordinal(place: usize) -> String {
    let end = match (place % 100, place % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{place}{end}")
}

#[cfg(test)]
mod tests;
