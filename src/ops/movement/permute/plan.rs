//! Plans a launch from two layouts.

use std::fmt;

use super::choose::Way;
use super::launch::{Launch, Layouts};
use super::task::{Choice, Task};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::Element;
use crate::error::{Error, Result, counted, require};
use crate::launch_shape::LaunchShape;
use crate::layout::Layout;
use crate::layout::walk::{Axis, Canonical, Reach};
use crate::memory::DeviceBuffer;
use crate::ops::choose::{Costs, Offer, choose};
use crate::ops::operand::{
    Operand, are_apart, check_aligned, check_apart, check_pair, check_shapes, check_width, queue,
};
use crate::ops::plan::Explanation;
use crate::ops::{Align, Plan, Target, TileShape};
use crate::random::SplitMix64;
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// A plan that copies one layout to another: the kernel, the grid, and all that its parameters are
/// written from.
///
/// Only layouts, alignments and the target decide a plan, without a device. Layouts that mean the
/// same work give equal plans. A program can keep a plan and launch it any number of times: on
/// views ([`PermutePlan::launch`]) or on memory that others own ([`PermutePlan::launch_raw`]).
///
/// The layouts give the work a class, a class asks some strategies, and the one with the least
/// estimated time gives the launch. [`PermutePlan::explain`] lists them and their estimates.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
/// use warpstride::layout::Layout;
/// use warpstride::ops::{Align, PermutePlan, Plan, Target};
///
/// let device = Device::open(Backend::Soft)?;
/// let from = Layout::row_major(&[2, 3])?.t();
/// let to = Layout::row_major(&[3, 2])?;
/// let plan = PermutePlan::new(&from, Align::ALLOCATION, &to, Align::ALLOCATION, 4, Target::of(&device))?;
/// println!("{plan}\n{}", plan.explain());
///
/// for numbers in [[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], [0.0; 6]] {
///     let source = device.upload(&numbers)?;
///     let mut result = device.zeros::<f32>(6)?;
///     plan.launch(source.view_with(from)?, result.view_mut_with(to)?, device.default_stream())?;
///     assert_eq!(result.download()?[1], numbers[3]);
/// }
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PermutePlan {
    /// `None` where there are no elements.
    pub(super) work: Option<Launch>,
    /// Why the plan uses this kernel.
    pub(super) reason: &'static str,
    /// The work in elements of the layouts' width.
    pub(super) canonical: Canonical,
    /// The bytes of each side that the kernel touches.
    pub(super) reach: [Reach; 2],
    pub(super) aligns: [Align; 2],
    target: Target,
    choice: Choice,
    /// True if the kernel may read the bytes between the elements of the source.
    may_read_gaps: bool,
}

impl PermutePlan {
    /// Plans `dst[i, j, ...] = src[i, j, ...]` for elements of `width` bytes, in storages whose
    /// addresses are multiples of the alignments.
    ///
    /// Kernels for large arrays use hints to the L2 cache if `target` supports them, from compute
    /// capability 8.0 on. Such a plan cannot be launched on an older device.
    ///
    /// # Errors
    ///
    /// `Layout` if the shapes differ, `dst` may reach an element twice, or the bytes of a storage
    /// overflow; `InvalidArgument` if the width is not 1, 2, 4, 8 or 16, or an alignment is less
    /// than it.
    pub fn new(
        src: &Layout,
        src_align: Align,
        dst: &Layout,
        dst_align: Align,
        width: usize,
        target: Target,
    ) -> Result<Self> {
        check([src, dst], [src_align, dst_align], width)?;
        Ok(Self::of([src, dst], width, [src_align, dst_align], target, Choice::Any))
    }

    /// Plans the same with these tiles, where tiles take the work, and without the kernels for
    /// small arrays. Widths that `tiles` lacks use no tiles.
    ///
    /// # Errors
    ///
    /// As [`PermutePlan::new`].
    #[doc(hidden)]
    pub fn tuned(
        src: &Layout,
        src_align: Align,
        dst: &Layout,
        dst_align: Align,
        width: usize,
        target: Target,
        tiles: &[TileShape],
    ) -> Result<Self> {
        check([src, dst], [src_align, dst_align], width)?;
        let widened = Canonical::new(src, dst, width).widened(src_align.min(dst_align).bytes()).width;
        let shape = tiles.iter().find(|shape| shape.width() == widened).copied();
        Ok(Self::of([src, dst], width, [src_align, dst_align], target, Choice::Large(shape)))
    }

    /// Plans the same work in every way in which a kernel takes it: first by the strategies, and
    /// then by boxes in several cuts.
    #[doc(hidden)]
    #[must_use]
    pub fn ways(&self) -> Vec<Self> {
        let ways = Way::all().filter(|_| !self.canonical.is_empty());
        self.offered(ways).into_iter().map(|(plan, _)| plan).collect()
    }

