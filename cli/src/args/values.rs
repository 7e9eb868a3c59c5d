//! Values of options.

use std::ops::RangeInclusive;
use std::path::is_separator;
use std::str::FromStr;

use warpstride::element::DType;
use warpstride::roofline::model::DeviceModel;

/// Returns a parser of whole numbers.
pub(super) fn whole<T: FromStr>(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let text = text.trim();
        let is_in_range = text.parse().is_ok_and(|number| range.contains(&number));
        let number = text.parse().ok().filter(|_| is_in_range);
        number.ok_or_else(|| format!("give a whole number from {} to {}, in digits alone", range.start(), range.end()))
    }
}

/// Whole numbers and commas; of no axes, nothing.
pub(super) fn numbers(text: &str) -> Result<Box<[usize]>, String> {
    if text.trim().is_empty() {
        return Ok(Box::default());
    }
    let number = |text: &str| {
        let text = text.trim();
        let most = usize::MAX;
        text.parse().map_err(|_| format!("`{text}` is not a whole number from 0 to {most}; give them as 4,10,3"))
    };
    text.split(',').map(number).collect()
}

/// The seed of drawn cases, and their number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Random {
    pub(crate) seed: u64,
    pub(crate) count: usize,
}

pub(super) fn random(text: &str) -> Result<Random, String> {
    let (seed, count) = text.split_once(',').unwrap_or((text, ""));
    match (seed.trim().parse(), count.trim().parse()) {
        (Ok(seed), Ok(count @ 1..=1000)) => Ok(Random { seed, count }),
        _ => Err("give a seed and a number of cases from 1 to 1000 as two whole numbers, such as 1,20".into()),
    }
}

/// One of some equal parts of a list, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) number: usize,
    pub(crate) of: usize,
}

pub(super) fn part(text: &str) -> Result<Part, String> {
    let (number, of) = text.split_once('/').unwrap_or((text, ""));
    match (number.trim().parse(), of.trim().parse()) {
        (Ok(number @ 1..), Ok(of)) if number <= of => Ok(Part { number, of }),
        _ => Err("give the number of a part, from 1, and the number of parts, such as 2/3".into()),
    }
}

/// A whole number for each axis, or a sentence that asks for them.
pub(super) fn extents<const N: usize>(text: &str, sentence: &str) -> Result<[usize; N], String> {
    let given = numbers(text).ok().and_then(|numbers| numbers[..].try_into().ok());
    given.ok_or_else(|| sentence.into())
}

pub(super) fn shape(text: &str) -> Result<[usize; 2], String> {
    extents(text, "give rows and columns as two whole numbers, such as 1024,768")
}

pub(super) fn images(text: &str) -> Result<[usize; 4], String> {
    extents(text, "give images, rows, columns and channels as four whole numbers, such as 64,1080,1920,3")
}

/// A number of bytes, at least 1.
pub(super) fn bytes(text: &str) -> Result<usize, String> {
    let bytes = text.parse().ok().filter(|&bytes| bytes > 0);
    bytes.ok_or_else(|| "give a whole number of bytes from 1".into())
}

/// A name that a file can have anywhere, or the path of a file.
pub(crate) fn run_name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_name = !text.is_empty() && text.len() <= 100 && text.chars().all(plain);
    let is_path = text.contains(is_separator) && text.ends_with(".json");
    if is_name || is_path {
        return Ok(text.into());
    }
    Err("a run's name has 1 to 100 characters, each a letter, a digit, `-`, `_` or `.`; a path has a `/` and ends in `.json`"
        .into())
}

pub(crate) fn model(text: &str) -> Result<DeviceModel, String> {
    DeviceModel::ALL.into_iter().find(|model| model.name == text).ok_or_else(|| {
        let names = DeviceModel::ALL.map(|model| model.name).join(", ");
        format!("the models are {names}")
    })
}

/// A type that kernels compute with.
pub(super) fn number(text: &str) -> Result<DType, String> {
    one_of(text, "arithmetic is on", &[DType::F16, DType::Bf16, DType::F32, DType::F64])
}

/// A type that is reduced.
pub(super) fn reducible(text: &str) -> Result<DType, String> {
    let types: Vec<_> = DType::ALL.into_iter().filter(|dtype| !dtype.is_complex()).collect();
    one_of(text, "reductions are of", &types)
}

/// A type that permutes scale and convert.
pub(super) fn mappable(text: &str) -> Result<DType, String> {
    one_of(text, "affine maps read", &[DType::U8, DType::F16, DType::Bf16, DType::F32, DType::F64])
}

/// A type that casts are timed with.
pub(super) fn castable(text: &str) -> Result<DType, String> {
    let types = [DType::U8, DType::I32, DType::F16, DType::Bf16, DType::F32, DType::F64];
    one_of(text, "casts are timed from and to", &types)
}

pub(super) fn one_of(text: &str, what: &str, types: &[DType]) -> Result<DType, String> {
    let names = || types.iter().map(|dtype| dtype.name()).collect::<Vec<_>>().join(", ");
    text.parse().ok().filter(|dtype| types.contains(dtype)).ok_or_else(|| format!("{what} {}", names()))
}
