//! Sets of buffers that runs take in turn, so that no run finds its data in the L2 cache.
//!
//! A run rotates rather than flushes: a flush by writes leaves dirty lines in the cache, and the
//! next run pays for writing them back.

use super::has_times;
use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result, counted};
use crate::memory::DeviceBuffer;
use crate::ops;
use crate::view::{View, ViewMut};

/// The sets together fill the L2 cache this many times, so that a set is gone from it when its turn
/// comes again.
const CACHES: u64 = 4;

/// Bytes that each array is aligned to, as the driver aligns allocations.
const ALIGN: usize = 256;

/// Bytes that runs must touch before the first of them are gone from an L2 cache of `l2_bytes`.
pub(in crate::roofline) fn cold_bytes(l2_bytes: u64) -> u64 {
    l2_bytes.saturating_mul(CACHES)
}

/// Sets of `bytes` each that fill [`cold_bytes`]; at least one.
fn cold_sets(bytes: u64, l2_bytes: u64) -> usize {
    usize::try_from(cold_bytes(l2_bytes).div_ceil(bytes.max(1))).unwrap_or(usize::MAX).max(1)
}

/// How many sets of buffers there are, and whose turn it is.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
/// use warpstride::ops;
/// use warpstride::roofline::measure::{self, Rotation};
///
/// let device = Device::open(Backend::Soft)?;
/// let numbers = vec![1.0_f32; 1000];
/// let mut rotation = Rotation::new(&device, &[4000; 2]); // a run reads 4000 bytes and writes 4000
/// let source = rotation.upload(&numbers)?;
/// let mut result = rotation.zeros::<f32>(numbers.len())?;
/// let mut run = || {
///     let set = rotation.advance();
///     ops::copy_into(source.view(set)?, result.view_mut(set)?, device.default_stream())
/// };
/// run()?; // and where time means something:
/// if measure::has_times(&device) {
///     let timing = measure::time(&device, device.default_stream(), 20, run)?;
///     println!("{:.0} GB/s", timing.gbps(8000));
/// }
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
#[derive(Debug)]
pub struct Rotation {
    device: Device,
    sets: usize,
    is_cold: bool,
    runs: usize,
}

impl Rotation {
    /// A rotation for runs that each read and write arrays of these `bytes`. It has one set where
    /// nothing is timed: on the software GPU, and where a run touches no bytes.
    pub fn new(device: &Device, bytes: &[usize]) -> Self {
        let bytes: u64 = bytes.iter().map(|&bytes| Self::padded(bytes) as u64).sum();
        let is_cold = bytes > 0 && has_times(device);
        let sets = if is_cold { cold_sets(bytes, device.info().l2_bytes) } else { 1 };
        Self { device: device.clone(), sets, is_cold, runs: 0 }
    }

    /// The number of sets, at least one.
    pub fn sets(&self) -> usize {
        self.sets
    }

    /// Returns whether runs are worth timing, and find a cold L2 cache.
    pub fn is_cold(&self) -> bool {
        self.is_cold
    }

    /// The device that the sets lie on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The set of the next run, counted from 0. It goes on from measurement to measurement,
    /// warm-ups included: the set that was used last is still in the cache.
    pub fn advance(&mut self) -> usize {
        self.runs += 1;
        (self.runs - 1) % self.sets
    }

    /// Makes the first set the next.
    pub fn restart(&mut self) {
        self.runs = 0;
    }

    /// Bytes that an array of `bytes` takes of its allocation.
    #[doc(hidden)]
    pub fn padded(bytes: usize) -> usize {
        bytes.saturating_add(ALIGN - 1) / ALIGN * ALIGN
    }

    /// Arrays that the device must have room for, where a set has `each`: one more while several
    /// sets are filled.
    #[doc(hidden)]
    pub fn arrays(&self, each: usize) -> usize {
        if self.sets > 1 { each * self.sets + 1 } else { each }
    }

    /// An array of `len` zeros in each set.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` where the device has no room, and what else the driver failed with.
    pub fn zeros<T: Element>(&self, len: usize) -> Result<RotatingBuffer<T>> {
        let step = len.checked_next_multiple_of(ALIGN / size_of::<T>());
        let Some((step, all)) = step.and_then(|step| Some((step, step.checked_mul(self.sets)?))) else {
            return Err(Error::layout(format!(
                "{} arrays of {} have more bytes than can be addressed; use shorter ones",
                self.sets,
                counted(len, "element")
            )));
        };
        Ok(RotatingBuffer { all: self.device.zeros(all)?, len, step, sets: self.sets })
    }

    /// An array in each set that holds `elements`.
    ///
    /// # Errors
    ///
    /// As [`zeros`](Self::zeros).
    pub fn upload<T: Element>(&self, elements: &[T]) -> Result<RotatingBuffer<T>> {
        if self.sets == 1 {
            return Ok(RotatingBuffer { all: self.device.upload(elements)?, len: elements.len(), step: 0, sets: 1 });
        }
        let mut arrays = self.zeros(elements.len())?;
        arrays.upload_first(elements)?;
        let (mut filled, step, all) = (1, arrays.step, arrays.all.len());
        while filled < self.sets {
            // Doubling: small arrays have very many sets.
            let (from, rest) = arrays.all.view_mut(&[all])?.split_at(0, filled * step)?;
            let more = filled.min(self.sets - filled);
            let to = rest.slice(0, ..more * step, 1)?;
            ops::copy_into(from.view().slice(0, ..more * step, 1)?, to, self.device.default_stream())?;
            filled += more;
        }
        Ok(arrays)
    }
}

