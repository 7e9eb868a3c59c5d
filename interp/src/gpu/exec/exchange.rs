//! Warp operations: lanes of a warp exchange values.
//!
//! The lanes that an operation names do it together, wherever they are. Lanes that arrive first are
//! parked until the last one arrives, at the same instruction or at another of its kind, as on an
//! H100. Lanes that have ended do not count. A value read from a lane that takes no part is 0, as
//! on an H100; PTX leaves it undefined.

use super::memory::active;
use super::registers::{Registers, Value};
use super::warp::{Halt, Parked, Warp};
use super::{Context, Flow, Issue, NEXT, observe};
use crate::gpu::vocabulary::{FULL, LANES, each, lanes_of, lanes_where};

/// The values that lanes contribute.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offer {
    /// The lanes that contribute.
    lanes: u32,
    values: [u64; LANES],
    /// For a shuffle: the distance or source lane, and the bounds.
    reach: [u32; LANES],
    bounds: [u32; LANES],
    function: Function,
    /// Registers for the results: the value, and the predicate.
    results: [u16; 2],
}

/// The results of the lanes: a value for each, and a bit for each.
type Results = ([u32; LANES], u32);
type Function = fn(&Offer) -> Results;

/// Executes the operation `function` on values of type `T`.
pub(super) fn run<T: Value>(cx: &mut Context, warp: &mut Warp, issue: Issue, function: Function) -> Flow {
    let Issue { ins, mask } = issue;
    let members = u32::read(&warp.registers, ins.s[3]);
    let values = T::read(&warp.registers, ins.s[0]);
    let values = each(|lane| T::lane(&values, lane).bits());
    let [reach, bounds] = [ins.s[1], ins.s[2]].map(|slot| u32::read(&warp.registers, slot));
    let offer = Offer { lanes: mask, values, reach, bounds, function, results: [ins.d, ins.imm as u16] };
    meet(cx, warp, issue, &members, Some(offer))
}

/// `bar.warp.sync`: each lane waits for the lanes that its mask names.
pub(super) fn warp_sync(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    let members = u32::read(&warp.registers, issue.ins.s[0]);
    meet(cx, warp, issue, &members, None)
}

/// `activemask`: returns the lanes that execute it.
pub(super) fn active_mask(_: &mut Context, warp: &mut Warp, Issue { ins, mask }: Issue) -> Flow {
    warp.registers.write32(ins.d, &[mask; LANES], mask);
    NEXT
}

/// Lets lanes with equal masks continue if all lanes of the mask are here; otherwise they wait.
fn meet(cx: &mut Context, warp: &mut Warp, issue: Issue, members: &[u32; LANES], offer: Option<Offer>) -> Flow {
    let (mut flow, mut rest) = (NEXT, issue.mask);
    while rest != 0 {
        let named = members[rest.trailing_zeros() as usize];
        let lanes = lanes_where(rest, |lane| members[lane] == named);
        rest &= !lanes;
        if let Some(checker) = &mut cx.checker {
            checker.members(cx.warp, warp.pc - 1, lanes, named);
            observe::warp_barriers(checker, cx.warp, warp);
        }
        let offer = offer.map(|offer| Offer { lanes, ..offer });
        if named & warp.live & !lanes == 0 {
            warp.met(issue.ins.op, lanes, named);
            settle(&mut warp.registers, offer.as_slice());
        } else {
            let at = Halt::Lanes { members: named, op: issue.ins.op };
            flow = warp.park(lanes, at, offer.map(Box::new));
        }
    }
    flow
}

/// Completes the operation of parked lanes once all of them have arrived.
pub(super) fn settle_parked(registers: &mut Registers, together: &[Parked]) {
    let offers: Vec<Offer> = together.iter().filter_map(|parked| parked.offer.as_deref().copied()).collect();
    settle(registers, &offers);
}

/// Performs the joint operation of several offers; each lane belongs to one of them.
fn settle(registers: &mut Registers, offers: &[Offer]) {
    let Some((first, others)) = offers.split_first() else { return };
    let mut all = *first;
    for other in others {
        all.lanes |= other.lanes;
        active(other.lanes, |lane| {
            all.values[lane] = other.values[lane];
            all.reach[lane] = other.reach[lane];
            all.bounds[lane] = other.bounds[lane];
        });
    }
    let (row, predicate) = (all.function)(&all);
    for Offer { lanes, results: [value, bit], .. } in offers {
        registers.write32(*value, &row, *lanes);
        registers.write_pred(*bit, predicate, *lanes);
    }
}

