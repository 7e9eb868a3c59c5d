//! Arrays in files, spread over GPUs and written from them part by part.
//!
//! Pieces of a part go through pinned memory, so the host never has the whole array. A rank reads
//! its own part of the file, each on a thread of its own. The result is written in the file's order
//! while the next piece comes from the GPUs.

use std::io;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use bytemuck::Pod;

use super::array::at_once;
use super::staged::PIECE;
use super::{Distributed, Gpus, Part, Split};
use crate::element::Element;
use crate::error::{Result, counted, require};
use crate::io::{ArrayFile, Destination, check_unchanged, npy};
use crate::layout::Layout;
use crate::memory::{DeviceBuffer, PinnedBuffer, zeroed};
use crate::ops;
use crate::out_of_core::{Runs, Source, Stored};
use crate::sync::start_thread;
use crate::view::View;

/// A box of an array.
type Region = Vec<Range<usize>>;

impl<T: Element + Pod> Distributed<T> {
    /// Reads the array of a file to the GPUs. Each rank reads its own part, in pieces of 16 MiB at
    /// most. Elements may be of any type as wide as the file's, and keep their bits.
    ///
    /// An array in Fortran order is read as it is stored, and then permuted among the GPUs, which
    /// takes memory for it twice.
    ///
    /// ```
    /// # #[cfg(feature = "interp")] {
    /// use std::sync::Arc;
    ///
    /// use warpstride::distributed::{Distributed, Gpus, Split};
    /// use warpstride::io::{ArrayFile, Destination, npy, open_array};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let (input, output) = (folder.path().join("in.npy"), folder.path().join("out.npy"));
    /// npy::write(&mut std::fs::File::create(&input)?, "|u1", &[2, 3], &[1, 2, 3, 4, 5, 6])?;
    ///
    /// let (gpus, file) = (Arc::new(Gpus::soft(2)?), open_array(&input)?);
    /// let rows = Split::whole(&[2, 3])?.cut(0, 2)?;
    /// let matrix = Distributed::<u8>::scatter_file(&gpus, &rows, &*file)?;
    /// matrix.transpose()?.gather_npy(file.descr(), &Destination::new(&output)?)?;
    ///
    /// let mut result = [0; 6];
    /// open_array(&output)?.read_into(&mut result)?;
    /// assert_eq!(result, [1, 4, 2, 5, 3, 6]);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Layout` if the file's array has another shape than the split, or elements of another width;
    /// `Io` if the file cannot be read, or changes meanwhile; else as [`Distributed::alloc`], and
    /// the error of a copy.
    pub fn scatter_file(gpus: &Arc<Gpus>, split: &Split, file: &dyn ArrayFile) -> Result<Self> {
        require!(
            file.shape() == split.shape(),
            Layout,
            "{} has an array of shape {:?}, and the split is {split}; split shape {:?}",
            file.path().display(),
            file.shape(),
            file.shape()
        );
        if !file.is_fortran() {
            return Self::scatter_stored(gpus, split, file);
        }
        // Fortran order is C order with the axes reversed.
        let stored: Vec<usize> = split.shape().iter().rev().copied().collect();
        let axes: Vec<usize> = (0..stored.len()).rev().collect();
        let by_first = Split::whole(&stored)?.cut(0, gpus.len())?;
        Self::scatter_stored(gpus, &by_first, file)?.permute(axes, split)
    }

    /// Reads the elements of a file in the order in which it stores them, which is C order of the
    /// split's shape.
    #[doc(hidden)]
    pub fn scatter_stored(gpus: &Arc<Gpus>, split: &Split, file: &dyn ArrayFile) -> Result<Self> {
        let elements = Layout::len_of(split.shape())?;
        require!(
            file.dtype().width() == size_of::<T>() && file.bytes() == elements * size_of::<T>(),
            Layout,
            "{} has {} of {}, and the split {split} has {} of {}; take elements as wide, and split the file's shape",
            file.path().display(),
            counted(file.bytes() / file.dtype().width(), "element"),
            counted(file.dtype().width(), "byte"),
            counted(elements, "element"),
            counted(size_of::<T>(), "byte")
        );
        let mut array = Self::alloc(gpus, split)?;
        let (opened, start) = file.data();
        let stored = Stored { file: opened, path: file.path(), start };
        let parts = array.parts_mut().iter_mut().filter(|(part, _)| !part.is_empty());
        let read = at_once(parts, |(part, buffer)| read_part(&stored, split, part, buffer));
        // A change explains why a read fails.
        let read = check_unchanged(file).and(read);
        let doing = || format!("reading {} of shape {:?} to {split}", file.path().display(), file.shape());
        read.map_err(|error| error.while_doing(doing()))?;
        Ok(array)
    }

