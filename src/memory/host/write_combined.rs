//! Write-combined host memory: page-locked, written past the host's caches.

use std::fmt;
use std::slice;

use super::Elements;
use crate::element::Element;
use crate::error::{Error, Result, counted};
use crate::host::Lent;

/// Write-combined host memory, for uploads: the program writes it and never reads it.
///
/// Writes go past the host's caches, so copies to the device disturb neither. Reads would be slower
/// by orders of magnitude, so the type has none. Write long runs in order.
/// [`Device::write_combined`](crate::Device::write_combined) allocates it from the device's pool of
/// page-locked memory.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let mut image = device.alloc_array::<u8>(&[2, 3])?;
/// let mut host = device.write_combined::<u8>(6)?;
/// host.write(0, b"rgb")?;
/// host.write_from(3, (b'R'..).step_by(1).take(3))?;
/// assert!(host.write_from(7, [0]).is_err());
/// device.default_stream().upload(host, &mut image)?.wait()?;
/// assert_eq!(image.to_vec()?, b"rgbRST");
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub struct WriteCombined<T: Element>(pub(super) Elements<T>);

impl<T: Element> WriteCombined<T> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// Writes elements from index `at` on.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they reach beyond the end; then none is written.
    pub fn write(&mut self, at: usize, elements: &[T]) -> Result<()> {
        if at.checked_add(elements.len()).is_none_or(|end| end > self.len()) {
            return Err(self.beyond(at, elements.len()));
        }
        let first = self.0.first().as_ptr();
        // SAFETY: the block holds `len` elements, which `self` borrows exclusively, so the range
        // lies within it and is not that of `elements`.
        unsafe { first.wrapping_add(at).copy_from_nonoverlapping(elements.as_ptr(), elements.len()) };
        Ok(())
    }

    /// Writes what an iterator gives from index `at` on, and returns the number of elements. It
    /// takes no element beyond the end.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if `at` lies beyond the end.
    pub fn write_from(&mut self, at: usize, elements: impl IntoIterator<Item = T>) -> Result<usize> {
        let Some(room) = self.len().checked_sub(at) else { return Err(self.beyond(at, 0)) };
        let first = self.0.first().as_ptr();
        let mut written = 0;
        for element in elements.into_iter().take(room) {
            // SAFETY: `at + written` is below `len`, and `self` borrows the block exclusively.
            unsafe { first.wrapping_add(at + written).write(element) };
            written += 1;
        }
        Ok(written)
    }

    /// Writes one value to all elements.
    pub fn fill(&mut self, value: T) {
        let first = self.0.first().as_ptr();
        for at in 0..self.len() {
            // SAFETY: `at` is below `len`, and `self` borrows the block exclusively.
            unsafe { first.wrapping_add(at).write(value) };
        }
    }

    /// Takes out what must outlast a copy; `None` if there is nothing.
    pub(crate) fn into_lent(self) -> Option<Lent> {
        self.0.into_lent()
    }

    /// Returns the elements, for a copy by the device. The host must not read them.
    pub(crate) fn as_slice_in_flight(&self) -> &[T] {
        // SAFETY: the block holds `len` initialised elements, and a slice of none may dangle. Only
        // `&mut self` writes them.
        unsafe { slice::from_raw_parts(self.0.first().as_ptr(), self.0.len) }
    }

    /// Returns the first element, for a copy.
    pub(crate) fn as_ptr_in_flight(&self) -> *mut T {
        self.0.first().as_ptr()
    }

    fn beyond(&self, at: usize, count: usize) -> Error {
        let (len, elements) = (self.len(), counted(count, "element"));
        Error::argument(format!(
            "{elements} from index {at} reach beyond a buffer of {len}; write to fewer or allocate more"
        ))
    }
}

impl<T: Element> fmt::Debug for WriteCombined<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteCombined").field("dtype", &T::DTYPE).field("len", &self.len()).finish()
    }
}