    /// Plans the same work in every way that plans of it ask and whose time is estimated by
    /// weights, each with what these weigh.
    #[doc(hidden)]
    #[must_use]
    pub fn estimated(&self) -> Vec<(Self, Costs)> {
        if self.canonical.is_empty() {
            return Vec::new();
        }
        let offered = self.offered(Way::asked(&self.task()));
        offered.into_iter().filter_map(|(plan, offer)| Some((plan, offer.costs?))).collect()
    }

    /// Plans the same work in these ways, as far as a kernel takes it, with the offer of each.
    fn offered(&self, ways: impl Iterator<Item = Way>) -> Vec<(Self, Offer)> {
        let mut offered: Vec<(Self, Offer)> = Vec::new();
        for way in ways {
            let (mut plan, mut work) = (Self { choice: Choice::Way(way), ..*self }, None);
            let Ok(offer) = way.consider(&plan.task(), &mut work) else { continue };
            if !offered.iter().any(|(known, _)| known.work == work) {
                (plan.work, plan.reason) = (work, offer.reason);
                offered.push((plan, offer));
            }
        }
        offered
    }

    /// Plans other layouts of elements of this width in the same way, such as those of other parts
    /// of buffers.
    ///
    /// # Errors
    ///
    /// As [`PermutePlan::new`]; `Layout` if they need another kernel.
    #[doc(hidden)]
    pub fn like(&self, src: &Layout, dst: &Layout) -> Result<Self> {
        let width = self.canonical.width;
        check([src, dst], self.aligns, width)?;
        let plan = Self::of([src, dst], width, self.aligns, self.target, self.choice);
        let is_alike = (plan.choice, plan.entry()) == (self.choice, self.entry());
        require!(is_alike, Layout, "`{self}` does not take these layouts, which go by `{plan}`; make a plan for them");
        Ok(plan)
    }

    /// Plans the work again with the kernels for large arrays, as if this one were large. So tests
    /// run on small arrays what needs megabytes otherwise.
    #[doc(hidden)]
    #[must_use]
    pub fn as_if_large(mut self) -> Self {
        self.choice = Choice::AsIfLarge;
        self.choose();
        self
    }

    /// Plans checked work. The plan is large, so its parts are built in place.
    fn of([src, dst]: [&Layout; 2], width: usize, aligns: [Align; 2], target: Target, choice: Choice) -> Self {
        let canonical = Canonical::empty(width);
        let (reason, reach) = ("there are no elements", [Reach::default(); 2]);
        let mut plan = Self { work: None, reason, canonical, reach, aligns, target, choice, may_read_gaps: true };
        plan.canonical.fill(src, dst);
        plan.reach = plan.canonical.reach([width; 2]);
        if choice == Choice::Any {
            plan.choice = plan.measured();
        }
        plan.choose();
        plan
    }

    /// Returns the choice of the user's tuning file, if it has the work.
    fn measured(&self) -> Choice {
        let way = self.target.measured.way(|| self.key(), Way::named);
        way.map_or(Choice::Any, Choice::Way)
    }

    /// Returns a number that stands for the work in the user's tuning file, wherever the first
    /// elements lie that are aligned alike. Two works of one number would share their way, by which
    /// both are right.
    pub(super) fn key(&self) -> u64 {
        let Self { canonical: Canonical { width, src_start, dst_start, .. }, aligns: [from, to], .. } = self;
        let first = |align: &Align, start: usize| Align::of(align.bytes() | (start * width) as u64).bytes();
        let sides = [*width as u64, first(from, *src_start), first(to, *dst_start)];
        // Other tiles and blocks would be other launches.
        let tuned = self.target.tuned.map(|tuned| {
            let tiles = tuned.across_log2().into_iter().flatten();
            tiles
                .chain([tuned.copy_block(), tuned.fill_block()])
                .fold(1, |mixed, number| SplitMix64::at(mixed, number.into()))
        });
        let axes =
            self.canonical.axes().iter().flat_map(|&Axis { extent, src, dst }| [extent as u64, src as u64, dst as u64]);
        sides.into_iter().chain(axes).fold(tuned.unwrap_or(0), SplitMix64::at)
    }

    /// Returns the number of the work and its way, as the user's tuning file keeps them.
    pub(crate) fn kept_as(&self) -> Option<(u64, String)> {
        Some((self.key(), self.way()?.to_string()))
    }

    /// Returns the way that the plan was to take.
    pub(super) fn way(&self) -> Option<Way> {
        if let Choice::Way(way) = self.choice { Some(way) } else { None }
    }

