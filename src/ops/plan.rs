//! The plan that each operation makes before it launches anything.

use std::fmt;

use crate::abi::{EntryId, Params};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::error::{Result, counted};
use crate::launch_shape::{LaunchShape, MAX_GRID_YZ};
use crate::ops::units::SECTOR;

/// A plan of an operation: the kernels it launches, their shapes, and why.
///
/// Only layouts, element types, alignments and the architecture decide a plan. So a plan needs no
/// device, equal arguments give equal plans, and a program may launch one plan any number of times.
///
/// ```
/// use warpstride::ops::{CastPlan, Phase, Target};
/// use warpstride::{DType, Plan};
///
/// let target = Target::new((9, 0));
/// let (from, to) = ((Phase::ALIGNED, DType::U8), (Phase::ALIGNED, DType::F32));
/// let plan = CastPlan::new(from, to, 1 << 20, target)?;
/// assert_eq!(plan, CastPlan::new(from, to, 1 << 20, target)?); // arguments alone decide
/// let explained = plan.explain();
/// assert_eq!((plan.launches(), explained.read, explained.written), (1, 1 << 20, 4 << 20));
/// println!("{}: {}", plan.entry().expect("a kernel"), explained.reason);
/// # Ok::<(), warpstride::Error>(())
/// ```
pub trait Plan: fmt::Debug + fmt::Display {
    /// Names the kernel of the first launch; `None` if the operation launches nothing.
    fn entry(&self) -> Option<&'static str>;

    /// Returns the shape of the first launch; `None` if the operation launches nothing.
    fn shape(&self) -> Option<LaunchShape>;

    /// Counts the launches.
    fn launches(&self) -> u64;

    /// Explains what the plan does, and why.
    fn explain(&self) -> Explanation;
}

/// An explanation of a plan, as a database prints a query plan.
///
/// ```
/// use warpstride::ops::{Align, PermutePlan, Target};
/// use warpstride::{Layout, Plan};
///
/// let from = Layout::row_major(&[4096, 4096])?.t();
/// let to = Layout::row_major(&[4096, 4096])?;
/// let target = Target::new((9, 0));
/// let align = Align::ALLOCATION;
/// let explained = PermutePlan::new(&from, align, &to, align, 4, target)?.explain();
/// let chosen = explained.verdicts.iter().find(|verdict| verdict.takes).expect("one takes it");
/// println!("{}: {}", chosen.strategy, chosen.reason);
/// for declined in explained.verdicts.iter().filter(|verdict| !verdict.takes) {
///     println!("not {}: {}", declined.strategy, declined.why());
/// }
/// # Ok::<(), warpstride::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Explanation {
    /// The kernel of the first launch.
    pub(super) entry: Option<&'static str>,
    /// The shape of the first launch.
    pub(super) shape: Option<LaunchShape>,
    /// The number of launches.
    pub(super) launches: u64,
    /// Why this kernel does the work.
    pub reason: String,
    /// Bytes of the elements that the operation reads, each once.
    pub read: u64,
    /// Bytes of the elements that the operation writes, each once.
    pub written: u64,
    /// How source and destination are walked; `None` if the operation has no such pair.
    pub walk: Option<Walk>,
    /// The verdicts of the strategies; empty if the operation has one way only.
    ///
    /// A permute or an affine map lists those that it asked: the chosen one first, then the others
    /// that take the work, by their estimated times, and then those that decline.
    pub verdicts: Vec<Verdict>,
}

/// The walk along a source and a destination, by the fewest axes that move the same elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    /// Bytes of an element.
    pub width: usize,
    /// The axes, the destination's shortest stride first.
    pub axes: Vec<PlannedAxis>,
    /// Sectors of 32 bytes that hold the source's elements. If rows start at different offsets
    /// within a sector, this is their mean.
    pub read_sectors: u64,
    /// Sectors of 32 bytes that hold the destination's elements.
    pub written_sectors: u64,
}

/// An axis along which both sides walk, with strides in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedAxis {
    /// Number of indices, at least 2.
    pub extent: usize,
    /// The source's stride: negative if it runs backwards, 0 if it is broadcast.
    pub source_stride: isize,
    /// The destination's stride.
    pub destination_stride: isize,
}

/// The verdict of one strategy: it takes the work, or declines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The strategy's name.
    pub strategy: &'static str,
    /// True if it takes the work. The first verdict of an explanation that takes it is that of the
    /// chosen strategy; the later ones could do it too.
    pub takes: bool,
    /// The reason, in words. Where a strategy takes the work, its estimated time comes
    /// first, unless the plan was measured.
    pub reason: String,
    /// For a decline, the quantity that decided.
    pub quantity: Option<Quantity>,
}

/// A quantity that decided against a strategy, and the limit that it misses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantity {
    /// The counted or measured thing, with its unit.
    pub name: &'static str,
    /// Its value.
    pub value: u64,
    /// The limit that the strategy sets.
    pub limit: Limit,
}

