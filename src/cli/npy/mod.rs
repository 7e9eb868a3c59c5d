//! NumPy's `.npy` files: their headers in `header`, their data as the raw bytes that it is.
//!
//! Moving elements needs no knowledge of their bits, so a file keeps its element type to the byte order, and what is
//! written equals what `numpy.save` writes, header padding included.

mod header;

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bytemuck::Pod;
use warpstride::element::DType;
use warpstride::error::counted;

use self::header::{Header, MAX_HEADER, Refusal};
use super::{refuse, require, zeroed};

/// Room that NumPy leaves behind the shape, so that a file can grow along its first axis.
const GROWTH_DIGITS: usize = 21;
/// NumPy starts the data at a multiple of this many bytes.
const DATA_ALIGN: usize = 64;

/// An opened file whose header was read and whose size matches it; positioned at its data.
pub(super) struct Source {
    file: File,
    path: PathBuf,
    /// Element type; of truth values that of as many bits.
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
        require!(
            metadata.is_file(),
            Io,
            "cannot read {}: it is not a regular file; save the array to one",
            path.display()
        );
        let mut file = File::open(path)
            .with_context(|| format!("cannot read {}: check the path and its permissions", path.display()))?;
        let header = read_header(&mut file, path)?;
        let (shape, bytes) = shape_and_bytes(&header, path)?;
        let data = metadata.len().saturating_sub(file.stream_position()?);
        require!(
            data >= bytes,
            Io,
            "{} is truncated: its header promises {} of data, and the file has {data}; save or copy it again",
            path.display(),
            counted(bytes, "byte")
        );
        require!(
            data == bytes,
            Io,
            "{} has {} after its array; save the array to a file of its own with numpy.save",
            path.display(),
            counted(data - bytes, "byte")
        );
        let Header { dtype, descr, fortran, .. } = header;
        Ok(Self { file, path: path.into(), dtype, descr, shape, bytes: bytes as usize, fortran })
    }

    /// The element type as it is shown.
    pub(super) fn type_name(&self) -> &'static str {
        if self.descr == "|b1" { "bool" } else { self.dtype.name() }
    }

    /// Extents of all axes.
    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Rows and columns, where there are two axes.
    pub(super) fn matrix(&self) -> Result<[usize; 2]> {
        match *self.shape {
            [rows, cols] => Ok([rows, cols]),
            _ => refuse!(
                InvalidArgument,
                "{} has {} and a transpose takes 2; reshape it to rows and columns",
                self.path.display(),
                counted(self.shape.len(), "axis")
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
fn read_header(file: &mut File, path: &Path) -> Result<Header> {
    let path = path.display();
    let mut bytes = Vec::new();
    let unreadable = || format!("cannot read {path}: check its disk");
    Read::by_ref(file).take(12).read_to_end(&mut bytes).with_context(unreadable)?;
    require!(bytes.starts_with(b"\x93NUMPY"), Io, "{path} is not a .npy file; write one with numpy.save");
    let (prelude, length) = match *bytes {
        [_, _, _, _, _, _, 1, 0, low, high, ..] => (10, u64::from(u16::from_le_bytes([low, high]))),
        [_, _, _, _, _, _, 2 | 3, 0, a, b, c, d] => (12, u64::from(u32::from_le_bytes([a, b, c, d]))),
        [_, _, _, _, _, _, 1..=3, 0, ..] | [_, _, _, _, _, _] | [_, _, _, _, _, _, 1..=3] => {
            refuse!(Io, "{path} is truncated within its header; save or copy it again")
        }
        _ => refuse!(Io, "{path} is not a .npy file of version 1.0, 2.0 or 3.0; write one with numpy.save"),
    };
    require!(
        length <= MAX_HEADER,
        Io,
        "{path} has a header of {length} bytes, more than the {MAX_HEADER} that NumPy reads; save a plain array"
    );
    let missing = (prelude + length).saturating_sub(bytes.len() as u64);
    Read::by_ref(file).take(missing).read_to_end(&mut bytes).with_context(unreadable)?;
    require!(
        bytes.len() as u64 >= prelude + length,
        Io,
        "{path} is truncated within its header; save or copy it again"
    );
    file.seek(SeekFrom::Start(prelude + length)).with_context(unreadable)?;
    match Header::parse(&bytes[prelude as usize..(prelude + length) as usize], bytes[6]) {
        Ok(header) => Ok(header),
        Err(Refusal::Malformed(why)) => {
            refuse!(Io, "{path} has a header that NumPy would not write: {why}; save it again with numpy.save")
        }
        Err(Refusal::Structured) => {
            refuse!(
                Io,
                "{path} holds structured elements, which this command does not move; save its fields one by one"
            )
        }
        Err(Refusal::Elements(descr)) => refuse!(
            Io,
            "{path} holds elements of type '{}', which this command does not move; convert it with astype to a number of 1 \
             to 8 bytes or a complex number",
            header::visible(&descr)
        ),
    }
}

/// The extents, and the bytes of data that they stand for.
fn shape_and_bytes(header: &Header, path: &Path) -> Result<(Vec<usize>, u64)> {
    let Header { dtype, shape: extents, .. } = header;
    let shape = extents.iter().map(|&extent| usize::try_from(extent)).collect::<Result<Vec<_>, _>>().ok();
    // Also beside an extent of 0, which NumPy leaves out here, the others have a limit.
    let filled = extents.iter().filter(|&&extent| extent > 0);
    let bytes = filled.copied().try_fold(dtype.width() as u64, u64::checked_mul);
    match (shape, bytes) {
        // Rust's own limit on the size of anything in memory, and NumPy's.
        (Some(shape), Some(bytes)) if bytes <= isize::MAX as u64 => {
            let bytes = if extents.contains(&0) { 0 } else { bytes };
            Ok((shape, bytes))
        }
        _ => refuse!(
            Layout,
            "{} promises {extents:?} elements of {dtype}, more bytes than an address can count; save it again",
            path.display()
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
