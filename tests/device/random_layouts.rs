//! Layouts drawn at random: every way that takes a pair of them moves it as the oracle does, and so
//! as `elements` does, which takes every pair. Plans ask few strategies, and none for large arrays
//! where one is small; here all of them move small arrays.
//!
//! The oracle runs on the host. It gives every byte of the destination's allocation, including
//! those before, between and behind the elements. Allocations end with the storages, half of which
//! end with their last element, so the software GPU refuses what a kernel reads or writes beyond.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use warpstride::device::Device;
use warpstride::layout::Layout;
use warpstride::ops::{self, Align, PermutePlan, Plan, Target, TileShape};

use crate::backend::{Case, Needs, Setup};
use crate::long::short_or_long;
use crate::matrices::Random;
use crate::naive;
use crate::permutes::{OLDEST, device, family};

/// The cases that share the pairs, so that several threads run them.
const PARTS: usize = 4;

/// The most bytes of a storage.
const MOST_BYTES: usize = 1 << 19;

/// The kernels of permutes, with at least one launch for this number of pairs, less than half of
/// the real rate: a kernel that no way plans must be missed. The rarest ones are missed in the long
/// form alone.
const KERNELS: [(&str, usize); 14] = [
    ("copy", 20),
    ("rows", 10),
    ("patch", 2),
    ("small_tile", 2000),
    ("staggered", 2000),
    ("vector_tile", 200),
    ("ragged_tile", 30),
    ("deinterleave", 40),
    ("deinterleave_quads", 600),
    ("interleave", 100),
    ("interleave_quads", 600),
    ("packed_quads", 2),
    ("boxes", 1),
    ("elements", 1),
];

/// Returns a case for each part.
pub(crate) fn cases() -> Vec<Case> {
    let case = |part: usize| {
        // Cases are listed once and live as long as the program.
        let name = format!("{}::every_way_moves_part_{part}_of_{PARTS}", module_path!()).leak();
        Case { name, needs: Needs::Any, body: Box::leak(Box::new(move |setup: &Setup| hold(part, setup))) }
    };
    (1..=PARTS).map(case).collect()
}

/// Moves the pairs of a part. A failing one is named, with its layouts.
fn hold(part: usize, setup: &Setup) {
    let device = device(setup);
    // The short form has a fiftieth on the software GPU.
    let pairs = if setup.is_soft() { short_or_long(2_000, 100_000) } else { 4_000 };
    let mut launches = BTreeMap::new();
    for number in (part..=pairs).step_by(PARTS) {
        let mut random = Random::new(number as u64);
        let pair = Pair::new(Target::of(&device), &mut random);
        let moved = catch_unwind(AssertUnwindSafe(|| pair.moved(&device, &mut random)));
        let kernels = moved.unwrap_or_else(|panic| {
            eprintln!("pair {number} failed: {pair:?}");
            resume_unwind(panic)
        });
        kernels.into_iter().for_each(|kernel| *launches.entry(kernel).or_default() += 1);
    }
    println!("{launches:?}");
    for (kernel, one_in) in KERNELS {
        let launched: usize = launches.get(kernel).copied().unwrap_or_default();
        assert!(launched >= pairs / PARTS / one_in, "{kernel} was launched {launched} times: {launches:?}");
    }
}

/// Two layouts with what a plan knows, and with the places of their storages.
#[derive(Debug)]
struct Pair {
    width: usize,
    src: Layout,
    dst: Layout,
    /// Bytes between the start of each allocation and the storage in it.
    starts: [usize; 2],
    /// The alignments that the plan knows. The storages may be aligned to more.
    aligns: [Align; 2],
    target: Target,
}

impl Pair {
    fn new(target: Target, random: &mut Random) -> Self {
        let width = 1 << random.below(5);
        let [src, dst] = layouts(width, random);
        let starts = [0; 2].map(|_| [0, 16 * random.below(4), width * random.below(64)][random.below(3)]);
        // Allocations are aligned to 256 bytes.
        let known = |start: usize| Align::of([256, 256, 16, width as u64][random.below(4)] | start as u64);
        let aligns = starts.map(known);
        // With little cache all arrays are large, and have kernels with hints.
        let mut cacheless = target;
        (cacheless.l2_bytes, cacheless.multiprocessors) = (1, 1 + random.below(5) as u32);
        let target = [target, target, OLDEST, cacheless][random.below(4)];
        Self { width, src, dst, starts, aligns, target }
    }

