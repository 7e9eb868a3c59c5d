//! Fits the weights of estimates to measured times.

use std::collections::{BTreeMap, BTreeSet};

use warpstride::device::{Estimated, Weights};
use warpstride::ops::{Costs, Target};

use crate::run::geometric_mean;

/// A measured time of a kernel.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    /// The number of the layout.
    pub(super) layout: usize,
    /// The costs of the layout.
    pub(super) costs: Costs,
    /// The time, relative to that of a copy of the same bytes.
    pub(super) time: f64,
}

/// How many times as long as the fastest kernel of its layout another one may take to be fitted:
/// a plan must not take slower ones, whatever their estimates are.
const NEAR: f64 = 2.0;

/// Fewest layouts for each weight.
const LAYOUTS: usize = 3;

/// Parts of the layouts, by their numbers. Weights that were fitted without a part are tested on
/// it, so every layout tests a fit that did not see it (cross-validation).
const FOLDS: usize = 4;

/// The part of the present error that fitted weights may leave. Where the present weights are right
/// and times have noise, fewer than one of 100 fits leaves less, and of the fewest layouts 4 leave
/// less than 0.9.
pub(super) const GAIN: f64 = 0.8;

/// Rounds of a fit at most, and the change of a weight that ends them.
const ROUNDS: usize = 100_000;
const ENOUGH: f64 = 1e-9;

/// Returns the fewest layouts to which the weights of a kernel are fitted.
pub(super) fn fewest(kernel: Estimated) -> usize {
    LAYOUTS * kernel.fitted()
}

/// The fitted weights of a kernel for elements of a width.
#[derive(Debug)]
pub(super) struct Fit {
    pub(super) kernel: Estimated,
    pub(super) width_log2: usize,
    /// The number of layouts.
    pub(super) layouts: usize,
    /// The mean relative errors of the estimates: with the present weights, and with those that
    /// were fitted without the layout. `None` if there are too few layouts.
    pub(super) errors: Option<[f64; 2]>,
    /// The weights that were fitted to all layouts.
    pub(super) weights: Vec<f64>,
    /// Those that were fitted without each part of the layouts.
    pub(super) without: [Vec<f64>; FOLDS],
}

impl Fit {
    /// Fits the weights of a kernel to its samples.
    fn new((kernel, width_log2): (Estimated, usize), samples: &[&Sample], present: &Weights) -> Self {
        let now = present.of_kernel(kernel, width_log2).to_vec();
        let layouts = samples.iter().map(|sample| sample.layout).collect::<BTreeSet<_>>().len();
        let without = [(); FOLDS].map(|()| now.clone());
        let mut fit = Self { kernel, width_log2, layouts, errors: None, weights: now.clone(), without };
        if layouts < fewest(kernel) {
            return fit;
        }
        fit.weights = least_squares(samples, &now);
        for (fold, without) in fit.without.iter_mut().enumerate() {
            let seen = samples.iter().filter(|sample| sample.layout % FOLDS != fold);
            *without = least_squares(&seen.copied().collect::<Vec<_>>(), &now);
        }
        let folds = fit.without.each_ref().map(|own| fit.put_into(present, own));
        fit.errors = Some([error(samples, |_| present), error(samples, |layout| &folds[layout % FOLDS])]);
        fit
    }

    /// Returns weights with these ones of the kernel.
    fn put_into(&self, weights: &Weights, own: &[f64]) -> Weights {
        let mut weights = *weights;
        weights.of_kernel_mut(self.kernel, self.width_log2).copy_from_slice(own);
        weights
    }

    /// Returns whether the fitted weights predict better than the present ones.
    fn is_better(&self) -> bool {
        self.errors.is_some_and(|[now, fitted]| fitted < GAIN * now)
    }

    /// Bytes of the elements.
    pub(super) fn width(&self) -> usize {
        1 << self.width_log2
    }
}

/// The fits of all kernels and widths of which there are samples.
#[derive(Debug)]
pub(super) struct Fits {
    pub(super) of_kernels: Vec<Fit>,
    /// How many times as long as the fastest kernel of its layout the one takes that plans choose:
    /// the geometric means, with the present weights, and with the better of these and of those
    /// that were fitted without the layout. `None` if there are no layouts.
    pub(super) losses: Option<[f64; 2]>,
    pub(super) present: Weights,
}

