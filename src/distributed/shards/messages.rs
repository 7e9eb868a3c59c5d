//! The way of a redistribution by messages: packed where elements do not lie side by side, and
//! sorted where they arrive.

use std::fmt;
use std::sync::Arc;

use super::lanes::{Lanes, events};
use super::pieces::Sizes;
use super::steps::{Leg, Step, Steps};
use super::way::Way;
use crate::context::{Allocation, Shared};
use crate::distributed::{Communicator, Deadline, Message, Redistribution};
use crate::driver::Multiprocessors;
use crate::error::{Result, counted};
use crate::memory::DeviceBuffer;
use crate::stream::{Event, Stream};

/// The messages of a rank, with the kernels before and after them.
pub(super) struct Messages {
    communicator: Arc<Communicator>,
    steps: Steps,
    /// For what is packed and what is sorted. Each has two halves, of which a step uses one.
    between: [DeviceBuffer<u8>; 2],
    /// Those that pack, travel, sort, and copy the rank's part to itself.
    lanes: Lanes<4>,
    /// For each half of the buffers.
    packed: [Event; 2],
    travelled: [Event; 2],
    sorted: [Event; 2],
}

/// The eighths of the multiprocessors for the kernels that pack and sort; one more is for the copy
/// of the rank to itself. Messages of NCCL are slower beside kernels that fill the memory, and wait
/// for blocks that were begun before them, so they have the rest to themselves. On an H200 other
/// parts took from 0.5 % less to 4 % more (`benches/record/2026-11-28-h200/nccl.md`).
const COPIES: u32 = 3;

impl Messages {
    /// Plans the messages and kernels of the communicator's rank, and allocates the buffers.
    pub(super) fn new(communicator: &Arc<Communicator>, plan: &Redistribution, most: Option<u64>) -> Result<Self> {
        let peers = plan.ranks().saturating_sub(1).max(1) as u64;
        let steps = Steps::new(plan, communicator, most.map_or(Sizes::Growing { peers }, Sizes::Most))?;
        let device = communicator.device();
        let [packed, sorted] = steps.buffers.map(|[even, odd]| device.alloc((even + odd) as usize));
        let all = device.info().multiprocessors;
        let eighth = all / 8;
        let copies = Multiprocessors { first: eighth, count: COPIES * eighth };
        let parts =
            [copies, Multiprocessors { first: 0, count: all }, copies, Multiprocessors { first: 0, count: eighth }];
        Ok(Self {
            communicator: Arc::clone(communicator),
            steps,
            between: [packed?, sorted?],
            lanes: Lanes::new(device, parts)?,
            packed: events(device)?,
            travelled: events(device)?,
            sorted: events(device)?,
        })
    }

    /// Queues a step: what it packs, its messages, and what it sorts. It uses a half of the buffers
    /// once the step before the last one has left it.
    ///
    /// # Safety
    ///
    /// As [`Way::queue`].
    unsafe fn queue_step(&self, number: usize, step: &Step, [from, to]: [u64; 2], by: Deadline) -> Result<()> {
        let ([pack, travel, sort, _], half) = (self.lanes.streams(), number % 2);
        let device = self.communicator.device();
        let behind = |side: usize| if half == 0 { 0 } else { self.steps.buffers[side][0] };
        let [packed, sorted] = [0, 1].map(|side| self.between[side].memory().address() + behind(side));
        if number >= 2 {
            pack.wait(&self.travelled[half])?;
            travel.wait(&self.sorted[half])?;
        }
        for leg in &step.sends {
            if let Some(kernel) = &leg.kernel {
                // SAFETY: as the caller promises; the buffer has room for each message of a step.
                unsafe { kernel.launch_raw(device, from, packed + leg.at, pack.handle()) }?;
            }
        }
        pack.record(&self.packed[half])?;
        travel.wait(&self.packed[half])?;
        let sends: Vec<Message> = step.sends.iter().map(|leg| leg.message(from, packed)).collect();
        let receives: Vec<Message> = step.receives.iter().map(|leg| leg.message(to, sorted)).collect();
        // SAFETY: as the caller promises; the messages that are received lie apart.
        unsafe { self.communicator.engine().exchange(&sends, &receives, travel, by) }?;
        travel.record(&self.travelled[half])?;
        sort.wait(&self.travelled[half])?;
        for leg in &step.receives {
            if let Some(kernel) = &leg.kernel {
                // SAFETY: as above.
                unsafe { kernel.launch_raw(device, sorted + leg.at, to, sort.handle()) }?;
            }
        }
        sort.record(&self.sorted[half])
    }
}

impl Way for Messages {
    fn buffers(&self) -> Vec<&Shared<Allocation>> {
        self.between.iter().map(DeviceBuffer::memory).collect()
    }

    unsafe fn queue(&self, stream: &Stream, [from, to]: [u64; 2], by: Deadline) -> Result<()> {
        self.lanes.fork(stream)?;
        // The copy of the rank to itself comes behind the first kernels that peers wait for.
        let own_at = self.steps.steps.len().min(2);
        for (number, step) in self.steps.steps.iter().enumerate() {
            if number == own_at {
                // SAFETY: as the caller promises.
                unsafe { self.queue_own(from, to) }?;
            }
            // SAFETY: as the caller promises.
            unsafe { self.queue_step(number, step, [from, to], by) }?;
        }
        if own_at == self.steps.steps.len() {
            // SAFETY: as the caller promises.
            unsafe { self.queue_own(from, to) }?;
        }
        Ok(())
    }

    fn join(&self, stream: &Stream) -> Result<()> {
        self.lanes.join(stream)
    }

    fn synchronize(&self) {
        self.lanes.synchronize();
    }
}

impl Messages {
    /// Queues the copy of the rank to itself.
    ///
    /// # Safety
    ///
    /// As [`Way::queue`].
    unsafe fn queue_own(&self, from: u64, to: u64) -> Result<()> {
        let [.., own] = self.lanes.streams();
        let Some(kernel) = &self.steps.own else { return Ok(()) };
        // SAFETY: as the caller promises.
        unsafe { kernel.launch_raw(self.communicator.device(), from, to, own.handle()) }
    }
}

/// The steps, and what is packed and sorted on this rank.
impl fmt::Display for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let legs = |of: fn(&Step) -> &Vec<Leg>| {
            let all = || self.steps.steps.iter().flat_map(of);
            let bytes = |legs: &mut dyn Iterator<Item = u64>| legs.sum::<u64>();
            let copied = bytes(&mut all().filter(|leg| leg.kernel.is_some()).map(|leg| leg.bytes));
            (copied, bytes(&mut all().map(|leg| leg.bytes)), all().count())
        };
        let ((packed, sent, sends), (sorted, received, receives)) =
            (legs(|step| &step.sends), legs(|step| &step.receives));
        write!(
            f,
            "{}: it sends {} in {}, of which {packed} are packed, and receives {} in {}, of which {sorted} are sorted",
            counted(self.steps.steps.len(), "step"),
            counted(sent, "byte"),
            counted(sends, "message"),
            counted(received, "byte"),
            counted(receives, "message"),
        )
    }
}