    /// Moves the pair by the library's choice and by every way, and returns the kernels.
    fn moved(&self, device: &Device, random: &mut Random) -> Vec<&'static str> {
        let Self { width, src, dst, starts, .. } = self;
        let elements = random.bytes(starts[0] + src.storage_len() * width);
        let before = random.bytes(starts[1] + dst.storage_len() * width);
        let mut expected = before.clone();
        naive::copy_bytes(&elements[starts[0]..], src, &mut expected[starts[1]..], dst, *width);
        let source = device.upload(&elements).unwrap();
        let mut result = device.upload(&before).unwrap();
        let stream = device.default_stream();
        let mut check = |by: &dyn std::fmt::Display, launch: &dyn Fn(u64, u64) -> warpstride::Result<()>| {
            result.upload_from(&before).unwrap();
            launch(source.address() + starts[0] as u64, result.address() + starts[1] as u64)
                .and_then(|()| stream.synchronize())
                .unwrap_or_else(|error| panic!("{by}: {error}"));
            let after = result.download().unwrap();
            let wrong = || after.iter().zip(&expected).position(|(byte, expected)| byte != expected);
            assert!(after == expected, "{by}: byte {:?} of the destination's allocation is wrong", wrong());
        };
        check(&"`copy_into_raw`", &|from, to| {
            // SAFETY: both buffers hold the layouts from these addresses on, and live until the
            // stream is synchronised.
            unsafe { ops::copy_into_raw(device, from, src, to, dst, *width, stream.handle()) }
        });
        let plans = self.plans(random);
        for plan in &plans {
            // SAFETY: as above.
            check(plan, &|from, to| unsafe { plan.launch_raw(device, from, to, stream.handle()) });
        }
        plans.iter().map(|plan| family(plan.entry())).collect()
    }

    /// Returns a plan for large arrays, which may have other tiles, and one for each way.
    fn plans(&self, random: &mut Random) -> Vec<PermutePlan> {
        let Self { width, src, dst, aligns: [src_align, dst_align], target, .. } = self;
        let plan = PermutePlan::new(src, *src_align, dst, *dst_align, *width, *target).unwrap();
        let large = if random.coin() {
            plan.as_if_large()
        } else {
            let tiles = TileShape::of(*target);
            PermutePlan::tuned(src, *src_align, dst, *dst_align, *width, *target, &tiles).unwrap()
        };
        let mut plans = plan.ways();
        assert!(plans.iter().any(|way| way.entry() == plan.entry()), "the choice is not one of the ways: {plan}");
        assert!(plans.iter().any(|way| family(way.entry()) == "elements"), "`elements` takes any pair");
        plans.push(large);
        plans
    }
}

/// Returns two layouts of one shape, in storages of at most [`MOST_BYTES`]. One pair in five has
/// the axes of both in the same order.
fn layouts(width: usize, random: &mut Random) -> [Layout; 2] {
    loop {
        let shape = shape(width, random);
        let (order, other) = (random.order(shape.len()), random.order(shape.len()));
        let orders = [&order, if random.below(5) == 0 { &order } else { &other }];
        let may_repeat = [random.below(8) == 0, false];
        let arrays = [0, 1].map(|side| array(&shape, orders[side], width, may_repeat[side], random));
        if arrays.iter().all(|array| array.storage_len() * width <= MOST_BYTES) {
            return arrays;
        }
    }
}

/// Returns a shape of 1 to 8 axes. One in eight has structs of few fields, and one in forty of the
/// wide elements is a matrix that is too large for patches. One in four of the others has sides of
/// whole vectors where they can be.
fn shape(width: usize, random: &mut Random) -> Vec<usize> {
    /// Around the sides of tiles, vectors and warps.
    const SIDES: [usize; 20] = [1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 128, 129];

    if width >= 4 && random.below(40) == 0 {
        let (rows, least) = (64 + random.below(200), (256 << 10) / width);
        return vec![rows, least / rows + 1 + random.below(16)];
    }
    let most = (16 << random.below(10)) + random.below(16);
    if random.below(8) == 0 {
        let (batch, fields) = ([1, 1, 2, 3][random.below(4)], 2 + random.below(20));
        return vec![batch, 1 + random.below(most), fields];
    }
    let (rank, multiple) = (1 + random.below(8), if random.below(4) == 0 { 16 / width } else { 1 });
    // Equal axes have about the root. Longer ones leave little for others.
    let root = (most as f64).powf(1.0 / rank as f64) as usize;
    let longest = (root * [1, 2, 8][random.below(3)]).clamp(2, most);
    let mut shape = vec![1; rank];
    for axis in random.order(rank) {
        let side = SIDES[random.below(SIDES.len())];
        let extent = if random.coin() && side <= longest { side } else { 1 + random.below(longest) };
        let left = most / shape.iter().product::<usize>();
        shape[axis] =
            Some(extent.next_multiple_of(multiple)).filter(|&whole| whole <= left).unwrap_or(extent.min(left));
    }
    shape
}

/// How the axes of an array follow each other.
#[derive(Clone, Copy, PartialEq)]
enum Style {
    Dense,
    Steps,
    Gaps,
    /// Gaps that end with a vector of 16 bytes.
    Pitched,
}

/// Returns a layout of this shape, with its axes in this order, the nearest first, and some of them
/// backwards. If it may repeat elements, it does along some axes, or has windows that overlap.
fn array(shape: &[usize], order: &[usize], width: usize, may_repeat: bool, random: &mut Random) -> Layout {
    let style = [Style::Dense, Style::Dense, Style::Dense, Style::Steps, Style::Gaps, Style::Pitched][random.below(6)];
    let may_turn = random.below(3) == 0;
    let (rank, lanes) = (shape.len(), 16 / width);
    let (mut strides, mut first, mut pitch) = (vec![0; rank], 0, 1);
    for &axis in order {
        // Two axes have a step or a gap, in the mean: each multiplies the storage.
        let is_odd = random.below(rank) < 2;
        let mut stride = if style == Style::Steps && is_odd { pitch * (1 + random.below(4)) } else { pitch };
        if may_repeat && is_odd {
            stride = if random.coin() { 0 } else { 1 + random.below(pitch) };
        }
        let is_backwards = may_turn && random.below(3) == 0;
        strides[axis] = if is_backwards { -(stride as isize) } else { stride as isize };
        first += if is_backwards { stride * (shape[axis] - 1) } else { 0 };
        let end = pitch.max(stride * shape[axis]);
        pitch = match style {
            Style::Gaps if is_odd => end + random.below(6),
            Style::Pitched if is_odd => end.next_multiple_of(lanes) + lanes * random.below(3),
            _ => end,
        };
    }
    let reach: usize = shape.iter().zip(&strides).map(|(extent, stride)| (extent - 1) * stride.unsigned_abs()).sum();
    let lead = [0, lanes, random.below(20)][random.below(3)];
    let tail = if random.coin() { 0 } else { random.below(20) };
    Layout::new(shape, &strides, lead + first, lead + reach + 1 + tail).unwrap()
}
