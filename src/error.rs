//! What can go wrong, as data: a kind to match on and a sentence for the person who reads it.

use std::fmt;

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, for code that decides by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument that no device could honour: a shape, an axis, a stride, a length, a name.
    InvalidArgument,
    /// Shapes or layouts that do not go together, or a size whose bytes overflow.
    Layout,
    /// Device or host memory is used up.
    OutOfMemory,
    /// The backend or device asked for is not there.
    Unavailable,
    /// The driver cannot run our PTX.
    DriverTooOld,
    /// PTX that does not parse, or an instruction that the software GPU does not have.
    UnsupportedPtx,
    /// A kernel stopped: out of bounds, misaligned, a limit reached.
    KernelFault,
    /// A driver call failed in a way none of the other kinds describes.
    Driver,
    /// A handle that is not, or no longer, one of this driver's.
    InvalidHandle,
    /// Reading or writing a file.
    Io,
}

/// An error: its [`ErrorKind`] and one sentence that names the operands and what to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    // Boxed so that `Result<(), Error>` stays two words on the launch path.
    inner: Box<Inner>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    context: String,
}

impl Error {
    /// An error of `kind`; `context` names the operands and what to do next.
    pub fn new(kind: ErrorKind, context: impl Into<String>) -> Self {
        Self { inner: Box::new(Inner { kind, context: context.into() }) }
    }

    /// What went wrong, to match on.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// The same error with `what` was being attempted in front of its sentence.
    #[must_use]
    pub fn while_doing(mut self, what: impl fmt::Display) -> Self {
        self.inner.context = format!("{what}: {}", self.inner.context);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.context)
    }
}

impl std::error::Error for Error {}

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
}
