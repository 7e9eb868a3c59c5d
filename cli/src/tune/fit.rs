//! Fits the weights of estimates to measured times.

use std::collections::BTreeSet;

use warpstride::device::{Estimated, Weights};
use warpstride::ops::Costs;

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

/// Every layout of this number is held out: the fit is tested on it.
const HELD_OUT: usize = 4;

/// Rounds of a fit at most, and the change of a weight that ends them.
const ROUNDS: usize = 100_000;
const ENOUGH: f64 = 1e-9;

/// Returns the fewest layouts to which the weights of a kernel are fitted.
pub(super) fn fewest(kernel: Estimated, present: &Weights) -> usize {
    LAYOUTS * present.of_kernel(kernel, 0).len()
}

/// The weights of a kernel for elements of a width, before and after.
#[derive(Debug)]
pub(super) struct Fit {
    pub(super) kernel: Estimated,
    pub(super) width_log2: usize,
    /// The number of layouts.
    pub(super) layouts: usize,
    /// The mean relative errors of the estimates of the layouts that were held out: with the
    /// present weights, and with the fitted ones. `None` if there are too few layouts.
    pub(super) errors: Option<[f64; 2]>,
    /// The weights from now on: the fitted ones where their error is less.
    pub(super) weights: Vec<f64>,
}

impl Fit {
    /// Fits the weights of a kernel to its samples.
    fn new(kernel: Estimated, width_log2: usize, samples: &[&Sample], present: &Weights) -> Self {
        let now = present.of_kernel(kernel, width_log2);
        let layouts: BTreeSet<usize> = samples.iter().map(|sample| sample.layout).collect();
        let mut fit = Self { kernel, width_log2, layouts: layouts.len(), errors: None, weights: now.to_vec() };
        if layouts.len() < fewest(kernel, present) {
            return fit;
        }
        let held_out: BTreeSet<usize> = layouts.into_iter().skip(HELD_OUT - 1).step_by(HELD_OUT).collect();
        let (tests, fitted): (Vec<&Sample>, _) = samples.iter().partition(|sample| held_out.contains(&sample.layout));
        let fitted = least_squares(&fitted, now);
        let errors = [error(&tests, now), error(&tests, &fitted)];
        fit.errors = Some(errors);
        if errors[1] < errors[0] {
            fit.weights = fitted;
        }
        fit
    }

    /// Returns whether the fitted weights replace the present ones.
    pub(super) fn is_better(&self) -> bool {
        self.errors.is_some_and(|[before, after]| after < before)
    }

    /// Bytes of the elements.
    pub(super) fn width(&self) -> usize {
        1 << self.width_log2
    }
}

/// Fits the weights of each kernel and width of which there are samples.
pub(super) fn fits(samples: &[Sample], present: &Weights) -> Vec<Fit> {
    let best = |layout: usize| {
        let of_layout = samples.iter().filter(|sample| sample.layout == layout);
        of_layout.map(|sample| sample.time).fold(f64::INFINITY, f64::min)
    };
    let near: Vec<&Sample> = samples.iter().filter(|sample| sample.time <= NEAR * best(sample.layout)).collect();
    let groups = Estimated::ALL.iter().flat_map(|&kernel| (0..5).map(move |width_log2| (kernel, width_log2)));
    let fit = |(kernel, width_log2): (Estimated, usize)| {
        let is_own = |sample: &&&Sample| (sample.costs.kernel, sample.costs.width_log2) == (kernel, width_log2);
        let own: Vec<&Sample> = near.iter().filter(is_own).copied().collect();
        (!own.is_empty()).then(|| Fit::new(kernel, width_log2, &own, present))
    };
    groups.filter_map(fit).collect()
}

/// Returns the weights from now on.
pub(super) fn weights(fits: &[Fit], present: &Weights) -> Weights {
    let mut weights = *present;
    for fit in fits {
        weights.of_kernel_mut(fit.kernel, fit.width_log2).copy_from_slice(&fit.weights);
    }
    weights
}

/// Returns the estimated time.
fn estimate(sample: &Sample, weights: &[f64]) -> f64 {
    weights.iter().zip(sample.costs.costs).map(|(weight, cost)| weight * cost).sum()
}

