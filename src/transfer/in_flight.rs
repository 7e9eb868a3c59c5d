//! Copies that own their host memory, and give it back when they have run.

use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit};

use super::host_slice::whole;
use super::{WaitAtEnd, queue};
use crate::context::Context;
use crate::driver::EventHandle;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::host::Lent;
use crate::layout::Layout;
use crate::memory::{PinnedBuffer, WriteCombined};
use crate::stream::Stream;
use crate::view::{View, ViewMut};

mod sealed {
    use super::{Kept, Parking};

    /// Keeps [`super::Lend`] to types whose elements stay where they are when a value moves.
    ///
    /// # Safety
    ///
    /// - `first` is aligned and valid for reads and writes of `count` initialised elements, as long
    ///   as the value lives, wherever it moves.
    pub unsafe trait Memory: Send + Sized + 'static {
        type Item;

        fn first(&mut self) -> *mut Self::Item;

        fn count(&self) -> usize;

        /// Keeps what must outlast the copy.
        fn park(kept: Kept<Self>, parking: Parking<'_>);
    }
}

/// Host memory that a copy can own while it reads it: [`PinnedBuffer`], [`WriteCombined`], `Vec`
/// and boxed slices.
pub trait Lend: sealed::Memory<Item = Self::Element> {
    /// The type of the elements.
    type Element: Element;
}

/// Host memory that a copy can own while it writes it: [`PinnedBuffer`], `Vec` and boxed slices.
pub trait LendMut: Lend {}

/// A value whose memory a copy uses through a pointer. No reference into it is made, moved or
/// claimed meanwhile: `MaybeUninit` claims nothing about what it holds.
pub struct Kept<H>(MaybeUninit<H>);

impl<H> Kept<H> {
    fn new(host: H) -> Self {
        Self(MaybeUninit::new(host))
    }

    fn into_inner(self) -> H {
        let this = ManuallyDrop::new(self);
        // SAFETY: `new` made the value, and `this` is never dropped, so it is read once.
        unsafe { this.0.assume_init_read() }
    }
}

impl<H> Drop for Kept<H> {
    fn drop(&mut self) {
        // SAFETY: `new` made the value, and `into_inner` takes it out of what is never dropped.
        unsafe { self.0.assume_init_drop() };
    }
}

/// A copy that is queued and owns its host memory.
///
/// [`InFlight::wait`] gives the memory back. A value that is dropped before keeps the memory until
/// the copy has run: nothing waits, and nothing is freed too early. A value that is leaked leaks
/// the memory, which stays valid.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::{Backend, Device, ops};
///
/// let device = Device::open(Backend::Soft)?;
/// let stream = device.stream()?;
/// let mut frames = device.alloc_array::<f32>(&[2, 3])?;
/// let mut host = device.pinned_from(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// for _ in 0..3 {
///     let upload = stream.upload(host, &mut frames)?;
///     // The program goes on while the copy runs.
///     let doubled = ops::scale(2.0, &frames)?;
///     host = stream.download(&doubled, upload.wait()?)?.wait()?;
/// }
/// assert_eq!(host[..], [8.0, 16.0, 24.0, 32.0, 40.0, 48.0]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
#[must_use = "the copy may be in flight until `wait` returns"]
pub struct InFlight<H: Lend> {
    /// `None` once it was given back.
    host: Option<Kept<H>>,
    stream: Stream,
    /// An event behind the copy; `None` once the copy is known to have run.
    event: Option<EventHandle>,
}

/// A failed copy, with the host memory that it owned.
///
/// `?` turns it into an [`Error`], and drops the memory.
pub struct CopyError<H> {
    error: Error,
    host: H,
}

