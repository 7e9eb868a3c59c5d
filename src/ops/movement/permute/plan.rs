//! Plans a launch from two layouts.

use std::fmt;

use super::strategies::boxes;
use super::strategy::{Launch, STRATEGIES};
use super::task::{Choice, Task};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::Element;
use crate::error::{Error, Result, counted};
use crate::launch_shape::LaunchShape;
use crate::layout::Layout;
use crate::layout::walk::{Canonical, Reach};
use crate::ops::operand::{
    Operand, are_apart, check_aligned, check_apart, check_pair, check_shapes, check_width, queue,
};
use crate::ops::plan::Explanation;
use crate::ops::{Align, Plan, Target, TileShape};
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// A plan that copies one layout to another: the kernel, the grid and the parameters.
///
/// Only layouts, alignments and the target decide a plan, without a device. Layouts that mean the
/// same work give equal plans. A program can keep a plan and launch it any number of times: on
/// views ([`PermutePlan::launch`]) or on memory that others own ([`PermutePlan::launch_raw`]).
///
/// Several strategies look at the work in order, and the first that takes it gives the launch.
/// [`PermutePlan::explain`] lists every verdict.
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
    work: Option<Launch>,
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

    /// Plans the same with kernels for large arrays, whatever the size, and with these tiles.
    /// Widths that `tiles` lacks use no tiles.
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

    /// Plans the same with boxes, whatever other kernels would do: the best few plans by their
    /// estimates, the best first, with the numbers of their boxes. It is empty where no box fits.
    ///
    /// This is for tests.
    ///
    /// # Errors
    ///
    /// As [`PermutePlan::new`].
    #[doc(hidden)]
    pub fn by_boxes(
        src: &Layout,
        src_align: Align,
        dst: &Layout,
        dst_align: Align,
        width: usize,
        target: Target,
    ) -> Result<Vec<(Self, String)>> {
        check([src, dst], [src_align, dst_align], width)?;
        let aligns = [src_align, dst_align];
        let first = Self::of([src, dst], width, aligns, target, Choice::Boxes(0));
        if first.canonical.is_empty() {
            return Ok(Vec::new());
        }
        let launches = boxes::candidates(&first.task());
        let plan = |(rank, (launch, numbers))| {
            let mut plan = first;
            (plan.choice, plan.work) = (Choice::Boxes(rank), Some(launch));
            (plan, numbers)
        };
        Ok(launches.into_iter().flatten().enumerate().map(plan).collect())
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
        plan.choose();
        plan
    }

    /// Offers the work to the strategies and keeps the launch of the first that takes it.
    fn choose(&mut self) {
        if self.canonical.is_empty() {
            return;
        }
        // Not by `task`, which would borrow all of the plan.
        let task = Task::new(&self.canonical, self.aligns, self.target, self.choice).reading_gaps(self.may_read_gaps);
        if let Choice::Boxes(rank) = self.choice
            && self.may_read_gaps
        {
            self.reason = "the plan is to move boxes";
            self.work = boxes::candidates(&task).into_iter().flatten().nth(rank).map(|(launch, _)| launch);
            return;
        }
        let takes = STRATEGIES.iter().find_map(|strategy| (strategy.consider)(&task, &mut self.work).ok());
        self.reason = takes.expect("the last strategy takes every task");
    }

    /// Returns the task that the strategies look at.
    pub(super) fn task(&self) -> Task<'_> {
        Task::new(&self.canonical, self.aligns, self.target, self.choice).reading_gaps(self.may_read_gaps)
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
            unsafe { work.step().queue_on(device, [src, dst], stream) }
        })
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
        unsafe { work.step().queue(device, [src, dst], stream) }
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
        self.work.as_ref().map(|work| work.step().entry().name())
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
            Some(work) => work.step().fmt(f),
        }
    }
}
