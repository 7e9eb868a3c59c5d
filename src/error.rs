//! Errors as data: a kind to match on, and a sentence for the reader.

use std::convert::Infallible;
use std::fmt;

use crate::names::named;

#[doc(hidden)]
pub use warpstride_interp::error::{counted, is_hidden, printable, printable_line};

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

named! {
    /// A stable name for programs: `out_of_memory`.
    name;

    /// The kind of an error, for code that handles it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum ErrorKind {
        /// An argument that no device could accept: a shape, an axis, a stride, a length, a name.
        InvalidArgument = "invalid_argument",
        /// Shapes or layouts that do not fit together, or a size whose bytes overflow.
        Layout = "layout",
        /// Device or host memory is used up.
        OutOfMemory = "out_of_memory",
        /// The requested backend or device does not exist.
        Unavailable = "unavailable",
        /// The driver is too old to run this crate's PTX.
        DriverTooOld = "driver_too_old",
        /// PTX that does not parse, or an instruction that the software GPU does not support.
        UnsupportedPtx = "unsupported_ptx",
        /// A kernel stopped: an access out of bounds or misaligned, or a limit reached.
        KernelFault = "kernel_fault",
        /// A driver call failed in a way that no other kind describes.
        Driver = "driver",
        /// A handle that does not belong to this driver, or no longer does.
        InvalidHandle = "invalid_handle",
        /// Reading or writing a file failed.
        Io = "io",
        /// Another rank of a communicator ended, was aborted, or makes a call that does not fit.
        Peer = "peer",
        /// Other ranks did not do their part in time.
        Deadline = "deadline",
    }
}

/// An error: its [`ErrorKind`] and one sentence that names the operands and what to do next.
///
/// ```
/// use warpstride::{Backend, ErrorKind};
///
/// let error = "gpu".parse::<Backend>().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::InvalidArgument); // for code
/// assert_eq!(error.to_string(), "`gpu` does not name a device; use auto, cuda, cuda:N with N from 0, or soft");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    // Boxed so that `Result<(), Error>` stays two words on the launch path.
    inner: Box<Inner>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    context: String,
    /// The end of the sentence, where a caller may have done already what it advises.
    advice: Option<String>,
}

impl Error {
    /// An error of `kind`; `context` names the operands and what to do next.
    pub fn new(kind: ErrorKind, context: impl Into<String>) -> Self {
        Self { inner: Box::new(Inner { kind, context: context.into(), advice: None }) }
    }

    /// An error whose advice, what to do next, [`Error::what`] leaves out.
    pub(crate) fn advised(kind: ErrorKind, context: impl Into<String>, advice: impl Into<String>) -> Self {
        let mut error = Self::new(kind, context);
        error.inner.advice = Some(advice.into());
        error
    }

    /// Says what happened, and not what to do next where that is known apart.
    #[doc(hidden)]
    pub fn what(&self) -> &str {
        &self.inner.context
    }

    /// An error of shapes or layouts.
    pub(crate) fn layout(context: impl Into<String>) -> Self {
        Self::new(ErrorKind::Layout, context)
    }

    /// An error of an argument.
    pub(crate) fn argument(context: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, context)
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// Puts `what`, the action that failed, in front of the error's sentence.
    #[must_use]
    pub fn while_doing(mut self, what: impl fmt::Display) -> Self {
        self.inner.context = format!("{what}: {}", self.inner.context);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.context)?;
        self.inner.advice.as_ref().map_or(Ok(()), |advice| write!(f, "; {advice}"))
    }
}

impl std::error::Error for Error {}

/// A conversion that cannot fail has no error.
impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// The software GPU's errors are ours, with the same sentence.
impl From<warpstride_interp::Error> for Error {
    fn from(error: warpstride_interp::Error) -> Self {
        use warpstride_interp::ErrorKind as Of;

        let kind = match error.kind() {
            Of::OutOfMemory => ErrorKind::OutOfMemory,
            Of::UnsupportedPtx => ErrorKind::UnsupportedPtx,
            Of::KernelFault => ErrorKind::KernelFault,
            _ => ErrorKind::InvalidArgument,
        };
        Self::new(kind, error.to_string())
    }
}

#[cfg(feature = "interp")]
impl From<crate::interp::Stop> for Error {
    fn from(stop: crate::interp::Stop) -> Self {
        warpstride_interp::Error::from(stop).into()
    }
}

/// Ends a function with an error of a kind, in a sentence.
macro_rules! refuse {
    ($kind:ident, $($sentence:tt)+) => {
        return Err($crate::error::Error::new($crate::error::ErrorKind::$kind, format!($($sentence)+)))
    };
}
pub(crate) use refuse;

/// Does so where a condition does not hold.
macro_rules! require {
    ($condition:expr, $kind:ident, $($sentence:tt)+) => {
        if !$condition {
            $crate::error::refuse!($kind, $($sentence)+);
        }
    };
}
pub(crate) use require;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_word() {
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }

    #[test]
    fn attempts_stack_up_in_front() {
        let error = Error::new(ErrorKind::Io, "no such file").while_doing("opening a.npy");
        assert_eq!(error.to_string(), "opening a.npy: no such file");
        assert_eq!(error.kind(), ErrorKind::Io);
    }

    #[test]
    fn advice_ends_the_sentence_and_can_be_left_out() {
        let error =
            Error::advised(ErrorKind::Unavailable, "no driver; none at all", "install one").while_doing("opening");
        assert_eq!(error.to_string(), "opening: no driver; none at all; install one");
        assert_eq!(error.what(), "opening: no driver; none at all");
    }
}
