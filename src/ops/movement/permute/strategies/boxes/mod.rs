//! Moves any order, step and sign of axes by boxes in shared memory.
//!
//! `work` has the task in bytes, `search` the boxes that are tried, `cut` the numbers of a box,
//! `model` its estimate, `banks` its layout in shared memory and `params` what the kernel gets. The
//! plan is that of TTC and HPTT, candidates and a model, with figures fitted to this kernel.

mod banks;
mod cut;
mod model;
mod params;
mod search;
mod work;

use std::fmt;

use self::cut::{Choice, Cut};
use self::model::Model;
use self::search::Found;
use self::work::Work;
use super::{
    Considered, Decline, Estimated, Launch, Offer, Step, Task, Widened, at_least, at_most, found, launch, weighed,
};
use crate::abi::{BOXES, BoxesParams, Index};
use crate::context::BOXES_SHARED;
use crate::error::counted;
use crate::launch_shape::LaunchShape;
use crate::ops::tuning::Boxes;

pub(in crate::ops::movement::permute) use self::search::KEPT;

/// Takes arrays with a run of the destination.
///
/// Worth, on an H100 (benches/record/2026-11-27-h100/boxes.md): f32 of eight short axes reaches
/// 0.917 of the copy, u8 16 x 4718592 by 1,0 0.920, and bytes of eight short axes, every third
/// along the last, 0.804.
pub(in crate::ops::movement::permute) fn consider(task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
    let boxes = &task.permutes().boxes;
    may_read(task)?;
    let repeated = task.widened().canonical.axes().iter().filter(|axis| axis.src == 0).count();
    let unknown = "boxes were not measured on sources that repeat their elements";
    at_most(repeated, 0, "axes along which the source repeats its elements", unknown)?;
    let planned = found(best(&work(task)?, boxes), "boxes", "no box fits")?;
    *launch = Some(Launch::Boxes(planned.step(task)?));
    Ok(planned.offer(task))
}

/// Declines sources between whose elements the destination may lie.
fn may_read(task: &Task<'_>) -> Result<(), Decline> {
    if task.may_read_gaps {
        return Ok(());
    }
    // Rows go to shared memory as they lie, by 8 or 16 bytes.
    let others = "the destination may lie between the elements of the source, and boxes are fetched with gaps";
    at_least(task.widened().canonical.src_span().len(), 1, "elements of a source without gaps", others)
}

/// Takes such arrays with the boxes of this rank by their estimates, the best first.
pub(in crate::ops::movement::permute) fn ranked(
    task: &Task<'_>,
    rank: usize,
    launch: &mut Option<Launch>,
) -> Considered {
    may_read(task)?;
    let (boxes, work) = (&task.permutes().boxes, work(task)?);
    let mut planned = search::best(&work, boxes).map(|found| planned(&work, boxes, &found?));
    planned.sort_by(|a, b| cycles(a).total_cmp(&cycles(b)));
    let planned = found(planned.get(rank).and_then(Option::as_ref), "boxes of this rank", "fewer boxes fit")?;
    *launch = Some(Launch::Boxes(planned.step(task)?));
    Ok(planned.offer(task))
}

/// Returns the task as boxes see it.
fn work(task: &Task<'_>) -> Result<Work, Decline> {
    let Widened { canonical, .. } = task.widened();
    let work = Work::new(canonical, [task.src_align, task.dst_align]);
    at_least(work.dense, 1, "axes of a run of the destination", "the elements lie apart")?;
    Ok(work)
}

/// A box that is laid out: its estimate and the kernel's parameters.
struct Planned {
    found: Found,
    params: BoxesParams,
    shape: LaunchShape,
    width: usize,
    /// See [`Model::costs`].
    costs: [f64; 3],
}

fn cycles(planned: &Option<Planned>) -> f64 {
    planned.as_ref().map_or(f64::INFINITY, |planned| planned.found.cycles)
}

/// Lays the best boxes out and returns the best of these: a few, or all while their layouts make
/// them much slower than the search expects the next one to be.
fn best(work: &Work, policy: &Boxes) -> Option<Planned> {
    let (mut best, mut laid_out): (Option<Planned>, usize) = (None, 0);
    for found in search::best(work, policy).iter().flatten() {
        let excess = if laid_out < policy.search.laid_out { 1.0 } else { policy.search.excess };
        if cycles(&best) <= excess * found.cycles {
            break;
        }
        if let Some(planned) = planned(work, policy, found) {
            laid_out += 1;
            if planned.found.cycles < cycles(&best) {
                best = Some(planned);
            }
        }
    }
    best
}

/// Lays a box out; `None` if it needs more shared memory than a block has.
fn planned(work: &Work, policy: &Boxes, found: &Found) -> Option<Planned> {
    let Found { choice, threads, .. } = found;
    let mut cut = Cut::default();
    cut.fill(work, choice, policy)?;
    let mut params = params::of(work, &cut, *threads);
    let (gathering, shared) = banks::lay_out(&mut params, &cut, &policy.layout, work.width as u32, *threads);
    if shared > BOXES_SHARED {
        return None;
    }
    let model = Model::new(policy, work, &cut);
    let (cycles, costs) = (model.cycles(*threads, gathering), model.costs(*threads, gathering, work));
    // All blocks run at once, and each moves many boxes.
    let blocks = params.boxes.min(policy.multiprocessors.saturating_mul(policy.resident(shared, *threads)));
    let shape = LaunchShape { grid: [blocks, 1, 1], block: [*threads, 1, 1], dynamic_shared: shared };
    Some(Planned { found: Found { cycles, ..*found }, params, shape, width: work.width as usize, costs })
}

impl Planned {
    fn offer(&self, task: &Task<'_>) -> Offer {
        let reason = "boxes of the source's runs go through shared memory as they lie";
        weighed(task, reason, (Estimated::Boxes, self.width), 1.0, self.costs)
    }

    fn step(&self, task: &Task<'_>) -> Result<Step<Recipe>, Decline> {
        let entry = task.kernel(BOXES, self.width, Index::Narrow)?;
        let Found { choice, threads, .. } = self.found;
        let few = task.permutes().boxes.search.few;
        let params = Recipe { choice, few, threads, layout: banks::LaidOut::of(&self.params) };
        Ok(Step { entry, shape: self.shape, params })
    }
}

/// The box, which a launch cuts again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops::movement::permute) struct Recipe {
    choice: Choice,
    /// See [`BoxesSearch`](crate::ops::tuning::BoxesSearch).
    few: u64,
    threads: u32,
    layout: banks::LaidOut,
}

impl launch::Recipe for Recipe {
    type Params = BoxesParams;

    fn params(&self, layouts: &launch::Layouts<'_>) -> BoxesParams {
        let canonical = layouts.widened();
        let work = Work::new(&canonical, layouts.aligns);
        let mut cut = Cut::default();
        cut.fill_uncounted(&work, &self.choice, self.few).expect("the box was cut from this work before");
        let mut params = params::of(&work, &cut, self.threads);
        self.layout.restore(&mut params, canonical.width as u32);
        params
    }
}

impl fmt::Display for Step<BoxesParams> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, shape, params: BoxesParams { boxes, rows, row, lines, len, .. } } = self;
        let boxes = counted(*boxes, "box");
        write!(f, "{entry}: {boxes} of {rows} x {row} bytes to {lines} x {len} elements, {shape}")
    }
}
