//! ndarray's arrays to the device and back.

use ndarray::{Array, ArrayView, CowArray, Dimension, StrideShape};

use super::DeviceBuffer;
use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, ErrorKind, Result};

impl Device {
    /// A buffer of an array's elements in C order; an array in another order is first copied to that.
    ///
    /// # Errors
    ///
    /// As [`Device::upload`].
    pub fn upload_array<T: Element, D: Dimension>(&self, array: ArrayView<'_, T, D>) -> Result<DeviceBuffer<T>> {
        let array: CowArray<'_, T, D> = array.as_standard_layout();
        let elements = array.as_slice().ok_or_else(|| {
            Error::new(ErrorKind::Layout, "an array in standard layout has no slice; please report this as a bug")
        })?;
        self.upload(elements)
    }
}

impl<T: Element> DeviceBuffer<T> {
    /// The elements as an array of this shape in C order (in Fortran order for a `shape.f()`), when all work queued on the
    /// buffer has run.
    ///
    /// # Errors
    ///
    /// `Layout` where the shape has another number of elements than the buffer, and what the copy failed with.
    pub fn download_array<D: Dimension>(&self, shape: impl Into<StrideShape<D>>) -> Result<Array<T, D>> {
        let shape = shape.into();
        let wanted = shape.raw_dim().clone();
        Array::from_shape_vec(shape, self.download()?).map_err(|error| {
            Error::new(
                ErrorKind::Layout,
                format!(
                    "a buffer of {} elements cannot be an array of shape {:?}: {error}",
                    self.len(),
                    wanted.slice()
                ),
            )
        })
    }
}
