//! Redistributes an array among processes.

use std::fmt;
use std::sync::Arc;

use super::Shard;
use super::pieces::Sizes;
use super::steps::{Step, Steps};
use crate::context::queue_across;
use crate::distributed::{Communicator, Deadline, Message, Redistribution, Split};
use crate::driver::Multiprocessors;
use crate::element::Element;
use crate::error::{ErrorKind, Result, counted, require};
use crate::memory::DeviceBuffer;
use crate::stream::{Event, Stream};
use crate::sync::{Mutex, lock};

/// One rank's part of a [`Redistribution`] that messages of a [`Communicator`] make, ready to be
/// launched. Each rank makes one for the same plan, and launches it as often as the others.
///
/// Elements that do not lie side by side are packed before they travel, and sorted where they
/// arrive, in pieces: while one travels, the next one is packed.
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
    steps: Steps,
    /// For what is packed and what is sorted. Each has two halves, of which a step uses one.
    between: [DeviceBuffer<u8>; 2],
    lanes: Lanes,
    /// Held while work is queued, which uses the lanes.
    queueing: Mutex<()>,
}

/// The streams of an exchange, with the events that order them.
struct Lanes {
    pack: Stream,
    travel: Stream,
    sort: Stream,
    own: Stream,
    ready: Event,
    /// For each half of the buffers.
    packed: [Event; 2],
    travelled: [Event; 2],
    sorted: [Event; 2],
    /// For each stream.
    joined: [Event; 4],
}

/// The eighths of the multiprocessors for the kernels that pack and sort; one more is for the copy
/// of the rank to itself. Messages of NCCL are slower beside kernels that fill the memory, and wait
/// for blocks that were begun before them, so they have the rest to themselves. On an H200 other
/// parts took from 0.5 % less to 4 % more (`benches/record/2026-11-28-h200/nccl.md`).
const COPIES: u32 = 3;

impl Lanes {
    fn new(communicator: &Communicator) -> Result<Self> {
        let device = communicator.device();
        let eighth = device.info().multiprocessors / 8;
        let on = |first, count: u32| {
            let part = Multiprocessors { first, count: count.max(1) };
            Stream::on(device, part).or_else(|error| match error.kind() {
                ErrorKind::Unavailable => device.stream(),
                _ => Err(error),
            })
        };
        let copies = || on(eighth, COPIES * eighth);
        let event = || Event::untimed(device);
        let both = || Ok::<_, crate::error::Error>([event()?, event()?]);
        Ok(Self {
            pack: copies()?,
            travel: device.stream()?,
            sort: copies()?,
            own: on(0, eighth)?,
            ready: event()?,
            packed: both()?,
            travelled: both()?,
            sorted: both()?,
            joined: [event()?, event()?, event()?, event()?],
        })
    }

    fn all(&self) -> [&Stream; 4] {
        [&self.pack, &self.travel, &self.sort, &self.own]
    }
}

impl ShardExchange {
    /// Plans the messages and kernels of the communicator's rank, allocates the buffers between
    /// them, and checks that all ranks have the same plan.
    ///
    /// Packed elements travel in small pieces at the beginning and at the end, and in large ones
    /// between. The buffers between take at most as many bytes as the rank sends and gets;
    /// [`ShardExchange::in_pieces`] takes less.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the plan has more ranks than the communicator; `Peer` if another rank
    /// has another plan; `Deadline` if a rank does not make its exchange in time; else the error of
    /// an allocation.
    pub fn new(communicator: &Arc<Communicator>, plan: &Redistribution) -> Result<Self> {
        let peers = plan.ranks().saturating_sub(1).max(1) as u64;
        Self::of_sizes(communicator, plan, Sizes::Growing { peers })
    }

    /// As [`ShardExchange::new`], with pieces of so many bytes, or of one element. The buffers
    /// between take four of them for each peer.
    ///
    /// # Errors
    ///
    /// As [`ShardExchange::new`].
    pub fn in_pieces(communicator: &Arc<Communicator>, plan: &Redistribution, bytes: u64) -> Result<Self> {
        Self::of_sizes(communicator, plan, Sizes::Most(bytes))
    }

