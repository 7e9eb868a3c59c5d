//! Plans a launch from two layouts and their types.

use std::fmt;

use super::axes::Axes;
use super::launch::{Added, Launch};
use super::task::Task;
use super::{Affine, Channels};
use crate::abi::{MAX_CHANNELS, affine_type};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::{DType, Element};
use crate::error::{Error, Result, counted, refuse, require};
use crate::launch_shape::LaunchShape;
use crate::layout::Layout;
use crate::ops::choose::{choose, verdicts};
use crate::ops::operand::{Operand, bytes_from, check_aligned, check_pair, check_written_apart, queue};
use crate::ops::plan::{Explanation, Plan};
use crate::ops::{Align, Target};
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// Bytes of a channel's factor, and of its offset.
const VALUE: u64 = size_of::<f32>() as u64;

/// A plan that maps the elements of one layout and type to another: the kernel, the grid and the
/// parameters.
///
/// Only layouts, alignments and types decide a plan, without a device. Layouts that mean the same
/// work give equal plans. A program can keep a plan and launch it any number of times, with any
/// factors and offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AffinePlan {
    channels: Channels,
    /// The number of channels, if they have their own values.
    count: Option<usize>,
    types: [DType; 2],
    aligns: [Align; 2],
    /// `None` if there are no elements.
    planned: Option<Planned>,
}

/// A task, and the launch that does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Planned {
    task: Task,
    launch: Launch,
    /// Why this launch does it.
    reason: &'static str,
}

impl Planned {
    /// Returns the launch of the strategy with the best estimate; `None` if all decline, as they
    /// may where values go with a launch.
    fn new(task: Task) -> Option<Self> {
        let mut launch = None;
        let reason = choose(&task, &mut launch).ok()?.reason;
        Some(Self { task, launch: launch?, reason })
    }
}

impl AffinePlan {
    /// Plans `dst[i, j, ...] = fma(src[i, j, ...], factor, offset)` for storages with these
    /// layouts, alignments and types, source first. `channels` is the place of factors and offsets.
    ///
    /// The layouts give the work a class, as those of a [`PermutePlan`](crate::ops::PermutePlan)
    /// do. A class asks some strategies, and the one with the least estimated time gives the
    /// launch. Images of bytes become planes by a kernel of their own if their values are launch
    /// parameters. If the sides are contiguous along different axes, tiles transpose them: in
    /// registers if every row of both sides is whole vectors of 16 bytes. Else tiles of large
    /// arrays go through shared memory, from which vectors are gathered, and small arrays go
    /// element by element, because a launch takes most of their time. All other work goes element
    /// by element.
    ///
    /// # Errors
    ///
    /// `Layout` if the shapes differ, the destination may reach an element twice, the bytes of a
    /// storage overflow, or values are launch parameters but the layouts are not those of images;
    /// `InvalidArgument` if there is no kernel for the types, an alignment is less than an element,
    /// or the shape has no such axis.
    pub fn new(
        (src, src_align, from): (&Layout, Align, DType),
        (dst, dst_align, to): (&Layout, Align, DType),
        channels: impl Into<Channels>,
        target: Target,
    ) -> Result<Self> {
        let channels = channels.into();
        check_types(from, to)?;
        check_pair([src, dst], [from.width(), to.width()], "mapped")?;
        let count = channels.axis().map(|axis| extent(src, axis)).transpose()?;
        let with_launch = count.filter(|_| matches!(channels, Channels::WithLaunch(_))).unwrap_or(0);
        require!(
            with_launch <= MAX_CHANNELS,
            InvalidArgument,
            "the images have {}, and the values of at most {MAX_CHANNELS} go with a launch; give the values in device memory",
            counted(with_launch, "channel")
        );
        let plan = Self { channels, count, types: [from, to], aligns: [src_align, dst_align], planned: None };
        if src.is_empty() {
            return Ok(plan);
        }
        src_align.check("source", from.width())?;
        dst_align.check("destination", to.width())?;
        let task = Task::new([src, dst], plan.aligns, plan.types, channels, target)?;
        let Some(planned) = Planned::new(task) else {
            refuse!(
                Layout,
                "values go with a launch only where images of 1 to 4 channels of u8 become planes, both in C order without \
                 gaps, and not from strides {:?} to {:?} in shape {:?}; copy the images first (contiguous, copy_into), or \
                 give the values in device memory",
                src.strides(),
                dst.strides(),
                src.shape()
            )
        };
        Ok(Self { planned: Some(planned), ..plan })
    }

    /// Plans the work again with the kernels for large arrays, as if this one were large. So tests
    /// run on small arrays what needs megabytes otherwise.
    #[doc(hidden)]
    #[must_use]
    pub fn as_if_large(self) -> Self {
        let large = |planned: Planned| {
            let task = Task { may_be_small: false, ..planned.task };
            Planned::new(task).expect("a strategy took the task before")
        };
        Self { planned: self.planned.map(large), ..self }
    }

