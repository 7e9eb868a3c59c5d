//! Plans launches from three layouts.

use std::fmt;
use std::ops::Range;

use super::walk::{Axis, SIDES, Walk};
use super::{Binary, Kind, Term, numbers};
use crate::abi::{BINARY, BINARY_AXES, BinaryAxis, BinaryParams, BinarySide, Divisor};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::{DType, Float};
use crate::error::{Error, Result, counted};
use crate::launch_shape::LaunchShape;
use crate::layout::Layout;
use crate::ops::arithmetic::elementwise::shape;
use crate::ops::arithmetic::kernel;
use crate::ops::operand::{Operand, check_aligned, check_bytes, check_disjoint, check_named_apart, queue};
use crate::ops::plan::{AtMostOne, Explanation, Plan, Step, placed};
use crate::ops::tuning::Tuning;
use crate::ops::units::wide::VECTOR;
use crate::ops::{Align, Target};
use crate::stream::Stream;
use crate::view::ViewMut;

/// The names of the sides in errors.
const NAMES: [&str; SIDES] = ["destination", "first operand", "second operand"];

/// A plan of a sum, a difference, a product or a quotient. Layouts, the type and the alignment of
/// the destination decide it.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::ops::{Align, Binary, BinaryPlan, Target};
/// use warpstride::{Backend, DType, Device, Layout};
///
/// let device = Device::open(Backend::Soft)?;
/// let (matrix, row) = (Layout::row_major(&[2, 3])?, Layout::row_major(&[3])?);
/// let (sources, target) = ([Some(&matrix), Some(&row)], Target::of(&device));
/// let plan = BinaryPlan::new(Binary::Sub, DType::F32, sources, (&matrix, Align::ALLOCATION), target)?;
/// let (a, b) = (device.array(&[2, 3], &[5.0_f32; 6])?, device.array(&[3], &[1.0_f32, 2.0, 3.0])?);
/// let mut difference = device.alloc_array::<f32>(&[2, 3])?;
/// plan.launch(&a, &b, &mut difference, device.default_stream())?;
/// assert_eq!(difference.to_vec()?, [4.0, 3.0, 2.0, 4.0, 3.0, 2.0]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BinaryPlan {
    operation: Binary,
    dtype: DType,
    /// True for each operand in memory, false for a number.
    in_memory: [bool; 2],
    align: Align,
    walk: Walk,
    step: AtMostOne<BinaryParams>,
}

/// The addresses of a launch, and the numbers of operands without memory, whose addresses are 0.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Sides {
    starts: [u64; SIDES],
    numbers: [f64; 2],
}

placed! {
    BinaryParams: |own, sides: Sides| {
        let [dst, a, b] = sides.starts;
        let side = |side: BinarySide, start, number: f64| BinarySide { start, number: number.to_bits(), ..side };
        Self { dst, a: side(own.a, a, sides.numbers[0]), b: side(own.b, b, sides.numbers[1]), ..own }
    };
}

impl BinaryPlan {
    /// Plans an operation on operands of these layouts, `None` for a number, into a destination of
    /// a layout and an alignment. Operands are broadcast to the destination's shape.
    ///
    /// # Errors
    ///
    /// `Layout` if an operand cannot be broadcast to the destination's shape, the destination may
    /// reach an element twice, or the bytes of a storage overflow; `InvalidArgument` if both
    /// operands are numbers, no kernel computes with the type, or the alignment is less than an
    /// element.
    pub fn new(
        operation: Binary,
        dtype: DType,
        sources: [Option<&Layout>; 2],
        (dst, align): (&Layout, Align),
        target: Target,
    ) -> Result<Self> {
        let (entry, width) = (kernel(BINARY, operation, dtype)?, dtype.width());
        let walk = walk(operation, sources, dst)?;
        for (which, layout) in NAMES.iter().zip([Some(dst), sources[0], sources[1]]) {
            layout.map_or(Ok(()), |layout| check_bytes(which, layout, width))?;
        }
        check_disjoint(dst)?;
        align.check("destination", width)?;
        let in_memory = sources.map(|source| source.is_some());
        let step = (walk.len() > 0).then(|| {
            let params = params(operation, &walk, width as u64, align);
            let tuning = Tuning::of(target);
            let bytes = walk.len().saturating_mul(width as u64);
            let entry = if params.vectors == 1 { tuning.hinted(entry, bytes, target) } else { entry };
            Step { entry, shape: shape(params.lanes, tuning.arithmetic.binary_block), params }
        });
        Ok(Self { operation, dtype, in_memory, align, walk, step: AtMostOne(step) })
    }

