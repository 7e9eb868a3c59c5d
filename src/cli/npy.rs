//! NumPy's `.npy` files: headers through `npyz`, data as the raw bytes that it is.
//!
//! Moving elements needs no knowledge of their bits, so a file keeps its element type to the byte order, and what is
//! written equals what `numpy.save` writes, header padding included.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use bytemuck::Pod;
use npyz::{NpyHeader, Order, TypeChar, TypeStr};
use warpstride::element::DType;

use super::zeroed;

/// Longest header in bytes; NumPy's own limit.
const MAX_HEADER: u64 = 10_000;
/// Most opening brackets in a header. One of plain elements has two, and the parser's time is exponential in those that are
/// not closed.
const MAX_BRACKETS: usize = 8;
/// Room that NumPy leaves behind the shape, so that a file can grow along its first axis.
const GROWTH_DIGITS: usize = 21;
/// NumPy starts the data at a multiple of this many bytes.
const DATA_ALIGN: usize = 64;

/// An opened file whose header was read and whose size matches it; positioned at its data.
pub(super) struct Source {
    file: File,
    path: PathBuf,
    /// Element type.
    pub(super) dtype: DType,
    /// The element type as the file spells it: `<f4`.
    pub(super) descr: String,
    shape: Vec<usize>,
    /// Of the data.
    pub(super) bytes: usize,
    /// Whether the first axis is the one that runs fastest.
    pub(super) fortran: bool,
}

impl Source {
    /// Opens `path` and checks its header against its size, before anything is allocated.
    pub(super) fn open(path: &Path) -> Result<Self> {
        // Before opening: opening a pipe would wait for its writer.
        let metadata = fs::metadata(path)
            .with_context(|| format!("cannot read {}: check the path and its permissions", path.display()))?;
        ensure!(metadata.is_file(), "cannot read {}: it is not a regular file; save the array to one", path.display());
        let mut file = File::open(path)
            .with_context(|| format!("cannot read {}: check the path and its permissions", path.display()))?;
        let header = read_header(&mut file, path)?;
        let (dtype, descr) = element_type(&header, path)?;
        let (shape, bytes) = shape_and_bytes(&header, dtype, path)?;
        let data = metadata.len().saturating_sub(file.stream_position()?);
        ensure!(
            data >= bytes,
            "{} is truncated: its header promises {bytes} bytes of data and {data} follow; save or copy it again",
            path.display()
        );
        ensure!(
            data == bytes,
            "{} has {} bytes after its array; save the array to a file of its own with numpy.save",
            path.display(),
            data - bytes
        );
        let fortran = header.order() == Order::Fortran;
        Ok(Self { file, path: path.into(), dtype, descr, shape, bytes: bytes as usize, fortran })
    }

    /// Extents of all axes.
    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Rows and columns, where there are two axes.
    pub(super) fn matrix(&self) -> Result<[usize; 2]> {
        match *self.shape {
            [rows, cols] => Ok([rows, cols]),
            _ => bail!(
                "{} has {} axes and a transpose takes 2; reshape it to rows and columns",
                self.path.display(),
                self.shape.len()
            ),
        }
    }

    /// Reads the elements as values of a type as wide as the file's.
    pub(super) fn read<T: Pod>(mut self) -> Result<Vec<T>> {
        let mut elements = zeroed::<T>(self.bytes / size_of::<T>())?;
        self.file
            .read_exact(bytemuck::cast_slice_mut(&mut elements))
            .with_context(|| format!("cannot read {}: it changed while it was read; try again", self.path.display()))?;
        Ok(elements)
    }
}

/// Reads what comes before the data.
fn read_header(file: &mut File, path: &Path) -> Result<NpyHeader> {
    let truncated = || format!("{} is truncated within its header; save or copy it again", path.display());
    let foreign = |why: &str| format!("{} is not a .npy file{why}; write one with numpy.save", path.display());
    let mut bytes = Vec::new();
    let unreadable = || format!("cannot read {}: check its disk", path.display());
    Read::by_ref(file).take(12).read_to_end(&mut bytes).with_context(unreadable)?;
    ensure!(bytes.starts_with(b"\x93NUMPY"), foreign(""));
    let (prelude, length) = match *bytes {
        [_, _, _, _, _, _, 1, _, low, high, ..] => (10, u64::from(u16::from_le_bytes([low, high]))),
        [_, _, _, _, _, _, 2 | 3, _, a, b, c, d] => (12, u64::from(u32::from_le_bytes([a, b, c, d]))),
        [_, _, _, _, _, _, 1..=3, ..] | [_, _, _, _, _, _] => bail!(truncated()),
        _ => bail!(foreign(" of version 1, 2 or 3")),
    };
    ensure!(
        length <= MAX_HEADER,
        "{} has a header of {length} bytes, more than the {MAX_HEADER} that NumPy reads; save a plain array",
        path.display()
    );
    let missing = (prelude + length).saturating_sub(bytes.len() as u64);
    Read::by_ref(file).take(missing).read_to_end(&mut bytes).with_context(unreadable)?;
    ensure!(bytes.len() as u64 >= prelude + length, truncated());
    let header = &bytes[..(prelude + length) as usize];
    let brackets = header.iter().filter(|byte| b"([{".contains(byte)).count();
    ensure!(
        brackets <= MAX_BRACKETS,
        "{} holds structured elements, which this command does not move; save its fields one by one",
        path.display()
    );
    file.seek(SeekFrom::Start(prelude + length)).with_context(unreadable)?;
    // The parser's account may take several lines; its first says enough.
    NpyHeader::from_reader(header).map_err(|error| {
        let why = error.to_string();
        let why = why.lines().next().unwrap_or_default().trim_end_matches(':');
        anyhow!("{} has a header that NumPy would not write ({why}); save it again with numpy.save", path.display())
    })
}