/// Returns the mean relative error of the estimates.
fn error(samples: &[&Sample], weights: &[f64]) -> f64 {
    let errors = samples.iter().map(|sample| (estimate(sample, weights) / sample.time - 1.0).abs());
    errors.sum::<f64>() / samples.len() as f64
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
mod tests {
    use warpstride::ops::Target;
    use warpstride::random::SplitMix64;

    use super::*;

    const KERNEL: Estimated = Estimated::Quads;
    const PLANTED: [f64; 6] = [1.2, 0.3, 0.0, 0.5, 0.02, 0.7];

    fn present() -> Weights {
        Weights::of(Target::new((9, 0)))
    }

    /// A number from 0 to 1.
    fn drawn(random: &mut SplitMix64) -> f64 {
        random.below(1 << 20) as f64 / f64::from(1 << 20)
    }

    /// Samples of layouts of drawn costs, whose times have the planted weights and some noise.
    fn samples(layouts: usize, noise: f64) -> Vec<Sample> {
        let mut random = SplitMix64(7);
        (0..layouts)
            .map(|layout| {
                let costs = [(); 6].map(|()| drawn(&mut random)).map(|cost| cost * cost);
                let costs = Costs {
                    kernel: KERNEL,
                    width_log2: 2,
                    costs: [1.0, costs[1], costs[2], costs[3], 9.0 * costs[4], costs[5]],
                };
                let mut sample = Sample { layout, costs, time: 1.0 };
                sample.time = estimate(&sample, &PLANTED) * (1.0 + noise * (2.0 * drawn(&mut random) - 1.0));
                sample
            })
            .collect()
    }

    #[test]
    fn planted_weights_are_found_in_noise() {
        for (noise, off) in [(0.0, 1e-4), (0.03, 0.05)] {
            let found = fits(&samples(60, noise), &present());
            let [fit] = &found[..] else { panic!("{found:?}") };
            assert_eq!((fit.kernel.name(), fit.width(), fit.layouts), ("quads", 4, 60));
            let [before, after] = fit.errors.expect("there are enough layouts");
            assert!(before > 0.1 && after <= noise + 1e-3 && fit.is_better(), "{before} and {after}");
            for (found, planted) in fit.weights.iter().zip(PLANTED) {
                assert!((found - planted).abs() <= off, "{:?}", fit.weights);
            }
            let weights = weights(&found, &present());
            assert_eq!(weights.of_kernel(KERNEL, 2), fit.weights);
            assert_eq!(weights.of_kernel(KERNEL, 3), present().of_kernel(KERNEL, 3));
        }
    }

    #[test]
    fn a_fit_that_predicts_no_better_replaces_nothing() {
        let mut planted = present();
        planted.of_kernel_mut(KERNEL, 2).copy_from_slice(&PLANTED);
        let found = fits(&samples(60, 0.0), &planted);
        assert!(!found[0].is_better(), "{found:?}");
        assert_eq!(weights(&found, &planted), planted);
        // The layouts that are held out have other times than those that are fitted.
        let mut broken = samples(60, 0.0);
        broken
            .iter_mut()
            .filter(|sample| sample.layout % HELD_OUT != HELD_OUT - 1)
            .for_each(|sample| sample.time *= 2.0);
        let found = fits(&broken, &planted);
        assert!(found[0].errors.is_some_and(|[before, after]| before < 1e-9 && after > 0.5), "{found:?}");
        assert_eq!(weights(&found, &planted), planted);
    }

    #[test]
    fn too_few_layouts_keep_the_present_weights() {
        let all = samples(18, 0.0);
        assert_eq!((fewest(KERNEL, &present()), fits(&all, &present())[0].is_better()), (18, true));
        // Boxes of several cuts are samples of one layout.
        let twice: Vec<Sample> = all[1..].iter().chain(&all[1..]).cloned().collect();
        let found = fits(&twice, &present());
        assert_eq!((found[0].layouts, found[0].errors, weights(&found, &present())), (17, None, present()));
        assert!(fits(&[], &present()).is_empty());
    }

    #[test]
    fn a_kernel_far_from_the_best_is_not_fitted() {
        let mut all = samples(60, 0.0);
        for sample in &mut samples(60, 0.0) {
            sample.costs.kernel = Estimated::Elements;
            sample.time *= if sample.layout < 20 { 1.5 } else { 2.5 };
            all.push(sample.clone());
        }
        let found = fits(&all, &present());
        assert_eq!([found[0].layouts, found[1].layouts], [60, 20]);
    }

    #[test]
    fn weights_without_a_cost_stay_and_none_is_less_than_0() {
        let mut all = samples(60, 0.0);
        for sample in &mut all {
            sample.costs.costs[3] = 0.0;
            // Longer runs take less time, which no weight may say.
            sample.time = 2.0 - sample.costs.costs[1];
        }
        let all: Vec<&Sample> = all.iter().collect();
        let found = least_squares(&all, &[1.0, 1.0, 0.0, 0.125, 0.0, 0.0]);
        assert!(found[1] == 0.0 && found[3] == 0.125 && found.iter().all(|&weight| weight >= 0.0), "{found:?}");
        // The least squares of one weight is the mean, which weighs times by their inverse.
        let times = [1.0, 2.0].map(|time| Sample { time, ..all[0].clone() });
        let [mut a, mut b] = times;
        (a.costs.costs, b.costs.costs) = ([1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(least_squares(&[&a, &b], &[0.0]), [1.2]);
    }
}
