//! Operations that need a whole row first: softmax along the last axis, mean and variance.
//!
//! The threads of a block, or of a part of one, read a row of up to 64 KiB once (softmax 32 of
//! halves and 40 of doubles, mean and variance 32 of doubles). Several blocks share a longer row,
//! and exchange what their parts have through scratch memory. They read it once if all threads of
//! the GPU together can hold it, or else softmax reads it twice. Where results start at another
//! offset from 16 bytes than the elements, they are stored one by one. Every device rounds all
//! operations alike, and the length of a row and its start alone decide their order. So a result is
//! the same on every run and every device.

mod moments;
mod softmax;

pub use moments::{MeanVariancePlan, mean_variance, mean_variance_into};
pub use softmax::{SoftmaxPlan, softmax, softmax_into};

use std::fmt;
use std::ops::Range;

use crate::abi::{EntryId, RECORD_BYTES, ROWWISE_THREADS, RowPartsParams, RowwiseParams, SLOTS};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::DType;
use crate::error::{Error, Result, counted};
use crate::launch_shape::{LaunchShape, WARP};
use crate::layout::Layout;
use crate::ops::Target;
use crate::ops::operand::{Operand, bytes_from, check_aligned};
use crate::ops::plan::{AnyStep, AtMostOne, Step, placed};
use crate::ops::tuning::Tuning;
use crate::ops::units::wide::VECTOR;
use crate::stream::Stream;

/// The threads that run at once on a multiprocessor of every GPU, with [`SOFTMAX_REGISTERS`] each.
///
/// [`SOFTMAX_REGISTERS`]: crate::abi::SOFTMAX_REGISTERS
const THREADS_AT_ONCE: u64 = 1024;
/// The multiprocessors of a GPU that is not known: those of small ones.
const FEW_MULTIPROCESSORS: u32 = 4;

/// The addresses of a launch.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Sides {
    src: u64,
    dst: u64,
    /// The variances; 0 for softmax.
    variances: u64,
    /// For rows that several blocks share.
    scratch: u64,
}

placed! {
    RowwiseParams: |own, sides: Sides| Self { src: sides.src, dst: sides.dst, variances: sides.variances, ..own };
    RowPartsParams: |own, sides: Sides| {
        Self { src: sides.src, dst: sides.dst, variances: sides.variances, scratch: sides.scratch, ..own }
    };
}

/// The kernels of an operation: for groups of threads that hold a row, for blocks that share one,
/// and for what joins their parts, unless they do it themselves.
type Kernels = (EntryId, EntryId, Option<EntryId>);

/// The launches for rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Launch {
    /// A group of threads holds a row.
    Groups(AtMostOne<RowwiseParams>),
    /// Blocks share rows, and exchange what their parts have.
    Teams(Step<RowPartsParams>),
    /// A block takes a part of a row, and the second launch joins the parts.
    Parts([Step<RowPartsParams>; 2]),
}

impl Launch {
    /// Plans the launches for rows: a thread of a group of at most `threads` holds `held` vectors.
    /// `aligned` says whether the destination has vectors where the source has them.
    fn new(
        kernels: Kernels,
        dtype: DType,
        [rows, n]: [u64; 2],
        [held, threads]: [u32; 2],
        aligned: bool,
        target: Target,
    ) -> Self {
        let (lanes, held) = (VECTOR / dtype.width() as u64, u64::from(held));
        if let Some(group) = group(n, lanes, held, threads.into()) {
            return Self::Groups(in_groups(kernels.0, [rows, n], group, aligned, target));
        }
        if rows == 0 {
            return Self::Groups(AtMostOne(None));
        }
        let parts = parts([rows, n], [lanes, held], aligned);
        match kernels.2 {
            None => Self::Teams(in_teams(kernels.1, parts, target)),
            Some(join) => Self::Parts(in_parts([kernels.1, join], parts)),
        }
    }

