//! Arrays over several ranks: ranks that share the device, and one rank on each GPU.

use std::sync::Arc;

use warpstride::device::Device;
use warpstride::distributed::{Distributed, Exchange, Gpus, Redistribution, Split};
use warpstride::layout::Layout;
use warpstride::ops;

use crate::backend::{Setup, cases};
use crate::long::short_or_long;
use crate::matrices::{Random, Sample, at_every_width, c_order};
use crate::naive;

cases! {
    Any ranks_that_share_a_device_redistribute_random_layouts,
    Any ranks_that_share_a_device_follow_and_precede_other_work,
    Any ranks_that_share_a_device_launch_once_for_all_peers,
    SeveralGpus gpus_redistribute_random_layouts,
    SeveralGpus gpus_launch_once_for_all_peers,
    SeveralGpus gpus_follow_and_precede_other_work,
}

/// Makes ranks that share a device, on the default stream or on streams of their own.
fn shared(device: &Device, ranks: usize, limited: bool) -> Arc<Gpus> {
    let gpus = Gpus::over(vec![device.clone(); ranks]).unwrap();
    Arc::new(if limited { limited_to_one(gpus) } else { gpus })
}

/// Limits exchanges to a multiprocessor where the driver can.
fn limited_to_one(gpus: Gpus) -> Gpus {
    let devices = (0..gpus.len()).map(|rank| gpus.device(rank).clone()).collect();
    gpus.limited_to(1).unwrap_or_else(|error| {
        assert_eq!(error.kind(), warpstride::ErrorKind::Unavailable, "{error}");
        Gpus::over(devices).unwrap()
    })
}

/// Opens all NVIDIA GPUs, one for each rank.
pub(crate) fn all(limited: bool) -> Arc<Gpus> {
    let gpus = Gpus::all().unwrap();
    Arc::new(if limited { limited_to_one(gpus) } else { gpus })
}

/// Draws cuts of a shape for so many ranks, and sometimes a padding.
fn split(shape: &[usize], ranks: usize, random: &mut Random) -> Split {
    let (mut split, mut left) = (Split::whole(shape).unwrap(), ranks);
    let mut largest = shape.to_vec();
    for axis in random.order(shape.len()) {
        let parts = 1 + random.below(left);
        left /= parts;
        largest[axis] = shape[axis].div_ceil(parts);
        split = if random.coin() {
            split.cut(axis, parts).unwrap()
        } else {
            // The first part has nearly all.
            let first = shape[axis] - shape[axis].min(random.below(4));
            let mut extents = vec![0; parts];
            extents[0] = first;
            extents[parts - 1] += shape[axis] - first;
            largest[axis] = extents.iter().copied().max().unwrap();
            split.cut_at(axis, &extents).unwrap()
        };
    }
    if random.below(3) > 0 {
        return split;
    }
    largest[random.below(shape.len())] += random.below(9);
    split.padded(&largest).unwrap()
}

/// Redistributes arrays of drawn layouts, and compares them with the naive copy.
fn random_layouts(gpus: &Arc<Gpus>, seed: u64, count: usize) {
    fn run<T: Sample>(gpus: &Arc<Gpus>, random: &mut Random) {
        let mut shape = random.shape(1 << 13);
        shape.truncate(6);
        if shape.is_empty() {
            shape.push(7);
        }
        let axes = random.order(shape.len());
        let permuted: Vec<usize> = axes.iter().map(|&axis| shape[axis]).collect();
        let (from, to) = (split(&shape, gpus.len(), random), split(&permuted, gpus.len(), random));
        let elements: Vec<T> = random.elements(shape.iter().product());
        let mut expected = vec![T::sample(0); elements.len()];
        let turned = c_order(&shape).permuted_axes(&axes).unwrap();
        naive::copy(&elements, &turned, &mut expected, &c_order(&permuted));
        let source = Distributed::scatter(gpus, &from, &elements).unwrap();
        let result = source.permute(axes.clone(), &to).unwrap();
        // The copies may not have run yet.
        drop(source);
        assert!(result.gather().unwrap() == expected, "{}: {from} to {to}, axes {axes:?}", T::DTYPE);
    }
    let mut random = Random::new(seed);
    for _ in 0..count {
        at_every_width!(run(gpus, &mut random));
    }
}

/// Scales the parts on other streams, launches, and scales the results, several times without a
/// wait of the host.
fn between_other_work(gpus: &Arc<Gpus>, size: usize) {
    let ranks = gpus.len();
    let cuts = |shape: &[usize]| Split::whole(shape).unwrap().cut(0, ranks).unwrap();
    let (from, to) = (cuts(&[size, size + 3]), cuts(&[size + 3, size]));
    let count = size * (size + 3);
    let elements: Vec<f32> = (0..count).map(|place| (place % 1021) as f32).collect();
    let plain = Distributed::scatter(gpus, &from, &elements).unwrap();
    let mut source = Distributed::<f32>::alloc(gpus, &from).unwrap();
    let (mut result, mut scaled) = (Distributed::alloc(gpus, &to).unwrap(), Distributed::alloc(gpus, &to).unwrap());
    let exchange = Exchange::new(gpus, &Redistribution::new(&from, [1, 0], &to, 4).unwrap()).unwrap();
    let streams: Vec<_> = (0..ranks).map(|rank| gpus.device(rank).stream().unwrap()).collect();
    for round in 0..8_u8 {
        for (rank, stream) in streams.iter().enumerate() {
            ops::scale_into(f32::from(round), plain.part(rank), source.part_mut(rank), stream).unwrap();
        }
        exchange.launch(&source, &mut result).unwrap();
        for (rank, stream) in streams.iter().enumerate().rev() {
            ops::scale_into(0.0, plain.part(rank), source.part_mut(rank), stream).unwrap();
            ops::scale_into(2.0, result.part(rank), scaled.part_mut(rank), stream).unwrap();
        }
    }
    drop((source, streams));
    let turned = Layout::row_major(&[size, size + 3]).unwrap().t();
    let mut expected = vec![0.0; count];
    naive::copy(&elements, &turned, &mut expected, &c_order(&[size + 3, size]));
    expected.iter_mut().for_each(|element| *element *= 14.0);
    assert!(scaled.gather().unwrap() == expected, "{ranks} ranks");
}