/// The element type, and its spelling as NumPy would write it.
fn element_type(header: &NpyHeader, path: &Path) -> Result<(DType, String)> {
    let plain = match header.dtype() {
        npyz::DType::Plain(plain) => plain,
        _ => bail!(
            "{} holds structured elements, which this command does not move; save its fields one by one",
            path.display()
        ),
    };
    let Some(dtype) = dtype_of(&plain) else {
        bail!(
            "{} holds elements of type '{plain}', which this command does not move; convert it with astype to a number \
             of 1 to 8 bytes or a complex number",
            path.display()
        )
    };
    // One byte has no order, and NumPy says so.
    let descr = if dtype.width() == 1 { format!("|{}1", plain.type_char().to_str()) } else { plain.to_string() };
    Ok((dtype, descr))
}

fn dtype_of(plain: &TypeStr) -> Option<DType> {
    Some(match (plain.type_char(), plain.size_field()) {
        (TypeChar::Uint, 1) => DType::U8,
        (TypeChar::Int, 1) => DType::I8,
        (TypeChar::Uint, 2) => DType::U16,
        (TypeChar::Int, 2) => DType::I16,
        (TypeChar::Float, 2) => DType::F16,
        (TypeChar::Uint, 4) => DType::U32,
        (TypeChar::Int, 4) => DType::I32,
        (TypeChar::Float, 4) => DType::F32,
        (TypeChar::Uint, 8) => DType::U64,
        (TypeChar::Int, 8) => DType::I64,
        (TypeChar::Float, 8) => DType::F64,
        (TypeChar::Complex, 8) => DType::C64,
        (TypeChar::Complex, 16) => DType::C128,
        _ => return None,
    })
}

/// The extents, and the bytes of data that they stand for.
fn shape_and_bytes(header: &NpyHeader, dtype: DType, path: &Path) -> Result<(Vec<usize>, u64)> {
    let shape = header.shape().iter().map(|&extent| usize::try_from(extent)).collect::<Result<Vec<_>, _>>().ok();
    // An extent of 0 first: beside it, the others may be as large as they like.
    let empty = header.shape().contains(&0);
    let bytes = header.shape().iter().try_fold(dtype.width() as u64, |bytes, &extent| bytes.checked_mul(extent));
    let bytes = if empty { Some(0) } else { bytes };
    match (shape, bytes) {
        // Rust's own limit on the size of anything in memory.
        (Some(shape), Some(bytes)) if bytes <= isize::MAX as u64 => Ok((shape, bytes)),
        _ => bail!(
            "{} promises {:?} elements of {dtype}, more bytes than an address can count; save it again",
            path.display(),
            header.shape()
        ),
    }
}

/// Writes an array of `shape` in C order as `numpy.save` would.
pub(super) fn write(file: &mut dyn Write, descr: &str, shape: &[usize], data: &[u8]) -> io::Result<()> {
    file.write_all(&header_bytes(descr, shape))?;
    file.write_all(data)
}

/// What `numpy.save` writes before the data of a C-ordered array.
fn header_bytes(descr: &str, shape: &[usize]) -> Vec<u8> {
    let extents = shape.iter().map(ToString::to_string).collect::<Vec<_>>();
    let comma = if shape.len() == 1 { "," } else { "" };
    let mut text =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}{comma}), }}", extents.join(", "));
    if let Some(first) = extents.first() {
        text.extend(std::iter::repeat_n(' ', GROWTH_DIGITS.saturating_sub(first.len())));
    }
    let prelude = b"\x93NUMPY\x01\x00".len() + 2;
    let unpadded = prelude + text.len() + 1;
    // A whole unit where nothing is missing: NumPy's arithmetic.
    text.extend(std::iter::repeat_n(' ', DATA_ALIGN - unpadded % DATA_ALIGN));
    text.push('\n');
    // Sixteen axes of twenty digits are far below what two bytes count.
    let length = text.len() as u16;
    [b"\x93NUMPY\x01\x00".as_slice(), &length.to_le_bytes(), text.as_bytes()].concat()
}
