//! What `--arg` and `--dump` mean.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use half::{bf16, f16};
use warpstride::element::DType;

/// One `--arg`: what a kernel is given.
#[derive(Debug, Clone)]
pub(crate) struct Argument {
    /// As it was typed.
    text: String,
    pub(super) value: Value,
}

#[derive(Debug, Clone)]
pub(super) enum Value {
    /// A number, as the bytes that it has in memory.
    Scalar(Vec<u8>),
    /// The address of a buffer of `len` elements.
    Buffer { dtype: DType, len: usize, fill: Fill },
    /// The address of a buffer with the elements of a `.npy` file.
    File(PathBuf),
}

/// What a buffer holds before the launch.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fill {
    Zeros,
    /// 0, 1, 2 ...; integers wrap, floats round, complex numbers are real.
    Iota,
    /// By its seed: integers of any bits, floats in [0, 1).
    Random(u64),
    /// Nothing: what the device happens to give.
    Uninit,
}

/// One `--dump`: an argument, counted from 0, and the file that its elements go to.
#[derive(Debug, Clone)]
pub(crate) struct Dump {
    pub(super) argument: usize,
    pub(super) path: PathBuf,
}

impl Argument {
    /// The file that it is read from.
    pub(super) fn file(&self) -> Option<&Path> {
        match &self.value {
            Value::File(path) => Some(path),
            _ => None,
        }
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Argument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let value = if let Some(file) = text.strip_prefix("npy:") {
            Value::File(file.into())
        } else if let Some((dtype, rest)) = text.split_once('[') {
            buffer(element_type(dtype)?, rest)?
        } else if let Some((dtype, number)) = text.split_once(':') {
            Value::Scalar(scalar(element_type(dtype)?, number)?)
        } else {
            return Err("an argument is a number such as i32:7, a buffer such as f32[1024]=zeros, or npy:FILE".into());
        };
        Ok(Self { text: text.into(), value })
    }
}

impl FromStr for Dump {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = "give an argument's number, from 0, and a file, such as 1=out.npy";
        let (argument, path) = text.split_once('=').ok_or(wrong)?;
        Ok(Self { argument: argument.parse().map_err(|_| wrong)?, path: path.into() })
    }
}

/// Blocks or threads in x, y and z, of which the last are 1 unless given.
pub(crate) fn extents(text: &str) -> Result<[u32; 3], String> {
    let given = text.split(',').map(|extent| extent.trim().parse().ok().filter(|&extent| extent > 0));
    match *given.collect::<Option<Vec<u32>>>().unwrap_or_default() {
        [x] => Ok([x, 1, 1]),
        [x, y] => Ok([x, y, 1]),
        [x, y, z] => Ok([x, y, z]),
        _ => Err("give one to three whole numbers from 1, such as 4 or 16,16,1".into()),
    }
}

fn element_type(name: &str) -> Result<DType, String> {
    DType::ALL.into_iter().find(|dtype| dtype.name() == name).ok_or_else(|| {
        let names = DType::ALL.map(DType::name).join(", ");
        format!("`{name}` is no element type; there are {names}")
    })
}

/// `1024]=zeros`
fn buffer(dtype: DType, text: &str) -> Result<Value, String> {
    let (len, fill) = text.split_once("]=").ok_or("write a buffer as f32[1024]=zeros")?;
    let len: usize = len.parse().map_err(|_| format!("`{len}` is no number of elements; write f32[1024]=zeros"))?;
    if len.checked_mul(dtype.width()).is_none_or(|bytes| bytes > isize::MAX as usize) {
        return Err(format!("{len} elements have more bytes than an address can count"));
    }
    let seed = fill.strip_prefix("random:").and_then(|seed| seed.parse().ok());
    let fill = match (fill, seed) {
        ("zeros", _) => Fill::Zeros,
        ("iota", _) => Fill::Iota,
        ("uninit", _) => Fill::Uninit,
        (_, Some(seed)) => Fill::Random(seed),
        _ => {
            return Err(format!(
                "`{fill}` fills no buffer; use zeros, iota, uninit or random:SEED with a whole number"
            ));
        }
    };
    Ok(Value::Buffer { dtype, len, fill })
}

fn scalar(dtype: DType, text: &str) -> Result<Vec<u8>, String> {
    fn number<T: FromStr, B: AsRef<[u8]>>(text: &str, bytes: impl Fn(T) -> B) -> Option<Vec<u8>> {
        text.parse().ok().map(|number| bytes(number).as_ref().to_vec())
    }
    let bytes = match dtype {
        DType::U8 => number(text, u8::to_le_bytes),
        DType::I8 => number(text, i8::to_le_bytes),
        DType::U16 => number(text, u16::to_le_bytes),
        DType::I16 => number(text, i16::to_le_bytes),
        DType::F16 => number(text, f16::to_le_bytes),
        DType::Bf16 => number(text, bf16::to_le_bytes),
        DType::U32 => number(text, u32::to_le_bytes),
        DType::I32 => number(text, i32::to_le_bytes),
        DType::F32 => number(text, f32::to_le_bytes),
        DType::U64 => number(text, u64::to_le_bytes),
        DType::I64 => number(text, i64::to_le_bytes),
        DType::F64 => number(text, f64::to_le_bytes),
        DType::C64 | DType::C128 => return Err("complex numbers come in buffers only; pass two arguments".into()),
    };
    bytes.ok_or_else(|| format!("`{text}` is no {dtype}"))
}

impl Fill {
    /// Writes the elements into `bytes`, which are zero.
    pub(super) fn write(self, dtype: DType, bytes: &mut [u8]) {
        let complex = matches!(dtype, DType::C64 | DType::C128);
        let parts = if complex { 2 } else { 1 };
        let width = dtype.width() / parts;
        let put = |bytes: &mut [u8], bits: u64| bytes.copy_from_slice(&bits.to_le_bytes()[..width]);
        match self {
            Self::Zeros | Self::Uninit => {}
            Self::Iota => {
                let elements = bytes.chunks_exact_mut(dtype.width()).zip(0..);
                elements.for_each(|(element, i)| put(&mut element[..width], whole(dtype, i)));
            }
            Self::Random(seed) => {
                let numbers = bytes.chunks_exact_mut(width).zip(0..);
                numbers.for_each(|(number, i)| put(number, unit(dtype, scrambled(seed, i))));
            }
        }
    }
}

/// The bits of the whole number `i`.
fn whole(dtype: DType, i: u64) -> u64 {
    match dtype {
        DType::F16 => f16::from_f64(i as f64).to_bits().into(),
        DType::Bf16 => bf16::from_f64(i as f64).to_bits().into(),
        DType::F32 | DType::C64 => (i as f32).to_bits().into(),
        DType::F64 | DType::C128 => (i as f64).to_bits(),
        _ => i,
    }
}

/// The bits of a number made of random ones: a float in [0, 1) of as many digits as its type has, or any integer.
fn unit(dtype: DType, random: u64) -> u64 {
    let fraction = |digits: u32| (random >> (64 - digits)) as f64 / (1_u64 << digits) as f64;
    match dtype {
        DType::F16 => f16::from_f64(fraction(11)).to_bits().into(),
        DType::Bf16 => bf16::from_f64(fraction(8)).to_bits().into(),
        DType::F32 | DType::C64 => (fraction(24) as f32).to_bits().into(),
        DType::F64 | DType::C128 => fraction(53).to_bits(),
        _ => random,
    }
}

/// Number `i` of the sequence of `seed` (SplitMix64: Steele, Lea and Flood 2014).
fn scrambled(seed: u64, i: u64) -> u64 {
    let mut z = seed.wrapping_add((i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
