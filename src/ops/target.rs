//! The alignments and the architecture that a plan is made for.

use crate::device::Device;
use crate::error::{Error, ErrorKind, Result, counted};

/// A power of two, up to 256, that divides the address of a storage.
///
/// ```
/// use warpstride::ops::Align;
///
/// assert_eq!(Align::of(0x7f00_0000_1010).bytes(), 16); // of memory of others
/// assert_eq!(Align::ALLOCATION.bytes(), 256); // of ours
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
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// Whether it suits elements of `width` bytes.
    #[inline]
    pub(super) fn check(self, which: &str, width: usize) -> Result<()> {
        if self.0 >= width as u64 { Ok(()) } else { Err(self.too_little(which, width)) }
    }

    #[cold]
    fn too_little(self, which: &str, width: usize) -> Error {
        Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "the {which}'s storage is aligned to {} and its elements are of {width}; use a storage that is aligned \
                 to its elements",
                counted(self.0, "byte")
            ),
        )
    }
}

/// The architecture that a plan is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    /// Compute capability, major and minor.
    pub compute_capability: (u32, u32),
}

impl Target {
    /// Returns the target of a device.
    pub fn of(device: &Device) -> Self {
        Self { compute_capability: device.info().compute_capability }
    }
}
