//! NumPy's `.npy` files: the header as data, the elements as bytes.
//!
//! Moving elements needs no knowledge of their bits, so a file keeps its element type to the byte
//! order, and [`write()`] makes the bytes that `numpy.save` makes, header padding included.
//!
//! ```
//! use warpstride::io::{ArrayFile, npy};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("a.npy");
//! npy::write(&mut std::fs::File::create(&path)?, "<f4", &[2, 3], &[0; 24])?;
//! let mut reader = npy::Reader::open(&path)?;
//! assert_eq!((reader.shape(), reader.bytes()), (&[2, 3][..], 24));
//! let mut row = [1; 12];
//! reader.read_into(&mut row)?; // and the second row by the next call
//! assert_eq!(row, [0; 12]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod header;

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use self::header::{Header, MAX_HEADER, Refusal};
use super::{ArrayFile, check_unchanged, io_error};
use crate::element::DType;
use crate::error::{Error, ErrorKind, Result, counted, printable_line, refuse, require};

/// Room that NumPy leaves behind the shape, so that a file can grow along its first axis.
const GROWTH_DIGITS: usize = 21;
/// NumPy starts the data at a multiple of this many bytes.
const DATA_ALIGN: usize = 64;

/// Reads the elements of a file whose header was checked against its size.
#[derive(Debug)]
pub struct Reader {
    file: File,
    path: PathBuf,
    dtype: DType,
    descr: String,
    shape: Vec<usize>,
    bytes: usize,
    is_fortran: bool,
    /// Bytes before the first element.
    start: u64,
    /// The file as it was before the header was read.
    opened: fs::Metadata,
}

impl Reader {
    /// Opens `path` and checks its header against its size, before anything is allocated. Like
    /// `numpy.load`, it reads the first array of a file that has more bytes behind it.
    ///
    /// # Errors
    ///
    /// `Io` if the file cannot be read, is truncated, is not a regular file or not a `.npy` file,
    /// or holds elements that are not numbers of 1 to 8 bytes, complex numbers, or as many bytes
    /// without a type; `Layout` if its array has more bytes than an address can count.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let unreadable =
            |error| io_error(format_args!("cannot read {}: check the path and its permissions", path.display()), error);
        // Before opening: opening a pipe would wait for its writer.
        require!(
            fs::metadata(path).map_err(unreadable)?.is_file(),
            Io,
            "cannot read {}: it is not a regular file; save the array to one",
            path.display()
        );
        let mut file = File::open(path).map_err(unreadable)?;
        // Another file may have taken the path in between.
        let opened = file.metadata().map_err(unreadable)?;
        let header = read_header(&mut file, path)?;
        let (shape, bytes) = shape_and_bytes(&header, path)?;
        let start = file.stream_position().map_err(unreadable)?;
        let data = opened.len().saturating_sub(start);
        require!(
            data >= bytes,
            Io,
            "{} is truncated: its header promises {} of data, and the file has {data}; save or copy it again",
            path.display(),
            counted(bytes, "byte")
        );
        let Header { dtype, descr, fortran: is_fortran, .. } = header;
        Ok(Self { file, path: path.into(), dtype, descr, shape, bytes: bytes as usize, is_fortran, start, opened })
    }
}

impl ArrayFile for Reader {
    fn path(&self) -> &Path {
        &self.path
    }

    fn dtype(&self) -> DType {
        self.dtype
    }

    fn descr(&self) -> &str {
        &self.descr
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn is_fortran(&self) -> bool {
        self.is_fortran
    }

    fn data(&self) -> (&File, u64) {
        (&self.file, self.start)
    }

    fn opened(&self) -> &fs::Metadata {
        &self.opened
    }

    fn skip(&mut self, bytes: u64) -> Result<()> {
        let by = i64::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::UnexpectedEof));
        let skipped = by.and_then(|by| self.file.seek_relative(by));
        let path = self.path.display();
        skipped.map_err(|error| io_error(format_args!("cannot read {path}: check its disk"), error))
    }

    fn read_into(&mut self, bytes: &mut [u8]) -> Result<()> {
        let read = self.file.read_exact(bytes).map_err(|error| {
            let path = self.path.display();
            io_error(format_args!("cannot read {path}: it was changed while it was read; try again"), error)
        });
        // A change explains why a read fails.
        check_unchanged(self).and(read)
    }
}

/// Reads what comes before the data.
fn read_header(file: &mut File, path: &Path) -> Result<Header> {
    let path = path.display();
    let mut bytes = Vec::new();
    let unreadable = |error| io_error(format_args!("cannot read {path}: check its disk"), error);
    Read::by_ref(file).take(12).read_to_end(&mut bytes).map_err(unreadable)?;
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
    Read::by_ref(file).take(missing).read_to_end(&mut bytes).map_err(unreadable)?;
    let is_whole = bytes.len() as u64 >= prelude + length;
    require!(is_whole, Io, "{path} is truncated within its header; save or copy it again");
    file.seek(SeekFrom::Start(prelude + length)).map_err(unreadable)?;
    Header::parse(&bytes[prelude as usize..(prelude + length) as usize], bytes[6]).map_err(|refusal| {
        let sentence = match refusal {
            Refusal::Malformed(why) => {
                format!("{path} has a header that NumPy would not write: {why}; save it again with numpy.save")
            }
            Refusal::Structured => {
                format!("{path} holds structured elements, which warpstride does not move; save its fields one by one")
            }
            Refusal::Elements { descr, advice } => format!(
                "{path} holds elements of type '{}', which warpstride does not move; {advice}",
                printable_line(&descr)
            ),
        };
        Error::new(ErrorKind::Io, sentence)
    })
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

/// Writes an array of `shape` in C order as `numpy.save` does: `data` are its elements, of the type
/// that `descr` names (`<f4`).
///
/// # Errors
///
/// Those of `file`.
pub fn write(file: &mut dyn Write, descr: &str, shape: &[usize], data: &[u8]) -> io::Result<()> {
    file.write_all(&header_bytes(descr, shape))?;
    file.write_all(data)
}

/// The bytes that `numpy.save` writes before the elements of an array in C order: for a file whose
/// elements are written part by part.
pub fn header_bytes(descr: &str, shape: &[usize]) -> Vec<u8> {
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
    // Sixty-four axes of twenty digits are far below what two bytes count.
    let length = text.len() as u16;
    [b"\x93NUMPY\x01\x00".as_slice(), &length.to_le_bytes(), text.as_bytes()].concat()
}
