//! Runs of bytes that lie side by side on both sides, but not on 16 bytes.

use std::fmt;

use crate::abi::{EntryId, Key, ROWS, ROWS_BLOCK, ROWS_PER_THREAD, RowsParams};
use crate::error::counted;
use crate::launch_shape::LaunchShape;
use crate::ops::Align;
use crate::ops::canonical::{Axis as Walk, Canonical};
use crate::ops::numbering::{axes, divisor, grid, index};
use crate::ops::tuning::{LONG_ROW, SHORTEST_ROW};
use crate::ops::units::{LINE, VECTOR};

// No quad holds both ends of a run, of either side.
const _: () = assert!(SHORTEST_ROW >= 2 * VECTOR);

/// A launch of `rows`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) entry: EntryId,
    pub(super) shape: LaunchShape,
    /// Addresses from the starts of the storages.
    pub(super) params: RowsParams,
}

impl Rows {
    /// The plan, where both sides have runs that are long enough; of the axes as they are before they are widened.
    pub(super) fn of(canonical: &Canonical, src_align: Align, dst_align: Align) -> Option<Self> {
        if canonical.widened(src_align, dst_align).width == VECTOR {
            // Nothing to shift.
            return None;
        }
        let bytes = canonical.in_bytes()?;
        let (&Walk { extent: run, .. }, outer) = bytes.axes().split_first()?;
        if run < SHORTEST_ROW {
            return None;
        }
        // Warps that store whole lines are worth a few idle lanes where a run is long.
        let grain = if run < LONG_ROW { VECTOR } else { LINE };
        // How far behind the grain a run may start: all that is known is what every start is a multiple of.
        let strides = outer.iter().fold(bytes.dst_start, |bits, axis| bits | axis.dst as usize);
        let step = 1 << strides.trailing_zeros().min(dst_align.bytes().trailing_zeros()).min(grain.trailing_zeros());
        let quads = (run + grain - step).div_ceil(VECTOR);
        let runs: usize = outer.iter().map(|axis| axis.extent).product();
        let index = index(&bytes);
        let divisor = divisor(index);
        let params = RowsParams {
            src: bytes.src_start as u64,
            dst: bytes.dst_start as u64,
            run: run as u64,
            grain: grain as u64,
            quads: divisor(quads as u64),
            len: quads as u64 * runs as u64,
            rank: outer.len() as u64,
            axes: axes(outer, divisor),
        };
        let blocks = params.len.div_ceil(u64::from(ROWS_BLOCK * ROWS_PER_THREAD));
        let shape = LaunchShape { grid: grid(blocks), block: [ROWS_BLOCK, 1, 1], dynamic_shared: 0 };
        Some(Self { entry: ROWS.get(Key::index(index)), shape, params })
    }

    pub(super) fn reason(&self) -> &'static str {
        "both sides keep runs of bytes together that start or end off 16 bytes: 16-byte accesses shifted to where each run \
         starts in the destination"
    }
}

impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RowsParams { run, quads, len, rank, .. } = self.params;
        let runs = len / quads.value;
        write!(
            f,
            "{}: {runs} of {run} along {rank}, {}",
            self.entry,
            self.shape,
            runs = counted(runs, "run"),
            run = counted(run, "byte"),
            rank = counted(rank, "axis")
        )
    }
}
