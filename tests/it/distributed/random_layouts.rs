//! Drawn layouts, compared with an oracle that computes places by itself.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use warpstride::distributed::{Distributed, Exchange, Gpus, Redistribution, Split};
use warpstride::driver::soft::Soft;
use warpstride::element::Element;
use warpstride::interp::Checks;
use warpstride::random::SplitMix64;
use warpstride::{Device, ops};

use super::{Reach, devices, islands, permuted};
use crate::long::short_or_long;

/// The GPUs of the host. A case takes 2 of them or more.
const GPUS: usize = 8;

/// The elements of an array, about.
const ELEMENTS: u64 = 600;

/// Numbers drawn for cases.
pub(super) struct Random(pub(super) SplitMix64);

impl Random {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// A division that was drawn, as the oracle sees it.
#[derive(Debug)]
pub(super) struct Drawn {
    shape: Vec<usize>,
    /// The axes that are cut, with the extents of their parts.
    cuts: Vec<(usize, Vec<usize>)>,
    pub(super) split: Split,
}

impl Drawn {
    /// Draws cuts of a shape into at most `most` parts.
    pub(super) fn new(shape: &[usize], most: usize, random: &mut Random) -> Self {
        let (mut left, mut cuts) = (most, Vec::new());
        let mut split = Split::whole(shape).expect("a small shape");
        for axis in order(shape.len(), random) {
            let parts = 1 + random.below(left);
            if random.one_in(3) {
                continue;
            }
            left /= parts;
            let extents = if random.one_in(2) {
                split = split.cut(axis, parts).expect("an axis that is whole");
                balanced(shape[axis], parts)
            } else {
                let extents = uneven(shape[axis], parts, random);
                split = split.cut_at(axis, &extents).expect("an axis that is whole");
                extents
            };
            cuts.push((axis, extents));
        }
        let drawn = Self { shape: shape.to_vec(), cuts, split };
        if random.one_in(3) { drawn.padded(random) } else { drawn }
    }

    fn padded(self, random: &mut Random) -> Self {
        let mut extents = self.shape.clone();
        for (axis, parts) in &self.cuts {
            extents[*axis] = parts.iter().copied().max().unwrap_or(0);
        }
        extents.iter_mut().for_each(|extent| *extent += random.below(4));
        let split = self.split.padded(&extents).expect("room for the largest part");
        Self { split, ..self }
    }

    /// The indices that a rank has along each axis; `None` where it has no part.
    fn ranges(&self, rank: usize) -> Option<Vec<Range<usize>>> {
        let mut ranges: Vec<Range<usize>> = self.shape.iter().map(|&extent| 0..extent).collect();
        let mut behind: usize = self.cuts.iter().map(|(_, extents)| extents.len()).product();
        if rank >= behind {
            return None;
        }
        let mut rest = rank;
        for (axis, extents) in &self.cuts {
            behind /= extents.len();
            let (part, start) = (rest / behind, extents[..rest / behind].iter().sum::<usize>());
            (ranges[*axis], rest) = (start..start + extents[part], rest % behind);
        }
        Some(ranges)
    }

