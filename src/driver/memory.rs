//! The part of a driver for device and host memory, and the copies between them.

use std::ptr::NonNull;

use super::StreamHandle;
#[cfg(any(feature = "cuda", feature = "interp"))]
use crate::error::Error;
use crate::error::Result;

/// How the host's caches treat page-locked memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostKind {
    /// Cached as all memory: the host reads and writes it fast.
    Cached,
    /// Written past the caches, through buffers that combine writes. The host must not read it,
    /// which is slower by orders of magnitude.
    WriteCombined,
}

/// The place where a side of a [`Copy3d`] begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// An address of the device.
    Device(u64),
    /// An address of the host. The target of a copy is written, the source only read.
    Host(*mut u8),
}

/// A side of a [`Copy3d`]: its first byte, and the bytes from one row and from one slice to the
/// next. A pitch may be of any size, as long as no two rows of a target share a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pitched {
    /// The first byte of the first row.
    pub place: Place,
    /// Bytes from the start of a row to the start of the next in the same slice.
    pub row_pitch: usize,
    /// Bytes from the start of a slice to the start of the next.
    pub slice_pitch: usize,
}

/// A copy of a box of bytes: `depth` slices of `height` rows of `width` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copy3d {
    /// The side that is written.
    pub dst: Pitched,
    /// The side that is read.
    pub src: Pitched,
    /// Bytes of a row.
    pub width: usize,
    /// Rows of a slice.
    pub height: usize,
    /// Slices.
    pub depth: usize,
}

impl Copy3d {
    /// Returns whether there is nothing to copy.
    pub(super) fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }

    /// Returns the number of bytes from the first to the last of a side, whose box is not empty.
    pub(super) fn span(&self, side: &Pitched) -> usize {
        (self.depth - 1) * side.slice_pitch + (self.height - 1) * side.row_pitch + self.width
    }

    /// Returns the side of the host and its first byte; `None` if both sides are the device's.
    pub(super) fn host(&self) -> Option<(*mut u8, &Pitched)> {
        [&self.dst, &self.src].into_iter().find_map(|side| match side.place {
            Place::Host(memory) => Some((memory, side)),
            Place::Device(_) => None,
        })
    }

    /// Returns one of its slices as a copy.
    #[cfg(feature = "cuda")]
    pub(super) fn slice(&self, slice: usize) -> Self {
        let at = |side: &Pitched| Pitched { place: side.row(slice, 0), ..*side };
        Self { dst: at(&self.dst), src: at(&self.src), depth: 1, ..*self }
    }

    /// Returns the starts of each row on both sides: the target's, then the source's.
    #[cfg(any(feature = "cuda", feature = "interp"))]
    pub(super) fn rows(&self) -> impl Iterator<Item = [Place; 2]> + use<> {
        let Self { dst, src, height, depth, .. } = *self;
        (0..depth).flat_map(move |slice| (0..height).map(move |row| [dst.row(slice, row), src.row(slice, row)]))
    }
}

impl Place {
    /// Returns the place some bytes later.
    pub(crate) fn offset(self, bytes: usize) -> Self {
        match self {
            Self::Device(address) => Self::Device(address + bytes as u64),
            Self::Host(memory) => Self::Host(memory.wrapping_add(bytes)),
        }
    }
}

#[cfg(any(feature = "cuda", feature = "interp"))]
impl Pitched {
    /// Returns the start of a row.
    pub(super) fn row(&self, slice: usize, row: usize) -> Place {
        self.place.offset(slice * self.slice_pitch + row * self.row_pitch)
    }
}

/// The part of a [`Driver`](super::Driver) that allocates, frees, copies and fills. Copies and
/// fills of 0 bytes do nothing, whatever their addresses.
///
/// # Errors
///
/// The errors that [`Driver`](super::Driver) lists for all methods.
///
/// # Safety
///
/// An implementation promises, to callers that keep their side of the contract:
///
/// - A copy or fill that ran, as a successful wait shows, has written all its bytes, and none
///   beyond.
/// - An allocation stays valid until it is freed, holds the requested number of bytes, and shares
///   none with another. Device memory is aligned to 256 bytes; host memory is initialised, and
///   aligned as its method says.
/// - A release lets queued work that uses the memory run first, as its method says.
pub unsafe trait Memory: Send + Sync {
    /// Returns the free and total bytes of device memory.
    fn memory(&self) -> Result<(u64, u64)>;

    /// Resets the persisting lines of the L2 cache for the whole context, other libraries'
    /// included. It acts at once, not in stream order: queued work that asks for such lines makes
    /// them again. Without a reset they outlast gigabytes of traffic. Does nothing on a device
    /// without such lines or without a way to reset them.
    fn reset_persisting_l2(&self) -> Result<()>;

    /// Allocates `bytes` of device memory, aligned to 256 bytes, with unspecified contents. `bytes`
    /// is at least 1.
    fn alloc(&self, bytes: u64) -> Result<u64>;

    /// Frees an allocation; work already queued that uses it runs first. On CUDA this waits for all
    /// work of the device's primary context, including other libraries', and must not happen while
    /// other code captures a stream of that context into a graph. While this crate captures one,
    /// the memory may be freed later, when the last capture ends.
    ///
    /// # Safety
    ///
    /// - [`Memory::alloc`] of this driver returned `address`, which has not been freed since.
    /// - No work queued from now on uses the allocation.
    unsafe fn free(&self, address: u64) -> Result<()>;

    /// Returns whether the device has a pool that allocates and frees in the order of a stream.
    /// Without one, [`Memory::pool_alloc`] is an error of kind `Unavailable`.
    fn has_pool(&self) -> bool;