    /// Queues the operation on `stream`, with views of the planned layouts and with numbers where
    /// they were planned.
    ///
    /// # Errors
    ///
    /// As [`add_into`](super::add_into); `Layout` also if an operand does not match the plan.
    pub fn launch<'a, T: Float>(
        &self,
        a: impl Into<Term<'a, T>>,
        b: impl Into<Term<'a, T>>,
        dst: impl Into<ViewMut<'a, T>>,
        stream: &Stream,
    ) -> Result<()> {
        let (a, b, dst) = (a.into(), b.into(), dst.into());
        let sources = [a.layout(), b.layout()];
        let is_planned = T::DTYPE == self.dtype
            && sources.map(|source| source.is_some()) == self.in_memory
            && walk(self.operation, sources, dst.layout())? == self.walk;
        if is_planned {
            return self.run(a, b, dst, stream);
        }
        let described = |layout: Option<&Layout>| layout.map_or("a number".into(), Layout::described);
        Err(Error::layout(format!(
            "the plan was made for other work than {} of {} and {} into {}, of {}; make a plan for these",
            self.operation,
            described(sources[0]),
            described(sources[1]),
            dst.layout().described(),
            T::DTYPE
        )))
    }

    /// Queues the operation on operands that are known to match the plan.
    pub(super) fn run<T: Float>(
        &self,
        a: Term<'_, T>,
        b: Term<'_, T>,
        dst: ViewMut<'_, T>,
        stream: &Stream,
    ) -> Result<()> {
        let to = Operand::written(NAMES[0], &dst);
        let place = |device: &Device, starts: [u64; SIDES], numbers: [f64; 2], stream| {
            // SAFETY: the layouts lie within live buffers, whose addresses these are, aligned as
            // allocations are. The destination is borrowed exclusively, so it shares no element
            // with an operand; `queue` orders other work.
            unsafe { self.place(device, starts, numbers, stream) }
        };
        match (&a.0, &b.0) {
            (Kind::Elements(a), Kind::Elements(b)) => {
                let [a, b] = [Operand::read(NAMES[1], a), Operand::read(NAMES[2], b)];
                queue([a, b, to], stream, &|device, [a, b, dst], stream| place(device, [dst, a, b], [0.0; 2], stream))
            }
            (Kind::Elements(a), &Kind::Number(number)) => {
                let a = Operand::read(NAMES[1], a);
                queue([a, to], stream, &|device, [a, dst], stream| place(device, [dst, a, 0], [0.0, number], stream))
            }
            (&Kind::Number(number), Kind::Elements(b)) => {
                let b = Operand::read(NAMES[2], b);
                queue([b, to], stream, &|device, [b, dst], stream| place(device, [dst, 0, b], [number, 0.0], stream))
            }
            (Kind::Number(_), Kind::Number(_)) => Err(numbers(self.operation)),
        }
    }

    /// Queues the operation of a destination and a number, in place.
    pub(in crate::ops::arithmetic) fn in_place(&self, dst: Operand<'_>, number: f64, stream: &Stream) -> Result<()> {
        debug_assert_eq!(self.in_memory, [true, false], "the plan is for the destination and a number");
        queue([dst], stream, &|device, [dst], stream| {
            // SAFETY: the destination is the first operand, element by element, and borrowed
            // exclusively; it has the planned layout, and `queue` orders other work.
            unsafe { self.place(device, [dst, dst, 0], [0.0, number], stream) }
        })
    }

    /// Queues the operation on storages at the addresses of the operands and of the destination. A
    /// number stands where one was planned: its address is ignored, as the number of an operand in
    /// memory is.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if an address is 0 or not aligned as planned, or an operand overlaps the
    /// destination and is not the same elements in the same order; else the driver's error.
    ///
    /// # Safety
    ///
    /// The raw contract of [`ops`](crate::ops#the-raw-contract), for the planned layouts. An
    /// operand may be the destination.
    pub unsafe fn launch_raw(
        &self,
        device: &Device,
        [a, b]: [(u64, f64); 2],
        dst: u64,
        stream: StreamHandle,
    ) -> Result<()> {
        if self.walk.len() == 0 {
            return Ok(());
        }
        let width = self.dtype.width() as u64;
        check_aligned(&[(NAMES[0], dst, self.align.bytes())])?;
        check_address(NAMES[0], dst)?;
        let mut starts = [dst, a.0, b.0];
        for side in 1..SIDES {
            if !self.in_memory[side - 1] {
                starts[side] = 0;
                continue;
            }
            let (which, address) = (NAMES[side], starts[side]);
            check_aligned(&[(which, address, width)])?;
            check_address(which, address)?;
            if !self.is_destination(side, [dst, address]) {
                check_named_apart([which, NAMES[0]], self.reach(side, address), self.reach(0, dst))?;
            }
        }
        // SAFETY: the addresses are aligned as planned, and each operand in memory is the
        // destination, element by element, or shares no byte with it, as checked above; the caller
        // promises the rest.
        unsafe { self.place(device, starts, [a.1, b.1], stream) }
    }

    /// Tells if each element of an operand lies where the result is written.
    fn is_destination(&self, side: usize, [dst, address]: [u64; 2]) -> bool {
        let at = |address: u64, side: usize| u128::from(address) + u128::from(self.first_byte(side));
        at(dst, 0) == at(address, side) && self.walk.axes().iter().all(|axis| axis.strides[side] == axis.strides[0])
    }

    /// Returns the bytes from the start of a side's storage to the walk's first element.
    fn first_byte(&self, side: usize) -> u64 {
        (self.walk.starts[side] * self.dtype.width()) as u64
    }

    /// Returns the bytes from the first to the last that a side reaches; there are elements.
    fn reach(&self, side: usize, address: u64) -> Range<u128> {
        let [mut first, mut last] = [self.walk.starts[side]; 2];
        for axis in self.walk.axes() {
            let steps = axis.strides[side] * (axis.extent as isize - 1);
            // The layouts' invariants keep both ends in their storages.
            let end = if steps < 0 { &mut first } else { &mut last };
            *end = end.wrapping_add_signed(steps);
        }
        let at = |element: usize| u128::from(address) + element as u128 * self.dtype.width() as u128;
        at(first)..at(last + 1)
    }

    /// # Safety
    ///
    /// At the addresses lie storages of the planned layouts, aligned as planned, with 0 for a
    /// number. Each operand is the destination, element by element, or shares none with it; other
    /// work on them is ordered.
    unsafe fn place(
        &self,
        device: &Device,
        storages: [u64; SIDES],
        numbers: [f64; 2],
        stream: StreamHandle,
    ) -> Result<()> {
        let width = self.dtype.width() as i64;
        for launch in 0..self.launches() {
            let mut starts = storages;
            for (side, start) in starts.iter_mut().enumerate().filter(|(_, start)| **start != 0) {
                let outer = self.outer(launch).map(|(position, axis)| position as i64 * axis.strides[side] as i64);
                *start = (*start + self.first_byte(side)).wrapping_add_signed(outer.sum::<i64>() * width);
            }
            // SAFETY: the shape has a lane for every vector and every other element of the rows,
            // and the kernel takes from a row those elements that it has. The starts are those of
            // the elements at one position of the axes that the kernel does not walk, and the
            // caller promises the rest.
            unsafe { self.step.launch(device, Sides { starts, numbers }, stream) }?;
        }
        Ok(())
    }

    /// Returns the axes that launches number, with the position of one of them.
    fn outer(&self, launch: u64) -> impl Iterator<Item = (u64, &Axis)> {
        let mut rest = launch;
        self.walk.axes().iter().skip(1 + BINARY_AXES).map(move |axis| {
            let position = rest % axis.extent as u64;
            rest /= axis.extent as u64;
            (position, axis)
        })
    }

    /// Says how lanes share the work.
    fn reason(&self) -> String {
        self.step.reason(|params| match params.vectors {
            1 => format!(
                "by vectors of {VECTOR} bytes of the destination, in {} of {}",
                counted(self.launches() * (params.lanes / params.slots.value), "row"),
                counted(params.len, "element")
            ),
            _ => "element by element, because the destination's elements lie apart or its rows are short".into(),
        })
    }
}