    /// Returns the bytes of the source's elements, and of factors and offsets in device memory. The
    /// elements of a broadcast source count each time they are read.
    fn read(&self) -> u64 {
        let values = match self.channels {
            Channels::InMemory(_) => (self.len().min(1) * self.count.unwrap_or(0) as u64).saturating_mul(2 * VALUE),
            _ => 0,
        };
        self.len().saturating_mul(self.types[0].width() as u64).saturating_add(values)
    }

    fn len(&self) -> u64 {
        self.planned.as_ref().map_or(0, |planned| planned.task.axes.walk.len() as u64)
    }

    /// Queues the map of `src` into `dst` on `stream`.
    ///
    /// # Errors
    ///
    /// As [`affine_into`](super::affine_into); `Layout` also if the views do not mean the planned
    /// work.
    pub fn launch<'a, S: Element, D: Element>(
        &self,
        src: impl Into<View<'a, S>>,
        affine: Affine<View<'_, f32>>,
        dst: impl Into<ViewMut<'a, D>>,
        stream: &Stream,
    ) -> Result<()> {
        let (src, dst) = (src.into(), dst.into());
        self.check_views(&Operand::read("source", &src), &Operand::written("destination", &dst))?;
        self.run(src, affine, dst, stream)
    }

    /// Runs [`AffinePlan::launch`] on the views that the plan was made from.
    pub(super) fn run<S: Element, D: Element>(
        &self,
        src: View<'_, S>,
        affine: Affine<View<'_, f32>>,
        dst: ViewMut<'_, D>,
        stream: &Stream,
    ) -> Result<()> {
        let [from, to] = [Operand::read("source", &src), Operand::written("destination", &dst)];
        let launch = |device: &Device, src, affine, dst, stream| {
            // SAFETY: the layouts lie within the buffers, and so do the channels' values; all live
            // until their drops and are aligned as allocations are; `dst` is borrowed exclusively,
            // so it shares no element with them; `queue` orders other work.
            unsafe { self.place(device, src, affine, dst, stream) }
        };
        let affine = match affine {
            Affine::PerChannel { axis, factors, offsets } => {
                let count = self.count.unwrap_or(0);
                let [f, o] = [Operand::read("factors", &factors), Operand::read("offsets", &offsets)];
                let starts = [channel_values(&f, count)?, channel_values(&o, count)?];
                return queue([from, f, o, to], stream, &|device, [src, factors, offsets, dst], stream| {
                    let (factors, offsets) = (factors + starts[0], offsets + starts[1]);
                    launch(device, src, Affine::PerChannel { axis, factors, offsets }, dst, stream)
                });
            }
            Affine::Uniform { factor, offset } => Affine::Uniform { factor, offset },
            Affine::Normalized { axis, by } => Affine::Normalized { axis, by },
        };
        queue([from, to], stream, &|device, [src, dst], stream| launch(device, src, affine, dst, stream))
    }

    /// Checks that the views mean the planned work.
    fn check_views(&self, from: &Operand<'_>, to: &Operand<'_>) -> Result<()> {
        let is_planned = [from.dtype, to.dtype] == self.types
            && from.layout.shape() == to.layout.shape()
            && match &self.planned {
                None => from.layout.is_empty(),
                Some(Planned { task, .. }) => {
                    !from.layout.is_empty() && Axes::new(from.layout, to.layout, self.channels.axis())? == task.axes
                }
            };
        if is_planned {
            return Ok(());
        }
        let [from, to] =
            [from, to].map(|operand| format!("elements of {} in {}", operand.dtype, operand.layout.described()));
        Err(Error::layout(format!("the plan was made for other work than {from} to {to}; make a plan for these")))
    }

    /// Queues the map on storages at these addresses.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if an address is not aligned as planned, the destination overlaps the
    /// source or the channels' values, or the values are not in the planned place; else the
    /// driver's error.
    ///
    /// # Safety
    ///
    /// As [`affine_into_raw`](super::affine_into_raw), for the layouts that the plan was made for.
    pub unsafe fn launch_raw(
        &self,
        device: &Device,
        src: u64,
        affine: Affine<u64>,
        dst: u64,
        stream: StreamHandle,
    ) -> Result<()> {
        let Some(Planned { task, .. }) = &self.planned else { return Ok(()) };
        let [src_align, dst_align] = self.aligns.map(Align::bytes);
        check_aligned(&[("source", src, src_align), ("destination", dst, dst_align)])?;
        let [from, to] = task.axes.walk.reach(self.types.map(DType::width));
        let (mut factors_at, mut offsets_at) = (bytes_from(0, 0), bytes_from(0, 0));
        if let Affine::PerChannel { factors, offsets, .. } = affine {
            check_aligned(&[("factors", factors, VALUE), ("offsets", offsets, VALUE)])?;
            let bytes = u128::from(VALUE) * self.count.unwrap_or(0) as u128;
            (factors_at, offsets_at) = (bytes_from(factors, bytes), bytes_from(offsets, bytes));
        }
        let read = [("source", from.at(src)), ("factors", factors_at), ("offsets", offsets_at)];
        check_written_apart(&read, &[("destination", to.at(dst))])?;
        // SAFETY: `check_aligned` and `check_written_apart` saw that the addresses are aligned as
        // planned and that the destination shares no byte with what is read; the caller promises
        // the rest of the raw contract.
        unsafe { self.place(device, src, affine, dst, stream) }
    }

    /// # Safety
    ///
    /// As [`affine_into_raw`](super::affine_into_raw), for the layouts and alignments that the plan
    /// was made for; the destination shares no element with what is read.
    unsafe fn place(
        &self,
        device: &Device,
        src: u64,
        affine: Affine<u64>,
        dst: u64,
        stream: StreamHandle,
    ) -> Result<()> {
        self.check_channels(&affine)?;
        let Some(Planned { launch, .. }) = &self.planned else { return Ok(()) };
        let last = self.count.map_or(0, |count| (count - 1) as u64 * VALUE);
        // SAFETY: the entry reaches exactly the elements of the two layouts and the values of their
        // channels, in accesses that the alignments allow; the rest as the caller promises.
        unsafe { launch.step().queue(device, Added { src, dst, affine, last }, stream) }
    }

    /// Checks that the factors and offsets are in the planned place.
    fn check_channels<A>(&self, affine: &Affine<A>) -> Result<()> {
        let given = affine.channels();
        if given != self.channels {
            return Err(Error::argument(format!(
                "the plan is for values {:?}, and these are {given:?}; make a plan for these",
                self.channels
            )));
        }
        match affine {
            Affine::Normalized { by, .. } if Some(by.channels()) != self.count => Err(Error::argument(format!(
                "the images have {}, and the normalisation is for {}; make one for their number",
                counted(self.count.unwrap_or(0), "channel"),
                by.channels()
            ))),
            _ => Ok(()),
        }
    }
}

