//! Elements one by one in the destination's order, four a thread, whatever the layouts.
//!
//! Worth: it takes what no other strategy takes. Where both sides keep runs of whole 16-byte
//! accesses together it moves them at a copy's speed: heads of 16 x 4096 x 32 x 128 of two bytes
//! have 2940 GB/s, 2960 with hints, and runs of 3600 bytes 2798 (docs/adr/0009).

use std::fmt;

use crate::abi::{ELEMENTS, ELEMENTS_BLOCK, ElementsParams, elements_per_thread};
use crate::error::counted;
use crate::launch_shape::LaunchShape;
use crate::ops::canonical::{Axis, Canonical};
use crate::ops::movement::permute::strategy::{Decline, Launch, Strategy};
use crate::ops::movement::permute::task::{Task, Widened};
use crate::ops::numbering::{axes, divisor, grid};
use crate::ops::plan::Step;
use crate::ops::units::VECTOR;

/// Takes everything.
pub(in crate::ops::movement::permute) struct Elements;

impl Strategy for Elements {
    fn name(&self) -> &'static str {
        "elements"
    }

    fn consider(&self, task: &Task<'_>, launch: &mut Option<Launch>) -> Result<&'static str, Decline> {
        let Widened { canonical, len, index } = task.widened();
        let width = canonical.width;
        let params = ElementsParams {
            src: (canonical.src_start * width) as u64,
            dst: (canonical.dst_start * width) as u64,
            len: *len as u64,
            rank: canonical.axes().len() as u64,
            axes: axes(canonical.axes(), divisor(*index)),
        };
        let blocks = params.len.div_ceil(u64::from(ELEMENTS_BLOCK * elements_per_thread(width as u32)));
        let shape = LaunchShape { grid: grid(blocks), block: [ELEMENTS_BLOCK, 1, 1], dynamic_shared: 0 };
        // Where accesses lie apart, a half of a sector waits in the cache for the other.
        let has_runs = canonical.axes().iter().any(|axis| axis.dst == 1 && axis.src == 1);
        let entry = task.unhinted(ELEMENTS, width, *index)?;
        let entry = if has_runs { task.hinted(entry) } else { entry };
        *launch = Some(Launch::Elements(Step { entry, shape, params }));
        Ok(reason(canonical))
    }
}

/// Why no other kernel takes them.
fn reason(canonical: &Canonical) -> &'static str {
    let axes = canonical.axes();
    let beside = |along: fn(&Axis) -> isize| axes.iter().any(|axis| along(axis).unsigned_abs() == 1);
    if axes.is_empty() {
        "it is one element"
    } else if canonical.width == VECTOR {
        "what both sides keep together is whole 16-byte accesses, and no tile is filled by them"
    } else if !beside(|axis| axis.dst) || !beside(|axis| axis.src) {
        "the elements of a side lie apart, so that no neighbours can be moved together"
    } else if axes.iter().any(|axis| axis.dst == 1 && axis.src == 1) {
        "both sides keep the same elements together, in runs too short to be shifted to 16-byte accesses"
    } else if axes.iter().any(|axis| axis.dst == 1 && axis.src == -1) {
        "the sides have the same neighbours in opposite order"
    } else {
        "the sides are contiguous along different axes, too short ones: most of a tile would be empty"
    }
}

impl fmt::Display for Step<ElementsParams> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, shape, params: ElementsParams { len, rank, .. } } = self;
        write!(f, "{entry}: {} along {}, {shape}", counted(*len, "element"), counted(*rank, "axis"))
    }
}
