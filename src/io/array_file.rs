//! Arrays in files of any format.

use std::fmt;
use std::fs::{File, Metadata};
use std::path::Path;

use super::npy;
use crate::element::DType;
use crate::error::Result;

/// An array in an open file, whose header was checked against the file's size.
///
/// Each format implements it. The program and [`out_of_core`](crate::out_of_core) take any format,
/// and write `.npy` files.
pub trait ArrayFile: fmt::Debug + Send + Sync {
    /// Returns the file's path.
    fn path(&self) -> &Path;

    /// Returns the element type; for truth values [`DType::U8`], and for bytes without a type a
    /// type as wide.
    fn dtype(&self) -> DType;

    /// Returns the element type as NumPy spells it, byte order included: `<f4`.
    fn descr(&self) -> &str;

    /// Names the element type: `f32`, and `bool` for truth values. Bytes without a type have
    /// NumPy's names: `void16` for two.
    fn type_name(&self) -> &'static str {
        let bytes = self.dtype().width();
        match self.descr() {
            "|b1" => "bool",
            descr if !descr.contains('V') => self.dtype().name(),
            _ => ["void8", "void16", "void32", "void64", "void128"][bytes.trailing_zeros() as usize],
        }
    }

    /// Returns the extents of all axes, in elements.
    fn shape(&self) -> &[usize];

    /// Returns the bytes of all elements.
    fn bytes(&self) -> usize;

    /// Returns whether the array is in Fortran order: its first axis runs fastest.
    fn is_fortran(&self) -> bool;

    /// Returns the open file, and the position of the first element in it.
    fn data(&self) -> (&File, u64);

    /// Returns the file's size and times before its header was read.
    fn opened(&self) -> &Metadata;

    /// Leaves out the `bytes` that come next in the file's order.
    ///
    /// # Errors
    ///
    /// `Io` if the file cannot be read. Behind its end, [`read_into`](Self::read_into) fails.
    fn skip(&mut self, bytes: u64) -> Result<()>;

    /// Fills `bytes` with those that come next in the file's order; the first call starts at the
    /// first element.
    ///
    /// # Errors
    ///
    /// `Io` if the file ends before, or was changed since it was opened.
    fn read_into(&mut self, bytes: &mut [u8]) -> Result<()>;
}

/// Opens the array of a file and checks its header. The format is NumPy's, the only one so far.
///
/// # Errors
///
/// As [`npy::Reader::open`].
pub fn open_array(path: impl AsRef<Path>) -> Result<Box<dyn ArrayFile>> {
    Ok(Box::new(npy::Reader::open(path)?))
}
