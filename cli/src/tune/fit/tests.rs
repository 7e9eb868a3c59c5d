use warpstride::device::TunedWeights;
use warpstride::driver::Driver;
use warpstride::driver::soft::Soft;
use warpstride::random::SplitMix64;

use super::*;

const KERNEL: Estimated = Estimated::Quads;
const PLANTED: [f64; 6] = [1.2, 0.3, 0.0, 0.5, 0.02, 0.7];

fn target() -> Target {
    Target::new((9, 0))
}

fn present() -> Weights {
    Weights::of(target())
}

/// The present weights, with those of the kernel.
fn with(own: &[f64]) -> Weights {
    let mut weights = present();
    weights.of_kernel_mut(KERNEL, 2).copy_from_slice(own);
    weights
}

/// The target of these weights.
fn target_of(weights: &Weights) -> Target {
    Target::of_info(Soft::new().info(), None, Some(TunedWeights::of(weights)))
}

/// A number from 0 to 1.
fn drawn(random: &mut SplitMix64) -> f64 {
    random.below(1 << 20) as f64 / f64::from(1 << 20)
}

/// Samples of layouts of drawn costs, whose times have the planted weights and some noise: its
/// standard deviation.
fn samples(layouts: usize, noise: f64, seed: u64) -> Vec<Sample> {
    let (mut random, planted) = (SplitMix64(seed), with(&PLANTED));
    (0..layouts)
        .map(|layout| {
            let costs = [(); 6].map(|()| drawn(&mut random)).map(|cost| cost * cost);
            let costs = [1.0, costs[1], costs[2], costs[3], 9.0 * costs[4], costs[5]];
            let costs = Costs { kernel: KERNEL, width_log2: 2, costs, least: 1.0 };
            // The variance of a number from 0 to 1 is a twelfth.
            let normal: f64 = (0..12).map(|_| drawn(&mut random)).sum::<f64>() - 6.0;
            Sample { layout, costs, time: costs.time(&planted) * (1.0 + noise * normal) }
        })
        .collect()
}

#[test]
fn planted_weights_are_found_in_noise() {
    for (noise, off) in [(0.0, 1e-4), (0.02, 0.05)] {
        let found = Fits::new(&samples(60, noise, 7), target());
        let [fit] = &found.of_kernels[..] else { panic!("{found:?}") };
        assert_eq!((fit.kernel.name(), fit.width(), fit.layouts), ("quads", 4, 60));
        let [before, after] = fit.errors.expect("there are enough layouts");
        assert!(before > 0.1 && after <= noise + 1e-3 && found.is_written(fit), "{before} and {after}");
        let weights = found.weights();
        for (found, planted) in weights.of_kernel(KERNEL, 2).iter().zip(PLANTED) {
            assert!((found - planted).abs() <= off, "{:?}", fit.weights);
        }
        assert_eq!(weights.of_kernel(KERNEL, 3), present().of_kernel(KERNEL, 3));
        assert_eq!((found.losses, found.are_written()), (Some([1.0; 2]), true));
    }
}

#[test]
fn noise_is_not_fitted() {
    let planted = target_of(&with(&PLANTED));
    for layouts in [fewest(KERNEL), 24, 60] {
        let all = (0..300).map(|seed| Fits::new(&samples(layouts, 0.03, seed), planted));
        let written = all.filter(Fits::are_written).count();
        assert!(written <= 3, "{written} of 300 fits of {layouts} layouts");
    }
}

#[test]
fn a_fit_that_predicts_no_better_replaces_nothing() {
    let planted = with(&PLANTED);
    let found = Fits::new(&samples(60, 0.0, 7), target_of(&planted));
    assert!(!found.are_written() && found.weights() == planted, "{found:?}");
    // The layouts of one part have other times, which a fit of the others does not predict.
    let mut broken = samples(60, 0.0, 7);
    broken.iter_mut().filter(|sample| sample.layout % FOLDS == 1).for_each(|sample| sample.time *= 2.0);
    let found = Fits::new(&broken, target_of(&planted));
    let errors = found.of_kernels[0].errors;
    assert!(errors.is_some_and(|[before, after]| (0.1..0.2).contains(&before) && after > before), "{found:?}");
    assert_eq!(found.weights(), planted);
}

/// Both kernels take a tenth longer than they are estimated. Of the slower one there are too
/// few layouts for a fit, so fitted weights of the other one make it look faster.
#[test]
fn better_fits_that_choose_worse_are_not_written() {
    let planted = with(&PLANTED);
    let mut all = samples(60, 0.0, 7);
    all.iter_mut().for_each(|sample| sample.time *= 1.1);
    assert!(Fits::new(&all, target_of(&planted)).are_written());
    for at in 0..fewest(Estimated::Elements) - 1 {
        let mut other = all[at].clone();
        let now = 1.03 * other.costs.time(&planted);
        other.costs.kernel = Estimated::Elements;
        other.costs.costs = [now / planted.of_kernel(Estimated::Elements, 2)[0], 0.0, 0.0, 0.0, 0.0, 0.0];
        other.time *= 1.03;
        all.push(other);
    }
    let found = Fits::new(&all, target_of(&planted));
    let [quads, elements] = &found.of_kernels[..] else { panic!("{found:?}") };
    assert!(quads.is_better() && elements.errors.is_none() && !found.are_written(), "{found:?}");
    let [now, fitted] = found.losses.expect("there are layouts");
    assert!(now == 1.0 && (1.002..1.003).contains(&fitted) && found.weights() == planted, "{now} and {fitted}");
}

#[test]
fn too_few_layouts_keep_the_present_weights() {
    let all = samples(18, 0.0, 7);
    assert_eq!((fewest(KERNEL), fewest(Estimated::Elements)), (18, 6));
    assert!(Fits::new(&all, target()).are_written());
    // Boxes of several cuts are samples of one layout.
    let twice: Vec<Sample> = all[1..].iter().chain(&all[1..]).cloned().collect();
    let found = Fits::new(&twice, target());
    let [fit] = &found.of_kernels[..] else { panic!("{found:?}") };
    assert_eq!((fit.layouts, fit.errors, found.weights()), (17, None, present()));
    let none = Fits::new(&[], target());
    assert!(none.of_kernels.is_empty() && none.losses.is_none() && !none.are_written());
}

#[test]
fn a_kernel_far_from_the_best_is_not_fitted() {
    let mut all = samples(60, 0.0, 7);
    for sample in &mut samples(60, 0.0, 7) {
        sample.costs.kernel = Estimated::Elements;
        // The last costs of elements are not fitted.
        sample.costs.costs[2..].fill(0.0);
        sample.costs.costs[2] = f64::from(u8::from(sample.layout < 5));
        sample.time *= if sample.layout < 20 { 1.5 } else { 2.5 };
        all.push(sample.clone());
    }
    let found = Fits::new(&all, target()).of_kernels;
    assert_eq!([found[0].layouts, found[1].layouts], [60, 15]);
}

#[test]
fn weights_without_a_cost_stay_and_none_is_less_than_0() {
    let mut all = samples(60, 0.0, 7);
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