/// Checks that an operand in memory has an address.
fn check_address(which: &str, address: u64) -> Result<()> {
    if address != 0 {
        return Ok(());
    }
    Err(Error::argument(format!("the {which} has the address 0; pass that of its memory")))
}

/// Returns the walk of operands that are broadcast to a destination.
fn walk(operation: Binary, sources: [Option<&Layout>; 2], dst: &Layout) -> Result<Walk> {
    if sources == [None, None] {
        return Err(numbers(operation));
    }
    let broadcast = |side: usize| {
        let wide = |layout: &Layout| {
            layout
                .broadcast(dst.shape())
                .map_err(|_| not_broadcast(operation, NAMES[side], layout.shape(), dst.shape()))
        };
        sources[side - 1].map(wide).transpose()
    };
    let [a, b] = [broadcast(1)?, broadcast(2)?];
    Ok(Walk::new([Some(dst), a.as_ref(), b.as_ref()]))
}

#[cold]
fn not_broadcast(operation: Binary, which: &str, shape: &[usize], dst: &[usize]) -> Error {
    Error::layout(format!(
        "the {which} of {operation} has shape {shape:?}, which cannot be broadcast to the destination's shape {dst:?}: \
         matched from the last axis, extents must be equal or 1; insert an axis (insert_axis), take a part (slice), or \
         give a destination of another shape"
    ))
}

