//! Views show parts of a buffer in another order, without moving an element.
//!
//! A [`View`] only reads, so it may be copied and may overlap itself (broadcast, diagonal). A
//! [`ViewMut`] may do neither: the borrow checker ensures that no other view reaches the buffer
//! while it lives, and its layout reaches each element once. Both borrow the buffer. Every
//! operation is O(1), consumes the view and returns another. [`Layout`] documents the operations in
//! full. Both deal in device memory only.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use crate::context::{Allocation, Shared};
use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result, counted};
use crate::layout::{Layout, Reshape};
use crate::memory::DeviceBuffer;

/// A view that reads elements of a buffer.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::{Backend, Device, ops};
///
/// let device = Device::open(Backend::Soft)?;
/// let matrix = device.array(&[2, 4], &[1, 2, 3, 4, 5, 6, 7, 8])?;
/// let view = matrix.view().slice(1, .., 2)?.t(); // every second column, as rows
/// assert_eq!((view.shape(), view.strides()), (&[2, 2][..], &[2, 4][..]));
/// assert_eq!(ops::contiguous(view)?.to_vec()?, [1, 5, 3, 7]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub struct View<'a, T> {
    memory: &'a Shared<Allocation>,
    layout: Layout,
    of: PhantomData<&'a [T]>,
}

/// A view that reads and writes elements of a buffer. No other view reaches them while it lives.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::{Backend, Device, ops};
///
/// let device = Device::open(Backend::Soft)?;
/// let mut matrix = device.array(&[2, 3], &[1, 2, 3, 4, 5, 6])?;
/// let (upper, lower) = matrix.view_mut().split_at(0, 1)?; // two views without a common element
/// ops::fill_into(0, upper, device.default_stream())?;
/// ops::fill_into(9, lower, device.default_stream())?;
/// assert_eq!(matrix.to_vec()?, [0, 0, 0, 9, 9, 9]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub struct ViewMut<'a, T> {
    // Shared, because the protected elements lie on the device. Views are made from an exclusive
    // borrow or by consuming another view, so no other view of these elements exists.
    memory: &'a Shared<Allocation>,
    layout: Layout,
    of: PhantomData<&'a mut [T]>,
}

impl<T: Element> DeviceBuffer<T> {
    /// Returns the whole buffer as an array of `shape` in C order.
    ///
    /// # Errors
    ///
    /// `Layout` if the shape and the buffer differ in their number of elements; see
    /// [`Layout::row_major`].
    #[inline]
    pub fn view(&self, shape: &[usize]) -> Result<View<'_, T>> {
        self.check_whole(shape)?;
        Ok(View { memory: self.memory(), layout: Layout::c_order(shape, self.len()), of: PhantomData })
    }

    /// Returns the whole buffer as a writable array of `shape` in C order.
    ///
    /// # Errors
    ///
    /// As [`DeviceBuffer::view`].
    #[inline]
    pub fn view_mut(&mut self, shape: &[usize]) -> Result<ViewMut<'_, T>> {
        self.check_whole(shape)?;
        Ok(ViewMut { memory: self.memory(), layout: Layout::c_order(shape, self.len()), of: PhantomData })
    }

    /// Returns the buffer under any layout whose storage is at most the buffer's length.
    ///
    /// # Errors
    ///
    /// `Layout` if the layout's storage is longer.
    pub fn view_with(&self, layout: Layout) -> Result<View<'_, T>> {
        layout.check_storage("buffer", self.len())?;
        Ok(View { memory: self.memory(), layout, of: PhantomData })
    }

    /// Returns the writable buffer under any layout whose storage is at most the buffer's length.
    ///
    /// # Errors
    ///
    /// `Layout` if the layout's storage is longer, or the layout may reach an element twice
    /// ([`Layout::overlaps_itself`]).
    pub fn view_mut_with(&mut self, layout: Layout) -> Result<ViewMut<'_, T>> {
        layout.check_storage("buffer", self.len())?;
        layout.check_writable()?;
        Ok(ViewMut { memory: self.memory(), layout, of: PhantomData })
    }

    /// Checks that the shape has the buffer's number of elements.
    #[inline]
    fn check_whole(&self, shape: &[usize]) -> Result<()> {
        let len = Layout::len_of(shape)?;
        if len == self.len() { Ok(()) } else { Err(not_whole(self.len(), shape, len)) }
    }
}

#[cold]
fn not_whole(buffer: usize, shape: &[usize], len: usize) -> Error {
    Error::layout(format!(
        "a buffer of {} cannot be seen as shape {shape:?}, which has {len}; give a shape with the buffer's number of elements, or \
         a layout of fewer (view_with)",
        counted(buffer, "element")
    ))
}

