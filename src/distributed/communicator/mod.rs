//! Communicators: ranks that send, receive and reduce memory of GPUs, and that end.

mod engine;
mod local;
mod reduce;
mod trace;
mod windows;

pub use engine::{Combine, Deadline, Engine, Message, Reduce, Window};
pub use trace::{Trace, TracedCall};

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use super::Gpus;
use crate::context::{Allocation, Shared, queue_across};
use crate::device::Device;
use crate::element::{Element, Number};
use crate::error::{Error, ErrorKind, Result, counted, require};
use crate::stream::{Event, Stream};
use crate::sync::{Mutex, MutexGuard, lock};
use crate::view::{View, ViewMut};

/// The most ranks that share windows.
pub(super) const WINDOW_RANKS: usize = 64;
/// The time within which an operation ends where no other is given.
const DEADLINE: Duration = Duration::from_secs(60);

/// One rank of several that exchange memory of their GPUs. Each rank makes the same calls in the
/// same order.
///
/// A call queues its work on a stream. It may wait until the peers have made the call that belongs
/// to it, so ranks of one process need a thread each. Every call and [`Communicator::wait`] end by
/// the deadline, and then the error says what did not come. A communicator that has failed or was
/// aborted stays so: drop it, and make another.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use std::sync::Arc;
///
/// use warpstride::distributed::{Combine, Communicator, Gpus};
///
/// let ranks = Communicator::local(&Arc::new(Gpus::soft(2)?))?; // or `Communicator::nccl`
/// let rank = |communicator: &Communicator| {
///     let (device, stream) = (communicator.device(), communicator.device().default_stream());
///     let mine = device.array(&[2], &[communicator.rank() as f32, 1.0])?;
///     let mut sum = device.alloc_array(&[2])?;
///     communicator.all_reduce(&mine, &mut sum, Combine::Sum, stream)?;
///     communicator.wait(stream)?;
///     sum.to_vec()
/// };
/// let sums = std::thread::scope(|threads| {
///     let started: Vec<_> = ranks.iter().map(|of| threads.spawn(move || rank(of))).collect();
///     started.into_iter().map(|thread| thread.join().unwrap()).collect::<warpstride::Result<Vec<_>>>()
/// })?;
/// assert_eq!(sums, [[1.0, 2.0], [1.0, 2.0]]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub struct Communicator {
    device: Device,
    engine: Arc<dyn Engine>,
    deadline: Duration,
    /// Held while a redistribution is queued: another one may use the same streams or window.
    launching: Mutex<()>,
}

/// Aborts a communicator from any thread.
#[derive(Debug, Clone)]
pub struct Aborter(Weak<dyn Engine>);

impl Aborter {
    /// Ends all operations of the communicator and of its peers. Their errors say why. It does
    /// nothing once the communicator is gone.
    pub fn abort(&self, why: &str) {
        if let Some(engine) = self.0.upgrade() {
            engine.abort(why);
        }
    }
}

impl Communicator {
    /// Makes a communicator for each rank of GPUs of one host. Messages are copies between the
    /// memory that they share.
    ///
    /// # Errors
    ///
    /// `Unavailable` if two of the GPUs cannot use each other's memory; else the driver's error.
    pub fn local(gpus: &Arc<Gpus>) -> Result<Vec<Self>> {
        gpus.check_all_reach("communicators of one process")?;
        let engines = local::engines(gpus)?.into_iter();
        Ok(engines.map(|engine| Self::over(Arc::new(engine))).collect())
    }

    /// Makes a communicator over an engine, such as your own or a [`Trace`].
    pub fn over(engine: Arc<dyn Engine>) -> Self {
        Self { device: engine.device().clone(), engine, deadline: DEADLINE, launching: Mutex::default() }
    }