/// An array of each set of a [`Rotation`], all of one length and in one allocation.
#[derive(Debug)]
pub struct RotatingBuffer<T: Element> {
    all: DeviceBuffer<T>,
    len: usize,
    /// Elements from one array to the next.
    step: usize,
    sets: usize,
}

#[expect(clippy::len_without_is_empty, reason = "an array without elements is not timed")]
impl<T: Element> RotatingBuffer<T> {
    /// Elements of each array.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The device address of a set's array, for kernels that are launched with addresses. It means
    /// nothing for a set that the rotation does not have.
    pub fn address(&self, set: usize) -> u64 {
        self.all.address().wrapping_add(set.wrapping_mul(self.step * size_of::<T>()) as u64)
    }

    /// The array of a set, as one axis.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where there is no such set.
    pub fn view(&self, set: usize) -> Result<View<'_, T>> {
        let start = self.start(set)?;
        self.all.view(&[self.all.len()])?.slice(0, start..start + self.len, 1)
    }

    /// The array of a set to write to, as one axis.
    ///
    /// # Errors
    ///
    /// As [`view`](Self::view).
    pub fn view_mut(&mut self, set: usize) -> Result<ViewMut<'_, T>> {
        let (start, room) = (self.start(set)?, self.all.len());
        self.all.view_mut(&[room])?.slice(0, start..start + self.len, 1)
    }

    /// The elements before a set's array.
    fn start(&self, set: usize) -> Result<usize> {
        if set < self.sets {
            return Ok(set * self.step);
        }
        Err(Error::argument(format!(
            "there is no set {set}; the rotation has {}, counted from 0",
            counted(self.sets, "set")
        )))
    }

    /// Gives the first set's array other elements, as many as it has.
    ///
    /// # Errors
    ///
    /// `Layout` where their number differs, and what the driver failed with.
    pub fn upload_first(&mut self, elements: &[T]) -> Result<()> {
        let one = self.all.device().upload(elements)?;
        ops::copy_into(one.view(&[one.len()])?, self.view_mut(0)?, one.device().default_stream())
    }

    /// The first `len` elements of the first set's array, which the first run has used. On the
    /// device that takes room for them once more.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where the array has fewer, and what the driver failed with.
    pub fn download_first(&self, len: usize) -> Result<Vec<T>> {
        let device = self.all.device();
        let mut one = device.alloc(len)?;
        ops::copy_into(self.view(0)?.slice(0, ..len, 1)?, one.view_mut(&[len])?, device.default_stream())?;
        one.download()
    }
}

#[cfg(all(test, feature = "interp"))]
mod tests {
    use super::*;
    use crate::device::Backend;

    fn device() -> Device {
        Device::open(Backend::Soft).expect("the software GPU is always there")
    }

    fn rotation(sets: usize) -> Rotation {
        Rotation { device: device(), sets, is_cold: true, runs: 0 }
    }

    #[test]
    fn rotation_covers_four_caches() {
        assert_eq!(cold_sets(1 << 20, 50 << 20), 200);
        assert_eq!(cold_sets(1 << 30, 50 << 20), 1);
        assert_eq!(cold_sets(0, 0), 1);
    }

    #[test]
    fn a_set_that_is_not_there_is_refused() {
        let rotation = Rotation::new(&device(), &[16]);
        for mut arrays in [rotation.upload(&[1.0_f32; 4]).unwrap(), rotation.zeros::<f32>(4).unwrap()] {
            assert_eq!(arrays.view(0).unwrap().shape(), [4]);
            for set in [1, usize::MAX] {
                assert!(arrays.view(set).unwrap_err().to_string().contains("1 set"));
                assert!(arrays.view_mut(set).is_err());
            }
        }
        assert!(rotation.zeros::<u8>(usize::MAX).is_err());
    }

    #[test]
    fn sets_come_in_turn_and_hold_the_same_elements() {
        let elements: Vec<u16> = (0..1001).collect();
        for sets in [1, 2, 7, 8] {
            let mut rotation = rotation(sets);
            let mut arrays = rotation.upload(&elements).expect("room");
            for run in 0..2 * sets {
                let set = rotation.advance();
                assert_eq!(set, run % sets);
                let mut one = rotation.device().alloc(1001).expect("room");
                let to = one.view_mut(&[1001]).expect("a view");
                ops::copy_into(arrays.view(set).expect("a set"), to, rotation.device().default_stream())
                    .expect("it runs");
                assert_eq!(one.download().expect("elements"), elements, "set {set} of {sets}");
            }
            arrays.upload_first(&vec![7; 1001]).expect("as many");
            assert_eq!(arrays.download_first(3).expect("elements"), [7; 3]);
            assert!(arrays.download_first(1002).is_err() && arrays.upload_first(&[7]).is_err());
        }
    }

    #[test]
    fn the_software_gpu_has_one_set() {
        let rotation = Rotation::new(&device(), &[1, 2]);
        assert_eq!((rotation.sets(), rotation.is_cold(), rotation.arrays(2)), (1, false, 2));
        assert_eq!(self::rotation(5).arrays(2), 11);
        assert_eq!([Rotation::padded(0), Rotation::padded(1), Rotation::padded(256)], [0, 256, 256]);
    }
}