    /// Allocates `bytes` of device memory from the driver's pool, aligned to 256 bytes, with
    /// unspecified contents. `bytes` is at least 1. Work that is queued on `stream` from now on may
    /// use it, and work on other streams that waits for such work or for an event recorded there.
    /// The pool is this driver's alone, and keeps freed memory until it is trimmed.
    ///
    /// # Safety
    ///
    /// - `stream` is live, and not being captured.
    unsafe fn pool_alloc(&self, bytes: u64, stream: StreamHandle) -> Result<u64>;

    /// Queues that an allocation goes back to the pool: it does once the work queued on `stream`
    /// before has run. The host does not wait.
    ///
    /// # Safety
    ///
    /// - [`Memory::pool_alloc`] of this driver returned `address`, which has not been freed since.
    /// - `stream` is live, and not being captured.
    /// - All work that uses the allocation has run, or is queued on `stream`, or `stream` waits for
    ///   it.
    unsafe fn pool_free(&self, address: u64, stream: StreamHandle) -> Result<()>;

    /// Gives back to the device what the pool holds and nothing uses, until the pool holds `keep`
    /// bytes. Memory whose free is still queued stays. Does nothing without a pool.
    fn pool_trim(&self, keep: u64) -> Result<()>;

    /// Allocates `bytes` of zeroed, page-locked host memory, aligned to at least 64 bytes. `bytes`
    /// is at least 1.
    fn alloc_host(&self, bytes: usize, kind: HostKind) -> Result<NonNull<u8>>;

    /// Frees page-locked host memory; work already queued that uses it runs first. It waits as
    /// [`Memory::free`] does.
    ///
    /// # Safety
    ///
    /// - [`Memory::alloc_host`] of this driver returned `memory`, which has not been freed since.
    /// - Nothing uses the memory from now on.
    unsafe fn free_host(&self, memory: NonNull<u8>) -> Result<()>;

    /// Page-locks host memory that exists, so that copies use it directly. `bytes` is at least 1.
    /// An error of kind `InvalidArgument` if a part of it is page-locked already. A copy that goes
    /// on from registered memory into other memory can be refused;
    /// [`Device::driver`](crate::Device::driver) cuts it there.
    ///
    /// # Safety
    ///
    /// - `memory .. memory + bytes` lies within one live allocation of the host, and stays there
    ///   until it is unregistered.
    unsafe fn register_host(&self, memory: NonNull<u8>, bytes: usize) -> Result<()>;

    /// Ends the page-lock of host memory; work already queued that uses it runs first. It waits as
    /// [`Memory::free`] does, but never until later, because the memory is the caller's.
    ///
    /// # Safety
    ///
    /// - [`Memory::register_host`] of this driver locked memory that begins at `memory`, and it has
    ///   not been unregistered since.
    /// - No work queued from now on uses the memory as page-locked; and while this crate captures a
    ///   stream of the device, none that is queued does.
    unsafe fn unregister_host(&self, memory: NonNull<u8>) -> Result<()>;

    /// Queues a copy of `bytes` bytes from host to device. It may be queued as several pieces of
    /// work, of which a failure leaves the first ones queued.
    ///
    /// # Safety
    ///
    /// - `src` is valid for reads of `bytes` bytes, and no other code writes them, until `stream`
    ///   is synchronised past this copy, also if this returns an error.
    /// - `dst .. dst + bytes` lies within one live allocation.
    unsafe fn copy_h2d(&self, dst: u64, src: *const u8, bytes: usize, stream: StreamHandle) -> Result<()>;

    /// Queues a copy of `bytes` bytes from device to host. It may be queued as several pieces of
    /// work, of which a failure leaves the first ones queued.
    ///
    /// # Safety
    ///
    /// - `dst` is valid for writes of `bytes` bytes, and no other code reads or writes them, until
    ///   `stream` is synchronised past this copy, also if this returns an error.
    /// - `src .. src + bytes` lies within one live allocation.
    unsafe fn copy_d2h(&self, dst: *mut u8, src: u64, bytes: usize, stream: StreamHandle) -> Result<()>;

    /// Queues a copy of `bytes` bytes within the device.
    ///
    /// # Safety
    ///
    /// - Both ranges lie within live allocations, and they do not overlap.
    unsafe fn copy_d2d(&self, dst: u64, src: u64, bytes: u64, stream: StreamHandle) -> Result<()>;

    /// Queues a copy of a box of bytes in any direction that touches the device; an error of kind
    /// `InvalidArgument` if both sides are memory of the host. It may be queued as several pieces
    /// of work, of which a failure leaves the first ones queued.
    ///
    /// # Safety
    ///
    /// - Every row of a side of the device lies within one live allocation, the same for all.
    /// - Every row of a side of the host is valid, for reads or for writes, and no other code
    ///   writes it, or reads it while it is written, until `stream` is synchronised past this copy.
    /// - No row of the target shares a byte with another row of the target, or with the source.
    /// - `stream` is live.
    unsafe fn copy_3d(&self, copy: &Copy3d, stream: StreamHandle) -> Result<()>;

    /// Queues a fill of `bytes` bytes with `value`.
    ///
    /// # Safety
    ///
    /// - `dst .. dst + bytes` lies within one live allocation.
    unsafe fn fill(&self, dst: u64, value: u8, bytes: u64, stream: StreamHandle) -> Result<()>;
}

/// Returns the error for a copy that touches no memory of the device.
#[cfg(any(feature = "cuda", feature = "interp"))]
pub(super) fn within_the_host() -> Error {
    Error::argument(
        "both sides of the copy are memory of the host; copy between the host and the device, or within the device",
    )
}