impl Stream {
    /// Queues a copy from host memory, which the copy owns until it has run, to the device.
    ///
    /// The host memory has the view's number of elements, in C order. The copy returns at once
    /// where it is page-locked. A `Vec` or a box goes through page-locked memory while the host
    /// waits, as in a [scope](Stream::scope).
    ///
    /// # Errors
    ///
    /// As [`Scope::upload`](super::Scope::upload), with the host memory.
    pub fn upload<'d, H: Lend>(
        &self,
        host: H,
        dst: impl Into<ViewMut<'d, H::Element>>,
    ) -> Result<InFlight<H>, CopyError<H>> {
        let dst = dst.into();
        // SAFETY: `fly` promises the memory until the stream is synchronised past the copy.
        InFlight::fly(self, host, dst.shape(), |first, layout| unsafe {
            queue::upload(self, (first.cast_const(), layout), &dst)
        })
    }

    /// Queues a copy from the device to host memory, which the copy owns until it has run.
    ///
    /// # Errors
    ///
    /// As [`Scope::upload`](super::Scope::upload), with the host memory.
    ///
    /// Nothing can read the memory before it is given back:
    ///
    /// ```compile_fail,E0382
    /// # use warpstride::{DeviceArray, PinnedBuffer, Stream};
    /// # fn attack(stream: &Stream, array: &DeviceArray<f32>, host: PinnedBuffer<f32>) -> warpstride::Result<()> {
    /// let copy = stream.download(array, host)?;
    /// println!("{}", host[0]); // the copy owns `host`
    /// copy.wait()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn download<'d, H: LendMut>(
        &self,
        src: impl Into<View<'d, H::Element>>,
        host: H,
    ) -> Result<InFlight<H>, CopyError<H>> {
        let src = src.into();
        // SAFETY: as in `upload`; any pattern of bytes is an element, and a layout in C order does
        // not overlap itself.
        InFlight::fly(self, host, src.shape(), |first, layout| unsafe { queue::download(self, &src, (first, layout)) })
    }
}

impl<H: Lend> InFlight<H> {
    /// Queues a copy of host memory in C order by `queue`.
    ///
    /// The memory that `queue` gets is valid for reads and writes, and no other code uses it, until
    /// the stream is synchronised past the copy, or an event behind the copy has been passed.
    fn fly(
        stream: &Stream,
        host: H,
        shape: &[usize],
        queue: impl FnOnce(*mut H::Element, Layout) -> Result<()>,
    ) -> Result<Self, CopyError<H>> {
        let context = stream.context();
        context.reap();
        let prepared = whole(shape, host.count()).and_then(|layout| {
            let event = if layout.is_empty() { None } else { Some(context.ordering_event()?) };
            Ok((layout, event))
        });
        let (layout, event) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Err(CopyError { error, host }),
        };
        let mut host = Kept::new(host);
        // SAFETY: `Kept::new` made the value. The borrow ends before the copy is queued.
        let first = unsafe { host.0.assume_init_mut() }.first();
        // Until an event is behind the copy, only the stream can be waited for. This is dropped
        // before the memory, also if the driver panics.
        let wait = WaitAtEnd(stream);
        let recorded = queue(first, layout).and_then(|()| {
            // SAFETY: the event is live until the context destroys it, and of the stream's driver.
            event.map_or(Ok(()), |event| unsafe { context.driver().event_record(event, stream.handle()) })
        });
        match recorded {
            Ok(()) => {
                std::mem::forget(wait);
                Ok(Self { host: Some(host), stream: stream.clone(), event })
            }
            Err(error) => {
                drop(wait);
                event.into_iter().for_each(|event| context.retire(event));
                Err(CopyError { error, host: host.into_inner() })
            }
        }
    }

    /// Waits until the copy has run, and gives the host memory back.
    ///
    /// # Errors
    ///
    /// The failure of the copy or of earlier work on the device, with the host memory.
    pub fn wait(mut self) -> Result<H, CopyError<H>> {
        let waited = match self.event {
            // SAFETY: the event is live as long as it is in `self`.
            Some(event) => unsafe { self.stream.context().driver().event_synchronize(event) },
            None => Ok(()),
        };
        if waited.is_err() {
            // An event that fails says nothing about the copy. No copy touches host memory after
            // the wait for its stream, even if that fails too.
            let _ = self.stream.synchronize();
        }
        self.land();
        let host = self.host.take().expect("only `wait` takes it, and consumes the value").into_inner();
        match waited {
            Ok(()) => Ok(host),
            Err(error) => Err(CopyError { error, host }),
        }
    }

    /// Returns whether the copy has run; then [`InFlight::wait`] returns at once. Nothing waits. On
    /// the software GPU an answer of no runs one piece of work.
    ///
    /// # Errors
    ///
    /// The failure of the copy or of earlier work on the device.
    pub fn is_done(&mut self) -> Result<bool> {
        let Some(event) = self.event else { return Ok(true) };
        // SAFETY: the event is live as long as it is in `self`.
        let passed = unsafe { self.stream.context().driver().event_query(event) }?;
        if passed {
            self.land();
        }
        Ok(passed)
    }

    /// Notes that no copy uses the memory any more.
    fn land(&mut self) {
        if let Some(event) = self.event.take() {
            self.stream.context().retire(event);
        }
    }
}