    /// Gives each call, and each wait, so much time. It is 60 s otherwise.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Returns the time that each call, and each wait, has.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Returns the number of this rank.
    pub fn rank(&self) -> usize {
        self.engine.rank()
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> usize {
        self.engine.ranks()
    }

    /// Returns the device of this rank.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Returns a handle that aborts it from another thread.
    pub fn aborter(&self) -> Aborter {
        Aborter(Arc::downgrade(&self.engine))
    }

    /// Sends an array, which lies in C order without gaps, to a rank that receives as many bytes.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is no such rank, or an operand or the stream is of another
    /// device; `Layout` if the array has gaps; else as [`Engine::exchange`].
    pub fn send<'a, T: Element>(&self, src: impl Into<View<'a, T>>, to: usize, stream: &Stream) -> Result<()> {
        self.exchange(&[(src.into(), to)], &mut [], stream)
    }

    /// Receives an array, which lies in C order without gaps, from a rank that sends as many bytes.
    ///
    /// # Errors
    ///
    /// As [`Communicator::send`].
    pub fn receive<'a, T: Element>(&self, dst: impl Into<ViewMut<'a, T>>, from: usize, stream: &Stream) -> Result<()> {
        self.exchange(&[], &mut [(dst.into(), from)], stream)
    }

    /// Sends arrays to ranks and receives others, all at once. Messages from one rank to another
    /// arrive in their order.
    ///
    /// # Errors
    ///
    /// As [`Communicator::send`].
    pub fn exchange<T: Element>(
        &self,
        sends: &[(View<'_, T>, usize)],
        receives: &mut [(ViewMut<'_, T>, usize)],
        stream: &Stream,
    ) -> Result<()> {
        let sent = sends.iter().map(|(view, to)| self.message(&Operand::of(view), *to));
        let sent = sent.collect::<Result<Vec<_>>>()?;
        let received = receives.iter().map(|(view, from)| self.message(&Operand::of(&view.view()), *from));
        let received = received.collect::<Result<Vec<_>>>()?;
        let used = sends.iter().map(|(view, _)| view.memory()).chain(receives.iter().map(|(view, _)| view.memory()));
        self.queue(used.collect(), stream, |by| {
            // SAFETY: the views borrow the memory, those that are received exclusively, and the
            // work is queued as theirs.
            unsafe { self.engine.exchange(&sent, &received, stream, by) }
        })
    }

    /// Sends part `r` of the source to rank `r`, and receives part `r` of the result from it. Both
    /// arrays lie in C order without gaps, and their first axis is divided evenly among the ranks.
    ///
    /// # Errors
    ///
    /// `Layout` if the ranks do not divide the first axis, or the shapes differ; else as
    /// [`Communicator::send`].
    pub fn all_to_all<'a, 'b, T: Element>(
        &self,
        src: impl Into<View<'a, T>>,
        dst: impl Into<ViewMut<'b, T>>,
        stream: &Stream,
    ) -> Result<()> {
        let (src, dst) = (src.into(), dst.into());
        let ranks = self.ranks();
        let rows = src.shape().first().copied().unwrap_or(0);
        require!(
            src.shape() == dst.shape() && !src.shape().is_empty() && rows.is_multiple_of(ranks),
            Layout,
            "an all-to-all of shape {:?} into shape {:?} cannot be divided among {}; give equal shapes whose first axis is a \
             multiple of the ranks",
            src.shape(),
            dst.shape(),
            counted(ranks, "rank")
        );
        let [from, to] = [Operand::of(&src), Operand::of(&dst.view())].map(|all| self.message(&all, 0));
        let (from, to) = (from?, to?);
        // Begins with the rank behind this one, so that the ranks do not all send to one at once.
        let order = (1..=ranks).map(|step| (self.rank() + step) % ranks);
        let parts = |all: Message| {
            let bytes = all.bytes / ranks as u64;
            order
                .clone()
                .map(|peer| Message { peer, address: all.address + peer as u64 * bytes, bytes })
                .collect::<Vec<_>>()
        };
        self.queue(vec![src.memory(), dst.memory()], stream, |by| {
            // SAFETY: as in `exchange`; the parts do not overlap.
            unsafe { self.engine.exchange(&parts(from), &parts(to), stream, by) }
        })
    }

    /// Copies the array of the rank `root` to those of all others. It lies in C order without gaps.
    ///
    /// # Errors
    ///
    /// As [`Communicator::send`].
    pub fn broadcast<'a, T: Element>(
        &self,
        array: impl Into<ViewMut<'a, T>>,
        root: usize,
        stream: &Stream,
    ) -> Result<()> {
        let array = array.into();
        let Message { address, bytes, .. } = self.message(&Operand::of(&array.view()), root)?;
        self.queue(vec![array.memory()], stream, |by| {
            // SAFETY: the view borrows the memory exclusively, and the work is queued as its use.
            unsafe { self.engine.broadcast(address, bytes, root, stream, by) }
        })
    }

    /// Combines the arrays of all ranks, element by element, into the result of the rank `root`.
    /// The results of other ranks stay as they are. Both arrays lie in C order without gaps.
    ///
    /// # Errors
    ///
    /// `Layout` if the shapes differ; `InvalidArgument` if the engine cannot reduce the type: NCCL
    /// has no 16-bit integers; else as [`Communicator::send`].
    pub fn reduce<'a, 'b, T: Number>(
        &self,
        src: impl Into<View<'a, T>>,
        dst: impl Into<ViewMut<'b, T>>,
        combine: Combine,
        root: usize,
        stream: &Stream,
    ) -> Result<()> {
        self.check_rank(root)?;
        self.reduce_to(src.into(), dst.into(), combine, Some(root), stream)
    }

    /// Combines the arrays of all ranks, element by element, into the results of all ranks.
    ///
    /// # Errors
    ///
    /// As [`Communicator::reduce`].
    pub fn all_reduce<'a, 'b, T: Number>(
        &self,
        src: impl Into<View<'a, T>>,
        dst: impl Into<ViewMut<'b, T>>,
        combine: Combine,
        stream: &Stream,
    ) -> Result<()> {
        self.reduce_to(src.into(), dst.into(), combine, None, stream)
    }

    fn reduce_to<T: Number>(
        &self,
        src: View<'_, T>,
        dst: ViewMut<'_, T>,
        combine: Combine,
        root: Option<usize>,
        stream: &Stream,
    ) -> Result<()> {
        require!(
            src.shape() == dst.shape(),
            Layout,
            "a reduction of shape {:?} into shape {:?} is not possible; give equal shapes",
            src.shape(),
            dst.shape()
        );
        let [from, to] = [Operand::of(&src), Operand::of(&dst.view())].map(|all| self.message(&all, 0));
        let (from, to, len) = (from?.address, to?.address, src.len() as u64);
        let reduce = Reduce { from, to, len, dtype: T::DTYPE, combine, root };
        self.queue(vec![src.memory(), dst.memory()], stream, |by| {
            // SAFETY: the views borrow the memory, that of the result exclusively, and the work is
            // queued as theirs.
            unsafe { self.engine.reduce(reduce, stream, by) }
        })
    }

    /// Checks that all ranks have the same value, such as a shape: so ranks that disagree find out
    /// before a message is sent. Each rank calls it.
    ///
    /// # Errors
    ///
    /// `Peer` if a rank has another one, which the error names; else as [`Engine::exchange`].
    pub fn agree(&self, about: &str, value: &impl Hash) -> Result<()> {
        self.engine.agree(about, digest(value), Deadline::after(self.deadline))
    }

    /// Waits until all work that is queued on a stream has run, the messages of this communicator
    /// among it, and aborts it at the deadline.
    ///
    /// # Errors
    ///
    /// `Deadline` if the work did not end in time; `Peer` if a rank was lost or aborted; else the
    /// driver's error.
    pub fn wait(&self, stream: &Stream) -> Result<()> {
        self.check_stream(stream)?;
        self.wait_for_work(stream).inspect_err(|error| self.engine.abort(&error.to_string()))
    }

    fn wait_for_work(&self, stream: &Stream) -> Result<()> {
        let (done, by) = (Event::untimed(&self.device)?, Deadline::after(self.deadline));
        stream.record(&done)?;
        for round in 0_u32.. {
            if done.query()? {
                break;
            }
            self.engine.check()?;
            if by.has_passed() {
                return Err(by.error(format_args!("the work of rank {}", self.rank())));
            }
            pause(round);
        }
        self.engine.confirm()
    }

    /// Queues work behind all former uses of the memory.
    fn queue(
        &self,
        used: Vec<&Shared<Allocation>>,
        stream: &Stream,
        work: impl FnOnce(Deadline) -> Result<()>,
    ) -> Result<()> {
        self.check_stream(stream)?;
        let pairs = used.iter().map(|&memory| (stream, memory)).collect();
        let queued = queue_across(pairs, || work(Deadline::after(self.deadline)));
        queued.inspect_err(|_| self.keep_if_it_may_run(&used))
    }

    /// Keeps memory for good if work of a call that failed may still begin on it.
    pub(super) fn keep_if_it_may_run(&self, used: &[&Shared<Allocation>]) {
        if self.engine.may_still_run() {
            used.iter().for_each(|&memory| mem::forget(memory.clone()));
        }
    }

    /// Waits until no other thread of this rank queues a redistribution.
    pub(super) fn launching(&self) -> MutexGuard<'_, ()> {
        lock(&self.launching)
    }

    /// Describes the bytes of an operand.
    fn message(&self, operand: &Operand<'_>, peer: usize) -> Result<Message> {
        self.check_rank(peer)?;
        require!(
            operand.device == &self.device,
            InvalidArgument,
            "an array of {} was given to the communicator of rank {}, whose device is {}; make it there",
            operand.device.info().name,
            self.rank(),
            self.device.info().name
        );
        require!(
            operand.is_standard,
            Layout,
            "an array of shape {:?} does not lie in C order without gaps; copy it into one that does (`ops::copy_into`)",
            operand.shape
        );
        Ok(Message { peer, address: operand.address, bytes: operand.bytes })
    }

    fn check_rank(&self, rank: usize) -> Result<()> {
        let ranks = self.ranks();
        require!(
            rank < ranks,
            InvalidArgument,
            "there is no rank {rank}: the communicator has {}",
            counted(ranks, "rank")
        );
        Ok(())
    }

    fn check_stream(&self, stream: &Stream) -> Result<()> {
        let is_ours = Arc::ptr_eq(stream.context(), self.device.context());
        require!(
            is_ours,
            InvalidArgument,
            "the stream is of another device than the communicator of rank {}",
            self.rank()
        );
        Ok(())
    }
}

/// An operand without its type.
struct Operand<'a> {
    device: &'a Device,
    shape: &'a [usize],
    address: u64,
    bytes: u64,
    is_standard: bool,
}

