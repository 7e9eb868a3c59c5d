//! Holds an array while its tiles go through a device: in memory, or in a file that several threads
//! read or write at positions.
//!
//! Each function runs on the threads of the pool that calls it. Long runs are cut in pieces for
//! several threads, and a thread takes several short ones at once. The bytes go straight into a
//! slot of the pipeline, and straight out of it.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io;
use std::mem;
use std::path::Path;

use bytemuck::Pod;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use super::runs::Runs;
use crate::element::Element;
use crate::error::{Error, ErrorKind, Result};
use crate::host::copy_past_caches;

/// Most bytes of one piece.
const PIECE: usize = 4 << 20;
/// Fewest bytes that are worth a task of their own.
const TASK: usize = 256 << 10;
/// Bytes of a piece below which a copy goes through the caches.
const SHORT: usize = 2 << 10;

/// An array that tiles are read from.
pub(crate) trait Source<T>: Sync {
    /// Reads the elements of runs to `slot`, in the order of the runs.
    fn read(&self, runs: &Runs, slot: &mut [T]) -> Result<()>;
}

/// An array that tiles are written to.
pub(super) trait Target<T>: Send {
    /// Writes the elements of `slot` to runs, in the order of the runs.
    fn write(&mut self, runs: &Runs, slot: &[T]) -> Result<()>;
}

/// Calls `work` on each piece, on the threads of the pool. All but the last pieces of runs are of
/// one length.
fn each<P: Send>(
    runs: &Runs,
    width: usize,
    pieces: Vec<P>,
    work: impl Fn(P) -> Result<()> + Send + Sync,
) -> Result<()> {
    let bytes = runs.run().min(PIECE / width) * width;
    pieces.into_par_iter().with_min_len(TASK.div_ceil(bytes.max(1))).try_for_each(work)
}

/// Cuts a slot into the pieces of runs, each with its offset.
fn cut<T, S: Default>(runs: &Runs, mut slot: S, split: impl Fn(S, usize) -> (S, S)) -> Vec<(usize, S)> {
    let take = |(at, len)| {
        let (piece, rest) = split(mem::take(&mut slot), len);
        slot = rest;
        (at, piece)
    };
    runs.pieces(PIECE / size_of::<T>()).map(take).collect()
}

/// Copies a piece, past the caches unless it is short: that has a price for each piece.
fn copy<T: Element>(src: &[T], dst: &mut [T]) {
    if size_of_val(src) < SHORT {
        dst.copy_from_slice(src);
    } else {
        copy_past_caches(src, dst);
    }
}

/// Reads tiles from an array in memory.
impl<T: Element> Source<T> for &[T] {
    fn read(&self, runs: &Runs, slot: &mut [T]) -> Result<()> {
        each(runs, size_of::<T>(), cut::<T, _>(runs, slot, <[T]>::split_at_mut), |(at, piece)| {
            copy(&self[at..at + piece.len()], piece);
            Ok(())
        })
    }
}

/// Writes tiles to an array in memory.
impl<T: Element> Target<T> for &mut [T] {
    fn write(&mut self, runs: &Runs, slot: &[T]) -> Result<()> {
        let (mut rest, mut passed) = (&mut **self, 0);
        // Runs are in the order of their offsets.
        let place = |(at, piece): (usize, _)| {
            let len = <[T]>::len(piece);
            let (place, behind) = mem::take(&mut rest)[at - passed..].split_at_mut(len);
            (rest, passed) = (behind, at + len);
            (place, piece)
        };
        let pieces: Vec<(&mut [T], &[T])> = cut::<T, _>(runs, slot, <[T]>::split_at).into_iter().map(place).collect();
        each(runs, size_of::<T>(), pieces, |(place, piece)| {
            copy(piece, place);
            Ok(())
        })
    }
}

/// An array in a file, in elements of any type as wide as the file's.
#[derive(Debug)]
pub(crate) struct Stored<'f> {
    pub(crate) file: &'f File,
    /// The file's path, for errors.
    pub(crate) path: &'f Path,
    /// The position of the first element.
    pub(crate) start: u64,
}

impl Stored<'_> {
    fn position<T>(&self, element: usize) -> u64 {
        self.start + (element * size_of::<T>()) as u64
    }
}

impl<T: Element + Pod> Source<T> for Stored<'_> {
    fn read(&self, runs: &Runs, slot: &mut [T]) -> Result<()> {
        each(runs, size_of::<T>(), cut::<T, _>(runs, slot, <[T]>::split_at_mut), |(at, piece)| {
            read_exact_at(self.file, bytemuck::cast_slice_mut(piece), self.position::<T>(at)).map_err(|error| {
                let advice = match error.kind() {
                    io::ErrorKind::UnexpectedEof => "it has become shorter; restore it, and try again",
                    _ => "check its disk",
                };
                failed("read", self.path, advice, &error)
            })
        })
    }
}

impl<T: Element + Pod> Target<T> for Stored<'_> {
    fn write(&mut self, runs: &Runs, slot: &[T]) -> Result<()> {
        let this = &*self;
        let write = |(at, piece): (usize, &[T])| {
            write_all_at(this.file, bytemuck::cast_slice(piece), this.position::<T>(at))
                .map_err(|error| failed("write", this.path, "check the room on its disk", &error))
        };
        each(runs, size_of::<T>(), cut::<T, _>(runs, slot, <[T]>::split_at), write)
    }
}

/// Returns the error of a file that could not be read or written.
pub(super) fn failed(what: &str, path: &Path, advice: &str, error: &io::Error) -> Error {
    let advice = if error.kind() == io::ErrorKind::StorageFull { "no room is left there; make room" } else { advice };
    Error::new(ErrorKind::Io, format!("cannot {what} {}: {advice}: {error}", path.display()))
}

/// Fills `bytes` with those of a file from a position on.
#[cfg(unix)]
pub(super) fn read_exact_at(file: &File, bytes: &mut [u8], position: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, position)
}

/// Writes all bytes to a file from a position on.
#[cfg(unix)]
pub(super) fn write_all_at(file: &File, bytes: &[u8], position: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, position)
}

#[cfg(windows)]
pub(super) fn read_exact_at(file: &File, mut bytes: &mut [u8], mut position: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, position) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => (bytes, position) = (&mut bytes[read..], position + read as u64),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(windows)]
pub(super) fn write_all_at(file: &File, mut bytes: &[u8], mut position: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_write(file, bytes, position) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => (bytes, position) = (&bytes[written..], position + written as u64),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Elsewhere the standard library has no positioned reads.
#[cfg(not(any(unix, windows)))]
pub(super) fn read_exact_at(_: &File, _: &mut [u8], _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Elsewhere the standard library has no positioned writes.
#[cfg(not(any(unix, windows)))]
pub(super) fn write_all_at(_: &File, _: &[u8], _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
