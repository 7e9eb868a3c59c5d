//! Copies of borrowed host memory, which end with a scope.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use super::registered::{PIECE, Pieces, Registered};
use super::{HostSlice, HostSliceMut, WaitAtEnd, queue};
use crate::element::Element;
use crate::error::Result;
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// A scope of copies between the device and borrowed host memory. [`Stream::scope`] makes it.
///
/// Host memory is borrowed for `'scope`, so nothing reads what a copy writes, or writes what a copy
/// reads, before the scope has waited. `'env` is the lifetime of what the closure borrows from
/// outside. Device memory is borrowed for the call only: its uses are ordered by its type.
pub struct Scope<'scope, 'env: 'scope> {
    stream: &'scope Stream,
    pieces: &'scope Pieces<'scope>,
    /// Invariant, as `std::thread::Scope` is: `'scope` must not shrink to a part of the closure.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
    /// Neither `Send` nor `Sync`.
    here: PhantomData<*mut ()>,
}

impl Stream {
    /// Runs `f` with a scope of copies on this stream, and returns when all work queued on the
    /// stream has run.
    ///
    /// Copies return at once where the host memory is pinned, registered or write-combined. A copy
    /// of pageable memory goes through page-locked memory, and the host waits meanwhile. A large
    /// one of contiguous memory waits for the work that is queued on the stream, and has run when
    /// the call returns.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` while the stream is captured; else the error that `f` returns; else the
    /// first failure of the queued work, or of unlocking registered memory.
    ///
    /// # Panics
    ///
    /// Where `f` panics; the scope waits for its copies first.
    ///
    /// ```
    /// # #[cfg(feature = "interp")] {
    /// use warpstride::{Backend, Device, ops};
    ///
    /// let device = Device::open(Backend::Soft)?;
    /// let stream = device.stream()?;
    /// let image = device.pinned_from(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    /// let (mut input, mut planes) = (device.alloc_array(&[2, 3])?, device.alloc_array(&[3, 2])?);
    /// let mut result = device.pinned(6)?;
    /// stream.scope(|s| {
    ///     s.upload(&image, &mut input)?;
    ///     ops::transpose_into(&input, &mut planes, None, s.stream())?;
    ///     s.download(&planes, &mut result) // nothing can read `result` in here
    /// })?;
    /// assert_eq!(result[..], [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    /// # }
    /// # Ok::<(), warpstride::Error>(())
    /// ```
    ///
    /// The memory that a copy writes cannot be read before the scope has ended:
    ///
    /// ```compile_fail,E0502
    /// # use warpstride::{DeviceArray, Stream};
    /// # fn attack(stream: &Stream, array: &DeviceArray<f32>) -> warpstride::Result<()> {
    /// let mut result = vec![0.0_f32; 6];
    /// stream.scope(|s| {
    ///     s.download(array, &mut result)?;
    ///     println!("{}", result[0]); // the copy may not have run
    ///     Ok(())
    /// })
    /// # }
    /// ```
    pub fn scope<'env, F, R>(&self, f: F) -> Result<R>
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<R>,
    {
        self.check_not_capturing("a scope of copies")?;
        let pieces = Pieces::new(self.context().driver().as_ref(), PIECE);
        let scope = Scope { stream: self, pieces: &pieces, scope: PhantomData, env: PhantomData, here: PhantomData };
        // Dropped before the pieces: no copy runs when they are unlocked.
        let wait = WaitAtEnd(self);
        let outcome = f(&scope);
        std::mem::forget(wait);
        let waited = self.synchronize();
        let unlocked = pieces.unlock();
        let value = outcome?;
        waited.and(unlocked).map(|()| value)
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Returns the stream of the scope, to queue operations between its copies.
    pub fn stream(&self) -> &'scope Stream {
        self.stream
    }

    /// Queues a copy from host memory, which stays borrowed until the scope has ended, to the
    /// device.
    ///
    /// The host memory is a slice with the view's number of elements in C order, or a
    /// [`HostSlice::with_layout`] of the view's shape. Device memory under a layout of its own goes
    /// by boxes of rows, in one call of the driver where possible.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the numbers of elements differ, or if the view is on another device;
    /// `Layout` if the shapes differ, or if the elements lie in too many rows for copies; else the
    /// error of the driver call.
    pub fn upload<'d, T: Element>(
        &'scope self,
        host: impl Into<HostSlice<'scope, T>>,
        dst: impl Into<ViewMut<'d, T>>,
    ) -> Result<()> {
        let dst = dst.into();
        let host = host.into().parts(dst.shape())?;
        // SAFETY: the slice is borrowed for 'scope, and so are its elements, which have no interior
        // mutability. 'scope ends after `Stream::scope` has synchronised the stream, also if its
        // closure returns an error or panics: the closure holds for every 'scope, and the scope is
        // invariant, so the borrow cannot end within it.
        unsafe { queue::upload(self.stream, host, &dst) }
    }

    /// Queues a copy from the device to host memory, which stays borrowed until the scope has
    /// ended.
    ///
    /// # Errors
    ///
    /// As [`Scope::upload`].
    pub fn download<'d, T: Element>(
        &'scope self,
        src: impl Into<View<'d, T>>,
        host: impl Into<HostSliceMut<'scope, T>>,
    ) -> Result<()> {
        let src = src.into();
        let host = host.into().parts(src.shape())?;
        // SAFETY: the slice is borrowed exclusively for 'scope, as in `upload`; any pattern of
        // bytes is an element, and layouts of mutable slices do not overlap themselves.
        unsafe { queue::download(self.stream, &src, host) }
    }

    /// Page-locks host memory that exists until the end of the scope, so that copies use it
    /// directly.
    ///
    /// This pays where the memory takes part in several copies: locking costs about as much as a
    /// few copies, and it can wait for the device.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a part of the memory is page-locked already; `OutOfMemory` if the
    /// system locks no more.
    ///
    /// ```
    /// # #[cfg(feature = "interp")] {
    /// use warpstride::{Backend, Device};
    ///
    /// let device = Device::open(Backend::Soft)?;
    /// let mut image = device.alloc_array::<u16>(&[2, 500])?;
    /// let mut pixels: Vec<u16> = (0..1000).collect();
    /// device.default_stream().scope(|s| {
    ///     let (upper, lower) = s.register(&mut pixels)?.into_slice().split_at_mut(500);
    ///     let (first, second) = image.view_mut().split_at(0, 1)?;
    ///     s.upload(&*upper, first)?;
    ///     s.upload(&*lower, second)
    /// })?;
    /// assert_eq!(image.to_vec()?, pixels);
    /// # }
    /// # Ok::<(), warpstride::Error>(())
    /// ```
    pub fn register<T: Element>(&'scope self, host: &'scope mut [T]) -> Result<Registered<'scope, T>> {
        let memory = NonNull::from(&mut *host).cast();
        // SAFETY: the slice is borrowed for 'scope, and the scope unlocks its pieces before 'scope
        // ends, also on a panic.
        unsafe { self.pieces.lock(memory, size_of_val(host)) }?;
        Ok(Registered(host))
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("stream", self.stream).finish_non_exhaustive()
    }
}
