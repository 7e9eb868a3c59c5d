//! Operations that need a whole row first: softmax along the last axis, mean and variance.
//!
//! A row is read once if the threads of a block can hold it: up to 64 KiB, and 32 KiB of halves.
//! Longer rows are read twice, the second time from the L2 cache if it still has them; for that,
//! softmax goes back from their end. Rows whose result starts at another offset from 16 bytes are
//! also read twice, element by element. Every device rounds all operations alike, and the length of
//! a row and the starts alone decide their order. So a result is the same on every run and every
//! device.

mod moments;
mod softmax;

pub use moments::{MeanVariancePlan, mean_variance, mean_variance_into};
pub use softmax::{SoftmaxPlan, softmax, softmax_into};

use crate::abi::{EntryId, ROWWISE_THREADS, RowwiseParams, held_quads};
use crate::element::DType;
use crate::error::{Error, Result, counted};
use crate::launch_shape::LaunchShape;
use crate::ops::Target;
use crate::ops::plan::{AtMostOne, Step, placed};
use crate::ops::tuning::Tuning;
use crate::ops::units::wide::VECTOR;

/// The addresses of a launch.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Sides {
    src: u64,
    dst: u64,
    /// The variances; 0 for softmax.
    variances: u64,
}

placed! {
    RowwiseParams: |own, sides: Sides| Self { src: sides.src, dst: sides.dst, variances: sides.variances, ..own };
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

/// Returns the launch for rows. With `aligned` the sides have common vectors, without which threads
/// do not hold rows.
fn step(entry: EntryId, dtype: DType, [rows, n]: [u64; 2], aligned: bool, target: Target) -> AtMostOne<RowwiseParams> {
    let (group, held) = group(n, dtype.width() as u64, aligned);
    let block = group.max(Tuning::of(target).arithmetic.rowwise_block);
    let params = RowwiseParams { src: 0, dst: 0, variances: 0, rows, n, group, held: u64::from(held) };
    let blocks = u32::try_from(rows.div_ceil(block / group)).unwrap_or(u32::MAX);
    let shape = LaunchShape { grid: [blocks, 1, 1], block: [block as u32, 1, 1], dynamic_shared: 0 };
    AtMostOne((rows > 0 && n > 0).then_some(Step { entry, shape, params }))
}

/// Returns the threads for rows of `n` elements, and whether they hold them.
fn group(n: u64, width: u64, aligned: bool) -> (u64, bool) {
    let (lanes, held) = (VECTOR / width, u64::from(held_quads(width as u32)));
    let vectors = n / lanes;
    // These are the fewest threads that hold a row. No thread takes more than one of the elements
    // outside of vectors; there may be all but one of a vector on both sides.
    let group = vectors.div_ceil(held).next_power_of_two().clamp(2 * lanes, u64::from(ROWWISE_THREADS));
    (group, aligned && vectors <= group * held)
}

/// Says why rows are read once or twice.
fn reason(&RowwiseParams { group, held, .. }: &RowwiseParams) -> String {
    let times = if held == 1 { "hold it, so it is read once" } else { "cannot hold it, so it is read twice" };
    format!("the {} of a row {times}", counted(group, "thread"))
}

/// Returns the number of rows and of the elements of each, in words.
fn counted_rows([rows, n]: [u64; 2]) -> String {
    format!("{} of {}", counted(rows, "row"), counted(n, "element"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_held_where_registers_have_room() {
        assert_eq!(group(16384, 4, true), (u64::from(ROWWISE_THREADS), true));
        assert_eq!(group(16388, 4, true), (u64::from(ROWWISE_THREADS), false));
        assert_eq!(group(16384, 2, true), (u64::from(ROWWISE_THREADS), true));
        assert_eq!(group(16384, 4, false), (u64::from(ROWWISE_THREADS), false));
        assert_eq!(group(2048, 4, true), (64, true));
        assert_eq!(group(3, 8, true), (4, true));
        assert_eq!(group(3, 2, true), (16, true));
    }

    #[test]
    fn a_thread_has_no_two_elements_outside_of_vectors() {
        for width in [2, 4, 8] {
            for n in 1..200 {
                let (group, held) = group(n, width, true);
                assert!(held && group >= n.min(2 * (VECTOR / width - 1)), "{n} of {width} bytes: {group}");
            }
        }
    }
}
