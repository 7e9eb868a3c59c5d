//! Arrays that are split among processes, each of which has one rank's part.

mod arrivals;
mod exchange;
mod lanes;
mod messages;
pub(super) mod pieces;
mod steps;
mod way;
mod windowed;

pub use exchange::ShardExchange;

use std::fmt;

use super::array::{upload, whole};
use super::{Communicator, Part, Split};
use crate::context::{Allocation, Shared};
use crate::device::Device;
use crate::element::Element;
use crate::error::Result;
use crate::memory::DeviceBuffer;
use crate::view::{View, ViewMut};

/// One rank's part of an array that is split among processes.
pub struct Shard<T> {
    split: Split,
    rank: usize,
    part: Part,
    buffer: DeviceBuffer<T>,
}

impl<T: Element> Shard<T> {
    /// Allocates the part of a rank, whose elements are unspecified until they are written. A rank
    /// beyond those of the split has an empty one.
    ///
    /// # Errors
    ///
    /// The error of an allocation.
    pub fn alloc(device: &Device, split: &Split, rank: usize) -> Result<Self> {
        let part = split.part(rank);
        let buffer = device.alloc(part.layout().storage_len())?;
        Ok(Self { split: split.clone(), rank, part, buffer })
    }

    /// Allocates the part of the communicator's rank, and copies it from the whole array on the
    /// host, in C order: a memory-mapped file, for example. Nothing else of it is read.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are not as many elements as the split's shape has; else as
    /// [`Shard::alloc`], and the error of a copy.
    pub fn of_whole(communicator: &Communicator, split: &Split, elements: &[T]) -> Result<Self> {
        let mut shard = Self::alloc(communicator.device(), split, communicator.rank())?;
        let whole = whole(split, elements.len())?;
        if !shard.part.is_empty() {
            upload(elements, whole, &shard.part, &mut shard.buffer)?;
        }
        Ok(shard)
    }

    /// Returns how the array is divided.
    pub fn split(&self) -> &Split {
        &self.split
    }

    /// Returns the rank whose part it is.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the part: a view of the GPU's memory.
    pub fn view(&self) -> View<'_, T> {
        self.buffer.view_with(*self.part.layout()).expect("the buffer was allocated for it")
    }

    /// Returns the part for writing.
    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        self.buffer.view_mut_with(*self.part.layout()).expect("the buffer was allocated for it")
    }

    fn memory(&self) -> &Shared<Allocation> {
        self.buffer.memory()
    }
}

impl<T: Element> fmt::Debug for Shard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shard<{}>(rank {} of {})", T::DTYPE, self.rank, self.split)
    }
}
