//! Files that are read whole, as people have them: not always what they should be, and not always
//! with an end.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use bytemuck::Pod;
use warpstride::error::counted;
use warpstride::io::{self, ArrayFile};

use super::output::Output;
use super::{Refusal, require, zeroed};

/// Makes sure that a file can be read to its end; the advice is for one that cannot.
pub(super) fn ensure_regular(path: &Path, advice: &str) -> Result<()> {
    let file = path.display();
    // Opening a pipe would wait for its writer.
    let metadata = fs::metadata(path).with_context(|| format!("cannot read {file}: check the path"))?;
    require!(metadata.is_file(), Io, "cannot read {file}: it is not a regular file; {advice}");
    Ok(())
}

/// Opens an array.
pub(super) fn array(path: &Path) -> Result<Box<dyn ArrayFile>> {
    io::open_array(path).map_err(|error| Refusal::of_file(error).into())
}

/// Opens an array, and notes how many bytes of its file are left out behind it.
pub(super) fn first_array(path: &Path, output: &Output) -> Result<Box<dyn ArrayFile>> {
    let array = array(path)?;
    note_left_out(&*array, path, output);
    Ok(array)
}

/// Notes how many bytes of an array's file are left out behind it.
pub(super) fn note_left_out(array: &dyn ArrayFile, path: &Path, output: &Output) {
    let left_out = array.opened().len().saturating_sub(array.data().1 + array.bytes() as u64);
    if left_out > 0 {
        let left_out = counted(left_out, "byte");
        output.note(format!("{} has {left_out} after its first array, which are left out", path.display()));
    }
}

/// Returns the elements of an array as values of a type as wide as the file's.
pub(super) fn elements<T: Pod>(mut array: Box<dyn ArrayFile>) -> Result<Vec<T>> {
    let mut elements = zeroed::<T>(array.bytes() / size_of::<T>())?;
    array.read_into(bytemuck::cast_slice_mut(&mut elements)).map_err(Refusal::of_file)?;
    Ok(elements)
}

/// The text of a file that is to be `what`; the advice is for one that holds something else.
pub(super) fn text(path: &Path, most: usize, what: &str, advice: &str) -> Result<String> {
    let bytes = read(path, most, what)?;
    String::from_utf8(bytes).with_context(|| format!("cannot read {}: {advice}", path.display()))
}

/// Advice for a file that a person edits.
pub(super) const SAVE_AS_TEXT: &str = "save the file as text in UTF-8";

/// Reads the bytes of a file that is to be `what`. A file that is too large for that, or has no
/// end, is read only as far as shows it.
pub(super) fn read(path: &Path, most: usize, what: &str) -> Result<Vec<u8>> {
    let (mut bytes, file) = (Vec::new(), path.display());
    let opened = File::open(path).and_then(|file| file.take(most as u64 + 1).read_to_end(&mut bytes));
    opened.with_context(|| format!("cannot read {file}: check the path, and that it is {what} as text"))?;
    require!(bytes.len() <= most, Io, "{file} has more than {} MiB and is not {what}; check the path", most >> 20);
    Ok(bytes)
}
