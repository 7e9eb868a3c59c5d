//! Redistributes an array among processes.

use std::fmt;
use std::sync::Arc;

use super::Shard;
use super::messages::Messages;
use super::way::{WaitOnUnwind, Way};
use super::windowed::Windowed;
use crate::context::queue_across;
use crate::distributed::{Communicator, Deadline, Redistribution, Split};
use crate::element::Element;
use crate::error::{Result, counted, require};

/// One rank's part of a [`Redistribution`] that the ranks of a [`Communicator`] make, ready to be
/// launched. Each rank makes one for the same plan, and launches it as often as the others.
///
/// Kernels store into a [`Window`](super::super::Window) of each peer, and others sort there what
/// has arrived, if all ranks reach each other's memory, as over the links of one host. Else
/// elements travel as messages: those that do not lie side by side are packed before they travel,
/// and sorted where they arrive. Both go in pieces, one of which travels while the one before it is
/// sorted.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use std::sync::Arc;
///
/// use warpstride::distributed::{Communicator, Gpus, Redistribution, Shard, ShardExchange, Split};
///
/// let rank = |communicator: Communicator| {
///     let communicator = Arc::new(communicator);
///     let rows = Split::whole(&[2, 4])?.cut(0, 2)?;
///     let mine = Shard::of_whole(&communicator, &rows, &[1, 2, 3, 4, 5, 6, 7, 8])?;
///
///     let columns = Split::whole(&[4, 2])?.cut(0, 2)?; // of the transpose
///     let mut result = Shard::alloc(communicator.device(), &columns, communicator.rank())?;
///     let plan = Redistribution::new(&rows, [1, 0], &columns, 4)?;
///     let exchange = ShardExchange::new(&communicator, &plan)?; // once
///     exchange.launch(&mine, &mut result)?; // any number of times
///     communicator.wait(communicator.device().default_stream())?;
///     warpstride::ops::contiguous(result.view())?.to_vec()
/// };
/// // Each rank has a thread here, and a process of its own with `Communicator::nccl`.
/// let ranks = Communicator::local(&Arc::new(Gpus::soft(2)?))?;
/// let results = std::thread::scope(|threads| {
///     let started: Vec<_> = ranks.into_iter().map(|of| threads.spawn(move || rank(of))).collect();
///     started.into_iter().map(|thread| thread.join().unwrap()).collect::<warpstride::Result<Vec<_>>>()
/// })?;
/// assert_eq!(results, [[1, 5, 2, 6], [3, 7, 4, 8]]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub struct ShardExchange {
    communicator: Arc<Communicator>,
    plan: Redistribution,
    way: Box<dyn Way>,
}

impl ShardExchange {
    /// Plans the kernels and messages of the communicator's rank, allocates the buffers between
    /// them, and checks that all ranks have the same plan.
    ///
    /// A window takes about 256 MiB at most, and stays with the communicator, whose later exchanges
    /// use it again. The buffers for messages take at most as
    /// many bytes as the rank sends and gets. [`ShardExchange::in_pieces`] takes less.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the plan has more ranks than the communicator; `Peer` if another rank
    /// has another plan; `Deadline` if a rank does not make its exchange in time; else the error of
    /// an allocation.
    pub fn new(communicator: &Arc<Communicator>, plan: &Redistribution) -> Result<Self> {
        Self::of_pieces(communicator, plan, None)
    }

    /// As [`ShardExchange::new`], with pieces of so many bytes, or of one element. A window takes
    /// two of them for each peer, and the buffers for messages take four.
    ///
    /// # Errors
    ///
    /// As [`ShardExchange::new`].
    pub fn in_pieces(communicator: &Arc<Communicator>, plan: &Redistribution, bytes: u64) -> Result<Self> {
        Self::of_pieces(communicator, plan, Some(bytes))
    }

