//! The alignments and the GPU that a plan is made for.

use crate::device::{Device, MeasuredPlans, Tuned, TunedWeights};
use crate::driver::DeviceInfo;
use crate::driver::DriverKind;
use crate::error::{Error, Result, counted};

/// A power of two, up to 256, that divides the address of a storage.
///
/// ```
/// use warpstride::ops::Align;
///
/// assert_eq!(Align::of(0x7f00_0000_1010), Align::of(16)); // of memory of others
/// assert_eq!(Align::of(0x7f00_0000_1000), Align::ALLOCATION); // as of ours
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Align(u64);

impl Align {
    /// The alignment of the driver's allocations, and so of every
    /// [`DeviceBuffer`](crate::memory::DeviceBuffer): 256 bytes. See
    /// [`Memory::alloc`](crate::driver::Memory::alloc).
    pub const ALLOCATION: Self = Self(256);

    /// Returns the alignment of an address or of a number of bytes.
    pub const fn of(address: u64) -> Self {
        // The lowest bit that is set in either.
        let bits = address | Self::ALLOCATION.0;
        Self(bits & bits.wrapping_neg())
    }

    /// Returns the alignment in bytes.
    pub(crate) const fn bytes(self) -> u64 {
        self.0
    }

    /// Returns the bytes from an allocation's start to an address that has no larger alignment.
    pub(crate) const fn lead(self) -> usize {
        (self.0 % Self::ALLOCATION.0) as usize
    }

    /// Checks that it suits elements of `width` bytes.
    #[inline]
    pub(super) fn check(self, which: &str, width: usize) -> Result<()> {
        if self.0 >= width as u64 { Ok(()) } else { Err(self.too_little(which, width)) }
    }

    #[cold]
    fn too_little(self, which: &str, width: usize) -> Error {
        Error::argument(format!(
            "the {which}'s storage is aligned to {} and its elements are of {width}; use a storage that is aligned \
                 to its elements",
            counted(self.0, "byte")
        ))
    }
}

/// The GPU that a plan is made for: what the choice of kernels depends on. Two GPUs with equal
/// figures get equal plans, unless plans were measured on one.
///
/// ```
/// use warpstride::ops::Target;
///
/// let mut target = Target::new((8, 9)); // such as an RTX 4090, by its data sheet
/// target.bandwidth_per_multiprocessor = 1_008_000_000_000 / 128;
/// target.l2_bytes = 72 << 20;
/// println!("{}", target.policy());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    /// Compute capability, major and minor.
    pub compute_capability: (u32, u32),
    /// Nominal bytes a second of device memory, divided by the number of multiprocessors; 0 if it
    /// is not known.
    pub bandwidth_per_multiprocessor: u64,
    /// Bytes of the L2 cache; 0 if it is not known.
    pub l2_bytes: u64,
    /// Number of multiprocessors; 0 if it is not known. Plans for the software GPU leave it at 0,
    /// so that they do not depend on the host.
    pub multiprocessors: u32,
    /// The figures that `bench --tune` found on the GPU. They are a value, not a handle, so that a
    /// target can be copied and compared, and a plan depends on nothing that may change.
    pub(super) tuned: Option<Tuned>,
    /// The weights of estimates that it found, by their place, which never changes.
    pub(in crate::ops) weights: Option<TunedWeights>,
    /// The plans that were measured on the GPU, by the number of their list.
    pub(in crate::ops) measured: MeasuredPlans,
}

impl Target {
    /// Returns a target of a compute capability whose other figures are not known. Thresholds that
    /// depend on those are an H100's.
    pub const fn new(compute_capability: (u32, u32)) -> Self {
        Self {
            compute_capability,
            bandwidth_per_multiprocessor: 0,
            l2_bytes: 0,
            multiprocessors: 0,
            tuned: None,
            weights: None,
            measured: MeasuredPlans::NONE,
        }
    }

    /// Returns the target of a device: its figures, what the user's tuning file has for it
    /// ([`Device::tuning_file`]), and the plans that were measured on it
    /// ([`PermutePlan::measure`](crate::ops::PermutePlan::measure)).
    #[inline]
    pub fn of(device: &Device) -> Self {
        let file = device.tuning_file();
        Self { measured: device.measured(), ..Self::of_info(device.info(), file.row(), file.weights()) }
    }

    /// Returns the target of a device that need not be open.
    #[doc(hidden)]
    #[inline]
    pub fn of_info(info: &DeviceInfo, tuned: Option<Tuned>, weights: Option<TunedWeights>) -> Self {
        let bandwidth = info.nominal_bandwidth.unwrap_or(0);
        Self {
            compute_capability: info.compute_capability,
            bandwidth_per_multiprocessor: bandwidth / u64::from(info.multiprocessors.max(1)),
            l2_bytes: info.l2_bytes,
            multiprocessors: if info.kind == DriverKind::Soft { 0 } else { info.multiprocessors },
            tuned,
            weights,
            measured: MeasuredPlans::NONE,
        }
    }
}
