//! Moves elements one by one in the destination's order, four a thread, whatever the layouts.
//!
//! Worth: it takes any work, so plans also use it where all strategies that they ask decline. It
//! moves runs of whole 16-byte accesses that are contiguous on both sides at a copy's speed: heads
//! of 16 x 4096 x 32 x 128 of two bytes reach 2940 GB/s, 2960 with hints, and runs of 3600 bytes
//! 2798 (benches/record/experiments.md).

use std::fmt;

use super::{Considered, Estimated, Launch, Layouts, Step, Task, Widened, axes, divisor, grid, index, launch, weighed};
use crate::abi::{self, ELEMENTS, ELEMENTS_BLOCK, ElementsParams, Index, MAX_AXES, elements_per_thread};
use crate::error::counted;
use crate::launch_shape::LaunchShape;
use crate::layout::walk::{Axis, Canonical};
use crate::ops::units::{SECTOR, VECTOR};

/// Takes everything.
pub(in crate::ops::movement::permute) fn consider(task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
    let Widened { canonical, len, index } = task.widened();
    let width = canonical.width;
    let blocks = (*len as u64).div_ceil(u64::from(ELEMENTS_BLOCK * elements_per_thread(width as u32)));
    let shape = LaunchShape { grid: grid(blocks), block: [ELEMENTS_BLOCK, 1, 1], dynamic_shared: 0 };
    // Half a sector waits in the cache for the other half if accesses lie apart, so these have no
    // hints.
    let has_runs = canonical.axes().iter().any(|axis| axis.dst == 1 && axis.src == 1);
    let entry = task.unhinted(ELEMENTS, width, *index)?;
    let entry = if has_runs { task.hinted(entry) } else { entry };
    *launch = Some(Launch::Elements(Step { entry, shape, params: Recipe::new(canonical, *index) }));
    let is_run = |axis: &&Axis| axis.dst == 1 && axis.src.unsigned_abs() == 1;
    let run = canonical.axes().iter().find(is_run).map(|axis| axis.extent * width);
    let part = run.map_or(0.0, |run| SECTOR as f64 / run as f64);
    let nearest = canonical.axes().first().map_or(0, |axis| axis.src.unsigned_abs());
    let is_crossed = canonical.axes().iter().any(|axis| axis.src != 0 && axis.src.unsigned_abs() < nearest);
    let costs = [1.0, part, f64::from(u8::from(is_crossed))];
    Ok(weighed(task, reason(canonical), (Estimated::Elements, width), task.traffic(), costs))
}

/// Axes that a plan keeps as kernels walk them, and one that stands for those beyond the rank.
const KEPT: usize = 9;

/// The parameters, but for the axes where there are more than plans keep. Small arrays move by
/// elements too, whose launches should take little time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops::movement::permute) struct Recipe {
    src: u64,
    dst: u64,
    len: u64,
    rank: u64,
    axes: [abi::Axis; KEPT],
}

impl Recipe {
    fn new(canonical: &Canonical, index: Index) -> Self {
        Self {
            src: (canonical.src_start * canonical.width) as u64,
            dst: (canonical.dst_start * canonical.width) as u64,
            len: canonical.len() as u64,
            rank: canonical.axes().len() as u64,
            axes: axes(canonical.axes(), divisor(index)),
        }
    }
}

impl launch::Recipe for Recipe {
    type Params = ElementsParams;

    #[inline]
    fn params(&self, layouts: &Layouts<'_>) -> ElementsParams {
        let &Self { src, dst, len, rank, axes: kept } = self;
        if rank < KEPT as u64 {
            let mut axes = [kept[KEPT - 1]; MAX_AXES];
            axes[..KEPT].copy_from_slice(&kept);
            return ElementsParams { src, dst, len, rank, axes };
        }
        let canonical = layouts.widened();
        ElementsParams { src, dst, len, rank, axes: axes(canonical.axes(), divisor(index(&canonical))) }
    }
}

/// Says how the elements lie.
fn reason(canonical: &Canonical) -> &'static str {
    let axes = canonical.axes();
    let beside = |along: fn(&Axis) -> isize| axes.iter().any(|axis| along(axis).unsigned_abs() == 1);
    let same = |direction: isize| axes.iter().any(|axis| axis.dst == 1 && axis.src == direction);
    if axes.is_empty() {
        "there is one element"
    } else if !beside(|axis| axis.dst) || !beside(|axis| axis.src) {
        "the elements of a side lie apart, so no neighbours move together"
    } else if same(1) && canonical.width == VECTOR {
        "runs of whole 16-byte accesses are contiguous on both sides"
    } else if same(1) {
        "runs are contiguous on both sides, but start or end between 16-byte accesses"
    } else if same(-1) {
        "the sides have the same neighbours in opposite orders"
    } else {
        "the sides are contiguous along different axes, and the L2 cache joins what moves apart"
    }
}

impl fmt::Display for Step<ElementsParams> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, shape, params: ElementsParams { len, rank, .. } } = self;
        write!(f, "{entry}: {} along {}, {shape}", counted(*len, "element"), counted(*rank, "axis"))
    }
}
