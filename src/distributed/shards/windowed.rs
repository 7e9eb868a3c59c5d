//! The way of a redistribution through windows: kernels store into the memory of peers, and other
//! kernels sort there what has arrived.

use std::fmt;
use std::sync::Arc;

use super::arrivals::{Arrivals, between};
use super::lanes::{Lanes, events};
use super::way::Way;
use crate::context::{Allocation, Shared};
use crate::distributed::communicator::{WINDOW_RANKS, digest};
use crate::distributed::gpus::LEAST_PART;
use crate::distributed::{Communicator, Deadline, Redistribution};
use crate::driver::Multiprocessors;
use crate::error::{Result, counted};
use crate::ops::{Align, PermutePlan, Target};
use crate::stream::{Event, Stream};

/// The kernels of a rank, step by step.
pub(super) struct Windowed {
    communicator: Arc<Communicator>,
    steps: Vec<Step>,
    /// The copy of the rank to itself.
    own: Option<PermutePlan>,
    /// The bytes of the window.
    window: u64,
    /// The number of this exchange among the ranks.
    about: u64,
    beside: Option<Beside>,
}

/// The streams of what is too large for the default one: those that push, sort, and copy the rank's
/// part to itself.
struct Beside {
    lanes: Lanes<3>,
    /// For each half of the window.
    arrived: [Event; 2],
    sorted: [Event; 2],
}

/// The kernels of a rank between two meetings.
#[derive(Debug, Default)]
struct Step {
    /// From this rank's part into the window of a peer.
    pushes: Vec<Kernel>,
    /// From this rank's window into its part.
    sorts: Vec<Kernel>,
}

#[derive(Debug)]
struct Kernel {
    /// The address in the window.
    window: u64,
    bytes: u64,
    plan: PermutePlan,
}

/// From so many bytes of a rank on, kernels have parts of the multiprocessors: fewer blocks run all
/// at once on all of them, and the host needs fewer calls. It was chosen and not measured.
const LARGE: u64 = 16 << 20;
/// The sixteenths of the multiprocessors for the copy to itself, and as many for what sorts. An
/// H200 moves as many bytes as a link with 24 of 132 multiprocessors, and a push needs 68
/// (`benches/record/2026-11-28-h200/redistribute.md`).
const PART: u32 = 3;

impl Beside {
    fn new(communicator: &Communicator) -> Result<Self> {
        let device = communicator.device();
        let all = device.info().multiprocessors;
        let part = all * PART / 16 / LEAST_PART * LEAST_PART;
        let on = |first, count| Multiprocessors { first, count };
        let parts =
            if part == 0 { [on(0, all); 3] } else { [on(2 * part, all - 2 * part), on(part, part), on(0, part)] };
        Ok(Self { lanes: Lanes::new(device, parts)?, arrived: events(device)?, sorted: events(device)? })
    }
}

impl Windowed {
    /// Plans the kernels of the communicator's rank, and opens the window with all ranks; `None` if
    /// nothing crosses, or some ranks do not reach each other's memory.
    pub(super) fn new(
        communicator: &Arc<Communicator>,
        plan: &Redistribution,
        most: Option<u64>,
        by: Deadline,
    ) -> Result<Option<Self>> {
        if communicator.ranks() > WINDOW_RANKS {
            // Each rank plans for all.
            return Ok(None);
        }
        let all: Vec<Arrivals> = (0..plan.ranks()).map(|rank| Arrivals::new(plan, rank, most)).collect();
        let halves = [0, 1].map(|half| all.iter().map(|of| of.halves[half]).max().unwrap_or(0));
        let (bytes, count) = (halves.iter().sum(), all.iter().map(Arrivals::steps).max().unwrap_or(0));
        if bytes == 0 {
            return Ok(None);
        }
        let Some(window) = communicator.engine().window(bytes, by)? else { return Ok(None) };
        let (rank, target) = (communicator.rank(), Target::of(communicator.device()));
        let kernel =
            |src: &_, dst: &_| PermutePlan::new(src, Align::ALLOCATION, dst, Align::ALLOCATION, plan.width(), target);
        let mut steps: Vec<Step> = (0..count).map(|_| Step::default()).collect();
        let place = |peer: usize, step: usize, at: u64| window.addresses[peer] + at + [0, halves[0]][step % 2];
        for arrival in all.get(rank).into_iter().flat_map(|of| &of.all) {
            let (piece, at) = (&arrival.piece, arrival.at);
            let plan = kernel(&between(piece), &piece.dst)?;
            steps[piece.step].sorts.push(Kernel { window: place(rank, piece.step, at), bytes: piece.bytes, plan });
        }
        // Each rank begins with the one behind it.
        let ranks = communicator.ranks();
        for peer in (1..ranks).map(|step| (rank + step) % ranks).filter(|&peer| peer < all.len()) {
            for arrival in all[peer].all.iter().filter(|arrival| arrival.from == rank) {
                let (piece, at) = (&arrival.piece, arrival.at);
                let plan = kernel(&piece.src, &between(piece))?;
                steps[piece.step].pushes.push(Kernel { window: place(peer, piece.step, at), bytes: piece.bytes, plan });
            }
        }
        let own = plan.moves_from(rank).into_iter().find(|part| part.to == rank);
        let own = own.map(|part| kernel(&part.src, &part.dst)).transpose()?;
        let is_large = steps.len() > 1 || plan.busiest_bytes() >= LARGE;
        let beside = is_large.then(|| Beside::new(communicator)).transpose()?;
        Ok(Some(Self {
            communicator: Arc::clone(communicator),
            steps,
            own,
            window: bytes,
            about: digest(&(plan, most)),
            beside,
        }))
    }

