//! Arrays whose parts lie on several GPUs.

use std::fmt;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use super::{Exchange, Gpus, Part, Redistribution, Split};
use crate::context::{Allocation, Shared};
use crate::element::Element;
use crate::error::{Error, ErrorKind, Result, counted, require};
use crate::layout::{Axes, Layout};
use crate::memory::{DeviceBuffer, zeroed};
use crate::transfer::{HostSlice, HostSliceMut};
use crate::view::{View, ViewMut};

/// An array whose parts lie on the GPUs of a host, divided by a [`Split`].
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use std::sync::Arc;
///
/// use warpstride::distributed::{Distributed, Gpus, Split};
///
/// let gpus = Arc::new(Gpus::soft(2)?);
/// let rows = Split::whole(&[4, 3])?.cut(0, 2)?;
/// let matrix = Distributed::scatter(&gpus, &rows, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])?;
/// assert_eq!(matrix.part(1).shape(), [2, 3]);
///
/// let transposed = matrix.transpose()?; // its rows are cut into as many parts
/// assert_eq!(transposed.gather()?, [1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub struct Distributed<T> {
    gpus: Arc<Gpus>,
    split: Split,
    /// The parts, rank by rank.
    parts: Vec<(Part, DeviceBuffer<T>)>,
}

impl<T: Element> Distributed<T> {
    /// Allocates an array, whose elements are unspecified until they are written.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the split has more ranks than there are GPUs; else the error of an
    /// allocation.
    pub fn alloc(gpus: &Arc<Gpus>, split: &Split) -> Result<Self> {
        gpus.check_ranks(split.ranks())?;
        let part = |rank| {
            let part = split.part(rank);
            let buffer = gpus.device(rank).alloc(part.layout().storage_len())?;
            Ok((part, buffer))
        };
        let parts = (0..gpus.len()).map(part).collect::<Result<_>>()?;
        Ok(Self { gpus: Arc::clone(gpus), split: split.clone(), parts })
    }

    /// Copies elements of the host, in C order, to their GPUs.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are not as many elements as the split's shape has; else as
    /// [`Distributed::alloc`], and the error of a copy.
    pub fn scatter(gpus: &Arc<Gpus>, split: &Split, elements: &[T]) -> Result<Self> {
        let mut array = Self::alloc(gpus, split)?;
        array.scatter_from(elements)?;
        Ok(array)
    }

    /// Overwrites the elements by those of the host, in C order, once all work queued on the array
    /// has run. Returns when they are copied.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are not as many elements; else the error of a copy or of the work
    /// before it.
    pub fn scatter_from(&mut self, elements: &[T]) -> Result<()> {
        let whole = self.whole(elements.len())?;
        at_once(self.parts.iter_mut().filter(|(part, _)| !part.is_empty()), |(part, buffer)| {
            upload(elements, whole, part, buffer)
        })
    }

    /// Copies the elements to the host, in C order, once all work queued on the array has run.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` if the host has too few bytes; else the error of a copy or of the work before
    /// it.
    pub fn gather(&self) -> Result<Vec<T>> {
        let mut elements = zeroed(Layout::len_of(self.split.shape())?)?;
        self.gather_into(&mut elements)?;
        Ok(elements)
    }

    /// Copies the elements into a slice of the host, in C order, once all work queued on the array
    /// has run.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are not as many elements; else the error of a copy or of the work
    /// before it.
    pub fn gather_into(&self, elements: &mut [T]) -> Result<()> {
        let whole = self.whole(elements.len())?;
        let boxes = self.split.boxes(HostSliceMut::with_layout(elements, whole)?)?;
        let mut stored = vec![Vec::new(); boxes.len()];
        at_once(boxes.into_iter().zip(&mut stored).zip(&self.parts), |((host, stored), (part, buffer))| {
            let Some(host) = host else { return Ok(()) };
            let from = buffer.view_with(*part.layout())?;
            let copied = buffer.device().default_stream().scope(|scope| scope.download(from, host));
            by_rows(copied, || buffer.download().map(|all| *stored = all))
        })?;
        for (stored, (part, _)) in stored.iter().zip(&self.parts).filter(|(stored, _)| !stored.is_empty()) {
            rows(whole, part).for_each(|(host, at)| elements[host].copy_from_slice(&stored[at]));
        }
        Ok(())
    }

    /// Returns the layout of so many elements of the host.
    fn whole(&self, len: usize) -> Result<Layout> {
        whole(&self.split, len)
    }

