//! The generic address space: the meaning of an address without a state space.
//!
//! Global allocations lie at multiples of 1 << 40. Below that, each of the following 4 GiB ranges
//! is a window onto another space. The other low addresses are the host's.

use crate::gpu::vocabulary::Space;

/// The beginning of the window onto shared memory.
pub(crate) const SHARED: u64 = 1 << 32;
/// The beginning of the window onto a thread's local memory.
pub(crate) const LOCAL: u64 = 2 << 32;
/// The beginning of the window onto the parameters.
pub(crate) const PARAM: u64 = 3 << 32;
/// The beginning of the addresses of functions; nothing can be loaded from them.
const CODE: u64 = 4 << 32;
/// The bit of a global address that says that it is a constant variable's.
pub(crate) const CONSTANT: u64 = 1 << 39;
/// Bytes between the addresses of consecutive functions.
const CODE_STEP: u64 = 16;

/// The address of the function of this number.
pub(crate) fn function_address(number: u32) -> u64 {
    CODE + CODE_STEP * u64::from(number)
}

/// The number of a function that could have this address.
pub(crate) fn function_number(address: u64) -> Option<u32> {
    let distance = address.checked_sub(CODE).filter(|distance| distance.is_multiple_of(CODE_STEP))?;
    u32::try_from(distance / CODE_STEP).ok()
}

/// The base of the window that contains a generic address, or 0 if the address is global.
#[inline(always)]
pub(crate) fn window(address: u64) -> u64 {
    let base = address & !0xffff_ffff;
    if matches!(base, SHARED | LOCAL | PARAM) { base } else { 0 }
}

/// The space whose window contains a generic address.
pub(crate) fn named(address: u64) -> Option<Space> {
    match window(address) {
        SHARED => Some(Space::Shared),
        LOCAL => Some(Space::Local),
        PARAM => Some(Space::Param),
        _ => None,
    }
}

/// The lowest bit of the part of an address of shared memory that names a block of the cluster, by
/// its rank and 1. The addresses of the block itself have 0 there.
const RANK_AT: u32 = 24;
/// The number of addresses of shared memory that a block has at most.
const OF_BLOCK: u64 = 1 << RANK_AT;
/// The greatest number that stands for a rank.
const MOST_RANKS: u32 = 0xff;

/// `mapa`: the address of the same place in the shared memory of the block of this rank.
pub(crate) fn mapped(address: u64, rank: u32) -> u64 {
    without_rank(address) | u64::from(rank.saturating_add(1).min(MOST_RANKS)) << RANK_AT
}

/// An address of shared memory, as that of the block itself.
pub(crate) fn without_rank(address: u64) -> u64 {
    address & !(u64::from(MOST_RANKS) * OF_BLOCK)
}

/// The rank of the block that an address of shared memory names; `None` if it is that of the block
/// itself.
pub(crate) fn rank(address: u64) -> Option<u32> {
    ((address >> RANK_AT) as u32 & MOST_RANKS).checked_sub(1)
}

/// Returns whether a generic address is one of the shared memory of the block of this rank, for
/// that block.
pub(crate) fn is_own_shared(address: u64, own: u32) -> bool {
    window(address) == SHARED && rank(address).is_none_or(|rank| rank == own)
}

/// Returns whether a generic address is that of a constant variable, which lies beyond the
/// addresses of the host.
pub(crate) fn is_constant(address: u64) -> bool {
    address >= 1 << 47 && address & CONSTANT != 0
}

/// Returns whether a generic address from `first` to `last` lies in a window, or is a function's.
pub(super) fn has_window_in(first: u64, last: u64) -> bool {
    first < CODE + (1 << 32) && last >= SHARED
}

/// Returns whether an address, and so every higher one, is global.
#[inline(always)]
pub(crate) fn is_beyond_windows(address: u64) -> bool {
    address >= 4 << 32
}
