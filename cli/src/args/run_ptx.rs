//! Parses the values of `--arg`, `--dump`, `--grid` and `--block` of `run-ptx`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use half::{bf16, f16};
use warpstride::element::DType;

use super::super::number::part;
use super::values::{bytes, run_name, whole};

/// One `--arg`: an argument of a kernel.
#[derive(Debug, Clone)]
pub(crate) struct Argument {
    /// As it was typed.
    text: String,
    pub(crate) value: Value,
}

#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// A number, and the bytes that it has in memory.
    Scalar { dtype: DType, bytes: Vec<u8> },
    /// The address of a buffer of `len` elements.
    Buffer { dtype: DType, len: usize, fill: Fill },
    /// The address of a buffer with the elements of a `.npy` file.
    File(PathBuf),
}

/// One `--set`: a variable of the module, and its value.
#[derive(Debug, Clone)]
pub(crate) struct Set {
    pub(crate) name: String,
    pub(crate) value: Argument,
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

impl FromStr for Set {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text
            .split_once('=')
            .filter(|(name, _)| !name.trim().is_empty())
            .ok_or("give a variable's name and its value, such as scale=f32:2 or factors=f32[16]=iota")?;
        Ok(Self { name: name.trim().into(), value: value.parse()? })
    }
}

/// The contents of a buffer before the launch.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fill {
    Zeros,
    /// 0, 1, 2 ...; integers wrap, floats round, complex numbers are real.
    Iota,
    /// By its seed: integers of any bits, floats in [0, 1).
    Random(u64),
    /// Nothing: the bytes that the device happens to have.
    Uninit,
    /// A number by its bytes in memory, the first ones; complex numbers are real.
    Number([u8; 8]),
}

impl Fill {
    fn number(bytes: Vec<u8>) -> Self {
        let mut first = [0; 8];
        first[..bytes.len()].copy_from_slice(&bytes);
        Self::Number(first)
    }
}

/// One `--dump`: an argument, counted from 0, and the file that its elements go to.
#[derive(Debug, Clone)]
pub(crate) struct Dump {
    pub(crate) argument: usize,
    pub(crate) path: PathBuf,
}

/// The time of a launch, and the runs that it is kept in.
#[derive(Args, Default)]
pub(crate) struct Timed {
    /// Time the launch on a GPU, each time with a cold L2 cache, and show GB/s beside a copy and
    /// this GPU's ceilings. The software GPU counts the bytes first, each once if it is loaded and
    /// once if it is stored; --limit bounds that
    #[arg(long, conflicts_with = "checks")]
    pub(crate) time: bool,
    /// The bytes that the launch reads and writes, half of them each, instead of those that the
    /// software GPU counts
    #[arg(long, value_name = "N", requires = "time", value_parser = bytes)]
    pub(crate) bytes: Option<usize>,
    /// Timed launches, whose median is reported; 20 by default
    #[arg(long, value_name = "N", requires = "time", value_parser = whole::<u16>(1..=10_000))]
    pub(crate) samples: Option<u16>,
    /// Keep the run under a name, or in a file: a path such as ./run.json
    #[arg(long, requires = "time", value_name = "NAME", value_parser = run_name)]
    pub(crate) save: Option<String>,
    /// Compare the run with a kept one or a file, of the same kernel and arguments: by times on a
    /// GPU, by counters on the software GPU. Exits with status 1 if it is slower or counts
    /// differently
    #[arg(long, requires = "time", value_name = "NAME", value_parser = run_name)]
    pub(crate) compare: Option<String>,
}

/// The meaning of a row of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum By {
    /// A line of the source.
    Line,
    /// An instruction of the PTX.
    Instruction,
}