/// Gives a view operations of its layout: each returns the view with the layout that comes of it.
macro_rules! by_layout {
    ($($(#[$about:meta])* $name:ident($($argument:ident: $type:ty),*);)*) => {$(
        $(#[$about])*
        #[inline]
        pub fn $name(self, $($argument: $type),*) -> Result<Self> {
            self.map(|layout| layout.$name($($argument),*))
        }
    )*};
}

macro_rules! operations {
    ($view:ident) => {
        impl<'a, T: Element> $view<'a, T> {
            /// Returns the layout of the elements in the buffer.
            #[inline]
            pub fn layout(&self) -> &Layout {
                &self.layout
            }

            /// Returns the number of elements along each axis.
            #[inline]
            pub fn shape(&self) -> &[usize] {
                self.layout.shape()
            }

            /// Returns, for each axis, the elements of the buffer from one index to the next.
            pub fn strides(&self) -> &[isize] {
                self.layout.strides()
            }

            /// Returns the number of elements.
            pub fn len(&self) -> usize {
                self.layout.len()
            }

            /// Returns whether there are no elements.
            pub fn is_empty(&self) -> bool {
                self.layout.is_empty()
            }

            /// Returns the device that the elements are on.
            #[inline]
            pub fn device(&self) -> &'a Device {
                self.memory.device()
            }

            /// Returns the device address of the buffer, where the layout's storage starts. Index
            /// `[0, 0, ...]` lies `layout().offset()` elements after it.
            pub fn storage_address(&self) -> u64 {
                self.memory.address()
            }

            /// Reverses the order of the axes: the transpose of a matrix.
            #[must_use]
            pub fn t(self) -> Self {
                Self { layout: self.layout.t(), ..self }
            }

            /// Takes part of an axis: every `|step|`-th index, backwards if the step is negative.
            /// See [`Layout::slice`], also for errors.
            pub fn slice(self, axis: usize, range: impl RangeBounds<usize>, step: isize) -> Result<Self> {
                self.map(|layout| layout.slice(axis, range, step))
            }

            /// Splits an axis before index `mid` into two views that share no element. See
            /// [`Layout::split_at`], also for errors.
            pub fn split_at(self, axis: usize, mid: usize) -> Result<(Self, Self)> {
                let (before, from) = self.layout.split_at(axis, mid)?;
                let with = |layout| Self { memory: self.memory, layout, of: PhantomData };
                Ok((with(before), with(from)))
            }

            by_layout! {
                /// Reorders the axes. See [`Layout::permuted_axes`], also for errors.
                permuted_axes(axes: &[usize]);
                /// Reverses one axis. See [`Layout::reverse`], also for errors.
                reverse(axis: usize);
                /// Takes the part at one index of an axis, and removes that axis. See
                /// [`Layout::index_axis`], also for errors.
                index_axis(axis: usize, index: usize);
                /// Inserts an axis of one index. See [`Layout::insert_axis`], also for errors.
                insert_axis(axis: usize);
                /// Removes an axis of one index. See [`Layout::remove_axis`], also for errors.
                remove_axis(axis: usize);
                /// Takes the elements whose indices on axes `a` and `b` are equal. See
                /// [`Layout::diagonal`], also for errors.
                diagonal(a: usize, b: usize);
                /// Merges two axes into one. See [`Layout::merge_axes`], also for errors.
                merge_axes(outer: usize, inner: usize);
                /// Splits one axis into several. See [`Layout::split_axis`], also for errors.
                split_axis(axis: usize, extents: &[usize]);
            }

            /// Returns the same elements in the same order under another shape, or the answer that
            /// only a copy can have it. See [`Layout::reshape`], also for errors.
            pub fn reshape(self, shape: &[usize]) -> Result<Reshape<Self>> {
                Ok(self.layout.reshape(shape)?.map(|layout| Self { layout, ..self }))
            }

            #[inline]
            pub(crate) fn memory(&self) -> &'a Shared<Allocation> {
                self.memory
            }

            #[inline]
            fn map(self, operation: impl FnOnce(Layout) -> Result<Layout>) -> Result<Self> {
                Ok(Self { layout: operation(self.layout)?, ..self })
            }
        }

        impl<T: Element> fmt::Debug for $view<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($view))
                    .field("dtype", &T::DTYPE)
                    .field("layout", &self.layout)
                    .field("storage_address", &format_args!("{:#x}", self.storage_address()))
                    .finish()
            }
        }
    };
}

operations!(View);
operations!(ViewMut);

impl<'a, T: Element> View<'a, T> {
    /// Looks at a buffer under a row-major layout of its elements, which an array has checked.
    #[inline]
    pub(crate) fn over(buffer: &'a DeviceBuffer<T>, layout: Layout) -> Self {
        debug_assert!(fits(buffer, &layout));
        View { memory: buffer.memory(), layout, of: PhantomData }
    }
}

impl<'a, T: Element> ViewMut<'a, T> {
    /// Looks at a buffer under a row-major layout of its elements, which an array has checked and
    /// which reaches each of them once.
    #[inline]
    pub(crate) fn over(buffer: &'a mut DeviceBuffer<T>, layout: Layout) -> Self {
        debug_assert!(fits(buffer, &layout));
        ViewMut { memory: buffer.memory(), layout, of: PhantomData }
    }

    /// Returns a view of no bytes on the same device, for a plan that needs no scratch.
    pub(crate) fn no_bytes(&self) -> Result<ViewMut<'a, u8>> {
        Ok(ViewMut { memory: self.memory, layout: Layout::row_major(&[0])?, of: PhantomData })
    }
}

/// Tells if a layout is row-major and reaches no element beyond a buffer.
fn fits<T: Element>(buffer: &DeviceBuffer<T>, layout: &Layout) -> bool {
    layout.is_standard_layout() && layout.storage_len() <= buffer.len()
}

impl<T> Clone for View<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for View<'_, T> {}

impl<T: Element> View<'_, T> {
    /// The array repeated to `shape`. See [`Layout::broadcast`], also for errors. A [`ViewMut`] has
    /// no such operation: the result reaches elements more than once.
    pub fn broadcast(self, shape: &[usize]) -> Result<Self> {
        self.map(|layout| layout.broadcast(shape))
    }
}

impl<T: Element> ViewMut<'_, T> {
    /// Borrows the same elements to read.
    pub fn view(&self) -> View<'_, T> {
        View { memory: self.memory, layout: self.layout, of: PhantomData }
    }

    /// Borrows the same elements to write, to use the view again after an operation that consumes
    /// one.
    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        ViewMut { memory: self.memory, layout: self.layout, of: PhantomData }
    }
}