impl<'a> Operand<'a> {
    fn of<T: Element>(view: &'a View<'_, T>) -> Self {
        let layout = view.layout();
        // The checks of a view ensure that an offset is within its memory.
        let offset = layout.offset() as u64 * size_of::<T>() as u64;
        Self {
            device: view.device(),
            shape: view.shape(),
            address: view.storage_address() + offset,
            bytes: (view.len() * size_of::<T>()) as u64,
            is_standard: layout.is_standard_layout(),
        }
    }
}

/// Returns a number of a value, which is the same in all processes of one build.
pub(super) fn digest(value: &impl Hash) -> u64 {
    // Its keys are fixed.
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Waits a little, and longer in later rounds.
pub(super) fn pause(round: u32) {
    if round < 64 { thread::yield_now() } else { thread::sleep(Duration::from_micros(50)) }
}

/// Returns the error of a rank that was lost or aborted.
pub(super) fn peer_error(why: impl fmt::Display) -> Error {
    let why = why.to_string();
    // The words of another rank's error may end with the advice.
    let why = why.strip_suffix(ADVICE).unwrap_or(&why);
    Error::new(ErrorKind::Peer, format!("{why}{ADVICE}"))
}

/// The last words of an error of ranks.
const ADVICE: &str = "; make a new communicator";

/// Refuses values of ranks that are not those of rank 0.
fn disagreement(about: &str, others: &[usize]) -> Result<()> {
    let named: Vec<String> = others.iter().map(|rank| format!("rank {rank}")).collect();
    require!(
        others.is_empty(),
        Peer,
        "{} and rank 0 disagree about the {about}; give all ranks the same shape, splits, axes and type",
        named.join(", ")
    );
    Ok(())
}

impl fmt::Debug for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Communicator(rank {} of {} on {})", self.rank(), self.ranks(), self.device.info().name)
    }
}