impl Argument {
    /// The file that it is read from.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.value {
            Value::File(path) => Some(path),
            _ => None,
        }
    }

    /// The same argument, where a file of it lies beside those of `folder`.
    pub(crate) fn beside(mut self, folder: &Path) -> Self {
        if let Value::File(path) = &mut self.value {
            *path = folder.join(&*path);
        }
        self
    }

    /// Bytes of it that the kernel is given: of a buffer, those of its address.
    pub(crate) fn size(&self) -> usize {
        match &self.value {
            Value::Scalar { bytes, .. } => bytes.len(),
            Value::Buffer { .. } | Value::File(_) => size_of::<u64>(),
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
            let dtype = element_type(dtype)?;
            Value::Scalar { dtype, bytes: scalar(dtype, number)? }
        } else {
            return Err("an argument is a number such as i32:7, a buffer such as f32[1024]=zeros, or npy:FILE".into());
        };
        Ok(Self { text: text.into(), value })
    }
}

pub(super) fn dump(text: &str) -> Result<Dump, String> {
    let wrong = "give an argument's number, from 0, and a file, such as 1=out.npy";
    let (argument, path) = text.split_once('=').ok_or(wrong)?;
    Ok(Dump { argument: argument.parse().map_err(|_| wrong)?, path: path.into() })
}

/// An architecture of GPUs, such as `sm_90`. A letter, as of `sm_90a` and `sm_100f`, adds features
/// that only it or its family has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Architecture {
    pub(crate) number: u32,
    pub(crate) letter: Option<char>,
}

impl From<u32> for Architecture {
    fn from(number: u32) -> Self {
        Self { number, letter: None }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)?;
        self.letter.map_or(Ok(()), |letter| write!(f, "{letter}"))
    }
}

/// Reads an architecture.
pub(crate) fn architecture(text: &str) -> Result<Architecture, String> {
    let name = text.strip_prefix("sm_").unwrap_or_default();
    let digits = name.strip_suffix(['a', 'f']).unwrap_or(name);
    let number = digits.parse().ok().filter(|number| (10..1000).contains(number));
    let number = number.ok_or("give an architecture such as sm_90 or sm_90a")?;
    Ok(Architecture { number, letter: name[digits.len()..].chars().next() })
}

pub(super) fn extents(text: &str) -> Result<[u32; 3], String> {
    let given = three(text.split(',').map(|extent| extent.trim().parse().ok()));
    given.ok_or_else(|| "give one to three whole numbers from 1, such as 4 or 16,16,1".into())
}

/// Blocks or threads in x, y and z, of which the last are 1 unless given; `None` where they are not
/// one to three numbers from 1.
pub(crate) fn three(given: impl Iterator<Item = Option<u32>>) -> Option<[u32; 3]> {
    let given = given.map(|extent| extent.filter(|&extent| extent > 0)).collect::<Option<Vec<u32>>>()?;
    match *given {
        [x] => Some([x, 1, 1]),
        [x, y] => Some([x, y, 1]),
        [x, y, z] => Some([x, y, z]),
        _ => None,
    }
}

fn element_type(name: &str) -> Result<DType, String> {
    name.parse().map_err(|wrong: warpstride::Error| wrong.to_string())
}

/// `1024]=zeros`
fn buffer(dtype: DType, text: &str) -> Result<Value, String> {
    let (len, fill) = text.split_once("]=").ok_or("write a buffer as f32[1024]=zeros")?;
    let len: usize = len.parse().map_err(|_| {
        format!("`{len}` does not count elements; give a whole number up to {}, as in f32[1024]=zeros", usize::MAX)
    })?;
    if len.checked_mul(dtype.width()).is_none_or(|bytes| bytes > isize::MAX as usize) {
        return Err(format!("an array of {len} {dtype} has more bytes than an address can count; use a smaller one"));
    }
    let seed = || fill.strip_prefix("random:").and_then(|seed| seed.parse().ok());
    let fill = match fill {
        "zeros" => Some(Fill::Zeros),
        "iota" => Some(Fill::Iota),
        "uninit" => Some(Fill::Uninit),
        _ => seed().map(Fill::Random).or_else(|| scalar(part(dtype), fill).ok().map(Fill::number)),
    }
    .ok_or_else(|| {
        format!(
            "`{fill}` does not say what a buffer of {dtype} holds; use zeros, iota, uninit, random:SEED with a whole \
             number, or a number that {} has",
            part(dtype)
        )
    })?;
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
    bytes.ok_or_else(|| format!("{dtype} does not have the value `{text}`; give a number that it has"))
}