    /// Writes the array to a `.npy` file, in C order, once all work queued on it has run: whole, or
    /// not at all. `descr` names the elements' type as NumPy does (`<f4`), which is as wide as `T`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if `descr` names a type of another width; else the error of a copy or of
    /// the work before it, and as [`Destination::replace`].
    pub fn gather_npy(&self, descr: &str, destination: &Destination) -> Result<()> {
        let digits = descr.trim_start_matches(|letter: char| !letter.is_ascii_digit());
        require!(
            digits.parse() == Ok(size_of::<T>()),
            InvalidArgument,
            "'{descr}' does not name a type of {}; name one as wide as the elements of the array",
            counted(size_of::<T>(), "byte")
        );
        self.gather_stored(&npy::header_bytes(descr, self.split().shape()), destination)
    }

    /// Writes `header`, and behind it the elements in C order.
    #[doc(hidden)]
    pub fn gather_stored(&self, header: &[u8], destination: &Destination) -> Result<()> {
        let mut failed = None;
        let written = destination.replace(|file| {
            file.write_all(header)?;
            self.each_slab(&mut |elements| file.write_all(bytemuck::cast_slice(elements))).map_err(|stop| match stop {
                Stop::Write(error) => error,
                Stop::Gather(error) => {
                    let text = error.to_string();
                    failed = Some(error);
                    io::Error::other(text)
                }
            })
        });
        let doing = || format!("writing {} of {}", destination.path().display(), self.split());
        failed.map_or(written, Err).map_err(|error| error.while_doing(doing()))
    }

    /// Calls `write` with the elements of one slab after another, while another thread gets the
    /// next one.
    fn each_slab(&self, write: &mut dyn FnMut(&[T]) -> io::Result<()>) -> Result<(), Stop> {
        let (sender, slabs) = mpsc::sync_channel::<Result<PinnedBuffer<T>>>(1);
        thread::scope(|threads| {
            let gather = move || {
                let whole: Region = self.split().shape().iter().map(|&extent| 0..extent).collect();
                for slab in boxes(&whole, most::<T>()) {
                    let gathered = self.slab(&slab);
                    let is_last = gathered.is_err();
                    // The writer has failed if it takes no more.
                    if sender.send(gathered).is_err() || is_last {
                        return;
                    }
                }
            };
            let gathering = start_thread(threads, "gather", gather).map_err(Stop::Gather)?;
            let mut outcome = Ok(());
            for slab in &slabs {
                outcome = slab.map_err(Stop::Gather).and_then(|slab| write(&slab).map_err(Stop::Write));
                if outcome.is_err() {
                    break;
                }
            }
            drop(slabs);
            gathering.join().unwrap_or_else(|panic| resume_unwind(panic));
            outcome
        })
    }

    /// Copies a box of the array to the host, in C order.
    fn slab(&self, slab: &Region) -> Result<PinnedBuffer<T>> {
        let shape: Vec<usize> = slab.iter().map(Range::len).collect();
        let mut host = self.gpus().device(0).pinned(shape.iter().product())?;
        for (part, buffer) in self.parts() {
            let common =
                |(part, slab): (Range<usize>, &Range<usize>)| part.start.max(slab.start)..part.end.min(slab.end);
            let met: Region = part.region().into_iter().zip(slab).map(common).collect();
            if met.iter().any(Range::is_empty) {
                continue;
            }
            let from = buffer.view_with(part.within(&met))?;
            let axes = shape.iter().zip(&met).zip(slab);
            let runs = Runs::of_box(axes.map(|((&extent, met), slab)| (extent, met.start - slab.start, met.len())));
            let run = runs.run();
            if runs.count() == 1 {
                let at = runs.offsets().next().unwrap_or(0);
                download(from, &mut host[at..at + run])?;
            } else {
                let mut elements = zeroed(part.within(&met).len())?;
                download(from, &mut elements)?;
                for (at, elements) in runs.offsets().zip(elements.chunks_exact(run)) {
                    host[at..at + run].copy_from_slice(elements);
                }
            }
        }
        Ok(host)
    }
}

