//! The host sides of copies: slices, whole or under a layout.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::element::Element;
use crate::error::{Result, counted, require};
use crate::layout::Layout;
use crate::memory::{PinnedBuffer, WriteCombined};

use super::Registered;

/// Host memory that a copy reads: a slice in C order, or under a layout of its own.
///
/// A whole slice has the number of elements of the device's view, and any shape. Slices, arrays,
/// `Vec`s, pinned and write-combined buffers and registered memory become one with `into()`, which
/// copies call.
#[derive(Clone, Copy)]
pub struct HostSlice<'a, T> {
    elements: &'a [T],
    layout: Option<Layout>,
}

/// Host memory that a copy writes: a slice in C order, or under a layout of its own. See
/// [`HostSlice`].
pub struct HostSliceMut<'a, T> {
    /// The storage, of which this borrows only the elements of the layout.
    elements: NonNull<[T]>,
    layout: Option<Layout>,
    of: PhantomData<&'a mut [T]>,
}

impl<'a, T: Element> HostSlice<'a, T> {
    /// Returns the elements of a slice that a layout reaches.
    ///
    /// # Errors
    ///
    /// `Layout` if the layout's storage is longer than the slice.
    pub fn with_layout(elements: &'a [T], layout: Layout) -> Result<Self> {
        layout.check_storage("slice", elements.len())?;
        Ok(Self { elements, layout: Some(layout) })
    }

    /// Returns the first element of the storage, valid for reads for `'a`, and its layout.
    pub(super) fn parts(self, shape: &[usize]) -> Result<(*const T, Layout)> {
        let layout = self.layout.map_or_else(|| whole(shape, self.elements.len()), Ok)?;
        Ok((self.elements.as_ptr(), layout))
    }
}

impl<'a, T: Element> HostSliceMut<'a, T> {
    /// Returns the elements of a slice that a layout reaches.
    ///
    /// # Errors
    ///
    /// `Layout` if the layout's storage is longer than the slice, or if the layout may reach an
    /// element twice.
    pub fn with_layout(elements: &'a mut [T], layout: Layout) -> Result<Self> {
        layout.check_storage("slice", elements.len())?;
        layout.check_writable()?;
        Ok(Self { layout: Some(layout), ..elements.into() })
    }

    /// Splits an axis into the indices before `mid` and those behind, of which there may be none.
    /// The parts share no element.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for an axis that the layout has not.
    #[cfg(any(feature = "pipeline", feature = "distributed"))]
    pub(crate) fn split_at(self, axis: usize, mid: usize) -> Result<(Self, Option<Self>)> {
        let layout = self.layout.map_or_else(|| Layout::row_major(&[self.elements.len()]), Ok)?;
        if layout.shape().get(axis).is_some_and(|&extent| extent <= mid) {
            return Ok((Self { layout: Some(layout), ..self }, None));
        }
        // The layout overlaps nowhere itself, so neither do its parts.
        let (before, behind) = layout.split_at(axis, mid)?;
        let part = |layout| Self { elements: self.elements, layout: Some(layout), of: PhantomData };
        Ok((part(before), Some(part(behind))))
    }

    /// Returns the first element of the storage, whose elements of the layout are valid for writes
    /// for `'a`, and the layout.
    pub(super) fn parts(self, shape: &[usize]) -> Result<(*mut T, Layout)> {
        let layout = self.layout.map_or_else(|| whole(shape, self.elements.len()), Ok)?;
        Ok((self.elements.as_ptr().cast(), layout))
    }
}

/// Returns the layout of `len` elements of host memory in C order, for a view of this shape.
pub(super) fn whole(shape: &[usize], len: usize) -> Result<Layout> {
    let layout = Layout::row_major(shape)?;
    require!(
        layout.len() == len,
        InvalidArgument,
        "the host memory has {len} and the view of shape {shape:?} has {}; they must have the same number",
        layout.len(),
        len = counted(len, "element")
    );
    Ok(layout)
}

impl<'a, T> From<&'a [T]> for HostSlice<'a, T> {
    fn from(elements: &'a [T]) -> Self {
        Self { elements, layout: None }
    }
}

impl<'a, T> From<&'a mut [T]> for HostSliceMut<'a, T> {
    fn from(elements: &'a mut [T]) -> Self {
        Self { elements: elements.into(), layout: None, of: PhantomData }
    }
}

/// Makes the host side of a copy from what has a slice.
macro_rules! of_slice {
    ($([$($generics:tt)*] $memory:ty => $side:ident by |$value:ident| $slice:expr;)*) => {$(
        impl<'a, $($generics)*> From<$memory> for $side<'a, T> {
            fn from($value: $memory) -> Self {
                $slice.into()
            }
        }
    )*};
}

of_slice! {
    [T, const N: usize] &'a [T; N] => HostSlice by |array| array.as_slice();
    [T, const N: usize] &'a mut [T; N] => HostSliceMut by |array| array.as_mut_slice();
    [T] &'a Vec<T> => HostSlice by |vector| vector.as_slice();
    [T] &'a mut Vec<T> => HostSliceMut by |vector| vector.as_mut_slice();
    [T: Element] &'a PinnedBuffer<T> => HostSlice by |buffer| (&buffer[..]);
    [T: Element] &'a mut PinnedBuffer<T> => HostSliceMut by |buffer| (&mut buffer[..]);
    [T: Element] &'a WriteCombined<T> => HostSlice by |buffer| buffer.as_slice_in_flight();
    [T] Registered<'a, T> => HostSlice by |memory| (&*memory.into_slice());
    [T] Registered<'a, T> => HostSliceMut by |memory| memory.into_slice();
}

// SAFETY: it is an exclusive borrow of elements, as `&mut [T]` is.
unsafe impl<T: Send> Send for HostSliceMut<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for HostSliceMut<'_, T> {}

/// Prints no elements: reading write-combined memory is slow.
macro_rules! debug {
    ($slice:ident) => {
        impl<T: Element> fmt::Debug for $slice<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($slice))
                    .field("dtype", &T::DTYPE)
                    .field("len", &self.elements.len())
                    .field("layout", &self.layout)
                    .finish()
            }
        }
    };
}

debug!(HostSlice);
debug!(HostSliceMut);
