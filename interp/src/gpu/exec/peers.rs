//! Accesses to the shared memory of a cluster: that of the block itself, and that of the others.
//!
//! Counters are an estimate. An instruction counts once for each block that its lanes lead to, as
//! if that block's own warp made the access.

use super::memory::{self, Action, Addresses};
use super::registers::Value;
use super::warp::Warp;
use super::{Context, Flow, Issue, NEXT, observe};
use crate::gpu::check::Check;
use crate::gpu::mem::space;
use crate::gpu::reason::{BadAccess, Reason};
use crate::gpu::vocabulary::{Space, each, lanes_where};

/// Accesses shared memory at addresses within its window.
pub(super) fn shared<A: Action>(cx: &mut Context, warp: &mut Warp, issue: Issue, addresses: Addresses, act: A) -> Flow {
    let any = addresses.iter().fold(0, |any, &address| any | address);
    if space::rank(any).is_none() {
        return memory::shared(cx, warp, issue, addresses, act);
    }
    let own = cx.neighbours.rank as u32;
    let rank = |address: u64| space::rank(address).unwrap_or(own);
    // Without clusters, an address of another rank is one that is far out of bounds.
    if cx.neighbours.peers.len() == 1 && addresses.iter().any(|&address| rank(address) != own) {
        return memory::shared(cx, warp, issue, addresses, act);
    }
    let mut rest = issue.mask;
    while rest != 0 {
        let of = rank(addresses[rest.trailing_zeros() as usize]);
        let lanes = lanes_where(rest, |lane| rank(addresses[lane]) == of);
        let mut offsets = each(|lane| space::without_rank(addresses[lane]));
        memory::lend(&mut offsets, lanes);
        let issue = Issue { mask: lanes, ..issue };
        match of == own {
            true => memory::shared(cx, warp, issue, offsets, act),
            false => of_peer(cx, warp, issue, (of, offsets), act),
        }?;
        rest &= !lanes;
    }
    NEXT
}

/// `isspacep.shared::cta`
pub(super) fn is_own(cx: &mut Context, warp: &mut Warp, Issue { ins, mask }: Issue) -> Flow {
    let (addresses, own) = (u64::read(&warp.registers, ins.s[0]), cx.neighbours.rank as u32);
    let is_own = bool::row(|lane| space::is_own_shared(u64::lane(&addresses, lane), own));
    bool::write(&mut warp.registers, ins.d, &is_own, mask);
    NEXT
}

/// `getctarank`
pub(super) fn rank_of<T: Value + Into<u64>>(cx: &mut Context, warp: &mut Warp, Issue { ins, mask }: Issue) -> Flow {
    let (addresses, own) = (T::read(&warp.registers, ins.s[0]), cx.neighbours.rank as u32);
    let ranks = u32::row(|lane| space::rank(T::lane(&addresses, lane).into()).unwrap_or(own));
    u32::write(&mut warp.registers, ins.d, &ranks, mask);
    NEXT
}

/// Accesses the shared memory of another block.
fn of_peer<A: Action>(
    cx: &mut Context,
    warp: &mut Warp,
    issue: Issue,
    (rank, mut offsets): (u32, Addresses),
    act: A,
) -> Flow {
    let (kind, bytes) = (act.kind(cx, issue.ins), issue.ins.access.bytes());
    let bad = BadAccess { access: kind, space: Space::Shared, bytes, address: 0, nearest: None, space_bytes: 0 };
    let Some(issue) = permitted(cx, warp, issue, (rank, &mut offsets), bad)? else { return NEXT };
    let peer = &cx.neighbours.peers[rank as usize];
    observe::shared(cx, warp, issue, &offsets, kind);
    observe::check_peer(cx, warp, issue, &offsets, peer);
    act.act(&peer.shared, warp, issue, &offsets);
    NEXT
}

/// Finds the lanes whose access to the block of this rank is possible, if there are any, and lends
/// the other lanes their offsets. An access to a block that has ended is a fault for memcheck
/// alone: a GPU may end that block later.
fn permitted<'i>(
    cx: &mut Context,
    warp: &mut Warp,
    issue: Issue<'i>,
    (rank, offsets): (u32, &mut Addresses),
    bad: BadAccess,
) -> super::Result<Option<Issue<'i>>> {
    let peers = cx.neighbours.peers;
    let watched = cx.checker.as_ref().is_some_and(|checker| checker.has(Check::Memcheck));
    let wrong = |lane: usize| {
        let Some(peer) = peers.get(rank as usize) else {
            return Some(Reason::OutsideCluster { rank, blocks: peers.len() as u32 });
        };
        if watched && peer.has_ended() {
            return Some(Reason::EndedBlock { rank });
        }
        let bad = BadAccess { address: offsets[lane], space_bytes: peer.shared.bytes, ..bad };
        bad.beyond(u64::from(bad.bytes))
    };
    let permitted = memory::permitted(cx, warp, issue, wrong)?;
    if let Some(issue) = permitted {
        memory::lend(offsets, issue.mask);
    }
    Ok(permitted)
}