impl<H: Lend> Drop for InFlight<H> {
    fn drop(&mut self) {
        let context = self.stream.context();
        let (Some(event), Some(host)) = (self.event.take(), self.host.take()) else { return };
        H::park(host, Parking { context, event });
    }
}

/// Keeps the memory of a dropped copy until the event behind the copy has been passed.
pub struct Parking<'c> {
    context: &'c Context,
    event: EventHandle,
}

impl Parking<'_> {
    fn keep(self, lent: Option<Lent>) {
        match lent {
            Some(lent) => self.context.park(self.event, lent),
            None => self.context.retire(self.event),
        }
    }
}

impl<H: Lend> fmt::Debug for InFlight<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The host memory is the copy's alone.
        f.debug_struct("InFlight").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl<H> CopyError<H> {
    /// Returns what failed.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// Gives the host memory back. After a failed download it holds any values.
    pub fn into_host(self) -> H {
        self.host
    }
}

impl<H> From<CopyError<H>> for Error {
    fn from(failed: CopyError<H>) -> Self {
        failed.error
    }
}

impl<H> fmt::Display for CopyError<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<H> fmt::Debug for CopyError<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CopyError").field(&self.error).finish()
    }
}

impl<H> std::error::Error for CopyError<H> {}

/// Implements [`Lend`] for a type of host memory.
macro_rules! lend {
    ($memory:ident<T>, $first:expr, $lent:expr) => {
        // SAFETY: the elements lie in an allocation of the value's own, of which a move of the
        // value moves nothing.
        unsafe impl<T: Element> sealed::Memory for $memory<T> {
            type Item = T;

            fn first(&mut self) -> *mut T {
                let first: fn(&mut Self) -> *mut T = $first;
                first(self)
            }

            fn count(&self) -> usize {
                self.len()
            }

            fn park(kept: Kept<Self>, parking: Parking<'_>) {
                let lent: fn(Kept<Self>) -> Option<Lent> = $lent;
                parking.keep(lent(kept));
            }
        }

        impl<T: Element> Lend for $memory<T> {
            type Element = T;
        }
    };
}

/// The first elements of a pinned buffer, which a copy owns whole.
#[cfg(feature = "pipeline")]
pub(crate) struct PinnedPart<T: Element> {
    buffer: PinnedBuffer<T>,
    len: usize,
}

#[cfg(feature = "pipeline")]
impl<T: Element> PinnedPart<T> {
    /// Takes the first `len` elements, or all if there are fewer.
    pub(crate) fn new(buffer: PinnedBuffer<T>, len: usize) -> Self {
        Self { len: len.min(buffer.len()), buffer }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn into_buffer(self) -> PinnedBuffer<T> {
        self.buffer
    }
}

/// A box of elements.
type Boxed<T> = Box<[T]>;

lend!(PinnedBuffer<T>, |host| host.as_ptr_in_flight(), |kept| kept.into_inner().into_lent());
lend!(WriteCombined<T>, |host| host.as_ptr_in_flight(), |kept| kept.into_inner().into_lent());
#[cfg(feature = "pipeline")]
lend!(PinnedPart<T>, |host| host.buffer.as_ptr_in_flight(), |kept| kept.into_inner().buffer.into_lent());
lend!(Vec<T>, |host| host.as_mut_ptr(), |kept| Some(Lent::Owner(Box::new(kept))));
lend!(Boxed<T>, |host| host.as_mut_ptr(), |kept| Some(Lent::Owner(Box::new(kept))));

impl<T: Element> LendMut for PinnedBuffer<T> {}
#[cfg(feature = "pipeline")]
impl<T: Element> LendMut for PinnedPart<T> {}
impl<T: Element> LendMut for Vec<T> {}
impl<T: Element> LendMut for Boxed<T> {}