/// The part of the warp within which a lane's shuffle stays, from the shuffle's last operand.
struct Segment {
    /// The bits of a lane's number that select the segment.
    mask: u32,
    first: u32,
    /// The bound: for `up` the lowest lane, for the other modes the highest.
    last: u32,
}

impl Offer {
    /// `shfl`: `source` computes each lane's source lane from its number, its reach and its
    /// segment. A lane gets its own value if the source lies outside the segment.
    fn shuffled(&self, source: impl Fn(u32, u32, Segment) -> Option<u32>) -> Results {
        let sources = each(|lane| {
            let (own, reach, bounds) = (lane as u32, self.reach[lane] & 31, self.bounds[lane]);
            let mask = bounds >> 8 & 31;
            let first = own & mask;
            source(own, reach, Segment { mask, first, last: first | bounds & 31 & !mask }).filter(|&source| source < 32)
        });
        let value = |source: usize| if self.lanes >> source & 1 == 1 { self.values[source] as u32 } else { 0 };
        (
            each(|lane| value(sources[lane].map_or(lane, |source| source as usize))),
            lanes_where(FULL, |lane| sources[lane].is_some()),
        )
    }

    /// The lanes whose predicate holds.
    fn ballot(&self) -> u32 {
        lanes_where(self.lanes, |lane| self.values[lane] != 0)
    }

    /// The lanes with the same value as `lane`.
    fn alike(&self, lane: usize) -> u32 {
        lanes_where(self.lanes, |other| self.values[other] == self.values[lane])
    }

    fn first(&self) -> usize {
        self.lanes.trailing_zeros() as usize % LANES
    }

    fn reduced(&self, function: impl Fn(u32, u32) -> u32) -> Results {
        let values = lanes_of(self.lanes).map(|lane| self.values[lane] as u32);
        ([values.reduce(function).unwrap_or_default(); LANES], 0)
    }
}

/// Gives all lanes this bit.
fn same(holds: bool) -> Results {
    ([0; LANES], if holds { FULL } else { 0 })
}

/// Defines the operations that the instruction table names.
macro_rules! operations {
    ($offer:ident: $($name:ident = $results:expr;)*) => {$(
        pub(super) fn $name($offer: &Offer) -> Results {
            $results
        }
    )*};
}

operations! { offer:
    shuffle_up = offer.shuffled(|own, reach, segment| own.checked_sub(reach).filter(|&source| source >= segment.last));
    shuffle_down = offer.shuffled(|own, reach, segment| Some(own + reach).filter(|&source| source <= segment.last));
    shuffle_butterfly = offer.shuffled(|own, reach, segment| Some(own ^ reach).filter(|&source| source <= segment.last));
    shuffle_index = offer.shuffled(|_, reach, Segment { mask, first, last }| {
        Some(first | reach & !mask).filter(|&source| source <= last)
    });
    vote_all = same(offer.ballot() == offer.lanes);
    vote_any = same(offer.ballot() != 0);
    vote_uniform = same(offer.ballot() == offer.lanes || offer.ballot() == 0);
    vote_ballot = ([offer.ballot(); LANES], 0);
    match_any = (each(|lane| offer.alike(lane)), 0);
    match_all = match offer.alike(offer.first()) == offer.lanes {
        true => ([offer.lanes; LANES], FULL),
        false => ([0; LANES], 0),
    };
    elect = ([offer.first() as u32; LANES], 1 << offer.first());
    sum = offer.reduced(u32::wrapping_add);
    min_u32 = offer.reduced(u32::min);
    max_u32 = offer.reduced(u32::max);
    min_s32 = offer.reduced(|a, b| (a as i32).min(b as i32) as u32);
    max_s32 = offer.reduced(|a, b| (a as i32).max(b as i32) as u32);
    all_bits = offer.reduced(|a, b| a & b);
    any_bits = offer.reduced(|a, b| a | b);
    odd_bits = offer.reduced(|a, b| a ^ b);
}