    /// The elements of a rank's part.
    fn part<T: Copy>(&self, elements: &[T], rank: usize) -> Vec<T> {
        let Some(ranges) = self.ranges(rank) else { return Vec::new() };
        let has = |place: usize| {
            let mut rest = place;
            self.shape.iter().zip(&ranges).rev().all(|(&extent, range)| {
                let index = rest % extent;
                rest /= extent;
                range.contains(&index)
            })
        };
        (0..elements.len()).filter(|&place| has(place)).map(|place| elements[place]).collect()
    }
}

/// Extents that differ by 1 at most, the longer ones first, given out one by one.
fn balanced(extent: usize, parts: usize) -> Vec<usize> {
    let mut extents = vec![0; parts];
    (0..extent).for_each(|place| extents[place % parts] += 1);
    extents
}

/// Extents that are drawn; some are 0.
fn uneven(extent: usize, parts: usize, random: &mut Random) -> Vec<usize> {
    let mut extents = vec![0; parts];
    let favourite = random.below(parts);
    for _ in 0..extent {
        let part = if random.one_in(2) { favourite } else { random.below(parts) };
        extents[part] += 1;
    }
    extents
}

/// An order of axes.
pub(super) fn order(rank: usize, random: &mut Random) -> Vec<usize> {
    let mut axes: Vec<usize> = (0..rank).collect();
    for at in (1..rank).rev() {
        axes.swap(at, random.below(at + 1));
    }
    axes
}

/// A shape of 1 to 5 axes. Some extents are 1, and few are 0.
pub(super) fn shape(random: &mut Random) -> Vec<usize> {
    let rank = 1 + random.below(5);
    let usual = (ELEMENTS as f64).powf(1.0 / rank as f64) as usize;
    let mut shape: Vec<usize> = (0..rank).map(|_| 1 + random.below(2 * usual)).collect();
    for extent in &mut shape {
        *extent = if random.one_in(8) { 1 } else { *extent };
    }
    if random.one_in(20) {
        let axis = random.below(rank);
        shape[axis] = 0;
    }
    shape
}

/// A redistribution that was drawn.
#[derive(Debug)]
struct Case {
    gpus: usize,
    limited: bool,
    width: usize,
    from: Drawn,
    axes: Vec<usize>,
    to: Drawn,
    /// The bytes of a piece where elements are packed or go through the host.
    piece: u64,
    /// Kernels or copy engines move the elements within an island.
    reach: Reach,
}

impl Case {
    fn new(number: u64) -> Self {
        let random = &mut Random(SplitMix64(number));
        let gpus = 2 + random.below(GPUS - 1);
        let shape = shape(random);
        let axes = order(shape.len(), random);
        let permuted: Vec<usize> = axes.iter().map(|&axis| shape[axis]).collect();
        let (from, to) = (Drawn::new(&shape, gpus, random), Drawn::new(&permuted, gpus, random));
        let (limited, width) = (random.one_in(2), 1 << random.below(5));
        let (piece, reach) = (1 << random.below(11), if random.one_in(3) { Reach::Engines } else { Reach::All });
        Self { gpus, limited, width, from, axes, to, piece, reach }
    }

    fn run(&self, devices: &[Device]) {
        let gpus = self.reach.gpus(devices[..self.gpus].to_vec()).unwrap();
        let gpus = Arc::new(if self.limited { gpus.limited_to(1).unwrap() } else { gpus });
        match self.width {
            1 => self.run_with(&gpus, |bits| bits as u8),
            2 => self.run_with(&gpus, |bits| bits as u16),
            4 => self.run_with(&gpus, |bits| bits as u32),
            8 => self.run_with(&gpus, |bits| bits),
            _ => self.run_with(&gpus, |bits| [bits as u32 as f64, (bits >> 32) as f64]),
        }
    }

    fn run_with<T: Element + PartialEq + std::fmt::Debug>(&self, gpus: &Arc<Gpus>, of: impl Fn(u64) -> T) {
        let (from, to) = (&self.from, &self.to);
        let elements = |seed: u64| -> Vec<T> {
            let count: usize = from.shape.iter().product();
            (0..count as u64).map(|place| of(SplitMix64::at(seed, place))).collect()
        };
        let first = elements(1);
        let source = Distributed::scatter(gpus, &from.split, &first).unwrap();
        same_parts(&source, from, &first);
        let result = source.permute(self.axes.clone(), &to.split).unwrap();
        let expected = permuted(&first, &from.shape, &self.axes);
        // The copies may not have run yet.
        drop(source);
        same_parts(&result, to, &expected);
        assert!(result.gather().unwrap() == expected, "permuted");
        if let [.., rows, columns] = to.shape[..] {
            let last = to.shape.len() - 2;
            let mut axes: Vec<usize> = (0..to.shape.len()).collect();
            axes.swap(last, last + 1);
            let transposed = result.transpose().unwrap();
            assert_eq!(transposed.split().shape()[last..], [columns, rows]);
            assert!(transposed.gather().unwrap() == permuted(&expected, &to.shape, &axes), "transposed");
        }
        let whole = Split::whole(&to.shape).unwrap();
        assert!(result.redistribute(&whole).unwrap().gather().unwrap() == expected, "on one rank");
        self.launch_twice(gpus, [elements(2), elements(3)]);
    }

