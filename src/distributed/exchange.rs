//! Redistributes arrays among the GPUs of one host.

use std::fmt;
use std::sync::Arc;

use super::push::{self, Push};
use super::pushes::{Lane, Pushes};
use super::staged::{PIECE, Staged};
use super::ways::Way;
use super::{Distributed, Gpus, Move, Redistribution, Split, order};
use crate::element::Element;
use crate::error::{Result, counted, require};
use crate::ops::{Align, PermutePlan, Target};

/// The bytes of a copy from which on those to peers leave multiprocessors to the copy of a rank to
/// itself. All blocks of a smaller one fit on the GPU at once, so both run at once anyway, and
/// fewer streams and launches cost the host fewer calls. It was chosen and not measured.
const APART: u64 = 16 << 20;

/// A [`Redistribution`] that is ready to be launched on the GPUs of a host.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use std::sync::Arc;
///
/// use warpstride::distributed::{Distributed, Exchange, Gpus, Redistribution, Split};
///
/// let gpus = Arc::new(Gpus::soft(2)?);
/// let (rows, columns) = (Split::whole(&[2, 3])?.cut(0, 2)?, Split::whole(&[2, 3])?.cut(1, 2)?);
/// let source = Distributed::scatter(&gpus, &rows, &[1, 2, 3, 4, 5, 6])?;
/// let mut result = Distributed::alloc(&gpus, &columns)?;
///
/// let exchange = Exchange::new(&gpus, &Redistribution::new(&rows, [0, 1], &columns, 4)?)?; // once
/// exchange.launch(&source, &mut result)?; // any number of times
/// assert_eq!(result.part(1).shape(), [2, 1]);
/// assert_eq!(result.gather()?, [1, 2, 3, 4, 5, 6]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
#[derive(Debug)]
pub struct Exchange {
    plan: Redistribution,
    pushes: Pushes,
}

impl Exchange {
    /// Plans the kernels of each rank. Small copies of a rank to its peers have one launch if
    /// alike. Where a rank does not use another one's memory ([`Gpus::reaches`]), elements go
    /// through pinned host memory, in pieces of 16 MiB at most. The buffers for that are allocated
    /// here. They have room for two pieces on the host for each rank that sends, and for three on
    /// its GPU.
    ///
    /// Copy engines take elements that lie side by side in both parts, 4 MiB or more of them. After
    /// a measurement of the links ([`Gpus::measure_links`]), they take what they are faster for.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the plan has more ranks than there are GPUs; else as
    /// [`PermutePlan::new`], and the error of an allocation.
    pub fn new(gpus: &Arc<Gpus>, plan: &Redistribution) -> Result<Self> {
        Self::in_pieces(gpus, plan, PIECE)
    }

    /// As [`Exchange::new`], with pieces of at most so many bytes, or of one element. These are the
    /// pieces that are packed or go through the host.
    ///
    /// # Errors
    ///
    /// As [`Exchange::new`].
    pub fn in_pieces(gpus: &Arc<Gpus>, plan: &Redistribution, bytes: u64) -> Result<Self> {
        gpus.check_ranks(plan.ranks())?;
        let moves = order::of_host(plan).into_iter().take(plan.source().ranks());
        let (mut pushed, mut staged) = (Vec::new(), Vec::new());
        for moves in moves {
            let ways = moves.into_iter().map(|part| (Way::of(gpus, &part), part));
            let (kernels, others): (Vec<_>, Vec<_>) = ways.partition(|(way, _)| *way == Way::Kernel);
            pushed.push(kernels.into_iter().map(|(_, part)| part).collect());
            staged.push(others);
        }
        let pushes_of = |(rank, moves): (usize, Vec<Move>)| {
            let target = Target::of(gpus.device(rank));
            let is_apart = gpus.is_limited() || moves.iter().any(|part| part.bytes >= APART);
            let to_peers = if is_apart { Lane::Peers } else { Lane::Default };
            let one = |part: &Move| {
                let align = Align::ALLOCATION;
                let kernel = PermutePlan::new(&part.src, align, &part.dst, align, plan.width(), target)?;
                Ok(Push::one(part.to, if part.to == rank { Lane::Own } else { to_peers }, kernel))
            };
            if is_apart { moves.iter().map(one).collect() } else { push::together(&moves, plan.width(), target, one) }
        };
        let pushes = pushed.into_iter().enumerate().map(pushes_of).collect::<Result<_>>()?;
        let staged = Staged::new(gpus, (plan.axes(), plan.width()), &staged, bytes)?;
        Ok(Self { plan: plan.clone(), pushes: Pushes::new(gpus, pushes, staged) })
    }

    /// Returns the pairs of ranks, from and to, whose elements go through pinned host memory.
    pub fn through_host(&self) -> Vec<(usize, usize)> {
        self.pushes.staged().pairs(Way::Host).collect()
    }

    /// Returns the pairs of ranks, from and to, between which copy engines move the elements.
    pub fn by_engines(&self) -> Vec<(usize, usize)> {
        self.pushes.staged().pairs(Way::Engine).collect()
    }

    /// Queues the copies of all ranks, after all former uses of the arrays. The work of a rank is
    /// queued on its device's default stream. Nothing is allocated on a device, and the host waits
    /// for nothing.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if an array is on other GPUs; `Layout` if it is split otherwise than
    /// planned; else the driver's error. The elements of the result are unspecified after it.
    pub fn launch<T: Element>(&self, source: &Distributed<T>, result: &mut Distributed<T>) -> Result<()> {
        self.check(source, "source", self.plan.source())?;
        self.check(result, "result", self.plan.result())?;
        let (from, to) = (source.memory(), result.memory());
        // SAFETY: the layouts lie within the parts of the source and of the result, as checked. No
        // two parts of a split share an element, so no two copies write the same one, and the
        // result is borrowed exclusively.
        unsafe { self.pushes.queue([&from, &to]) }
    }

    /// Returns the copies that it queues.
    pub(super) fn pushes(&self) -> &Pushes {
        &self.pushes
    }

    fn check<T: Element>(&self, array: &Distributed<T>, name: &str, planned: &Split) -> Result<()> {
        require!(
            Arc::ptr_eq(array.gpus(), self.pushes.gpus()),
            InvalidArgument,
            "the {name} is on other GPUs than the exchange; make both with one `Arc<Gpus>`"
        );
        require!(
            array.split() == planned && size_of::<T>() == self.plan.width(),
            Layout,
            "the {name} is {} with elements of {}, and the exchange was planned for {planned} with {}; make an exchange for it",
            array.split(),
            counted(size_of::<T>(), "byte"),
            counted(self.plan.width(), "byte")
        );
        Ok(())
    }
}

/// The plan, and the kernel of each launch, or its other way.
impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.plan)?;
        for (rank, pushes) in self.pushes.of().iter().enumerate() {
            for push in pushes {
                write!(f, "\nrank {rank} to {push}")?;
            }
        }
        write!(f, "{}", self.pushes.staged())
    }
}
