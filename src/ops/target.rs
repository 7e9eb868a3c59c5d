//! What a plan is made for, apart from layouts: alignments and the device's architecture.

use crate::device::Device;
use crate::error::{Error, ErrorKind, Result, counted};

/// What the address of a storage is known to be a multiple of: a power of two up to 256.
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
    /// Of what the driver allocates, and so of every [`DeviceBuffer`](crate::memory::DeviceBuffer):
    /// 256 bytes. See [`Memory::alloc`](crate::driver::Memory::alloc).
    pub const ALLOCATION: Self = Self(256);

    /// Of an address, or of a number of bytes.
    pub const fn of(address: u64) -> Self {
        // The lowest bit set of the two.
        let bits = address | Self::ALLOCATION.0;
        Self(bits & bits.wrapping_neg())
    }

    /// In bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// Whether elements of `width` bytes can lie there.
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
    /// That of a device.
    pub fn of(device: &Device) -> Self {
        Self { compute_capability: device.info().compute_capability }
    }
}
