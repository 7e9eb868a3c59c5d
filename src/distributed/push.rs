//! Divides the copies of a rank into launches: small ones that are alike go together.

use std::fmt;

use super::Move;
use super::pushes::Lane;
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::error::Result;
use crate::layout::Layout;
use crate::ops::{Align, PairsPlan, PermutePlan, Target};

/// A launch: a copy from a rank to another or to itself, or several such copies.
#[derive(Debug)]
pub(super) struct Push {
    pub(super) lane: Lane,
    /// The ranks that it goes to.
    to: Vec<usize>,
    work: Work,
}

#[derive(Debug)]
enum Work {
    One(Box<PermutePlan>),
    Pairs {
        plan: Box<PairsPlan>,
        /// For each rank, the bytes from the start of the source and of the result to its storage.
        starts: Vec<[u64; 2]>,
    },
}

impl Push {
    /// Makes one copy a launch.
    pub(super) fn one(to: usize, lane: Lane, plan: PermutePlan) -> Self {
        Self { lane, to: vec![to], work: Work::One(Box::new(plan)) }
    }

    /// Returns the ranks that it goes to.
    pub(super) fn to(&self) -> &[usize] {
        &self.to
    }

    /// Queues the launch, from a source at this address to the results of all ranks.
    ///
    /// # Errors
    ///
    /// As [`PermutePlan::launch_raw`].
    ///
    /// # Safety
    ///
    /// As [`PermutePlan::launch_raw`] for each copy. No two copies write the same element, and none
    /// reads what another one writes.
    pub(super) unsafe fn queue(&self, device: &Device, from: u64, to: &[u64], stream: StreamHandle) -> Result<()> {
        match &self.work {
            // SAFETY: as the caller promises.
            Work::One(plan) => unsafe { plan.launch_raw(device, from, to[self.to[0]], stream) },
            Work::Pairs { plan, starts } => {
                let mut pairs = [[0; 2]; PairsPlan::MOST];
                for ((pair, &peer), [src, dst]) in pairs.iter_mut().zip(&self.to).zip(starts) {
                    *pair = [from + src, to[peer] + dst];
                }
                // SAFETY: as the caller promises; each storage begins at its start.
                unsafe { plan.launch_raw(device, &pairs[..self.to.len()], stream) }
            }
        }
    }
}

/// Puts copies to peers of equal layouts into one launch, on the default stream, where a kernel
/// takes several. Each other copy has the launch that `one` makes. They stay in the order of the
/// moves.
///
/// The copy of a rank to itself stays apart, on its own stream: with 4 MiB a rank, two H200 take
/// 20 us so and 28 us with it in the one launch, and four 33 us and 39 us
/// (`benches/record/2026-11-28-h200/redistribute4.md`).
pub(super) fn together(
    moves: &[Move],
    width: usize,
    target: Target,
    one: impl Fn(&Move) -> Result<Push>,
) -> Result<Vec<Push>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (place, part) in moves.iter().enumerate() {
        match groups.iter_mut().find(|group| are_alike(&moves[group[0]], part)) {
            Some(group) => group.push(place),
            None => groups.push(vec![place]),
        }
    }
    let mut pushes: Vec<(usize, Push)> = Vec::new();
    for group in groups {
        let parts: Vec<&Move> = group.iter().map(|&place| &moves[place]).collect();
        match in_pairs(&parts, width, target)? {
            Some(launches) => pushes.extend(launches.into_iter().map(|push| (group[0], push))),
            None => {
                for (place, part) in group.into_iter().zip(parts) {
                    pushes.push((place, one(part)?));
                }
            }
        }
    }
    pushes.sort_by_key(|&(place, _)| place);
    Ok(pushes.into_iter().map(|(_, push)| push).collect())
}

/// Returns whether the layouts of two copies differ by no more than their starts, and either both
/// or none of them go to peers.
fn are_alike(one: &Move, other: &Move) -> bool {
    let is_own = |part: &Move| part.from == part.to;
    let alike = |one: &Layout, other: &Layout| (one.shape(), one.strides()) == (other.shape(), other.strides());
    is_own(one) == is_own(other) && alike(&one.src, &other.src) && alike(&one.dst, &other.dst)
}

/// Returns the launches of copies that are alike, each with about as many; `None` if there is one
/// copy, or no kernel takes several.
fn in_pairs(parts: &[&Move], width: usize, target: Target) -> Result<Option<Vec<Push>>> {
    if parts.len() < 2 {
        return Ok(None);
    }
    let starts: Vec<[u64; 2]> = parts.iter().map(|part| [start(&part.src, width), start(&part.dst, width)]).collect();
    let align = |side: usize| Align::of(starts.iter().fold(0, |bits, start| bits | start[side]));
    let [src, dst] = [from_start(&parts[0].src)?, from_start(&parts[0].dst)?];
    let plan = PermutePlan::new(&src, align(0), &dst, align(1), width, target)?;
    let most = parts.len().div_ceil(parts.len().div_ceil(PairsPlan::MOST));
    let launch = |(parts, starts): (&[&Move], &[[u64; 2]])| {
        let plan = Box::new(PairsPlan::of(&plan, parts.len())?);
        let to = parts.iter().map(|part| part.to).collect();
        Some(Push { lane: Lane::Default, to, work: Work::Pairs { plan, starts: starts.to_vec() } })
    };
    Ok(parts.chunks(most).zip(starts.chunks(most)).map(launch).collect())
}

/// Returns the bytes before the elements of a layout.
fn start(layout: &Layout, width: usize) -> u64 {
    (layout.storage_range().start * width) as u64
}

/// Returns the layout in a storage that begins with its elements.
fn from_start(layout: &Layout) -> Result<Layout> {
    let range = layout.storage_range();
    Layout::new(layout.shape(), layout.strides(), layout.offset() - range.start, range.len())
}

/// The ranks that it goes to, and the kernel.
impl fmt::Display for Push {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, to) in self.to.iter().enumerate() {
            let before = match place {
                0 => "",
                _ if place + 1 == self.to.len() => " and ",
                _ => ", ",
            };
            write!(f, "{before}{to}")?;
        }
        match &self.work {
            Work::One(plan) => write!(f, ": {plan}"),
            Work::Pairs { plan, .. } => write!(f, ": {plan}"),
        }
    }
}