/// Checks that there is a kernel for these types.
///
/// # Errors
///
/// `InvalidArgument` if there is none.
fn check_types(from: DType, to: DType) -> Result<()> {
    let known = |dtype| affine_type(dtype).is_some();
    if known(from) && known(to) && (from == DType::F64) == (to == DType::F64) && to != DType::U8 {
        return Ok(());
    }
    Err(Error::argument(format!(
        "elements of {from} are not mapped to {to}; u8, f16, bf16 and f32 are mapped to f16, bf16 or f32, and f64 \
             to f64: cast before or after (cast_into)"
    )))
}

/// Returns the extent of an axis of channels.
fn extent(layout: &Layout, axis: usize) -> Result<usize> {
    layout.shape().get(axis).copied().ok_or_else(|| {
        Error::argument(format!(
            "shape {:?} has no axis {axis} for the channels; give one of its {}, counted from 0",
            layout.shape(),
            counted(layout.rank(), "axis")
        ))
    })
}

/// Returns the bytes from the start of a view's storage to the first of its values, one per
/// channel.
fn channel_values(values: &Operand<'_>, channels: usize) -> Result<u64> {
    if values.layout.shape() != [channels] {
        return Err(Error::argument(format!(
            "the {} have shape {:?}, and each channel has one; give a view of shape [{channels}]",
            values.name,
            values.layout.shape()
        )));
    }
    values.first_byte()
}

impl Plan for AffinePlan {
    fn entry(&self) -> Option<&'static str> {
        self.planned.as_ref().map(|planned| planned.launch.step().entry().name())
    }

    fn shape(&self) -> Option<LaunchShape> {
        self.planned.as_ref().map(|planned| planned.launch.step().shape())
    }

    fn launches(&self) -> u64 {
        u64::from(self.planned.is_some())
    }

    fn explain(&self) -> Explanation {
        let verdicts = self.planned.as_ref().map(|planned| verdicts(&planned.task)).unwrap_or_default();
        let reason = self.planned.as_ref().map_or("there are no elements", |planned| planned.reason);
        let written = self.len().saturating_mul(self.types[1].width() as u64);
        Explanation { verdicts, ..Explanation::of(self, reason.into(), self.read(), written) }
    }
}

impl fmt::Display for AffinePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.planned {
            None => f.write_str("nothing to map"),
            Some(planned) => planned.launch.fmt(f),
        }
    }
}
