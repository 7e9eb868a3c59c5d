//! Times layouts in the ways that plans of them ask, beside copies.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use bytemuck::Pod;
use warpstride::device::Device;
use warpstride::element::Element;
use warpstride::error::{Error, ErrorKind, counted};
use warpstride::layout::Layout;
use warpstride::ops::{Align, Costs, PermutePlan, Target};
use warpstride::roofline::measure::Rotation;
use warpstride::stream::Stream;
use warpstride::view::{View, ViewMut};

use super::fit::{Sample, fewest};
use super::{BYTES, moved};
use crate::bench::drawn::{Sizes, cases};
use crate::bench::listed::{Listed, Task, tasks};
use crate::bench::measure::{ColdRuns, Outcome};
use crate::output::Output;
use crate::{by_width, reference};

/// Draws the layouts. No other list of this repository has the seed.
const SEED: u64 = 41_271_126;

/// Drawn layouts, of which those are timed that some kernel needs.
const DRAWN: usize = 3000;

/// Layouts of a kernel and a width that are timed, for each three that it needs: some of them turn
/// out to be far from the best of their layout.
const MORE: usize = 4;

/// The time of a run; `None` if its result was wrong.
type Clock = fn(&Outcome) -> Option<f64>;

/// A layout and the ways that are timed, each with what it costs.
pub(super) struct Chosen {
    task: Task,
    ways: Vec<(PermutePlan, Costs)>,
}

/// Chooses layouts of at most so many bytes among drawn ones: those by which a kernel gets as many
/// as it needs.
pub(super) fn chosen(target: Target, (count, sizes): (usize, Sizes), most: usize) -> Result<Vec<Chosen>> {
    let listed: Vec<Listed> = cases(SEED, count, sizes).into_iter().map(Into::into).collect();
    let (mut have, mut chosen) = (BTreeMap::new(), Vec::new());
    for task in tasks(&listed, usize::MAX)? {
        if task.storage_lens().into_iter().any(|len| len * task.dtype().width() > most) {
            continue;
        }
        let ways = ways(&task, target)?;
        let fitted = || ways.iter().map(|(_, costs)| costs).filter(|costs| costs.are_fitted());
        let mut groups: Vec<_> = fitted().map(|costs| (costs.kernel.name(), costs.width_log2)).collect();
        groups.dedup();
        let lacks = |&Costs { kernel, width_log2, .. }: &Costs| {
            let has = have.get(&(kernel.name(), width_log2)).copied().unwrap_or(0);
            has < fewest(kernel) * MORE / 3
        };
        if fitted().any(lacks) {
            groups.into_iter().for_each(|group| *have.entry(group).or_default() += 1);
            chosen.push(Chosen { task, ways });
        }
    }
    Ok(chosen)
}

/// Plans a layout in the ways that plans of it ask.
fn ways(task: &Task, target: Target) -> Result<Vec<(PermutePlan, Costs)>> {
    let ([from, to], align) = (task.layouts()?, Align::ALLOCATION);
    Ok(PermutePlan::new(&from, align, &to, align, task.dtype().width(), target)?.estimated())
}

/// Times the layouts that a target's kernels need.
pub(super) fn measured(device: &Device, target: Target, output: &Output) -> Result<Vec<Sample>> {
    let chosen = chosen(target, (DRAWN, Sizes::TIMED), BYTES)?;
    let progress = output.progress_with_rate(chosen.len() as u64);
    let mut samples = Vec::new();
    for width in [1, 2, 4, 8, 16] {
        let own = chosen.iter().enumerate().filter(|(_, chosen)| chosen.task.dtype().width() == width);
        let own: Vec<(usize, &Chosen)> = own.collect();
        let Some((_, Chosen { task, .. })) = own.first() else { continue };
        by_width!(task.dtype(), T => {
            let elements = reference::random::<T>(BYTES / width)?;
            for (layout, chosen) in own {
                progress.doing(format!("estimates, elements of {}", counted(width, "byte")));
                samples.extend(timed(device, target, (layout, chosen), &elements, |run| {
                    run.timing.as_ref().map(|timing| timing.median_ms())
                })?);
                progress.step();
            }
        });
    }
    Ok(samples)
}

/// Times a layout in all of its ways, and a copy of as many elements.
fn timed<T: Element + Pod>(
    device: &Device,
    target: Target,
    (layout, Chosen { task, ways }): (usize, &Chosen),
    elements: &[T],
    clock: Clock,
) -> Result<Vec<Sample>> {
    let [source_len, len] = task.storage_lens();
    let (elements, [from, _]) = (&elements[..source_len], task.layouts()?);
    let rotation = Rotation::new(device, &[source_len, len].map(|len| len * size_of::<T>()));
    let mut runs = ColdRuns::new(rotation, elements, len)?;
    let (row, align) = (Layout::row_major(&[len])?, Align::ALLOCATION);
    let copy = PermutePlan::new(&row, align, &row, align, size_of::<T>(), target)?;
    let copied = time(&mut runs, &elements[..len], &copy, |array| array.slice(0, ..len, 1), |array| Ok(array), clock)?;
    let expected = reference::in_c_order(elements, &from)?;
    let mut samples = Vec::new();
    for (way, costs) in ways {
        let ms = time(&mut runs, &expected, way, |array| task.source(array), |array| task.result(array), clock)
            .with_context(|| task.name.clone())?;
        samples.push(Sample { layout, costs: *costs, time: ms / copied });
    }
    Ok(samples)
}

/// Times a way on the views of the rotation's arrays.
fn time<T: Element + Pod>(
    runs: &mut ColdRuns<T>,
    expected: &[T],
    way: &PermutePlan,
    from: impl for<'v> Fn(View<'v, T>) -> warpstride::Result<View<'v, T>>,
    into: impl for<'v> Fn(ViewMut<'v, T>) -> warpstride::Result<ViewMut<'v, T>>,
    clock: Clock,
) -> Result<f64> {
    // The arrays of each set begin at other places. A search for boxes between launches would leave
    // the GPU idle.
    let mut plans: Vec<(Layout, PermutePlan)> = Vec::new();
    for set in 0..runs.rotation.sets() {
        let (source, result) = (from(runs.sources.view(set)?)?, into(runs.results.view_mut(set)?)?);
        let plan = way.like(source.layout(), result.layout()).context("the arrays of a rotation are aligned alike")?;
        plans.push((*source.layout(), plan));
    }
    let run = moved(runs, expected, |source: View<'_, T>, result: ViewMut<'_, T>, stream: &Stream| {
        let source = from(source)?;
        let none = || Error::new(ErrorKind::Layout, format!("`{way}` was planned for other arrays"));
        let (_, plan) = plans.iter().find(|(layout, _)| layout == source.layout()).ok_or_else(none)?;
        plan.launch(source, into(result)?, stream)
    })?;
    clock(&run).with_context(|| format!("{way} moves elements to the wrong places; please report this as a bug"))
}

#[cfg(test)]
mod tests;
