//! Copies in bulk, which a thread begins and another unit does: `cp.async.bulk`.
//!
//! A copy reads and writes as late as the hardware may. One with an mbarrier does where a thread
//! looks at that barrier for a phase that is not over, and never without such a look. One in a
//! group does where its thread waits for the group, or where its block ends; it reads where its
//! thread waits for reads. So a kernel that lacks the wait reads what was there before.
//!
//! No counter has these copies, because they pass by the unit whose metrics the counters are.
//! Racecheck follows them from their beginning to the end that a thread sees (`follow`). For
//! initcheck, bytes that nothing has written stay so where they are copied.

use super::block::cluster::Neighbours;
use super::warp::Warp;
use super::{Context, Fault, Flow, Issue, NEXT};
use super::{memory, observe};
use crate::gpu::check::{Check, Checker};
use crate::gpu::code::{Access, Bulk, Ins};
use crate::gpu::mem::cells::Cells as _;
use crate::gpu::mem::{Snapshot, Touched, space};
use crate::gpu::reason::{BadAccess, Reason};
use crate::gpu::reduce::Reduce;
use crate::gpu::semantics::arrivals;
use crate::gpu::tensor_map::Element;
use crate::gpu::vocabulary::{AccessKind, Space, lanes_of};
use tensor::TensorBox;
pub(super) use transfer::{MOST_BYTES, Transfers};
use transfer::{Piece, Place, Source, Transfer, Unit};

mod follow;
mod reduce;
mod tensor;
mod transfer;

/// Bytes of which addresses and sizes are multiples.
const ALIGN: u64 = 16;
/// The same for barriers.
const BARRIER_BYTES: u64 = 8;
/// The work of a transfer, and the bytes that a unit of work moves.
const TRANSFER_WORK: u64 = 40;
const MOVED_BYTES: u64 = 4;

/// `cp.async.bulk` and `cp.reduce.async.bulk` of bytes that lie side by side.
pub(super) fn copy(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    each_lane(cx, warp, issue, Body::of)
}

/// `st.async` and `red.async`: copies of registers.
pub(super) fn send(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    each_lane(cx, warp, issue, |cx, warp, bulk, lane| Body::registers(cx, warp, bulk, issue.ins, lane))
}

/// Begins the copies of the lanes, whose bytes `body` returns.
fn each_lane(
    cx: &mut Context,
    warp: &mut Warp,
    Issue { ins, mask }: Issue,
    body: impl Fn(&Context, &Warp, Bulk, usize) -> Result<Body, Reason>,
) -> Flow {
    let bulk = cx.code.bulks[ins.imm as usize];
    for lane in lanes_of(mask) {
        if let Err(reason) = body(cx, warp, bulk, lane).and_then(|body| begin(cx, warp, bulk, lane, body)) {
            let (index, pc) = (cx.warp, warp.pc - 1);
            let found = |checker: &mut Checker| checker.fault(Check::Memcheck, index, lane as u32, pc, &reason);
            if !cx.checker.as_deref_mut().is_some_and(found) {
                return Err(Fault::new(lane as u32, reason).into());
            }
        }
    }
    NEXT
}

/// The bytes that a lane copies.
enum Body {
    /// Bytes side by side.
    Bytes { to: Place, from: Place, bytes: u32 },
    /// Bytes of registers.
    Registers { to: Place, bytes: Vec<u8> },
    /// A box of a tensor, and its place in shared memory; `loads`: from the tensor.
    Tensor { tensor: TensorBox, shared: Place, loads: bool },
}

impl Body {
    /// The bytes that a lane copies.
    fn of(cx: &Context, warp: &Warp, bulk: Bulk, lane: usize) -> Result<Self, Reason> {
        let own = cx.neighbours.rank as u32;
        let place = |slot: u16, is_shared: bool| {
            let address = warp.registers.b64[usize::from(slot)][lane];
            if is_shared { shared(address, own) } else { Place::Global(address) }
        };
        if let Some(tensor) = bulk.tensor {
            let (slot, loads) = if bulk.to_shared { (bulk.to, true) } else { (bulk.from, false) };
            let tensor = TensorBox::of(cx, warp, tensor, lane)?;
            return Ok(Self::Tensor { tensor, shared: place(slot, true), loads });
        }
        let bytes = warp.registers.b32[usize::from(bulk.size)][lane];
        let (to, from) = (place(bulk.to, bulk.to_shared), place(bulk.from, bulk.from_shared));
        aligned("size", u64::from(bytes), ALIGN)?;
        aligned("destination", to.address(), ALIGN)?;
        aligned("source", from.address(), ALIGN)?;
        inside(cx, from, AccessKind::Load, bytes)?;
        Ok(Self::Bytes { to, from, bytes })
    }