    fn of_sizes(communicator: &Arc<Communicator>, plan: &Redistribution, sizes: Sizes) -> Result<Self> {
        let ranks = communicator.ranks();
        require!(
            plan.ranks() <= ranks,
            InvalidArgument,
            "the array is split among {}, and the communicator has {ranks}; split it into fewer parts",
            counted(plan.ranks(), "rank")
        );
        // Before all ranks agree, so that a rank without memory leaves no other one behind.
        let made = Self::made(communicator, plan, sizes);
        let made = made.inspect_err(|error| communicator.engine().abort(&error.to_string()))?;
        communicator.agree("redistribution", &(plan, sizes))?;
        Ok(made)
    }

    fn made(communicator: &Arc<Communicator>, plan: &Redistribution, sizes: Sizes) -> Result<Self> {
        let steps = Steps::new(plan, communicator, sizes)?;
        let [packed, sorted] = steps.buffers.map(|[even, odd]| communicator.device().alloc((even + odd) as usize));
        Ok(Self {
            communicator: Arc::clone(communicator),
            plan: plan.clone(),
            steps,
            between: [packed?, sorted?],
            lanes: Lanes::new(communicator)?,
            queueing: Mutex::default(),
        })
    }

    /// Returns the communicator.
    pub fn communicator(&self) -> &Arc<Communicator> {
        &self.communicator
    }

    /// Queues the messages of this rank, after all former uses of the parts. Its work belongs to
    /// the device's default stream: [`Communicator::wait`] on that waits for it. The call may wait
    /// until the peers have made it, as each call of a communicator does.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a part is of another device; `Layout` if it is of another rank or split
    /// otherwise than planned; else as [`Engine::exchange`](super::super::Engine::exchange). The
    /// elements of the result are unspecified after it.
    pub fn launch<T: Element>(&self, source: &Shard<T>, result: &mut Shard<T>) -> Result<()> {
        self.check(source, "source", self.plan.source())?;
        self.check(result, "result", self.plan.result())?;
        let _queueing = lock(&self.queueing);
        let stream = self.communicator.device().default_stream();
        let [packed, sorted] = &self.between;
        let used = [source.memory(), result.memory(), packed.memory(), sorted.memory()];
        let (from, to) = (source.memory().address(), result.memory().address());
        let pairs = used.into_iter().map(|memory| (stream, memory)).collect();
        let queued = queue_across(pairs, || {
            let unwound = WaitOnUnwind(&self.lanes);
            // SAFETY: the layouts lie within the parts, as checked, and the result is borrowed
            // exclusively; `queue_across` orders the work after former uses.
            let queued = unsafe { self.queue(stream, from, to) };
            if let Err(error) = &queued {
                // Before the waits below; and a later launch must not meet a peer in the middle of
                // this one.
                self.communicator.engine().abort(&error.to_string());
            }
            // After a failure too, so that no later use comes before what is queued.
            let joined = self.join(stream);
            std::mem::forget(unwound);
            if joined.is_err() {
                wait_for_all(&self.lanes);
            }
            queued.and(joined)
        });
        queued.inspect_err(|_| self.communicator.keep_if_it_may_run(&used))
    }

    /// Queues all steps.
    ///
    /// # Safety
    ///
    /// - The parts that were planned lie at these addresses, and nothing else uses them until what
    ///   is queued here has run, nor the buffers between.
    unsafe fn queue(&self, stream: &Stream, from: u64, to: u64) -> Result<()> {
        let lanes = &self.lanes;
        stream.record(&lanes.ready)?;
        lanes.all().into_iter().try_for_each(|lane| lane.wait(&lanes.ready))?;
        let device = self.communicator.device();
        // The copy of the rank to itself comes behind the first kernels that peers wait for.
        let (first, later) = self.steps.steps.split_at(self.steps.steps.len().min(2));
        for (number, step) in first.iter().enumerate() {
            // SAFETY: as the caller promises.
            unsafe { self.queue_step(number, step, from, to) }?;
        }
        if let Some(own) = &self.steps.own {
            // SAFETY: as the caller promises.
            unsafe { own.launch_raw(device, from, to, lanes.own.handle()) }?;
        }
        for (number, step) in later.iter().enumerate() {
            // SAFETY: as the caller promises.
            unsafe { self.queue_step(2 + number, step, from, to) }?;
        }
        Ok(())
    }