    /// Overwrites the source while the copies from it are queued, and the result while it is read.
    fn launch_twice<T: Element + PartialEq>(&self, gpus: &Arc<Gpus>, [first, second]: [Vec<T>; 2]) {
        let plan = Redistribution::new(&self.from.split, self.axes.clone(), &self.to.split, size_of::<T>()).unwrap();
        let exchange = Exchange::in_pieces(gpus, &plan, self.piece).unwrap();
        let mut source = Distributed::scatter(gpus, &self.from.split, &first).unwrap();
        let mut result = Distributed::alloc(gpus, &self.to.split).unwrap();
        exchange.launch(&source, &mut result).unwrap();
        let kept = result.redistribute(&self.to.split).unwrap();
        source.scatter_from(&second).unwrap();
        exchange.launch(&source, &mut result).unwrap();
        drop(source);
        let expected = |elements| permuted(elements, &self.from.shape, &self.axes);
        assert!(kept.gather().unwrap() == expected(&first), "the first launch");
        let mut gathered = kept.gather().unwrap();
        result.gather_into(&mut gathered).unwrap();
        assert!(gathered == expected(&second), "the second launch");
    }
}

/// Asserts that each rank has its box, also those beyond the parts.
fn same_parts<T: Element + PartialEq + std::fmt::Debug>(array: &Distributed<T>, drawn: &Drawn, elements: &[T]) {
    for rank in 0..array.gpus().len() {
        let part = ops::contiguous(array.part(rank)).unwrap().to_vec().unwrap();
        assert_eq!(part, drawn.part(elements, rank), "rank {rank} of {}", array.split());
        let (start, ranges) = (drawn.split.part(rank), drawn.ranges(rank));
        if let Some(ranges) = ranges {
            assert_eq!(start.start(), ranges.iter().map(|range| range.start).collect::<Vec<_>>(), "rank {rank}");
        }
    }
}

/// The short form has 60 of the 1,000 layouts and 4 of the 64 seeds. Every second pair of seeds
/// has the checkers on. All GPUs use each other's memory, or three, two or one of them.
#[test]
fn drawn_layouts_are_redistributed_as_the_oracle_does() {
    let (layouts, seeds) = short_or_long((60, 4), (1_000, 64));
    for seed in 0..seeds {
        let is_checked = seed % 4 >= 2;
        let checks = if is_checked { Checks::ALL } else { Checks::NONE };
        let drivers = islands(GPUS, seed, checks, [usize::MAX, 3, 2, 1][((seed + seed / 4) % 4) as usize]);
        let devices = devices(&drivers).unwrap();
        for number in 0..layouts {
            let case = Case::new(number);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                case.run(&devices);
                drivers.iter().for_each(|soft: &Arc<Soft>| assert_eq!(soft.findings(), []));
            }));
            if let Err(panic) = outcome {
                eprintln!("layout {number} failed with seed {seed}: {case:?}");
                resume_unwind(panic);
            }
        }
    }
}

#[test]
fn the_drawn_layouts_have_every_kind() {
    let cases: Vec<Case> = (0..60).map(Case::new).collect();
    let has = |what: &str, holds: &dyn Fn(&Case) -> bool| assert!(cases.iter().any(holds), "{what}");
    (1..=5).for_each(|rank| has("every rank", &|case| case.from.shape.len() == rank));
    (0..5).for_each(|power| has("every width", &|case| case.width == 1 << power));
    (2..=GPUS).for_each(|count| has("every number of GPUs", &|case| case.gpus == count));
    has("cuts of several axes", &|case| case.from.cuts.len() > 1 && case.to.cuts.len() > 1);
    has("an empty part", &|case| case.from.cuts.iter().any(|(_, extents)| extents.contains(&0)));
    has("an empty array", &|case| case.from.shape.contains(&0));
    has("a padded split", &|case| case.from.split.to_string().contains("padded"));
    has("the copies beside the default stream", &|case| case.limited);
    has("copy engines", &|case| case.reach == Reach::Engines);
}

/// The elements of some of these parts lie in boxes of rows of 1, which the copy engine refuses.
#[test]
fn parts_in_rows_of_one_element_are_scattered_and_gathered() {
    let gpus = super::gpus(8, 0, false);
    for (shape, cuts, padding) in [
        ([6, 4, 5, 3, 4].as_slice(), "1:2,2:2,4:1+3", [6, 2, 3, 4, 3].as_slice()),
        (&[3, 4, 3, 4], "1:2,3:4", &[4, 3, 4, 2]),
        (&[3, 4, 1, 3, 4], "1:2,4:0+1+2+1", &[3, 2, 1, 3, 2]),
    ] {
        let split = super::split(shape, cuts);
        let elements: Vec<u16> = (0..shape.iter().product::<usize>()).map(|place| place as u16).collect();
        for split in [split.clone(), split.padded(padding).unwrap()] {
            let array = Distributed::scatter(&gpus, &split, &elements).unwrap();
            assert!(array.gather().unwrap() == elements, "{split}");
            let whole = array.redistribute(&Split::whole(shape).unwrap()).unwrap();
            assert!(whole.gather().unwrap() == elements, "{split}");
        }
    }
}
