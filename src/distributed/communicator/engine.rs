//! The engine of a communicator: the way by which its messages travel.

use std::fmt;
use std::time::{Duration, Instant};

use crate::device::Device;
use crate::element::DType;
use crate::error::{Error, ErrorKind, refuse};
use crate::names::named;
use crate::stream::Stream;

/// Bytes of a rank's device memory that go to another rank or come from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// The other rank, which may be the same one.
    pub peer: usize,
    /// The address of the first byte.
    pub address: u64,
    /// The number of bytes.
    pub bytes: u64,
}

named! {
    /// The name of the reduction.
    name;

    /// How the elements of all ranks become one.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Combine {
        /// Their sum. Integers wrap.
        Sum = "sum",
        /// The least one.
        Min = "min",
        /// The greatest one.
        Max = "max",
    }
}

/// Memory of all ranks that kernels of each rank can write. It lives as long as the engines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The addresses of the ranks' memory, as the device of this rank has them. Each is aligned to
    /// 256 bytes.
    pub addresses: Vec<u64>,
    /// The bytes at each address.
    pub bytes: u64,
}

/// A reduction over all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reduce {
    /// The address of this rank's elements.
    pub from: u64,
    /// The address of the result, where this rank gets it.
    pub to: u64,
    /// The number of elements.
    pub len: u64,
    /// Their type.
    pub dtype: DType,
    /// How they become one.
    pub combine: Combine,
    /// The rank that gets the result; `None` if all ranks do.
    pub root: Option<usize>,
}

/// The moment at which an operation has to have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    end: Instant,
    given: Duration,
}

/// Longer deadlines end so far ahead.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

impl Deadline {
    /// Begins now.
    pub fn after(given: Duration) -> Self {
        Self { end: Instant::now() + given.min(LONGEST), given }
    }

    /// Returns the time that was given.
    pub fn given(&self) -> Duration {
        self.given
    }

    /// Returns the time that is left; zero once it has passed.
    pub fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Returns whether it has passed.
    pub fn has_passed(&self) -> bool {
        self.left().is_zero()
    }

    /// Returns the error of an operation that did not end in time.
    pub fn error(&self, what: impl fmt::Display) -> Error {
        let context = format!(
            "{what} did not end within {:?}, so the communicator is aborted; look for the rank that did not make the same call, \
             or give a longer deadline",
            self.given
        );
        Error::new(ErrorKind::Deadline, context)
    }
}

/// The way by which the messages of one rank travel: through memory that GPUs share, by NCCL, or
/// your own way.
///
/// Each method that queues work may wait on the host until its peers have made the call that
/// belongs to it, but not beyond the deadline. A failure aborts the engine, and from then on each
/// call is an error.
///
/// # Safety
///
/// An implementation promises, to callers that keep their side of the contract:
///
/// - [`Engine::device`] returns the same device each time.
/// - The memory of a [`Window`] is that of no other allocation, and stays until the work of all
///   ranks on it has ended.
/// - Work behind an [`Engine::meet`] runs as that says.
/// - It reads and writes the bytes of the operands alone, as work of the stream: after all that was
///   queued there before the call, and before all that is queued there afterwards. This also holds
///   after an error, unless [`Engine::may_still_run`] returns true then.
pub unsafe trait Engine: fmt::Debug + Send + Sync {
    /// Returns the device whose memory and streams the operands are of.
    fn device(&self) -> &Device;

    /// Returns the number of this rank.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn ranks(&self) -> usize;

    /// Queues messages, all at once. Messages from one rank to another arrive in their order. Both
    /// ranks give the same number of bytes, which engines need not compare: NCCL does not.
    ///
    /// # Errors
    ///
    /// `Deadline` if a peer does not make the call that belongs to it in time; `Peer` if one has
    /// ended or was aborted, or the engine finds that it sends another number of bytes; else the
    /// driver's error.
    ///
    /// # Safety
    ///
    /// - Each message lies within live memory of this rank's device, and stays there until later
    ///   work of the stream.
    /// - No message that is received overlaps another one of the call.
    unsafe fn exchange(
        &self,
        sends: &[Message],
        receives: &[Message],
        stream: &Stream,
        by: Deadline,
    ) -> Result<(), Error>;

