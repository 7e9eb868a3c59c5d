//! The plans of 2,000 drawn permutes are those of the record: kernel, launches, shape, parameters.
//!
//! A change of structure must leave the record alone. A change of a choice shows here which
//! permutes it moves to another kernel. `WARPSTRIDE_BLESS=1 cargo test --test it recorded_plans`
//! rewrites `tests/data/plans.txt`.

use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::{fs, path::Path};

use warpstride::driver::Driver;
use warpstride::layout::Layout;
use warpstride::ops::{Align, PermutePlan, Plan, Target};
use warpstride::random::SplitMix64;
use warpstride::{Device, Result};

use crate::hooked::Hooked;
use crate::idle::Idle;

const CASES: u64 = 2_000;

/// The addresses of the source and of the destination.
const ADDRESSES: [u64; 2] = [1 << 40, 1 << 41];

/// Small extents, extents on both sides of a tile, and powers of two.
const EXTENTS: [usize; 20] = [2, 3, 4, 5, 7, 8, 12, 16, 24, 31, 32, 33, 48, 64, 100, 127, 128, 256, 1000, 1917];

/// A permute, and the circumstances on which its plan depends.
#[derive(Debug)]
struct Case {
    width: usize,
    src: Layout,
    dst: Layout,
    aligns: [Align; 2],
    compute_capability: (u32, u32),
    as_if_large: bool,
}

fn one_in(random: &mut SplitMix64, chances: u64) -> bool {
    random.below(chances) == 0
}

fn pick<T: Copy>(random: &mut SplitMix64, choices: &[T]) -> T {
    choices[random.below(choices.len() as u64) as usize]
}

fn shuffled(random: &mut SplitMix64, rank: usize) -> Vec<usize> {
    let mut axes: Vec<usize> = (0..rank).collect();
    for at in (1..rank).rev() {
        axes.swap(at, random.below(at as u64 + 1) as usize);
    }
    axes
}

/// Draws an array of the shape, whose axes lie in any order, perhaps with gaps, steps or reversed
/// axes, and which perhaps begins after the start of its storage.
fn side(random: &mut SplitMix64, shape: &[usize], in_order: bool) -> Layout {
    let rank = shape.len();
    let axes = if in_order { (0..rank).collect() } else { shuffled(random, rank) };
    if one_in(random, 2) {
        // The axis that lies at each place is the view's axis `axes[place]`.
        let extents: Vec<usize> = axes.iter().map(|&axis| shape[axis]).collect();
        let mut back = axes.clone();
        axes.iter().enumerate().for_each(|(place, &axis)| back[axis] = place);
        return Layout::row_major(&extents).and_then(|packed| packed.permuted_axes(&back)).expect("a permutation");
    }
    let (mut strides, mut len) = (vec![0; rank], 1);
    for &axis in axes.iter().rev() {
        let step = if one_in(random, 8) { 2 } else { 1 };
        strides[axis] = (len * step) as isize;
        len *= shape[axis] * step;
        len += if one_in(random, 6) { pick(random, &[1, 4, 16]) } else { 0 };
    }
    let start = if one_in(random, 3) { pick(random, &[1, 2, 4, 8, 37]) } else { 0 };
    let mut layout = Layout::new(shape, &strides, start, start + len).expect("it lies in its storage");
    if rank > 0 && one_in(random, 12) {
        layout = layout.reverse(random.below(rank as u64) as usize).expect("an axis");
    }
    layout
}

fn draw(place: u64) -> Case {
    let mut random = SplitMix64(SplitMix64::at(34, place));
    let width = pick(&mut random, &[1, 2, 4, 8, 16]);
    let most = 1_usize << (14 + random.below(17));
    let mut shape = vec![];
    for _ in 0..=random.below(6) {
        let extent = pick(&mut random, &EXTENTS);
        if shape.iter().product::<usize>() * extent * width <= most {
            shape.push(extent);
        }
    }
    if !one_in(&mut random, 4) {
        // One long axis, at any place.
        let rest = (most / width / shape.iter().product::<usize>()).max(1);
        let extent = rest - random.below(3).min(rest as u64 - 1) as usize;
        shape.insert(random.below(shape.len() as u64 + 1) as usize, extent);
    }
    let align = |random: &mut SplitMix64| match random.below(8) {
        0 => Align::of(width as u64),
        1 => Align::of(16.max(width as u64)),
        _ => Align::ALLOCATION,
    };
    let in_order = !one_in(&mut random, 4);
    Case {
        width,
        src: side(&mut random, &shape, false),
        dst: side(&mut random, &shape, in_order),
        aligns: [align(&mut random), align(&mut random)],
        compute_capability: pick(&mut random, &[(7, 5), (8, 0), (9, 0), (9, 0), (10, 0)]),
        as_if_large: one_in(&mut random, 4),
    }
}

/// Plans the case and launches it on a driver that does nothing. Returns the line of the record.
fn line(case: &Case) -> Result<String> {
    let (idle, _) = Idle::device();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut hooked = Hooked::new(idle as Arc<dyn Driver>);
    hooked.info.compute_capability = case.compute_capability;
    let kept = Arc::clone(&seen);
    hooked.shape = Box::new(move |shape, params| {
        kept.lock().expect("no test panics here").extend_from_slice(params);
        shape
    });
    let device = Device::with_driver(Arc::new(hooked))?;
    let [src_align, dst_align] = case.aligns;
    let mut plan = PermutePlan::new(&case.src, src_align, &case.dst, dst_align, case.width, Target::of(&device))?;
    if case.as_if_large {
        plan = plan.as_if_large();
    }
    let [src, dst] = ADDRESSES;
    // SAFETY: the driver does nothing, so no kernel runs on these addresses.
    unsafe { plan.launch_raw(&device, src, dst, device.default_stream().handle()) }?;
    let shape = plan.shape().expect("no case is empty");
    let params = seen.lock().expect("no test panics here");
    let ([x, y, z], [a, b, c]) = (shape.grid, shape.block);
    let (entry, launches, hash) = (plan.entry().expect("no case is empty"), plan.launches(), fnv1a(&params));
    Ok(format!("{entry} {launches} {x}x{y}x{z} {a}x{b}x{c} {} {hash:016x}", shape.dynamic_shared))
}

/// Hashes bytes by FNV-1a (Fowler, Noll and Vo), which is the same in every version of Rust.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
}

#[test]
fn plans_are_those_of_the_record() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/plans.txt");
    let cases: Vec<Case> = (0..CASES).map(draw).collect();
    let lines: Vec<String> = cases.iter().map(|case| line(case).expect("a plan")).collect();
    if std::env::var_os("WARPSTRIDE_BLESS").is_some() {
        fs::write(&path, lines.join("\n") + "\n").expect("writing the record");
    }
    let record = fs::read_to_string(&path).expect("a record; WARPSTRIDE_BLESS=1 makes it");
    let recorded: Vec<&str> = record.lines().collect();
    assert_eq!(recorded.len(), lines.len(), "{} has another number of plans", path.display());
    let (mut changed, mut shown) = (0, String::new());
    for ((case, line), was) in cases.iter().zip(&lines).zip(recorded).filter(|((_, line), was)| line != was) {
        changed += 1;
        if changed <= 10 {
            writeln!(shown, "{case:?}\n  was {was}\n  now {line}").expect("a string");
        }
    }
    assert_eq!(changed, 0, "plans differ from {}; the first are\n{shown}", path.display());
}
