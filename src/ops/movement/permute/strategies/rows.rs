//! Runs of bytes that both sides keep together, but not on 16 bytes.
//!
//! A thread stores 16 aligned bytes of the destination, and puts them together from two aligned
//! accesses of the source, shifted by what the two sides are apart.
//!
//! Worth: no record times it beside another strategy. By design, `elements` moves such runs by
//! accesses that are as narrow as their alignment, in the extreme byte by byte.

use std::fmt;

use crate::abi::{Key, ROWS, ROWS_BLOCK, ROWS_PER_THREAD, RowsParams};
use crate::error::counted;
use crate::launch_shape::LaunchShape;
use crate::ops::movement::permute::strategy::{Decline, Launch, Strategy, at_least, at_most};
use crate::ops::movement::permute::task::Task;
use crate::ops::numbering::{axes, divisor, grid, index};
use crate::ops::plan::Step;
use crate::ops::units::{LINE, VECTOR};

/// Takes runs of bytes off 16 bytes that are long enough on both sides.
pub(in crate::ops::movement::permute) struct Rows;

impl Strategy for Rows {
    fn name(&self) -> &'static str {
        "rows"
    }

    fn consider(&self, task: &Task<'_>, launch: &mut Option<Launch>) -> Result<&'static str, Decline> {
        let constants = &task.permutes().rows;
        let together = task.widened().canonical.width;
        at_most(
            together,
            VECTOR / 2,
            "bytes that are one element of both sides",
            "the runs are whole vectors already",
        )?;
        // Of the elements as they are before they are widened.
        let run = task.canonical.together() * task.canonical.width;
        let short = "both sides keep no run of bytes together that is long enough to be shifted";
        at_least(run, constants.shortest, "bytes of a run that both sides keep together", short)?;
        let bytes = task.canonical.in_bytes();
        let outer = &bytes.axes()[1..];
        // Warps that store whole lines are worth a few idle lanes where a run is long.
        let grain = if run < constants.long { VECTOR } else { LINE };
        // How far behind the grain a run may start: all that is known is what every start is a
        // multiple of.
        let strides = outer.iter().fold(bytes.dst_start, |bits, axis| bits | axis.dst as usize);
        let known = strides.trailing_zeros().min(task.dst_align.bytes().trailing_zeros());
        let vectors = (run + grain - (1 << known.min(grain.trailing_zeros()))).div_ceil(VECTOR);
        let runs: usize = outer.iter().map(|axis| axis.extent).product();
        let index = index(&bytes);
        let divisor = divisor(index);
        let params = RowsParams {
            src: bytes.src_start as u64,
            dst: bytes.dst_start as u64,
            run: run as u64,
            grain: grain as u64,
            quads: divisor(vectors as u64),
            len: vectors as u64 * runs as u64,
            rank: outer.len() as u64,
            axes: axes(outer, divisor),
        };
        let blocks = params.len.div_ceil(u64::from(ROWS_BLOCK * ROWS_PER_THREAD));
        let shape = LaunchShape { grid: grid(blocks), block: [ROWS_BLOCK, 1, 1], dynamic_shared: 0 };
        let reason = "both sides keep runs of bytes together that start or end off 16 bytes: 16-byte accesses shifted to \
                      where each run starts in the destination";
        let step = Step { entry: task.hinted(ROWS.get(Key::index(index))), shape, params };
        *launch = Some(Launch::Rows(step));
        Ok(reason)
    }
}

impl fmt::Display for Step<RowsParams> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, shape, params: RowsParams { run, quads, len, rank, .. } } = self;
        let runs = len / quads.value;
        write!(
            f,
            "{entry}: {runs} of {run} along {rank}, {shape}",
            runs = counted(runs, "run"),
            run = counted(*run, "byte"),
            rank = counted(*rank, "axis")
        )
    }
}