    /// The registers that a lane stores later.
    fn registers(cx: &Context, warp: &Warp, bulk: Bulk, ins: &Ins, lane: usize) -> Result<Self, Reason> {
        let to = shared(warp.registers.b64[usize::from(bulk.to)][lane], cx.neighbours.rank as u32);
        let Access { width, count, wide, .. } = ins.access;
        aligned("destination", to.address(), ins.access.bytes().into())?;
        let mut bytes = Vec::new();
        for &slot in &ins.s[..usize::from(count)] {
            let slot = usize::from(slot);
            let bits = if wide { warp.registers.b64[slot][lane] } else { warp.registers.b32[slot][lane].into() };
            bytes.extend(&bits.to_le_bytes()[..usize::from(width)]);
        }
        Ok(Self::Registers { to, bytes })
    }

    /// Bytes that a barrier counts.
    fn bytes(&self) -> u32 {
        match self {
            Self::Bytes { bytes, .. } => *bytes,
            Self::Registers { bytes, .. } => bytes.len() as u32,
            Self::Tensor { tensor, .. } => tensor.bytes(),
        }
    }

    /// The change that the copy makes of what is there, if it makes one.
    fn reduce(&self, bulk: Bulk) -> Result<Option<Reduce>, Reason> {
        let Some(change) = bulk.change else { return Ok(None) };
        let number = if let Self::Tensor { tensor, .. } = self { tensor.element().number() } else { bulk.number };
        let reduce = number.and_then(|number| Reduce::new(change, number));
        reduce.map(Some).ok_or(Reason::TensorReduction)
    }

    /// The type of the elements, if they come from a tensor.
    fn element(&self) -> Option<Element> {
        match self {
            Self::Tensor { tensor, loads: true, .. } => Some(tensor.element()),
            _ => None,
        }
    }

    /// The pieces of the copy, to the shared memory of another block if a rank is given.
    fn pieces(&self, cx: &Context, rank: Option<u32>) -> Result<Vec<Piece>, Reason> {
        match self {
            Self::Bytes { to, from, bytes } => {
                let to = to.of_rank(rank);
                inside(cx, to, AccessKind::Store, *bytes)?;
                Ok(vec![Piece { to, from: Source::At(*from), bytes: *bytes }])
            }
            Self::Registers { to, bytes } => {
                let count = bytes.len() as u32;
                inside(cx, *to, AccessKind::Store, count)?;
                Ok(vec![Piece { to: *to, from: Source::Held(bytes.clone(), true), bytes: count }])
            }
            Self::Tensor { tensor, shared, loads } => tensor.pieces(cx, shared.of_rank(rank), *loads),
        }
    }
}

/// Begins the copy of a lane.
fn begin(cx: &mut Context, warp: &mut Warp, bulk: Bulk, lane: usize, body: Body) -> Result<(), Reason> {
    let own = cx.neighbours.rank as u32;
    let (element, reduce) = (body.element(), body.reduce(bulk)?);
    let barrier = bulk.barrier.map(|slot| shared(warp.registers.b64[usize::from(slot)][lane], own));
    let ranks = bulk.ranks.map(|slot| warp.registers.b32[usize::from(slot)][lane] & 0xffff);
    // Each block of a multicast gets the bytes, and their announcement, at the same offsets.
    for rank in ranks.map_or(vec![None], |ranks| lanes_of(ranks).map(|rank| Some(rank as u32)).collect()) {
        let (pieces, barrier) = (body.pieces(cx, rank)?, barrier.map(|barrier| barrier.of_rank(rank)));
        if let Some(barrier) = barrier {
            aligned("barrier", barrier.address(), BARRIER_BYTES)?;
            inside(cx, barrier, AccessKind::Atomic, BARRIER_BYTES as u32)?;
        }
        warp.work += TRANSFER_WORK * pieces.len() as u64 + u64::from(body.bytes()) / MOVED_BYTES;
        let mut transfer = Transfer { pieces, bytes: body.bytes(), barrier, reduce, element, followed: None };
        if let Some(checker) = &mut cx.checker {
            observe::warp_barriers(checker, cx.warp, warp);
            let thread = 32 * cx.warp + lane as u32;
            unit(cx).follow(&mut transfer, thread, warp.pc - 1);
        }
        start(cx, (own, 32 * cx.warp + lane as u32), transfer);
    }
    Ok(())
}

/// Takes up a transfer; older ones arrive if there are too many.
fn start(cx: &mut Context, thread: (u32, u32), transfer: Transfer) {
    let oldest = cx.neighbours.transfers.borrow_mut().start(thread, transfer);
    oldest.into_iter().for_each(|transfer| unit(cx).finish(transfer, None));
}

fn aligned(what: &'static str, value: u64, align: u64) -> Result<(), Reason> {
    match value.is_multiple_of(align) {
        true => Ok(()),
        false => Err(Reason::BulkAlignment { what, value, align }),
    }
}

/// The place of a generic address that is to be one of shared memory.
fn shared(address: u64, own: u32) -> Place {
    let within = address.wrapping_sub(space::SHARED);
    match u32::try_from(within) {
        Ok(_) => Place::Shared { rank: space::rank(within).unwrap_or(own), offset: space::without_rank(within) },
        Err(_) => Place::Shared { rank: own, offset: within },
    }
}