    /// Returns the same work planned for a target.
    pub(crate) fn for_target(&self, target: Target) -> Self {
        let mut plan = Self { target, may_read_gaps: true, ..*self };
        plan.choice = plan.measured();
        plan.choose();
        plan
    }

    /// Returns the same work planned for a target by estimates, whatever was measured.
    pub(crate) fn unmeasured(&self, target: Target) -> Self {
        let mut plan = Self { target, may_read_gaps: true, choice: Choice::Any, ..*self };
        plan.choose();
        plan
    }

    /// Returns whether both plans have one launch.
    pub(crate) fn launches_as(&self, other: &Self) -> bool {
        self.work == other.work
    }

    /// Returns the bytes of a buffer for each side: the storage, behind as many bytes as give its
    /// start the planned alignment and no larger one.
    pub(crate) fn rooms(&self) -> [usize; 2] {
        [0, 1].map(|side| self.aligns[side].lead().saturating_add(self.reach[side].end))
    }

    /// Keeps the launch that the way gives, or else the fastest by its estimate.
    fn choose(&mut self) {
        if self.canonical.is_empty() {
            return;
        }
        if let Choice::Way(way) = self.choice {
            let mut work = None;
            if way.consider(&self.task(), &mut work).is_ok() {
                (self.work, self.reason) = (work, "it was the fastest when the work was measured on this GPU");
                return;
            }
            self.choice = Choice::Any;
        }
        // Not by `task`, which would borrow all of the plan.
        let task = Task::new(&self.canonical, self.aligns, self.target, self.choice).reading_gaps(self.may_read_gaps);
        let offer = choose(&task, &mut self.work).expect("the last strategy takes every task");
        self.reason = offer.reason;
    }