    /// Queues a step: what it packs, its messages, and what it sorts. It uses a half of the buffers
    /// once the step before the last one has left it.
    ///
    /// # Safety
    ///
    /// As [`ShardExchange::queue`].
    unsafe fn queue_step(&self, number: usize, step: &Step, from: u64, to: u64) -> Result<()> {
        let (lanes, half) = (&self.lanes, number % 2);
        let device = self.communicator.device();
        let behind = |side: usize| if half == 0 { 0 } else { self.steps.buffers[side][0] };
        let [packed, sorted] = [0, 1].map(|side| self.between[side].address() + behind(side));
        if number >= 2 {
            lanes.pack.wait(&lanes.travelled[half])?;
            lanes.travel.wait(&lanes.sorted[half])?;
        }
        for leg in &step.sends {
            if let Some(kernel) = &leg.kernel {
                // SAFETY: as the caller promises; the buffer has room for each message of a step.
                unsafe { kernel.launch_raw(device, from, packed + leg.at, lanes.pack.handle()) }?;
            }
        }
        lanes.pack.record(&lanes.packed[half])?;
        lanes.travel.wait(&lanes.packed[half])?;
        let sends: Vec<Message> = step.sends.iter().map(|leg| leg.message(from, packed)).collect();
        let receives: Vec<Message> = step.receives.iter().map(|leg| leg.message(to, sorted)).collect();
        let by = Deadline::after(self.communicator.deadline());
        // SAFETY: as the caller promises; the messages that are received lie apart.
        unsafe { self.communicator.engine().exchange(&sends, &receives, &lanes.travel, by) }?;
        lanes.travel.record(&lanes.travelled[half])?;
        lanes.sort.wait(&lanes.travelled[half])?;
        for leg in &step.receives {
            if let Some(kernel) = &leg.kernel {
                // SAFETY: as above.
                unsafe { kernel.launch_raw(device, sorted + leg.at, to, lanes.sort.handle()) }?;
            }
        }
        lanes.sort.record(&lanes.sorted[half])
    }

    /// Makes the default stream wait for all that is queued.
    fn join(&self, stream: &Stream) -> Result<()> {
        self.lanes.all().into_iter().zip(&self.lanes.joined).try_for_each(|(lane, joined)| {
            lane.record(joined)?;
            stream.wait(joined)
        })
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

/// Waits for all that is queued. Where it could not be joined, nothing else orders later uses after
/// it. A stream whose wait fails has stopped its work.
fn wait_for_all(lanes: &Lanes) {
    for lane in lanes.all() {
        let _ = lane.synchronize();
    }
}

/// Waits when dropped, which happens only if a driver panicked: the locks of the operands end then.
struct WaitOnUnwind<'a>(&'a Lanes);

impl Drop for WaitOnUnwind<'_> {
    fn drop(&mut self) {
        wait_for_all(self.0);
    }
}

/// The plan, and what is packed and sorted on this rank.
impl fmt::Display for ShardExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let legs = |of: fn(&Step) -> &Vec<super::steps::Leg>| {
            let all = || self.steps.steps.iter().flat_map(of);
            let bytes = |legs: &mut dyn Iterator<Item = u64>| legs.sum::<u64>();
            let copied = bytes(&mut all().filter(|leg| leg.kernel.is_some()).map(|leg| leg.bytes));
            (copied, bytes(&mut all().map(|leg| leg.bytes)), all().count())
        };
        let ((packed, sent, sends), (sorted, received, receives)) =
            (legs(|step| &step.sends), legs(|step| &step.receives));
        write!(
            f,
            "rank {} in {}: it sends {} in {}, of which {packed} are packed, and receives {} in {}, of which {sorted} are sorted",
            self.communicator.rank(),
            counted(self.steps.steps.len(), "step"),
            counted(sent, "byte"),
            counted(sends, "message"),
            counted(received, "byte"),
            counted(receives, "message"),
        )
    }
}

impl fmt::Debug for ShardExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShardExchange({self})")
    }
}