/// A bound on a [`Quantity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The least value allowed.
    AtLeast(u64),
    /// The greatest value allowed.
    AtMost(u64),
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, limit } = self;
        match limit {
            Limit::AtLeast(least) => write!(f, "{name}: {value}, at least {least}"),
            Limit::AtMost(most) => write!(f, "{name}: {value}, at most {most}"),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(walk) = &self.walk {
            // Elements of a plan have bytes, but the fields of an explanation may be changed.
            let elements = self.written.checked_div(walk.width as u64).unwrap_or(0);
            write!(f, "{} of {walk}", counted(elements, "element"))?;
        }
        writeln!(f, "kernel    {}", self.entry.unwrap_or("none"))?;
        writeln!(f, "because   {}", self.reason)?;
        if let Some(shape) = self.shape {
            writeln!(f, "launch    {shape}")?;
            if shape.grid[1] > MAX_GRID_YZ {
                writeln!(
                    f,
                    "refused   no GPU has more than {MAX_GRID_YZ} blocks in y; move the arrays in parts (split_at)"
                )?;
            }
        }
        if self.launches > 1 {
            writeln!(f, "launches  {}", self.launches)?;
        }
        let sectors = |of: fn(&Walk) -> u64| self.walk.as_ref().map(of);
        for (what, bytes, sectors) in [
            ("read", self.read, sectors(|walk| walk.read_sectors)),
            ("written", self.written, sectors(|walk| walk.written_sectors)),
        ] {
            write!(f, "{what:8}  {}", counted(bytes, "byte"))?;
            match sectors {
                Some(sectors) => writeln!(f, " in {} of {SECTOR}, each once", counted(sectors, "sector"))?,
                None => writeln!(f)?,
            }
        }
        self.verdicts.iter().try_for_each(|verdict| writeln!(f, "{verdict}"))
    }
}

impl fmt::Display for Walk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, axes) = (counted(self.width, "byte"), counted(self.axes.len(), "axis"));
        writeln!(f, "{width} along {axes}, in elements (and bytes):")?;
        writeln!(f, "{:>6} {:>12} {:>28} {:>28}", "axis", "extent", "source stride", "destination stride")?;
        let stride = |stride: isize| format!("{stride} ({})", stride as i128 * self.width as i128);
        for (index, axis) in self.axes.iter().enumerate() {
            let (source, destination) = (stride(axis.source_stride), stride(axis.destination_stride));
            writeln!(f, "{index:>6} {:>12} {source:>28} {destination:>28}", axis.extent)?;
        }
        Ok(())
    }
}

impl Verdict {
    /// Returns the verdict of a strategy: its reason to take the work, or why it declines.
    pub(super) fn of(strategy: &'static str, considered: Result<&str, Decline>) -> Self {
        let (takes, quantity) = (considered.is_ok(), considered.err().map(|decline| decline.quantity));
        let reason = considered.unwrap_or_else(|decline| decline.reason).into();
        Self { strategy, takes, reason, quantity }
    }

    /// Returns the reason and, for a decline, the quantity that decided.
    pub fn why(&self) -> String {
        let Self { reason, quantity, .. } = self;
        quantity.map_or_else(|| reason.clone(), |quantity| format!("{reason} ({quantity})"))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}: {}", if self.takes { "takes   " } else { "declines" }, self.strategy, self.why())
    }
}

/// Why a strategy declines a task. It stays data while planning and becomes text in an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decline {
    pub(super) reason: &'static str,
    pub(super) quantity: Quantity,
}

/// Declines a task that has less of a quantity than the strategy needs.
#[inline]
pub(super) fn at_least(value: usize, least: usize, name: &'static str, reason: &'static str) -> Result<(), Decline> {
    if value >= least { Ok(()) } else { Err(decline(value, Limit::AtLeast(least as u64), name, reason)) }
}

/// Declines a task that has more of a quantity than the strategy allows.
#[inline]
pub(super) fn at_most(value: usize, most: usize, name: &'static str, reason: &'static str) -> Result<(), Decline> {
    if value <= most { Ok(()) } else { Err(decline(value, Limit::AtMost(most as u64), name, reason)) }
}

/// Declines a task that lacks what the strategy looks for.
#[inline]
pub(super) fn found<T>(found: Option<T>, name: &'static str, reason: &'static str) -> Result<T, Decline> {
    found.ok_or_else(|| decline(0, Limit::AtLeast(1), name, reason))
}

fn decline(value: usize, limit: Limit, name: &'static str, reason: &'static str) -> Decline {
    Decline { reason, quantity: Quantity { name, value: value as u64, limit } }
}

/// One launch: the kernel's entry, the launch's shape, and the parameters, whose addresses count
/// from the starts of the operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step<P> {
    pub(super) entry: EntryId,
    pub(super) shape: LaunchShape,
    pub(super) params: P,
}

/// Parameters to which a launch adds the operands' addresses.
pub(super) trait Placed: Params {
    /// The addresses of the operands, with the values that a launch adds.
    type Operands: Copy;

    /// Returns the parameters for operands at these addresses.
    fn at(self, operands: Self::Operands) -> Self;