/// Exchanges by each kernel that moves several pairs, at every width, and compares every element.
fn in_pairs(gpus: &Arc<Gpus>) {
    fn run<T: Sample>(gpus: &Arc<Gpus>, random: &mut Random) {
        let (ranks, width) = (gpus.len(), size_of::<T>());
        let cut = |shape: &[usize], axis: usize| Split::whole(shape).unwrap().cut(axis, ranks).unwrap();
        let whole = |shape: &[usize]| Split::whole(shape).unwrap();
        let mut check = |kernel: &str, [from, to]: [Split; 2], axes: &[usize]| {
            let plan = Redistribution::new(&from, axes.to_vec(), &to, width).unwrap();
            let exchange = Exchange::new(gpus, &plan).unwrap();
            let says = format!("{kernel}_pairs");
            assert!(exchange.to_string().contains(&says), "{says} of {}: {exchange}", T::DTYPE);
            let elements: Vec<T> = random.elements(from.shape().iter().product());
            let source = Distributed::scatter(gpus, &from, &elements).unwrap();
            let mut result = Distributed::alloc(gpus, &to).unwrap();
            exchange.launch(&source, &mut result).unwrap();
            let mut expected = vec![T::sample(0); elements.len()];
            let turned = c_order(from.shape()).permuted_axes(axes).unwrap();
            naive::copy(&elements, &turned, &mut expected, &c_order(to.shape()));
            assert!(result.gather().unwrap() == expected, "{says} of {}: {exchange}", T::DTYPE);
        };
        let turned =
            |[rows, cols]: [usize; 2]| [cut(&[ranks * rows, ranks * cols], 0), cut(&[ranks * cols, ranks * rows], 0)];
        check("patch", turned([31, 33]), &[1, 0]);
        let matrices = [cut(&[ranks * 3, 5, ranks * 7], 0), cut(&[ranks * 7, ranks * 3, 5], 0)];
        check("patch", matrices, &[2, 0, 1]);
        // More than `patch` takes of a pair: 65,536 elements and 256 KiB.
        let side = if width <= 4 { 257 } else { 183 };
        if width < 16 {
            check("staggered", turned([side, side]), &[1, 0]);
        }
        // Vectors, from 1 MiB on for narrow elements.
        let rows = 32 * 16 / width;
        check("small_tile", turned([rows, (1 << 20) / width / rows]), &[1, 0]);
        let square = [ranks * side, ranks * side];
        check("elements", [cut(&square, 0), cut(&square, 1)], &[0, 1]);
        check("copy", [whole(&[ranks * 16, 80]), cut(&[ranks * 16, 80], 0)], &[0, 1]);
    }
    let random = &mut Random::new(gpus.len() as u64);
    at_every_width!(run(gpus, random));
}

/// Launches the entries that move several pairs.
pub(crate) fn launch_all(device: &Device) {
    in_pairs(&shared(device, 3, false));
}

/// The short form has a tenth of the layouts on the software GPU.
fn ranks_that_share_a_device_redistribute_random_layouts(setup: &Setup) {
    let count = if setup.is_soft() { short_or_long(2, 20) } else { 100 };
    for ranks in [2, 3, 8] {
        for limited in [false, true] {
            random_layouts(&shared(&setup.device(), ranks, limited), ranks as u64, count);
        }
    }
}

fn ranks_that_share_a_device_follow_and_precede_other_work(setup: &Setup) {
    setup.for_seeds(short_or_long(8, 64), |driver| {
        let device = setup.open(Arc::clone(driver)).unwrap();
        // Two ranks move 16 MiB of a matrix of 4,096 rows at a time, on streams of their own.
        let sizes = if setup.is_soft() { [13, 30] } else { [1031, 4096] };
        for (ranks, limited) in [(2, false), (4, true)] {
            sizes.into_iter().for_each(|size| between_other_work(&shared(&device, ranks, limited), size));
        }
    });
}

fn ranks_that_share_a_device_launch_once_for_all_peers(setup: &Setup) {
    let ranks: &[usize] = if setup.is_soft() { &[3] } else { &[3, 4, 9, 10] };
    ranks.iter().for_each(|&ranks| in_pairs(&shared(&setup.device(), ranks, false)));
}

fn gpus_launch_once_for_all_peers(_setup: &Setup) {
    // Each GPU has two ranks, so that each rank has several peers.
    let gpus = all(false);
    let ranks = (0..2 * gpus.len()).map(|rank| gpus.device(rank % gpus.len()).clone());
    in_pairs(&Arc::new(Gpus::over(ranks.collect()).unwrap()));
}

fn gpus_redistribute_random_layouts(_setup: &Setup) {
    for limited in [false, true] {
        random_layouts(&all(limited), u64::from(limited), 100);
    }
}

fn gpus_follow_and_precede_other_work(_setup: &Setup) {
    for limited in [false, true] {
        let gpus = all(limited);
        for size in [97, 1031, 8192] {
            between_other_work(&gpus, size);
        }
    }
}