/// Returns why bytes cannot be moved there, if they cannot.
fn inside(cx: &Context, place: Place, access: AccessKind, bytes: u32) -> Result<(), Reason> {
    let watched = || cx.checker.as_ref().is_some_and(|checker| checker.has(Check::Memcheck));
    let wrong = match place {
        _ if bytes == 0 => None,
        Place::Global(address) => memory::bad_global(cx.global, access, address, bytes, 1),
        Place::Shared { rank, offset } => match cx.neighbours.peers.get(rank as usize) {
            // A GPU may end that block later.
            Some(peer) if peer.has_ended() && watched() => Some(Reason::EndedBlock { rank }),
            Some(peer) => {
                let (space, space_bytes) = (Space::Shared, peer.shared.bytes);
                BadAccess { access, space, bytes, address: offset, nearest: None, space_bytes }.beyond(1)
            }
            None => Some(Reason::OutsideCluster { rank, blocks: cx.neighbours.peers.len() as u32 }),
        },
    };
    wrong.map_or(Ok(()), Err)
}

/// `cp.async.bulk.commit_group`
pub(super) fn commit(cx: &mut Context, _: &mut Warp, Issue { mask, .. }: Issue) -> Flow {
    let own = cx.neighbours.rank as u32;
    lanes_of(mask).for_each(|lane| cx.neighbours.transfers.borrow_mut().commit((own, 32 * cx.warp + lane as u32)));
    NEXT
}

/// `cp.async.bulk.wait_group`: the lanes wait for all their groups but the latest `ins.imm`.
pub(super) fn wait_group(cx: &mut Context, warp: &mut Warp, Issue { ins, mask }: Issue) -> Flow {
    let only_read = warp.registers.pred[usize::from(ins.s[0])] != 0;
    let own = (cx.neighbours.rank as u32, cx.warp, mask);
    if let Some(checker) = &mut cx.checker {
        observe::warp_barriers(checker, cx.warp, warp);
    }
    warp.work += cx.neighbours.transfers.borrow().search_work();
    let due = cx.neighbours.transfers.borrow_mut().of_groups(own, ins.imm as u32, only_read);
    for mut begun in due {
        if only_read && !cx.neighbours.transfers.borrow().is_full() {
            unit(cx).hold(&mut begun.transfer);
            cx.neighbours.transfers.borrow_mut().put_back(begun);
        } else {
            unit(cx).finish_own(begun.transfer);
        }
    }
    NEXT
}

/// Lets the copies arrive that announce themselves at the barriers which a warp looks at, where the
/// phase that a lane waits for is not over without them.
pub(super) fn land(cx: &mut Context, warp: &mut Warp, issue: Issue) {
    if cx.neighbours.transfers.borrow().is_empty() {
        return;
    }
    if let Some(checker) = &mut cx.checker {
        observe::warp_barriers(checker, cx.warp, warp);
    }
    let (own, is_shared) = (cx.neighbours.rank as u32, issue.ins.access.space == Some(Space::Shared));
    let (addresses, phases) = (memory::addresses(warp, issue), warp.registers.b64[usize::from(issue.ins.s[1])]);
    let mut last = None;
    for lane in lanes_of(issue.mask) {
        let window = if is_shared { space::SHARED } else { 0 };
        let barrier = shared(addresses[lane].wrapping_add(window), own);
        let is_possible = barrier.address().is_multiple_of(BARRIER_BYTES)
            && inside(cx, barrier, AccessKind::Load, BARRIER_BYTES as u32).is_ok();
        if last.replace((barrier, phases[lane])) == Some((barrier, phases[lane])) || !is_possible {
            continue;
        }
        if let Place::Shared { rank, offset } = barrier
            && arrivals::has_left(cx.neighbours.peers[rank as usize].shared.load32(offset).into(), phases[lane])
        {
            continue;
        }
        warp.work += cx.neighbours.transfers.borrow().search_work();
        let due = cx.neighbours.transfers.borrow_mut().at(barrier);
        let thread = 32 * cx.warp + lane as u32;
        due.into_iter().for_each(|transfer| unit(cx).finish(transfer, Some(thread)));
    }
}

/// Lets the copies of a block arrive that are in groups, because the block has ended.
pub(super) fn end(neighbours: Neighbours, global: &Snapshot, touched: Option<&Touched>, checker: Option<&mut Checker>) {
    let due = neighbours.transfers.borrow_mut().of_block(neighbours.rank as u32);
    let mut unit = Unit { neighbours, global, touched, checker };
    due.into_iter().for_each(|transfer| unit.finish_own(transfer));
    let is_last = (0..).zip(neighbours.peers).all(|(rank, peer)| rank == neighbours.rank || peer.has_ended());
    if is_last {
        let unseen = neighbours.transfers.borrow_mut().all();
        unseen
            .into_iter()
            .filter_map(|copy| copy.followed)
            .for_each(|mut followed| unit.told(&mut followed, None, false));
    }
}

/// The unit that does a block's copies.
fn unit<'a>(cx: &'a mut Context) -> Unit<'a> {
    let Context { neighbours, global, touched, checker, .. } = cx;
    Unit { neighbours: *neighbours, global, touched: *touched, checker: checker.as_deref_mut() }
}
