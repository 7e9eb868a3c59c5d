//! Transposes and permutes of arrays that are larger than the memory of a device.
//!
//! The array is cut into tiles ([`permute`] says how), which go through a ring of slots: a tile is
//! read into page-locked memory, copied to the device, permuted there, copied back and written.
//! Different tiles do all of that at once. Files are read and written by several threads at
//! positions, straight into and out of the page-locked memory, and not through a mapping: that is
//! one copy less, and a truncated input or a full disk is an error and no signal.
//!
//! | source and destination | function | what bounds it |
//! |---|---|---|
//! | ordinary memory | [`permute`] | the link in both directions, or the host's own copies |
//! | page-locked memory, as [`Scope::register`](crate::transfer::Scope::register) makes it | [`permute`] | the link in both directions |
//! | `.npy` files | [`permute_file`] | the files |
//!
//! A result in a file is never half of one: it has another name until it is complete. An
//! interrupted run leaves what it has with a journal, and [`Options::resume`] goes on with it.

#![forbid(unsafe_code)]

mod direct;
mod file;
mod journal;
mod partial;
mod run;
mod runs;
mod storage;
mod tiling;

#[cfg(feature = "distributed")]
pub(crate) use runs::Runs;
#[cfg(feature = "distributed")]
pub(crate) use storage::{Source, Stored};

use std::fmt;
use std::num::NonZero;
use std::thread;

use self::run::Tiles;
use self::tiling::{Cut, Permute, Tiling};
use crate::device::Device;
use crate::driver::{DriverKind, available_memory};
use crate::element::Element;
use crate::error::{Result, counted, require};

pub use file::permute_file;
#[doc(hidden)]
pub use partial::unfinished;

/// Slots of a run: each has a tile on its way. One tile is read, one copied to the device, one
/// permuted or copied back, and one written, and the rest even out what takes longer at times.
pub(crate) const SLOTS: usize = 6;
/// Tiles that the host copies through page-locked slots: a square of floats has runs of 16 KiB. On
/// an H100's host such copies are faster than those of long pieces, which go through its caches
/// (`benches/record`).
const STAGED: Cut = Cut { most_bytes: 64 << 20, lean: 1 };
/// Tiles from file to file: many file systems take one write of a file at a time, and reads at
/// once, so the runs of the result are longer. A square of floats has runs of 4 KiB, a page, and of
/// 64 KiB. In a memory file system that is faster than a ratio of 4, and larger tiles are not
/// faster (`benches/record`).
const FILES: Cut = Cut { most_bytes: 64 << 20, lean: 16 };
/// Tiles that copy engines fetch and bring in rows, which takes no page-locked memory besides the
/// arrays.
const DIRECT: Cut = Cut { most_bytes: 256 << 20, lean: 1 };
/// Most device memory that a run takes unless it is given more: tiles are not larger with more.
const ENOUGH: u64 = 4 << 30;
/// Device memory that a run takes at least, where it is not given less.
const LITTLE: u64 = 64 << 20;

/// How a permute of an array larger than the device is done.
///
/// ```
/// use warpstride::out_of_core::Options;
///
/// let options = Options { device_memory: Some(1 << 30), ..Options::default() };
/// assert!(!options.resume);
/// ```
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// The most bytes of device memory that buffers may take; `None` chooses from what is free. The
    /// run page-locks the same number of bytes of host memory, unless the array is page-locked.
    pub device_memory: Option<usize>,
    /// The number of threads that read, and of those that write; `None` for half of the host's.
    pub threads: Option<NonZero<usize>>,
    /// True if [`permute_file`] goes on with the result of an interrupted run, if there is one.
    pub resume: bool,
    /// Called with the number of further bytes of the result that are done, on any thread. The
    /// first call of [`permute_file`] has those that an interrupted run had done.
    pub progress: Option<&'a (dyn Fn(u64) + Sync)>,
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("device_memory", &self.device_memory)
            .field("threads", &self.threads)
            .field("resume", &self.resume)
            .finish_non_exhaustive()
    }
}

/// The work that a run has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// The most bytes of device memory that buffers could take.
    pub device_memory: usize,
    /// The number of tiles of the array.
    pub tiles: u64,
    /// Tiles that an interrupted run had done before.
    pub resumed_tiles: u64,
    /// The kernel that permuted tiles; `None` if there are none.
    pub kernel: Option<&'static str>,
}