/// The failure of one side of a result on its way.
enum Stop {
    Gather(crate::error::Error),
    Write(io::Error),
}

/// Copies elements to the host, side by side.
fn download<T: Element>(from: View<'_, T>, host: &mut [T]) -> Result<()> {
    if from.layout().is_standard_layout() {
        let stream = from.memory().device().default_stream().clone();
        return stream.scope(|scope| scope.download(from, host));
    }
    // A kernel collects elements with gaps between them.
    ops::contiguous(from)?.buffer().download_into(host)
}

/// Reads a part of a file to its buffer.
fn read_part<T: Element + Pod>(
    stored: &Stored<'_>,
    split: &Split,
    part: &Part,
    buffer: &mut DeviceBuffer<T>,
) -> Result<()> {
    let device = buffer.device().clone();
    let region = part.region();
    let mut host = device.pinned::<T>(most::<T>().min(part.len()))?;
    for piece in boxes(&region, most::<T>()) {
        let axes = split.shape().iter().zip(&piece);
        let runs = Runs::of_box(axes.map(|(&extent, range)| (extent, range.start, range.len())));
        let host = &mut host[..runs.run() * runs.count()];
        stored.read(&runs, host)?;
        let to = buffer.view_mut_with(part.within(&piece))?;
        if to.layout().is_standard_layout() {
            device.default_stream().scope(|scope| scope.upload(&*host, to))?;
        } else {
            // A kernel puts the elements to places with gaps between them.
            let packed = device.array(to.layout().shape(), host)?;
            ops::copy_into(&packed, to, device.default_stream())?;
        }
    }
    Ok(())
}

/// Returns the most elements of a piece.
fn most<T>() -> usize {
    PIECE as usize / size_of::<T>()
}

/// Cuts a box into boxes of at most so many elements that follow each other in C order.
fn boxes(region: &Region, most: usize) -> impl Iterator<Item = Region> {
    let extents: Vec<usize> = region.iter().map(Range::len).collect();
    // The outermost axis of which some indices fit; the axes outside of it have one index a box.
    let inner = |axis: usize| extents[axis + 1..].iter().product::<usize>();
    let axis = (0..extents.len()).find(|&axis| inner(axis) <= most).unwrap_or(0);
    let step = if extents.is_empty() { 1 } else { (most / inner(axis).max(1)).max(1) };
    let cuts = extents.get(axis).map_or(1, |extent| extent.div_ceil(step));
    let outer: usize = extents.iter().take(axis).product();
    let count = if extents.contains(&0) { 0 } else { outer * cuts };
    let region = region.clone();
    (0..count).map(move |number| {
        let (mut piece, mut rest) = (region.clone(), number / cuts);
        let first = region[axis].start + number % cuts * step;
        piece[axis] = first..(first + step).min(region[axis].end);
        for at in (0..axis).rev() {
            let index = region[at].start + rest % extents[at];
            piece[at] = index..index + 1;
            rest /= extents[at];
        }
        piece
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The boxes have each index once, in C order.
    #[test]
    fn boxes_follow_each_other() {
        let places = |region: &Region| -> Vec<usize> {
            let runs = Runs::of_box([7, 5, 6].into_iter().zip(region).map(|(extent, of)| (extent, of.start, of.len())));
            runs.offsets().flat_map(|at| at..at + runs.run()).collect()
        };
        for region in [vec![0..7, 0..5, 0..6], vec![2..5, 1..4, 3..6], vec![1..2, 0..5, 2..3], vec![3..3, 0..5, 0..6]] {
            for most in [1, 2, 5, 6, 13, 30, 90, 1000] {
                let pieces: Vec<Region> = boxes(&region, most).collect();
                assert!(pieces.iter().all(|piece| piece.iter().map(Range::len).product::<usize>() <= most));
                let all: Vec<usize> = pieces.iter().flat_map(places).collect();
                assert_eq!(all, places(&region), "{region:?} in boxes of {most}");
            }
        }
    }
}
