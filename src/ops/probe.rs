//! Kernels that only move memory, to measure the ceilings that operations are compared with.

use std::fmt;

use super::Target;
use super::numbering::grid;
use super::operand::{Operand, queue};
use super::tuning::Tuning;
use super::units::wide::VECTOR;
use crate::abi::{Family, Key, PROBE_COPY, PROBE_READ, PROBE_STEPS, PROBE_WRITE, ProbeParams};
use crate::error::{Error, Result, counted};
use crate::launch_shape::{LaunchShape, MAX_GRID_X};
use crate::names::{named, written_by_name};
use crate::stream::Stream;
use crate::view::{View, ViewMut};

named! {
    /// Returns the name in reports.
    name;

    /// The memory traffic of a probe.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
    pub enum Access {
        /// Reads every byte.
        Read = "read",
        /// Writes every byte.
        Write = "write",
        /// Reads every byte and writes it elsewhere.
        Copy = "copy",
    }
}

impl Access {
    /// All kinds of traffic.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Copy];

    fn family(self) -> Family {
        match self {
            Self::Read => PROBE_READ,
            Self::Write => PROBE_WRITE,
            Self::Copy => PROBE_COPY,
        }
    }

    /// Returns the bytes moved per byte of an array.
    pub fn bytes(self) -> u64 {
        if self == Self::Copy { 2 } else { 1 }
    }
}

written_by_name!(Access);

/// How a probe is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ProbeShape {
    /// Accesses of 16 bytes that a thread makes: 1, 2, 4 or 8.
    pub steps: u32,
    /// Threads of a block.
    pub threads: u32,
    /// True if the L2 cache gets hints to keep loaded lines longest and stored lines shortest. Only
    /// copies from compute capability 8.0 on have such a form.
    #[cfg_attr(feature = "serde", serde(default))]
    pub hinted: bool,
}

impl ProbeShape {
    /// Returns the shapes that a search for ceilings tries on this device, with and without hints
    /// if the kernel has both forms.
    pub fn all(access: Access, target: Target) -> impl Iterator<Item = Self> {
        let threads = Tuning::of(target).probe_threads;
        let entry = access.family().get(Key::steps(PROBE_STEPS[0]));
        let hints: &[bool] = if entry == entry.hinted(target.compute_capability) { &[false] } else { &[false, true] };
        let shapes = PROBE_STEPS.into_iter().flat_map(move |steps| threads.map(|threads| (steps, threads)));
        shapes.flat_map(|(steps, threads)| hints.iter().map(move |&hinted| Self { steps, threads, hinted }))
    }

    /// Returns the bytes of a block. An array is a multiple of them.
    pub fn block_bytes(self) -> u64 {
        (u64::from(self.steps) * u64::from(self.threads)).saturating_mul(VECTOR)
    }
}

impl fmt::Display for ProbeShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hinted = if self.hinted { ", hinted" } else { "" };
        write!(f, "{} x 16 bytes a thread, blocks of {}{hinted}", self.steps, self.threads)
    }
}

/// Queues a probe on `stream`: it reads the bytes of `src` and writes those of `dst`. A read needs
/// 16 bytes of `dst`, which change only if the exclusive or of all bytes read is a certain word.
///
/// # Errors
///
/// `InvalidArgument` if the number of bytes is not a multiple of [`ProbeShape::block_bytes`] or
/// exceeds 2^31 - 1 blocks, the views do not start on 16 bytes, differ in length, or are not of the
/// stream's device; `Layout` if a view has gaps; else the driver's error.
pub fn probe(
    access: Access,
    shape: ProbeShape,
    src: View<'_, u8>,
    dst: ViewMut<'_, u8>,
    stream: &Stream,
) -> Result<()> {
    let entry = access.family().find(Key::steps(shape.steps));
    let bytes = if access == Access::Write { dst.len() } else { src.len() } as u64;
    // One row of blocks: the kernels check no bounds, and `grid` rounds further rows up.
    let block = shape.block_bytes();
    let fits = bytes > 0 && block > 0 && bytes.is_multiple_of(block) && bytes / block <= u64::from(MAX_GRID_X);
    let room = if access == Access::Read { dst.len() as u64 >= VECTOR } else { dst.len() as u64 == bytes };
    let (Some(entry), true, true) = (entry, fits, room) else {
        return Err(Error::argument(format!(
            "a probe of {} to {} cannot {access} with {shape}; give both the same multiple of {block}, \
                 at most {MAX_GRID_X} of them",
            counted(src.len(), "byte"),
            dst.len(),
            block = counted(block, "byte")
        )));
    };
    let operands = [Operand::read("source", &src), Operand::written("destination", &dst)];
    let starts = [operands[0].first_byte()?, operands[1].first_byte()?];
    if starts.iter().any(|start| !start.is_multiple_of(VECTOR)) {
        return Err(Error::argument("a probe must start on a multiple of 16 bytes; slice there"));
    }
    let launch = LaunchShape { grid: grid(bytes / block), block: [shape.threads, 1, 1], dynamic_shared: 0 };
    queue(operands, stream, &|device, [src, dst], stream| {
        // Arrays that were never written may hold any data. If it gives this value, one vector of
        // `dst` changes.
        let params = ProbeParams { src: src + starts[0], dst: dst + starts[1], never: 0x9e37_79b9 };
        let entry = if shape.hinted { entry.hinted(device.info().compute_capability) } else { entry };
        // SAFETY: the entry takes these parameters; its one row of blocks has exactly the bytes of
        // the views, which lie within buffers that live until their drops, aligned to 16; the
        // written view is borrowed exclusively; `queue` orders other work and requires one device.
        unsafe { device.launch(entry, &launch, &params, stream) }
    })
}

/// Queues the driver's own copy from `src` to `dst` on `stream`: not a ceiling, but the copy that
/// programs call.
///
/// # Errors
///
/// `InvalidArgument` if the lengths differ or the three are not of one device; `Layout` if a view
/// has gaps; else the driver's error.
pub fn memcpy(src: View<'_, u8>, dst: ViewMut<'_, u8>, stream: &Stream) -> Result<()> {
    if src.len() != dst.len() {
        return Err(Error::argument(format!(
            "{} cannot be copied to {}; give the same number",
            counted(src.len(), "byte"),
            dst.len()
        )));
    }
    let (operands, bytes) = ([Operand::read("source", &src), Operand::written("destination", &dst)], src.len() as u64);
    let starts = [operands[0].first_byte()?, operands[1].first_byte()?];
    queue(operands, stream, &|device, [from, to], stream| {
        // SAFETY: both are live buffers with this number of bytes, and one is borrowed exclusively,
        // so they do not overlap. `queue` orders other work and requires one device.
        unsafe { device.driver().copy_d2d(to + starts[1], from + starts[0], bytes, stream) }
    })
}