    /// Queues a copy of bytes of the rank `root` to those of all others.
    ///
    /// # Errors
    ///
    /// As [`Engine::exchange`].
    ///
    /// # Safety
    ///
    /// - The bytes lie within live memory of this rank's device, and stay there until later work of
    ///   the stream.
    unsafe fn broadcast(
        &self,
        address: u64,
        bytes: u64,
        root: usize,
        stream: &Stream,
        by: Deadline,
    ) -> Result<(), Error> {
        let message = |peer| Message { peer, address, bytes };
        let others = (0..self.ranks()).filter(|&peer| peer != root).map(message);
        let (sends, receives) =
            if self.rank() == root { (others.collect(), Vec::new()) } else { (Vec::new(), vec![message(root)]) };
        // SAFETY: as the caller promises.
        unsafe { self.exchange(&sends, &receives, stream, by) }
    }

    /// Queues a reduction.
    ///
    /// # Errors
    ///
    /// As [`Engine::exchange`]; `InvalidArgument` if it cannot reduce the type.
    ///
    /// # Safety
    ///
    /// - The elements, and the result where this rank gets it, lie within live memory of this
    ///   rank's
    ///   device, aligned for their type, and stay there until later work of the stream.
    /// - They are the same elements or do not overlap.
    unsafe fn reduce(&self, reduce: Reduce, stream: &Stream, by: Deadline) -> Result<(), Error>;

    /// Returns memory of all ranks, of which each has `bytes` bytes or more, in which kernels store
    /// what peers get: so nothing is packed. All ranks ask for the same number of bytes, as long as
    /// they live, and get the same window again where it has as many. `None` if some ranks do not
    /// reach each other's memory, as those of two hosts.
    ///
    /// # Errors
    ///
    /// As [`Engine::exchange`]; `InvalidArgument` for 0 bytes; else the error of an allocation.
    fn window(&self, _bytes: u64, _by: Deadline) -> Result<Option<Window>, Error> {
        Ok(None)
    }

    /// Lets later work of the stream begin once all ranks have come so far: after all that each of
    /// them had queued on its stream before it made the same call. It is for ranks that have a
    /// [`Window`], and orders their use of it. `about` is a number of their work, which is the same
    /// on all ranks; engines need not compare it: NCCL's does not.
    ///
    /// # Errors
    ///
    /// As [`Engine::exchange`]; `InvalidArgument` without a window, or if the stream is of another
    /// device; `Peer` if the engine finds that a peer gives another number.
    fn meet(&self, _about: u64, _stream: &Stream, _by: Deadline) -> Result<(), Error> {
        refuse!(InvalidArgument, "rank {} has no window to meet by; send messages instead", self.rank())
    }

    /// Checks work of this rank that has run: it is right unless a rank aborted before it ended.
    ///
    /// # Errors
    ///
    /// As [`Engine::check`].
    fn confirm(&self) -> Result<(), Error> {
        self.check()
    }

    /// Checks that all ranks give the same number: a digest of a shape or of a plan. It waits on
    /// the host for all ranks, and for nothing on the device.
    ///
    /// # Errors
    ///
    /// `Peer` if a rank gives another one, which the error names; else as [`Engine::exchange`].
    fn agree(&self, about: &str, digest: u64, by: Deadline) -> Result<(), Error>;

    /// Returns the error that has happened since, if there is one: a rank that was lost, an abort,
    /// a failed link.
    ///
    /// # Errors
    ///
    /// `Peer`, or the engine's error.
    fn check(&self) -> Result<(), Error>;

    /// Returns whether work of a call that failed may still begin, because an abort did not end.
    /// The memory of that call is then never freed.
    fn may_still_run(&self) -> bool {
        false
    }

    /// Ends all operations of the engine, those that are queued too, and makes those of its peers
    /// end. It may be called on any thread, again, and during another call.
    fn abort(&self, why: &str);
}