    fn of_pieces(communicator: &Arc<Communicator>, plan: &Redistribution, most: Option<u64>) -> Result<Self> {
        let ranks = communicator.ranks();
        require!(
            plan.ranks() <= ranks,
            InvalidArgument,
            "the array is split among {}, and the communicator has {ranks}; split it into fewer parts",
            counted(plan.ranks(), "rank")
        );
        communicator.agree("redistribution", &(plan, most))?;
        // A rank that fails leaves no other one behind.
        let way = Self::way(communicator, plan, most);
        let way = way.inspect_err(|error| communicator.engine().abort(&error.to_string()))?;
        communicator.agree("way of the redistribution", &way.buffers().is_empty())?;
        Ok(Self { communicator: Arc::clone(communicator), plan: plan.clone(), way })
    }

    fn way(communicator: &Arc<Communicator>, plan: &Redistribution, most: Option<u64>) -> Result<Box<dyn Way>> {
        let by = Deadline::after(communicator.deadline());
        Ok(match Windowed::new(communicator, plan, most, by)? {
            Some(windowed) => Box::new(windowed),
            None => Box::new(Messages::new(communicator, plan, most)?),
        })
    }

    /// Returns the communicator.
    pub fn communicator(&self) -> &Arc<Communicator> {
        &self.communicator
    }

    /// Queues this rank's part, after all former uses of the arrays' parts. Its work belongs to the
    /// device's default stream: [`Communicator::wait`] on that waits for it. The call may wait
    /// until the peers have made it, as each call of a communicator does. All ranks launch all
    /// exchanges of a communicator in one order, which engines need not check: NCCL's does not.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a part is of another device; `Layout` if it is of another rank or split
    /// otherwise than planned; else as [`Engine::exchange`](super::super::Engine::exchange). The
    /// elements of the result are unspecified after it.
    pub fn launch<T: Element>(&self, source: &Shard<T>, result: &mut Shard<T>) -> Result<()> {
        self.check(source, "source", self.plan.source())?;
        self.check(result, "result", self.plan.result())?;
        let _launching = self.communicator.launching();
        self.communicator.engine().check()?;
        let (stream, by) = (self.communicator.device().default_stream(), Deadline::after(self.communicator.deadline()));
        let mut used = self.way.buffers();
        used.extend([source.memory(), result.memory()]);
        let parts = [source, &*result].map(|shard| shard.memory().address());
        let pairs = used.iter().map(|&memory| (stream, memory)).collect();
        let queued = queue_across(pairs, || {
            let unwound = WaitOnUnwind(&*self.way, &self.communicator);
            // SAFETY: the layouts lie within the parts, as checked, and the result is borrowed
            // exclusively; `queue_across` orders the work after former uses. One launch of the
            // communicator is queued at a time, and its work belongs to one stream.
            let queued = unsafe { self.way.queue(stream, parts, by) };
            if let Err(error) = &queued {
                // Before the waits below; and a later launch must not meet a peer in the middle of
                // this one.
                self.communicator.engine().abort(&error.to_string());
            }
            // After a failure too, so that no later use comes before what is queued.
            let joined = self.way.join(stream);
            std::mem::forget(unwound);
            if joined.is_err() {
                self.way.synchronize();
            }
            queued.and(joined)
        });
        queued.inspect_err(|_| self.communicator.keep_if_it_may_run(&used))
    }

    fn check<T: Element>(&self, shard: &Shard<T>, name: &str, planned: &Split) -> Result<()> {
        let communicator = &self.communicator;
        require!(
            shard.buffer.device() == communicator.device(),
            InvalidArgument,
            "the {name} is on another device than the communicator; allocate it there"
        );
        require!(
            shard.split() == planned && shard.rank == communicator.rank() && size_of::<T>() == self.plan.width(),
            Layout,
            "the {name} is the part of rank {} of {} with elements of {}, and the exchange was planned for rank {} of {planned} \
             with {}; make an exchange for it",
            shard.rank,
            shard.split(),
            counted(size_of::<T>(), "byte"),
            communicator.rank(),
            counted(self.plan.width(), "byte")
        );
        Ok(())
    }
}

/// The way, and what this rank does.
impl fmt::Display for ShardExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} in {}", self.communicator.rank(), self.way)
    }
}

impl fmt::Debug for ShardExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShardExchange({self})")
    }
}