    /// Returns the parameters for a launch that may use a work counter. `counter` returns its
    /// address, or 0 where the stream has none. The default keeps the parameters as they are.
    #[inline]
    fn counted(self, _counter: impl FnOnce() -> u64) -> Self {
        self
    }
}

/// Implements [`Placed`]. `Params: |own, operands: Type| value` says what the parameters `own`
/// become with operands of that type. `A, B` are parameters with the addresses `src` and `dst`,
/// which count from the starts of the storages.
macro_rules! placed {
    ($($params:ty: |$own:ident, $operands:tt: $type:ty| $at:expr;)+) => {$(
        impl $crate::ops::plan::Placed for $params {
            type Operands = $type;

            fn at(self, $operands: $type) -> Self {
                let $own = self;
                $at
            }
        }
    )+};
    ($($params:ident),+) => {
        $crate::ops::plan::placed! {$(
            $params: |own, [src, dst]: [u64; 2]| Self {
                src: src.wrapping_add(own.src), dst: dst.wrapping_add(own.dst), ..own
            };
        )+}
    };
}
pub(super) use placed;

/// A [`Step`] with operands of one type, whatever its parameters.
pub(super) trait AnyStep<O> {
    /// Returns the kernel.
    fn entry(&self) -> EntryId;

    /// Returns the launch's shape.
    fn shape(&self) -> LaunchShape;

    /// Queues the launch on operands at these addresses.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the device does not allow the shape or is older than the entry needs;
    /// else the driver's error.
    ///
    /// # Safety
    ///
    /// As [`Device::launch`], for the parameters that [`Placed::at`] gives.
    unsafe fn queue(&self, device: &Device, operands: O, stream: StreamHandle) -> Result<()>;
}

impl<P: Placed> AnyStep<P::Operands> for Step<P> {
    fn entry(&self) -> EntryId {
        self.entry
    }

    fn shape(&self) -> LaunchShape {
        self.shape
    }

    unsafe fn queue(&self, device: &Device, operands: P::Operands, stream: StreamHandle) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { device.launch(self.entry, &self.shape, &self.params.at(operands), stream) }
    }
}

/// The launch of a plan that has one, or none if there are no elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AtMostOne<P>(pub(super) Option<Step<P>>);

impl<P: Placed> AtMostOne<P> {
    /// As [`Plan::entry`].
    pub(super) fn entry(&self) -> Option<&'static str> {
        self.0.map(|step| step.entry.name())
    }

    /// As [`Plan::shape`].
    pub(super) fn shape(&self) -> Option<LaunchShape> {
        self.0.map(|step| step.shape)
    }

    /// As [`Plan::launches`].
    pub(super) fn count(&self) -> u64 {
        u64::from(self.0.is_some())
    }

    /// Says why the kernel does the work, from the launch's parameters.
    pub(super) fn reason(&self, why: impl FnOnce(&P) -> String) -> String {
        self.0.as_ref().map_or("there are no elements".into(), |step| why(&step.params))
    }

    /// Queues the launch, if there is one.
    ///
    /// # Errors
    ///
    /// As [`AnyStep::queue`].
    ///
    /// # Safety
    ///
    /// As [`AnyStep::queue`].
    pub(super) unsafe fn launch(&self, device: &Device, operands: P::Operands, stream: StreamHandle) -> Result<()> {
        let Some(step) = &self.0 else { return Ok(()) };
        // SAFETY: as the caller promises.
        unsafe { step.queue(device, operands, stream) }
    }

    /// Writes the launch and the elements that it is for, or that there is `nothing` to do.
    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, elements: impl fmt::Display, nothing: &str) -> fmt::Result {
        match &self.0 {
            Some(step) => write!(f, "{}: {elements}, {}", step.entry, step.shape),
            None => f.write_str(nothing),
        }
    }
}

/// Implements [`Plan`] and `Display` for a plan by the field that has its launches, such as an
/// [`AtMostOne`]: with its elements, why its kernel does the work, the bytes that it reads and
/// writes, and what to print if it launches nothing.
macro_rules! plan_of {
    ($plan:ident by $field:ident, |$self:ident| $elements:expr, $why:expr, [$read:expr, $written:expr], $nothing:literal) => {
        impl $crate::ops::Plan for $plan {
            fn entry(&self) -> Option<&'static str> {
                self.$field.entry()
            }

            fn shape(&self) -> Option<$crate::launch_shape::LaunchShape> {
                self.$field.shape()
            }

            fn launches(&self) -> u64 {
                self.$field.count()
            }

            fn explain(&self) -> $crate::ops::Explanation {
                let $self = self;
                $crate::ops::Explanation::of($self, $why, $read, $written)
            }
        }

        impl std::fmt::Display for $plan {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $self = self;
                $self.$field.write(f, $elements, $nothing)
            }
        }
    };
}
pub(super) use plan_of;

impl Explanation {
    /// Explains a plan that has one way only, by the bytes it reads and writes.
    pub(super) fn of(plan: &impl Plan, reason: String, read: u64, written: u64) -> Self {
        let (entry, shape, launches) = (plan.entry(), plan.shape(), plan.launches());
        Self { entry, shape, launches, reason, read, written, ..Self::default() }
    }
}