impl Fits {
    /// Fits the weights of each kernel and width to samples of all kernels that plans for a target
    /// ask, in their order.
    pub(super) fn new(samples: &[Sample], target: Target) -> Self {
        let (by_layout, present) = (by_layout(samples), Weights::of(target));
        let is_near = |sample: &&Sample| sample.time <= NEAR * fastest(&by_layout[&sample.layout]);
        let near: Vec<&Sample> = samples.iter().filter(|sample| sample.costs.are_fitted()).filter(is_near).collect();
        let groups = Estimated::ALL.iter().flat_map(|&kernel| (0..5).map(move |width_log2| (kernel, width_log2)));
        let fit = |group: (Estimated, usize)| {
            let own = near.iter().filter(|sample| (sample.costs.kernel, sample.costs.width_log2) == group);
            let own: Vec<&Sample> = own.copied().collect();
            (!own.is_empty()).then(|| Fit::new(group, &own, &present))
        };
        let mut fits = Self { of_kernels: groups.filter_map(fit).collect(), losses: None, present };
        let folds: [Weights; FOLDS] = std::array::from_fn(|fold| fits.better(|fit| &fit.without[fold]));
        let loss = |weights: &dyn Fn(usize) -> Weights| {
            let losses = by_layout.iter().map(|(&layout, ways)| loss(ways, &weights(layout), target));
            geometric_mean(losses)
        };
        if !by_layout.is_empty() {
            fits.losses = Some([loss(&|_| present), loss(&|layout| folds[layout % FOLDS])]);
        }
        fits
    }

    /// Returns the present weights, with fitted ones of the kernels whose fits are better.
    fn better(&self, fitted: impl Fn(&Fit) -> &[f64]) -> Weights {
        let better = self.of_kernels.iter().filter(|fit| fit.is_better());
        better.fold(self.present, |weights, fit| fit.put_into(&weights, fitted(fit)))
    }

    /// Returns whether the fitted weights of a kernel replace the present ones.
    pub(super) fn is_written(&self, fit: &Fit) -> bool {
        fit.is_better() && self.losses.is_some_and(|[now, fitted]| fitted <= now)
    }

    /// Returns whether the fitted weights of some kernel replace the present ones.
    pub(super) fn are_written(&self) -> bool {
        self.of_kernels.iter().any(|fit| self.is_written(fit))
    }

    /// Returns the weights from now on.
    pub(super) fn weights(&self) -> Weights {
        if self.are_written() { self.better(|fit| &fit.weights) } else { self.present }
    }
}

/// Returns the samples of each layout, in their order.
fn by_layout(samples: &[Sample]) -> BTreeMap<usize, Vec<&Sample>> {
    let mut by_layout: BTreeMap<usize, Vec<&Sample>> = BTreeMap::new();
    samples.iter().for_each(|sample| by_layout.entry(sample.layout).or_default().push(sample));
    by_layout
}

/// Returns the least time of a layout.
fn fastest(ways: &[&Sample]) -> f64 {
    ways.iter().map(|sample| sample.time).fold(f64::INFINITY, f64::min)
}

/// Returns how many times as long as the fastest kernel of a layout the one takes that plans choose
/// by these weights.
fn loss(ways: &[&Sample], weights: &Weights, target: Target) -> f64 {
    let asked: Vec<Costs> = ways.iter().map(|sample| sample.costs).collect();
    Costs::chosen(&asked, weights, target).map_or(1.0, |chosen| ways[chosen].time / fastest(ways))
}

/// Returns the mean relative error of the estimates by the weights for each layout.
fn error<'a>(samples: &[&Sample], weights: impl Fn(usize) -> &'a Weights) -> f64 {
    let error = |sample: &&Sample| (sample.costs.time(weights(sample.layout)) / sample.time - 1.0).abs();
    samples.iter().map(error).sum::<f64>() / samples.len() as f64
}

/// Returns the weights, none less than 0, with the least sum of squares of the relative errors. A
/// weight whose cost no sample has stays as it is.
///
/// It moves one weight after the other to its best value until all stay (coordinate descent; Franc,
/// Hlaváč and Navara, 2005). There are six weights at most, so this takes no time.
fn least_squares(samples: &[&Sample], present: &[f64]) -> Vec<f64> {
    let relative = |sample: &Sample, at: usize| sample.costs.costs[at] / sample.time;
    let sum = |of: &dyn Fn(&Sample) -> f64| samples.iter().map(|sample| of(sample)).sum::<f64>();
    let count = present.len();
    let squares: Vec<Vec<f64>> = (0..count)
        .map(|a| (0..count).map(|b| sum(&|sample| relative(sample, a) * relative(sample, b))).collect())
        .collect();
    let sums: Vec<f64> = (0..count).map(|at| sum(&|sample| relative(sample, at))).collect();
    let mut weights = present.to_vec();
    for _ in 0..ROUNDS {
        let mut change = 0.0_f64;
        for at in (0..count).filter(|&at| squares[at][at] > 0.0) {
            let product: f64 = squares[at].iter().zip(&weights).map(|(square, weight)| square * weight).sum();
            let best = weights[at] + (sums[at] - product) / squares[at][at];
            let next = best.clamp(0.0, Weights::LARGEST);
            change = change.max((next - weights[at]).abs());
            weights[at] = next;
        }
        if change < ENOUGH {
            break;
        }
    }
    // A few digits are enough, and make short lines of the user's file.
    weights.into_iter().map(|weight| (weight * 1e4).round() / 1e4).collect()
}

#[cfg(test)]
mod tests;