    fn entry(&self) -> Option<&'static str> {
        match self {
            Self::Groups(step) => step.entry(),
            Self::Teams(step) | Self::Parts([step, _]) => Some(step.entry.name()),
        }
    }

    fn shape(&self) -> Option<LaunchShape> {
        match self {
            Self::Groups(step) => step.shape(),
            Self::Teams(step) | Self::Parts([step, _]) => Some(step.shape),
        }
    }

    fn count(&self) -> u64 {
        match self {
            Self::Groups(step) => step.count(),
            Self::Teams(_) => 1,
            Self::Parts(_) => 2,
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, elements: impl fmt::Display, nothing: &str) -> fmt::Result {
        match self {
            Self::Groups(step) => step.write(f, elements, nothing),
            Self::Teams(step) | Self::Parts([step, _]) => AtMostOne(Some(*step)).write(f, elements, nothing),
        }
    }

    /// Says why the kernels do the work.
    fn reason(&self) -> String {
        match self {
            Self::Groups(step) => {
                step.reason(|params| format!("the {} of a row hold it", counted(params.group, "thread")))
            }
            Self::Teams(Step { params: RowPartsParams { team, parts, .. }, .. }) => {
                let held = if team == parts { "hold it" } else { "cannot hold it all" };
                format!(
                    "a row has {}, and the {} that share it {held}",
                    counted(*parts, "part"),
                    counted(*team, "block")
                )
            }
            Self::Parts([Step { params, .. }, _]) => {
                format!("a row has {}, each for a block", counted(params.parts, "part"))
            }
        }
    }

    /// Returns the bytes of scratch memory that the launches need.
    fn scratch_bytes(&self) -> u64 {
        match self {
            Self::Groups(_) => 0,
            Self::Teams(Step { params, .. }) => params.teams * (1 + u64::from(SLOTS) * params.parts) * RECORD_BYTES,
            Self::Parts([Step { params, .. }, _]) => params.rows * params.parts * RECORD_BYTES,
        }
    }

    /// Returns the bytes of scratch memory at an address, which must be aligned.
    fn scratch_at(&self, address: u64) -> Result<(&'static str, Range<u128>)> {
        let bytes = self.scratch_bytes();
        if bytes > 0 {
            check_aligned(&[("scratch", address, RECORD_BYTES)])?;
        }
        Ok(("scratch", bytes_from(address, bytes.into())))
    }

    /// Allocates scratch memory on a stream, and calls a function with it.
    fn with_scratch(
        &self,
        device: &Device,
        stream: &Stream,
        then: impl FnOnce(Operand<'_>) -> Result<()>,
    ) -> Result<()> {
        let scratch = device.alloc_on::<u8>(self.scratch_bytes() as usize, stream)?;
        let line = Layout::row_major(&[scratch.len()])?;
        then(Operand::made("scratch", &scratch, &line))
    }

    /// Queues the launches.
    ///
    /// # Errors
    ///
    /// As [`AtMostOne::launch`].
    ///
    /// # Safety
    ///
    /// As [`AtMostOne::launch`]; `sides` has a scratch of [`scratch_bytes`](Self::scratch_bytes)
    /// that no other work accesses.
    unsafe fn launch(&self, device: &Device, sides: Sides, stream: StreamHandle) -> Result<()> {
        // SAFETY: as the caller promises. Blocks that wait for each other need two conditions more:
        // the fill that is queued before them makes all records 0, and `Device::launch` makes their
        // launch cooperative, so that all of them run at once.
        let queue = |step: &Step<RowPartsParams>| unsafe { step.queue(device, sides, stream) };
        match self {
            // SAFETY: as the caller promises.
            Self::Groups(step) => unsafe { step.launch(device, sides, stream) },
            Self::Teams(step) => {
                // SAFETY: the scratch has these bytes, and no other work accesses them.
                unsafe { device.driver().fill(sides.scratch, 0, self.scratch_bytes(), stream) }?;
                queue(step)
            }
            Self::Parts(steps) => steps.iter().try_for_each(queue),
        }
    }
}

/// Returns the rows of a shape's last axis, and the elements of each; a shape without axes is a row
/// of one.
fn rows_of(shape: &[usize]) -> [u64; 2] {
    match shape {
        [outer @ .., n] => [outer.iter().product::<usize>() as u64, *n as u64],
        [] => [1, 1],
    }
}

/// Checks that a view has the planned rows.
fn check_rows(planned: [u64; 2], shape: &[usize]) -> Result<()> {
    if rows_of(shape) == planned {
        return Ok(());
    }
    Err(Error::layout(format!(
        "the plan was made for {}, and the array has shape {shape:?}; make a plan for it",
        counted_rows(planned)
    )))
}

/// Returns the number of elements.
///
/// # Errors
///
/// `InvalidArgument` if they have more bytes than can be addressed.
fn elements([rows, n]: [u64; 2], dtype: DType) -> Result<u64> {
    let elements = rows.checked_mul(n);
    let bytes = elements.and_then(|elements| elements.checked_mul(dtype.width() as u64));
    elements.filter(|_| bytes.is_some_and(|bytes| bytes <= isize::MAX as u64)).ok_or_else(|| {
        Error::argument(format!(
            "{} of {n} {dtype} have more bytes than can be addressed; pass fewer or shorter ones",
            counted(rows, "row")
        ))
    })
}

/// Returns the launch for rows with a group of threads each.
fn in_groups(
    entry: EntryId,
    [rows, n]: [u64; 2],
    group: u64,
    aligned: bool,
    target: Target,
) -> AtMostOne<RowwiseParams> {
    let block = group.max(Tuning::of(target).arithmetic.rowwise_block);
    let (ahead, aligned) = (threads_at_once(target) / group, u64::from(aligned));
    let params = RowwiseParams { src: 0, dst: 0, variances: 0, rows, n, ahead, group, aligned };
    let blocks = u32::try_from(rows.div_ceil(block / group)).unwrap_or(u32::MAX);
    let shape = LaunchShape { grid: [blocks, 1, 1], block: [block as u32, 1, 1], dynamic_shared: 0 };
    AtMostOne((rows > 0 && n > 0).then_some(Step { entry, shape, params }))
}

/// Returns the threads that run at once, with [`SOFTMAX_REGISTERS`] each.
///
/// [`SOFTMAX_REGISTERS`]: crate::abi::SOFTMAX_REGISTERS
fn threads_at_once(target: Target) -> u64 {
    let known = if target.multiprocessors == 0 { FEW_MULTIPROCESSORS } else { target.multiprocessors };
    u64::from(known) * THREADS_AT_ONCE
}

/// Returns the parameters for parts of rows, of about equal length. A thread holds vectors of
/// `lanes` elements.
fn parts([rows, n]: [u64; 2], [lanes, held]: [u64; 2], aligned: bool) -> RowPartsParams {
    let most = u64::from(ROWWISE_THREADS) * held * lanes;
    let part = n.div_ceil(lanes).div_ceil(n.div_ceil(most)) * lanes;
    let (parts, aligned) = (n.div_ceil(part), u64::from(aligned));
    RowPartsParams { src: 0, dst: 0, variances: 0, scratch: 0, rows, n, part, parts, team: parts, teams: rows, aligned }
}

/// Returns the launch for rows that blocks share: as many teams as can run at once.
fn in_teams(entry: EntryId, params: RowPartsParams, target: Target) -> Step<RowPartsParams> {
    let at_once = threads_at_once(target) / u64::from(ROWWISE_THREADS);
    // Equal numbers of parts for each block, as far as possible.
    let team = params.parts.div_ceil(params.parts.div_ceil(at_once));
    let params = RowPartsParams { team, teams: params.rows.min(at_once / team), ..params };
    step(entry, params.teams * team, ROWWISE_THREADS, params)
}

/// Returns the launches of a block for each part, and of a block for each row.
fn in_parts([of_parts, join]: [EntryId; 2], params: RowPartsParams) -> [Step<RowPartsParams>; 2] {
    let threads = params.parts.next_power_of_two().clamp(u64::from(WARP), u64::from(ROWWISE_THREADS));
    let blocks = params.rows.saturating_mul(params.parts);
    [step(of_parts, blocks, ROWWISE_THREADS, params), step(join, params.rows, threads as u32, params)]
}

fn step(entry: EntryId, blocks: u64, threads: u32, params: RowPartsParams) -> Step<RowPartsParams> {
    let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
    Step { entry, shape: LaunchShape { grid: [blocks, 1, 1], block: [threads, 1, 1], dynamic_shared: 0 }, params }
}

/// Returns the threads that hold a row of `n` elements, the fewest; `None` if `most` cannot.
fn group(n: u64, lanes: u64, held: u64, most: u64) -> Option<u64> {
    // No thread takes more than one of the elements outside of vectors; there may be all but one of
    // a vector on both sides.
    let group = (n / lanes).div_ceil(held).next_power_of_two().max(2 * lanes);
    (group <= most).then_some(group)
}

/// Returns the number of rows and of the elements of each, in words.
fn counted_rows([rows, n]: [u64; 2]) -> String {
    format!("{} of {}", counted(rows, "row"), counted(n, "element"))
}

#[cfg(test)]
mod tests;