/// Returns the parameters of the first launch; there are elements.
fn params(operation: Binary, walk: &Walk, width: u64, align: Align) -> BinaryParams {
    let lone = Axis { extent: 1, strides: [1; SIDES] };
    let (&row, outer) = walk.axes().split_first().unwrap_or((&lone, &[]));
    let (lanes, len) = (VECTOR / width, row.extent as u64);
    // Rows that all start equally far from a vector have no lane without elements.
    let start = walk.starts[0] as u64 * width;
    let alike = align.bytes() >= VECTOR
        && outer.iter().all(|axis| (axis.strides[0].unsigned_abs() as u64 * width).is_multiple_of(VECTOR));
    let vectors = row.strides[0] == 1 && len >= if alike { lanes } else { 4 * lanes };
    let before = if alike { start % VECTOR / width } else { lanes - 1 };
    let slots = if vectors { (before + len).div_ceil(lanes) } else { len };
    let mut axes = [BinaryAxis { extent: Divisor::wide(1), dst: 0, a: 0, b: 0 }; BINARY_AXES];
    let walked = &outer[..outer.len().min(BINARY_AXES)];
    for (to, axis) in axes.iter_mut().zip(walked) {
        let [dst, a, b] = axis.strides.map(|stride| stride as i64);
        *to = BinaryAxis { extent: Divisor::wide(axis.extent as u64), dst, a, b };
    }
    let rows: u64 = walked.iter().map(|axis| axis.extent as u64).product();
    let [dst_stride, a, b] = row.strides.map(|stride| stride as i64);
    BinaryParams {
        dst: 0,
        dst_stride,
        a: BinarySide { start: 0, stride: a, number: 0 },
        b: BinarySide { start: 0, stride: b, number: 0 },
        operation: operation.code(),
        len,
        vectors: u64::from(vectors),
        lanes: rows * slots,
        slots: Divisor::wide(slots),
        rank: walked.len() as u64,
        axes,
    }
}

impl Plan for BinaryPlan {
    fn entry(&self) -> Option<&'static str> {
        self.step.entry()
    }

    fn shape(&self) -> Option<LaunchShape> {
        self.step.shape()
    }

    /// Counts the launches: one, or one for each position along axes beyond those that the kernel
    /// walks.
    fn launches(&self) -> u64 {
        let outer = self.walk.axes().iter().skip(1 + BINARY_AXES);
        self.step.count() * outer.map(|axis| axis.extent as u64).product::<u64>()
    }

    fn explain(&self) -> Explanation {
        let bytes = |elements: u64| elements.saturating_mul(self.dtype.width() as u64);
        let of = |operand: usize| if self.in_memory[operand] { bytes(self.walk.distinct(operand + 1)) } else { 0 };
        Explanation::of(self, self.reason(), of(0).saturating_add(of(1)), bytes(self.walk.len()))
    }
}

impl fmt::Display for BinaryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.step.write(f, counted(self.walk.len(), "element"), "nothing to compute")
    }
}
