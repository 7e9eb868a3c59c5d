//! Arrays: device memory that knows its shape.

#[cfg(feature = "ndarray")]
mod ndarray;

use std::fmt;
use std::ops::RangeBounds;

use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result, counted};
use crate::layout::Layout;
use crate::memory::DeviceBuffer;
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// An array in device memory, which owns its elements and keeps its shape.
///
/// The elements lie in C order without gaps. Operations take `&array` where they read and
/// `&mut array` where they write; those that allocate a result return another array.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::{Backend, Device, ops};
///
/// let device = Device::open(Backend::Soft)?;
/// let pixels = device.array(&[2, 3], b"rgbRGB")?;
/// let planes = ops::permute(&pixels, "p c -> c p")?;
/// assert_eq!((planes.shape(), planes.to_vec()?), (&[3, 2][..], b"rRgGbB".to_vec()));
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub struct DeviceArray<T> {
    buffer: DeviceBuffer<T>,
    // The layout is row-major, with the buffer's number of elements.
    layout: Layout,
}

impl Device {
    /// Uploads elements as an array of `shape` in C order. Returns when they are copied.
    ///
    /// # Errors
    ///
    /// `Layout` if the shape has another number of elements; else as [`Device::upload`].
    #[track_caller]
    pub fn array<T: Element>(&self, shape: &[usize], elements: &[T]) -> Result<DeviceArray<T>> {
        let layout = row_major(shape, elements.len(), "the slice")?;
        Ok(DeviceArray { buffer: self.upload(elements)?, layout })
    }

    /// Allocates an array of `shape` whose elements have unspecified values, for use on the default
    /// stream first. See [`Device::alloc_on`].
    ///
    /// # Errors
    ///
    /// `Layout` if the shape has too many elements to count; else as [`Device::alloc_on`].
    #[track_caller]
    pub fn alloc_array<T: Element>(&self, shape: &[usize]) -> Result<DeviceArray<T>> {
        self.alloc_array_on(shape, self.default_stream())
    }

    /// Allocates an array of `shape` whose elements have unspecified values, for use on `stream`
    /// first. See [`Device::alloc_on`].
    ///
    /// # Errors
    ///
    /// As [`Device::alloc_array`].
    #[track_caller]
    #[inline]
    pub fn alloc_array_on<T: Element>(&self, shape: &[usize], stream: &Stream) -> Result<DeviceArray<T>> {
        let layout = Layout::row_major(shape)?;
        Ok(DeviceArray { buffer: self.alloc_on(layout.storage_len(), stream)?, layout })
    }
}

impl<T: Element> DeviceArray<T> {
    /// Makes an array of `shape` in C order out of a buffer.
    ///
    /// # Errors
    ///
    /// `Layout` if the shape has another number of elements than the buffer.
    pub fn new(buffer: DeviceBuffer<T>, shape: &[usize]) -> Result<Self> {
        let layout = row_major(shape, buffer.len(), "the buffer")?;
        Ok(Self { buffer, layout })
    }

    /// Makes an array of a buffer with the number of elements of a row-major layout.
    #[inline]
    pub(crate) fn with_layout(buffer: DeviceBuffer<T>, layout: Layout) -> Self {
        Self { buffer, layout }
    }

    /// The number of elements along each axis.
    pub fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.layout.len()
    }

    /// Returns whether the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.layout.is_empty()
    }

    /// Returns the places of the elements in the buffer.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The device that holds the elements.
    pub fn device(&self) -> &Device {
        self.buffer.device()
    }

    /// The memory of the array.
    #[inline]
    pub fn buffer(&self) -> &DeviceBuffer<T> {
        &self.buffer
    }

    /// Gives the memory back and forgets the shape.
    pub fn into_buffer(self) -> DeviceBuffer<T> {
        self.buffer
    }

    /// Looks at the array, to read. Every way to look at a part of it, or in another order, is a
    /// method of [`View`].
    #[inline]
    pub fn view(&self) -> View<'_, T> {
        View::over(&self.buffer, self.layout)
    }

    /// Looks at the array, to write.
    #[inline]
    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        ViewMut::over(&mut self.buffer, self.layout)
    }

    /// Looks at a part of an axis, at every `|step|`-th index, backwards for a negative step. See
    /// [`Layout::slice`], also for errors.
    pub fn slice(&self, axis: usize, range: impl RangeBounds<usize>, step: isize) -> Result<View<'_, T>> {
        self.view().slice(axis, range, step)
    }

    /// Gives the same elements in the same order another shape. Moves nothing. To look at them
    /// under another shape and keep this one, reshape a view ([`View::reshape`]).
    ///
    /// # Errors
    ///
    /// `Layout` if the shape has another number of elements; the array keeps its shape.
    ///
    /// ```
    /// # #[cfg(feature = "interp")] {
    /// use warpstride::{Backend, Device};
    ///
    /// let device = Device::open(Backend::Soft)?;
    /// let mut array = device.array(&[2, 3], &[1, 2, 3, 4, 5, 6])?;
    /// array.reshape(&[6])?;
    /// assert!(array.reshape(&[4]).is_err());
    /// assert_eq!(array.shape(), [6]);
    /// # }
    /// # Ok::<(), warpstride::Error>(())
    /// ```
    pub fn reshape(&mut self, shape: &[usize]) -> Result<()> {
        self.layout = row_major(shape, self.len(), "the array")?;
        Ok(())
    }

    /// Downloads the one element of an array, after all work queued on the array has run.
    ///
    /// # Errors
    ///
    /// `Layout` if the array has not one element; else as [`DeviceBuffer::download`].
    pub fn item(&self) -> Result<T> {
        let [element] = if self.len() == 1 { self.to_vec()? } else { Vec::new() }[..] else {
            return Err(Error::layout(format!(
                "an array of shape {:?} has {}, and item takes an array of one; use to_vec",
                self.shape(),
                counted(self.len(), "element")
            )));
        };
        Ok(element)
    }

    /// Downloads the elements in C order, after all work queued on the array has run.
    ///
    /// # Errors
    ///
    /// As [`DeviceBuffer::download`].
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.buffer.download()
    }
}

/// The row-major layout of `shape`, if it has `len` elements, as `holder` has.
fn row_major(shape: &[usize], len: usize, holder: &str) -> Result<Layout> {
    let layout = Layout::row_major(shape)?;
    if layout.len() == len {
        return Ok(layout);
    }
    Err(Error::layout(format!(
        "shape {shape:?} has {} and {holder} has {len}; give a shape with the same number",
        counted(layout.len(), "element")
    )))
}

impl<'a, T: Element> From<&'a DeviceArray<T>> for View<'a, T> {
    fn from(array: &'a DeviceArray<T>) -> Self {
        array.view()
    }
}

impl<'a, T: Element> From<&'a mut DeviceArray<T>> for ViewMut<'a, T> {
    fn from(array: &'a mut DeviceArray<T>) -> Self {
        array.view_mut()
    }
}

impl<T: Element> fmt::Debug for DeviceArray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceArray").field("shape", &self.shape()).field("buffer", &self.buffer).finish()
    }
}