    /// Queues kernels between parts and windows.
    ///
    /// # Safety
    ///
    /// As [`Way::queue`]; the bytes in the windows are those of this step.
    unsafe fn push(&self, step: &Step, from: u64, stream: &Stream) -> Result<()> {
        let device = self.communicator.device();
        // SAFETY: as the caller promises. The layouts lie within the source's part and the window.
        let push = |kernel: &Kernel| unsafe { kernel.plan.launch_raw(device, from, kernel.window, stream.handle()) };
        step.pushes.iter().try_for_each(push)
    }

    /// # Safety
    ///
    /// As [`Windowed::push`].
    unsafe fn sort(&self, step: &Step, to: u64, stream: &Stream) -> Result<()> {
        let device = self.communicator.device();
        // SAFETY: as the caller promises. The layouts lie within the window and the result's part.
        let sort = |kernel: &Kernel| unsafe { kernel.plan.launch_raw(device, kernel.window, to, stream.handle()) };
        step.sorts.iter().try_for_each(sort)
    }

    /// Queues the copy of the rank to itself.
    ///
    /// # Safety
    ///
    /// As [`Way::queue`].
    unsafe fn copy_own(&self, [from, to]: [u64; 2], stream: &Stream) -> Result<()> {
        let Some(own) = &self.own else { return Ok(()) };
        // SAFETY: as the caller promises.
        unsafe { own.launch_raw(self.communicator.device(), from, to, stream.handle()) }
    }

    /// Queues the steps on streams of their own. A half of the window is free once the ranks have
    /// met behind what was sorted of it; a rank sorts once they have met behind the pushes. So a
    /// push of one step runs while the step before it is sorted.
    ///
    /// # Safety
    ///
    /// As [`Way::queue`].
    unsafe fn queue_beside(&self, beside: &Beside, stream: &Stream, parts: [u64; 2], by: Deadline) -> Result<()> {
        let ([from, to], engine) = (parts, self.communicator.engine());
        let Beside { lanes, arrived, sorted } = beside;
        let [push, sort, own] = lanes.streams();
        lanes.fork(stream)?;
        engine.meet(self.about, push, by)?;
        for (number, step) in self.steps.iter().enumerate() {
            // SAFETY: as the caller promises; all ranks have left this half of the windows.
            unsafe { self.push(step, from, push) }?;
            if number == 0 {
                // Behind the first kernels that peers wait for.
                // SAFETY: as the caller promises.
                unsafe { self.copy_own(parts, own) }?;
            } else {
                push.wait(&sorted[(number - 1) % 2])?;
            }
            engine.meet(self.about, push, by)?;
            if number + 1 == self.steps.len() {
                // Nothing is pushed any more, so these multiprocessors are free, and are more.
                // SAFETY: as the caller promises; all ranks have pushed.
                unsafe { self.sort(step, to, push) }?;
                break;
            }
            push.record(&arrived[number % 2])?;
            sort.wait(&arrived[number % 2])?;
            // SAFETY: as above.
            unsafe { self.sort(step, to, sort) }?;
            sort.record(&sorted[number % 2])?;
        }
        Ok(())
    }
}

impl Way for Windowed {
    fn buffers(&self) -> Vec<&Shared<Allocation>> {
        // The engine keeps the window.
        Vec::new()
    }

    unsafe fn queue(&self, stream: &Stream, parts: [u64; 2], by: Deadline) -> Result<()> {
        if let Some(beside) = &self.beside {
            // SAFETY: as the caller promises.
            return unsafe { self.queue_beside(beside, stream, parts, by) };
        }
        let ([from, to], engine) = (parts, self.communicator.engine());
        let [step] = &*self.steps else { return Ok(()) };
        engine.meet(self.about, stream, by)?;
        // SAFETY: as the caller promises; all ranks have left their windows.
        unsafe { self.push(step, from, stream) }?;
        // SAFETY: as the caller promises.
        unsafe { self.copy_own(parts, stream) }?;
        engine.meet(self.about, stream, by)?;
        // SAFETY: as the caller promises; all ranks have pushed.
        unsafe { self.sort(step, to, stream) }
    }

    fn join(&self, stream: &Stream) -> Result<()> {
        self.beside.as_ref().map_or(Ok(()), |beside| beside.lanes.join(stream))
    }

    fn synchronize(&self) {
        if let Some(beside) = &self.beside {
            beside.lanes.synchronize();
        }
        // A stream whose wait fails has stopped its work.
        let _ = self.communicator.device().default_stream().synchronize();
    }
}

/// The steps, and what is pushed and sorted on this rank.
impl fmt::Display for Windowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes =
            |of: fn(&Step) -> &Vec<Kernel>| self.steps.iter().flat_map(of).map(|kernel| kernel.bytes).sum::<u64>();
        write!(
            f,
            "{}: it stores {} into the windows of its peers, and sorts {} that arrive in its own, which has {}",
            counted(self.steps.len(), "step"),
            counted(bytes(|step| &step.pushes), "byte"),
            counted(bytes(|step| &step.sorts), "byte"),
            counted(self.window, "byte"),
        )
    }
}