    /// Returns the part of a rank: a view of the GPU's memory.
    ///
    /// # Panics
    ///
    /// If there is no such rank.
    pub fn part(&self, rank: usize) -> View<'_, T> {
        let (part, buffer) = &self.parts[rank];
        buffer.view_with(*part.layout()).expect("the buffer was allocated for it")
    }

    /// Returns the part of a rank for writing.
    ///
    /// # Panics
    ///
    /// If there is no such rank.
    pub fn part_mut(&mut self, rank: usize) -> ViewMut<'_, T> {
        let (part, buffer) = &mut self.parts[rank];
        buffer.view_mut_with(*part.layout()).expect("the buffer was allocated for it")
    }

    /// Returns how the array is divided.
    pub fn split(&self) -> &Split {
        &self.split
    }

    /// Returns the GPUs that have the parts.
    pub fn gpus(&self) -> &Arc<Gpus> {
        &self.gpus
    }

    /// Returns the parts with their buffers, rank by rank.
    #[cfg(feature = "pipeline")]
    pub(super) fn parts(&self) -> &[(Part, DeviceBuffer<T>)] {
        &self.parts
    }

    /// Returns the parts with their buffers for writing, rank by rank.
    #[cfg(feature = "pipeline")]
    pub(super) fn parts_mut(&mut self) -> &mut [(Part, DeviceBuffer<T>)] {
        &mut self.parts
    }

    /// Returns the memory of the parts, rank by rank.
    pub(super) fn memory(&self) -> Vec<&Shared<Allocation>> {
        self.parts.iter().map(|(_, buffer)| buffer.memory()).collect()
    }

    /// Queues a copy of the array, split in another way, with its axes in another order: axis `i`
    /// of the result is axis `axes[i]` of this array.
    ///
    /// # Errors
    ///
    /// As [`Redistribution::new`], [`Distributed::alloc`] and [`Exchange::launch`].
    pub fn permute(&self, axes: impl TryInto<Axes, Error: Into<Error>>, split: &Split) -> Result<Self> {
        let plan = Redistribution::new(&self.split, axes, split, size_of::<T>())?;
        let mut result = Self::alloc(&self.gpus, split)?;
        Exchange::new(&self.gpus, &plan)?.launch(self, &mut result)?;
        Ok(result)
    }

    /// Queues a copy of the array, split in another way.
    ///
    /// # Errors
    ///
    /// As [`Distributed::permute`].
    pub fn redistribute(&self, split: &Split) -> Result<Self> {
        self.permute((0..self.split.shape().len()).collect::<Vec<_>>(), split)
    }

    /// Queues the transpose of the array, whose last two axes change places. The result is cut
    /// along the same axes into as many parts.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the array has fewer than two axes; else as [`Distributed::permute`].
    pub fn transpose(&self) -> Result<Self> {
        let rank = self.split.shape().len();
        require!(
            rank >= 2,
            InvalidArgument,
            "an array of shape {:?} has no rows and columns to transpose",
            self.split.shape()
        );
        let mut axes: Vec<usize> = (0..rank).collect();
        axes.swap(rank - 2, rank - 1);
        let mut shape = self.split.shape().to_vec();
        shape.swap(rank - 2, rank - 1);
        self.permute(axes, &self.split.recut(&shape)?)
    }
}

impl<T: Element> fmt::Debug for Distributed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Distributed<{}>({})", T::DTYPE, self.split)
    }
}

/// Returns the layout of an array's elements on the host, of which there are `len`.
pub(super) fn whole(split: &Split, len: usize) -> Result<Layout> {
    let whole = Layout::row_major(split.shape())?;
    require!(
        whole.len() == len,
        InvalidArgument,
        "the slice has {}, and an array of shape {:?} has {}; give a slice of as many",
        counted(len, "element"),
        split.shape(),
        whole.len()
    );
    Ok(whole)
}

/// Copies a part of the whole array on the host to its buffer.
pub(super) fn upload<T: Element>(
    elements: &[T],
    whole: Layout,
    part: &Part,
    buffer: &mut DeviceBuffer<T>,
) -> Result<()> {
    let stream = buffer.device().default_stream().clone();
    let host = HostSlice::with_layout(elements, placed(whole, part))?;
    let to = buffer.view_mut_with(*part.layout())?;
    by_rows(stream.scope(|scope| scope.upload(host, to)), || {
        let mut stored = zeroed(part.layout().storage_len())?;
        rows(whole, part).for_each(|(host, at)| stored[at].copy_from_slice(&elements[host]));
        buffer.upload_from(&stored)
    })
}

/// The part's elements in the whole array on the host.
fn placed(whole: Layout, part: &Part) -> Layout {
    let slice = |layout: Layout, (axis, range): (usize, Range<usize>)| layout.slice(axis, range, 1);
    part.region().into_iter().enumerate().try_fold(whole, slice).expect("the part lies within the array")
}

/// Copies a part by `rows`, in one piece that the host divides, where its elements lie in too many
/// rows for the copy engine, which refused it.
fn by_rows(copied: Result<()>, rows: impl FnOnce() -> Result<()>) -> Result<()> {
    match copied {
        Err(error) if error.kind() == ErrorKind::Layout => rows(),
        copied => copied,
    }
}

/// Returns the rows of a part: their elements in the whole array on the host, and in the part's
/// storage.
fn rows(whole: Layout, part: &Part) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    let (host, stored) = (placed(whole, part), *part.layout());
    let row = stored.shape().last().copied().unwrap_or(1);
    (0..stored.len().checked_div(row).unwrap_or(0)).map(move |number| {
        let (mut index, mut rest) = (vec![0; stored.shape().len()], number);
        for (at, &extent) in index.iter_mut().zip(stored.shape()).rev().skip(1) {
            *at = rest % extent;
            rest /= extent;
        }
        let places = [host, stored].map(|layout| layout.offset_of(&index).expect("the row lies within both"));
        let [host, stored] = places.map(|place| place..place + row);
        (host, stored)
    })
}

/// Runs `work` on each item, each on a thread of its own, so that all links to the host are busy.
/// Returns the first error.
pub(super) fn at_once<I: Send>(items: impl Iterator<Item = I>, work: impl Fn(I) -> Result<()> + Sync) -> Result<()> {
    let work = &work;
    thread::scope(|threads| {
        let started: Vec<_> = items.map(|item| threads.spawn(move || work(item))).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        started.into_iter().map(join).fold(Ok(()), Result::and)
    })
}
