//! Uploads ndarray's arrays, and downloads them.

use ndarray::{Array, ArrayD, ArrayView, CowArray, Dimension, IxDyn, StrideShape};

use super::DeviceArray;
use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result, counted};
use crate::memory::DeviceBuffer;

impl Device {
    /// Uploads an array in C order. On the host, an array in another order is copied to C order
    /// first.
    ///
    /// # Errors
    ///
    /// `Layout` if the array has more than [`MAX_RANK`](crate::layout::MAX_RANK) axes; else as
    /// [`Device::upload`].
    #[track_caller]
    pub fn upload_array<T: Element, D: Dimension>(&self, array: ArrayView<'_, T, D>) -> Result<DeviceArray<T>> {
        let array: CowArray<'_, T, D> = array.as_standard_layout();
        let elements = array
            .as_slice()
            .ok_or_else(|| Error::layout("an array in standard layout has no slice; please report this as a bug"))?;
        self.array(array.shape(), elements)
    }
}

impl<T: Element> DeviceArray<T> {
    /// Downloads the array in C order, after all work queued on it has run.
    ///
    /// # Errors
    ///
    /// As [`DeviceArray::to_vec`].
    pub fn to_ndarray(&self) -> Result<ArrayD<T>> {
        self.buffer().download_array(IxDyn(self.shape()))
    }
}

impl<T: Element> DeviceBuffer<T> {
    /// The elements as an array of this shape in C order (in Fortran order for a `shape.f()`), when
    /// all work queued on the buffer has run.
    ///
    /// # Errors
    ///
    /// `Layout` if the shape has another number of elements than the buffer, and what the copy
    /// failed with.
    pub fn download_array<D: Dimension>(&self, shape: impl Into<StrideShape<D>>) -> Result<Array<T, D>> {
        let shape = shape.into();
        let wanted = shape.raw_dim().clone();
        Array::from_shape_vec(shape, self.download()?).map_err(|error| {
            Error::layout(format!(
                "a buffer of {} cannot be an array of shape {:?}: {error}",
                counted(self.len(), "element"),
                wanted.slice()
            ))
        })
    }
}

#[cfg(all(test, feature = "interp"))]
mod tests {
    use ndarray::{Array2, Array3, ShapeBuilder, s};

    use crate::device::{Backend, Device};

    #[test]
    fn arrays_come_back_whatever_their_order() {
        let device = Device::open(Backend::Soft).unwrap();
        let cube = Array3::from_shape_fn((3, 4, 5), |(i, j, k)| (100 * i + 10 * j + k) as i32);
        let part = cube.slice(s![.., 1..;2, ..;-1]);
        for array in [cube.view(), part, cube.t()] {
            let back = device.upload_array(array).unwrap();
            assert_eq!(back.buffer().download_array(array.raw_dim()).unwrap(), array);
            assert_eq!(back.to_ndarray().unwrap(), array.into_dyn());
        }
        let matrix = Array2::from_shape_fn((3, 4), |(i, j)| (10 * i + j) as f32);
        let buffer = device.upload_array(matrix.view()).unwrap().into_buffer();
        let fortran = buffer.download_array((4, 3).f()).unwrap();
        assert_eq!(fortran, matrix.t());
        let error = buffer.download_array((4, 4)).unwrap_err();
        assert!(error.to_string().contains("12 elements") && error.to_string().contains("[4, 4]"), "{error}");
    }
}