/// Writes the elements of `source`, an array of `shape` in C order, to `destination` with their
/// axes in the order `axes`, through a device that need not have room for the array. Returns when
/// all of it is done.
///
/// A tile is a box of the array whose elements lie in runs that are about equally long in the
/// source and in the destination, some tens of KiB for a matrix. Where source and destination are
/// page-locked, the device's copy engines copy tiles from and to them in rows, if one call takes a
/// tile; else several threads copy them through page-locked slots.
///
/// # Errors
///
/// `InvalidArgument` if `axes` does not name each axis once, if a slice has another number of
/// elements than `shape`, or if the device memory suffices for no slots of one element; `Layout` if
/// the shape has more elements than can be counted; `OutOfMemory` if device or host have no room
/// for the slots; else the driver's error. The destination is then unspecified.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::out_of_core::{self, Options};
/// use warpstride::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let matrix: Vec<u32> = (0..300 * 500).collect();
/// let mut transposed = vec![0; matrix.len()];
/// // The matrix has 600 kB.
/// let options = Options { device_memory: Some(100_000), ..Options::default() };
/// let done = out_of_core::permute(&device, &matrix, &[300, 500], &[1, 0], &mut transposed, options)?;
/// assert!(done.tiles > 6 && transposed[1] == 500 && transposed[300] == 1);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub fn permute<T: Element>(
    device: &Device,
    source: &[T],
    shape: &[usize],
    axes: &[usize],
    destination: &mut [T],
    options: Options<'_>,
) -> Result<Summary> {
    let permute = Permute::new(shape, axes, false)?;
    for (which, len) in [("source", source.len()), ("destination", destination.len())] {
        require!(
            len == permute.len(),
            InvalidArgument,
            "the {which} has {} and an array of shape {shape:?} has {}; give slices of the array",
            counted(len, "element"),
            permute.len()
        );
    }
    let device_memory = options.budget(device)?;
    let cut = |most| Tiling::new(permute.clone(), size_of::<T>(), SLOTS, device_memory, most);
    let is_locked = device.is_page_locked(source) && device.is_page_locked(destination);
    let direct = if is_locked { Some(cut(DIRECT)?).filter(Tiling::has_boxes) } else { None };
    let is_direct = direct.is_some();
    let tiling = direct.map_or_else(|| cut(STAGED), Ok)?;
    let tiles = Tiles { device, tiling: &tiling, first: 0, options };
    if is_direct {
        tiles.direct(source, destination)?;
    } else {
        let progress = |_, bytes| {
            options.tell(bytes);
            Ok(())
        };
        tiles.staged(&source, &mut &mut *destination, progress)?;
    }
    tiles.summary::<T>(device_memory)
}

/// Copies all tiles of `source` to page-locked memory and such tiles to `destination`, both at once
/// and without the device: the part of [`permute`] that is the host's, to compare with.
///
/// # Errors
///
/// As [`permute`].
#[doc(hidden)]
pub fn host_copies<T: Element>(
    device: &Device,
    source: &[T],
    shape: &[usize],
    axes: &[usize],
    destination: &mut [T],
    options: Options<'_>,
) -> Result<()> {
    let permute = Permute::new(shape, axes, false)?;
    let tiling = Tiling::new(permute, size_of::<T>(), SLOTS, options.budget(device)?, STAGED)?;
    Tiles { device, tiling: &tiling, first: 0, options }.on_host(&source, &mut &mut *destination)
}

/// Parses a journal, for the fuzzer; the error says what is wrong.
#[doc(hidden)]
pub fn check_journal(bytes: &[u8]) -> Result<(), String> {
    journal::Journal::parse(bytes).map(drop)
}

impl Options<'_> {
    /// Returns the bytes of device memory that may be used.
    fn budget(&self, device: &Device) -> Result<usize> {
        if let Some(bytes) = self.device_memory {
            return Ok(bytes);
        }
        let (free, _) = device.driver().memory()?;
        // The slots take as much of the host, and the software GPU's memory is the host's too.
        let of_host = if device.info().kind == DriverKind::Soft { 8 } else { 4 };
        let host = available_memory().map_or(ENOUGH, |bytes| (bytes / of_host).max(LITTLE));
        Ok((free / 4 * 3).min(ENOUGH).min(host) as usize)
    }

    fn threads(&self) -> usize {
        let half = || thread::available_parallelism().map_or(1, NonZero::get).div_ceil(2);
        self.threads.map_or_else(half, NonZero::get)
    }

    fn tell(&self, bytes: u64) {
        if let Some(progress) = self.progress {
            progress(bytes);
        }
    }
}
