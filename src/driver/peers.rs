//! The part of a driver for the memory that GPUs of one host share.

use crate::error::Result;

/// The part of a [`Driver`](super::Driver) that lets other devices of the host use its memory.
///
/// # Errors
///
/// The errors that [`Driver`](super::Driver) lists for all methods.
///
/// # Safety
///
/// An implementation promises, to callers that keep their side of the contract:
///
/// - Devices of one kind on one host share an address space, so no two have an address in common.
/// - Once memory is shared, a kernel or a copy of the peer reads and writes the bytes that this
///   device has at the address.
pub unsafe trait Peers: Send + Sync {
    /// Returns whether kernels of the device of the same kind with this number can use memory of
    /// this one.
    fn can_share_with(&self, peer: u32) -> Result<bool>;

    /// Lets kernels and copies of the device of the same kind with this number use all memory of
    /// this one, what it has and what it allocates later, as long as both drivers live. It goes one
    /// way. Sharing again does nothing.
    ///
    /// An error of kind `Unavailable` if the two have no way to reach each other.
    fn share_with(&self, peer: u32) -> Result<()>;
}