    /// Returns the task that the strategies look at.
    pub(super) fn task(&self) -> Task<'_> {
        Task::new(&self.canonical, self.aligns, self.target, self.choice).reading_gaps(self.may_read_gaps)
    }

    /// Returns the layouts from which launches write their parameters.
    pub(super) fn layouts(&self) -> Layouts<'_> {
        Layouts { canonical: &self.canonical, aligns: self.aligns }
    }

    /// Returns the bytes of the elements, each of which is read once and written once.
    pub(super) fn bytes(&self) -> u64 {
        (self.canonical.len() * self.canonical.width) as u64
    }

    /// Queues the copy of `src` to `dst` on `stream`. If both lie in one buffer, `dst` between the
    /// elements of `src`, the launch may use another kernel than the planned one, which reads the
    /// bytes there.
    ///
    /// # Errors
    ///
    /// `Layout` if the views do not mean the planned work; `InvalidArgument` if the operands and
    /// the stream are not on one device, or the device does not allow the launch; else the driver's
    /// error.
    pub fn launch<'a, T: Element>(
        &self,
        src: impl Into<View<'a, T>>,
        dst: impl Into<ViewMut<'a, T>>,
        stream: &Stream,
    ) -> Result<()> {
        let (src, dst) = (src.into(), dst.into());
        self.check(size_of::<T>(), src.layout(), dst.layout())?;
        self.queue([Operand::read("source", &src), Operand::written("destination", &dst)], stream)
    }

    /// Queues the copy of the first operand to the second, which are known to match the plan and to
    /// share no element.
    pub(super) fn queue(&self, operands: [Operand<'_>; 2], stream: &Stream) -> Result<()> {
        queue(operands, stream, &|device, [src, dst], _| {
            let plan = if self.may_read_destination(src, dst) { &(*self).without_gaps() } else { self };
            let Some(work) = &plan.work else { return Ok(()) };
            // SAFETY: the kernel writes exactly the elements of the planned destination, and reads
            // those of the planned source and at most the bytes between. The layouts are the
            // operands', within buffers that live until their drops, aligned as allocations are.
            // The kernel reads nothing that it writes: the second operand is borrowed exclusively,
            // and where it may lie between the elements of the first, the kernel reads only these.
            // `queue` orders other work on both buffers and requires one device.
            unsafe { work.step().queue_on(&plan.layouts(), device, [src, dst], stream) }
        })
    }

    /// Queues the copy between parts of two buffers, whatever they hold: at these multiples of 256
    /// bytes, of the bytes that [`PermutePlan::rooms`] returns.
    ///
    /// # Errors
    ///
    /// As [`PermutePlan::launch`]; `InvalidArgument` if a buffer does not have that part.
    pub(crate) fn launch_between(
        &self,
        src: &DeviceBuffer<u8>,
        dst: &mut DeviceBuffer<u8>,
        at: [usize; 2],
        stream: &Stream,
    ) -> Result<()> {
        let rooms = self.rooms();
        for (which, len, side) in [("source", src.len(), 0), ("destination", dst.len(), 1)] {
            let end = at[side].checked_add(rooms[side]);
            require!(
                end.is_some_and(|end| end <= len) && (at[side] as u64).is_multiple_of(Align::ALLOCATION.bytes()),
                InvalidArgument,
                "the {which} of {} has no part of {} from byte {}, which must be a multiple of 256; pass a larger buffer",
                counted(len, "byte"),
                counted(rooms[side], "byte"),
                at[side]
            );
        }
        let (all_src, all_dst) = (src.len(), dst.len());
        let (src, dst) = (src.view(&[all_src])?, dst.view_mut(&[all_dst])?);
        let starts = [0, 1].map(|side| (at[side] + self.aligns[side].lead()) as u64);
        let launch = |device: &Device, [src, dst]: [u64; 2], _| {
            let Some(work) = &self.work else { return Ok(()) };
            // SAFETY: both buffers hold their storage from these bytes on, which are aligned as
            // planned, and live until their drops. They share nothing, because one is borrowed
            // exclusively. `queue` orders other work on both and requires one device.
            unsafe { work.step().queue_on(&self.layouts(), device, [src + starts[0], dst + starts[1]], stream) }
        };
        queue([Operand::read("source", &src), Operand::written("destination", &dst)], stream, &launch)
    }

    /// Returns whether the kernel reads bytes between the elements of a source at this address that
    /// may be those of the destination.
    fn may_read_destination(&self, src: u64, dst: u64) -> bool {
        let [from, to] = self.reach;
        let has_gaps = || self.canonical.src_span().is_empty() && !are_apart(&from.at(src), &to.at(dst));
        matches!(self.work, Some(Launch::Boxes(_))) && has_gaps()
    }

    /// Plans the same with kernels that read nothing but elements.
    #[doc(hidden)]
    #[must_use]
    #[cold]
    pub fn without_gaps(mut self) -> Self {
        self.may_read_gaps = false;
        self.choose();
        self
    }

    /// Checks that two layouts mean the planned work.
    fn check(&self, width: usize, src: &Layout, dst: &Layout) -> Result<()> {
        check_shapes(src, dst)?;
        if width == self.canonical.width && Canonical::new(src, dst, width) == self.canonical {
            return Ok(());
        }
        Err(Error::layout(format!(
            "the plan was made for other views than a source of strides {:?} and a destination of strides {:?}, of \
                 shape {:?} and elements of {}; make a plan for these",
            src.strides(),
            dst.strides(),
            src.shape(),
            counted(width, "byte")
        )))
    }

    /// Queues the copy between storages at these addresses, in memory that others own.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if an address is not aligned as planned, the two sides overlap, the device
    /// does not allow the launch's shape, or its architecture is older than the planned one; else
    /// the driver's error.
    ///
    /// # Safety
    ///
    /// [The raw contract](crate::ops#the-raw-contract), for storages of the planned layouts.
    pub unsafe fn launch_raw(&self, device: &Device, src: u64, dst: u64, stream: StreamHandle) -> Result<()> {
        let Some(work) = &self.work else { return Ok(()) };
        let [src_align, dst_align] = self.aligns.map(Align::bytes);
        check_aligned(&[("source", src, src_align), ("destination", dst, dst_align)])?;
        let [from, to] = self.reach;
        check_apart(from.at(src), to.at(dst))?;
        // SAFETY: the kernel writes exactly the elements of the planned destination, and reads
        // those of the source and at most the bytes between, in accesses that the alignments allow.
        // The two sides do not overlap; the rest as the caller promises.
        unsafe { work.step().queue(&self.layouts(), device, [src, dst], stream) }
    }
}

/// Checks that elements can be copied between two layouts.
fn check([src, dst]: [&Layout; 2], [src_align, dst_align]: [Align; 2], width: usize) -> Result<()> {
    check_width(width)?;
    check_pair([src, dst], [width; 2], "copied")?;
    if !src.is_empty() {
        src_align.check("source", width)?;
        dst_align.check("destination", width)?;
    }
    Ok(())
}

impl Plan for PermutePlan {
    /// Names the kernel. The name ends in `_hinted` if the kernel gives hints to the L2 cache.
    fn entry(&self) -> Option<&'static str> {
        self.work.as_ref().map(|work| work.step().entry())
    }

    fn shape(&self) -> Option<LaunchShape> {
        self.work.as_ref().map(|work| work.step().shape())
    }

    fn launches(&self) -> u64 {
        u64::from(self.work.is_some())
    }

    fn explain(&self) -> Explanation {
        super::explain::explanation(self)
    }
}

impl fmt::Display for PermutePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.work {
            None => f.write_str("nothing to move"),
            Some(work) => work.step().print(&self.layouts(), f),
        }
    }
}

#[cfg(test)]
mod tests;
