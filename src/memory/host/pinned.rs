//! Pinned host memory: page-locked, and cached as all memory.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::slice;

use super::Elements;
use crate::element::Element;
use crate::host::Lent;

/// Pinned host memory: a slice that the device's copy engines read and write directly.
///
/// It dereferences to `[T]`. [`Device::pinned`](crate::Device::pinned) allocates it from the
/// device's pool, to which its drop returns it; nothing waits. It keeps its device open.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let mut frame = device.pinned_zeros::<f32>(6)?;
/// frame[2..4].fill(0.5);
/// let on_device = device.array(&[2, 3], &frame)?;
/// on_device.buffer().download_into(&mut frame)?; // again and again, without an allocation
/// assert_eq!(frame[..], [0.0, 0.0, 0.5, 0.5, 0.0, 0.0]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub struct PinnedBuffer<T: Element>(pub(super) Elements<T>);

impl<T: Element> PinnedBuffer<T> {
    /// Writes zeros to all bytes.
    pub(super) fn zero(&mut self) {
        // SAFETY: the block holds `len` elements, which `self` borrows exclusively, and zeros are
        // an element, as every pattern of bytes.
        unsafe { self.0.first().as_ptr().write_bytes(0, self.0.len) };
    }

    /// Takes out what must outlast a copy; `None` if there is nothing.
    pub(crate) fn into_lent(self) -> Option<Lent> {
        self.0.into_lent()
    }

    /// Returns the first element, for a copy. Unlike `as_mut_ptr` it makes no reference, which
    /// would claim elements that a copy writes.
    pub(crate) fn as_ptr_in_flight(&self) -> *mut T {
        self.0.first().as_ptr()
    }
}

impl<T: Element> Deref for PinnedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the block holds `len` initialised elements, and a slice of none may dangle. A
        // copy in flight owns the buffer or borrows it for the scope, so none writes it now.
        unsafe { slice::from_raw_parts(self.0.first().as_ptr(), self.0.len) }
    }
}

impl<T: Element> DerefMut for PinnedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.0.first().as_ptr(), self.0.len) }
    }
}

impl<T: Element> AsRef<[T]> for PinnedBuffer<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T: Element> AsMut<[T]> for PinnedBuffer<T> {
    fn as_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<T: Element> fmt::Debug for PinnedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedBuffer").field("dtype", &T::DTYPE).field("len", &self.0.len).finish()
    }
}
