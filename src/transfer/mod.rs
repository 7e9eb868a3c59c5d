//! Copies between host and device, and within the device, without `unsafe` and without a wait that
//! is not asked for.
//!
//! A copy that runs later needs its host memory until then. There are two safe ways to lend it:
//!
//! - A scope borrows it ([`Stream::scope`]): the closure queues copies and operations, and the
//!   scope ends when they have run. The compiler lets nothing read what a copy writes before that.
//! - A copy owns it ([`Stream::upload`], [`Stream::download`]): the value in flight,
//!   [`InFlight`], gives it back when the copy has run.
//!
//! Neither needs a destructor to run. `std::mem::forget` is safe, so a guard whose drop waits for
//! the copy would not be: the scope waits in a function that no program can leave early, and a
//! leaked value leaks its memory. The idea of scopes is `std::thread::scope`.
//!
//! Device memory is lent for the call only: its uses are ordered by the buffers
//! ([`crate::memory`]). [`Stream::copy`] copies within the device, by the copy engine.
//!
//! | host memory | how to get it | copies |
//! |---|---|---|
//! | pageable | `Vec`, slices | the host waits; large contiguous ones are near the speed of the link |
//! | pinned | [`Device::pinned`](crate::Device::pinned) | return at once and run at the speed of the link |
//! | registered | [`Scope::register`] | as pinned, for memory that exists |
//! | write-combined | [`Device::write_combined`](crate::Device::write_combined) | as pinned, uploads only |

mod boxes;
mod host_slice;
mod in_flight;
mod queue;
mod registered;
mod scope;

pub use host_slice::{HostSlice, HostSliceMut};
#[cfg(feature = "pipeline")]
pub(crate) use in_flight::PinnedPart;
pub use in_flight::{CopyError, InFlight, Lend, LendMut};
pub use registered::Registered;
pub use scope::Scope;

use crate::element::Element;
use crate::error::Result;
use crate::stream::Stream;
use crate::view::{View, ViewMut};

impl Stream {
    /// Queues a copy within the device by its copy engine, which needs no multiprocessor.
    ///
    /// The elements of both views must lie in rows, as parts of arrays do.
    /// [`ops::copy_into`](crate::ops::copy_into) copies between any two layouts by a kernel.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a view is on another device; `Layout` if the shapes differ, or if the
    /// elements lie in too many rows for copies; else the error of the driver call.
    ///
    /// ```
    /// # #[cfg(feature = "interp")] {
    /// use warpstride::{Backend, Device};
    ///
    /// let device = Device::open(Backend::Soft)?;
    /// let matrix = device.array(&[2, 3], &[1, 2, 3, 4, 5, 6])?;
    /// let mut part = device.alloc_array::<i32>(&[2, 2])?;
    /// device.default_stream().copy(matrix.slice(1, 1.., 1)?, &mut part)?;
    /// assert_eq!(part.to_vec()?, [2, 3, 5, 6]);
    /// # }
    /// # Ok::<(), warpstride::Error>(())
    /// ```
    pub fn copy<'s, 'd, T: Element>(&self, src: impl Into<View<'s, T>>, dst: impl Into<ViewMut<'d, T>>) -> Result<()> {
        queue::copy(self, &src.into(), &dst.into())
    }
}

/// Waits for the stream when dropped. No copy touches host memory from then on, even if the wait
/// fails.
struct WaitAtEnd<'s>(&'s Stream);

impl Drop for WaitAtEnd<'_> {
    fn drop(&mut self) {
        let _ = self.0.synchronize();
    }
}
