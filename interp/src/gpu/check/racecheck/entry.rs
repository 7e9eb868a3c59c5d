//! Packs an access into 16 bytes.

use crate::gpu::check::Who;
use crate::gpu::code::MAX_INSTRUCTIONS;
use crate::gpu::modifiers::Sync;
use crate::gpu::vocabulary::LANES;

/// Bits of a block's number, counted from 1.
pub(super) const BLOCK_BITS: u32 = 27;
/// Bits of a warp's number in its block.
const WARP_BITS: u32 = 5;
const FLAG_BITS: u32 = 6;
const WRITE: u32 = 1;
const STRONG: u32 = 1 << 1;
const DEVICE: u32 = 1 << 2;
const WIDTH: u32 = 3 << 3;
const LIST: u32 = 1 << 5;
const _: () = assert!(MAX_INSTRUCTIONS < 1 << (32 - FLAG_BITS), "an entry tells all instructions of a kernel apart");

/// The access that lanes of a warp made to one place by one instruction, or repeatedly by that
/// instruction between the same clocks. An entry may also refer to a list of such accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Entry {
    /// The block, counted from 1, and the warp; 0 means no entry.
    place: u32,
    /// The instruction, and flags.
    what: u32,
    pub(super) clock: u32,
    pub(super) lanes: u32,
}

/// The properties of an access, encoded as in entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deed {
    what: u32,
}

impl Deed {
    /// The access of the instruction at `pc`; `width` is that of an element.
    pub(super) fn new(pc: u32, writes: bool, sync: Sync, width: u8) -> Self {
        let flag = |bit: u32, set: bool| if set { bit } else { 0 };
        let width = width.trailing_zeros() << WIDTH.trailing_zeros();
        let strength = flag(STRONG, sync.is_strong()) | flag(DEVICE, sync.is_device_wide()) | width;
        let strength = if sync.is_strong() { strength } else { 0 };
        Self { what: pc << FLAG_BITS | strength | flag(WRITE, writes) }
    }
}

impl Entry {
    pub(super) fn new(block: u32, warp: u32, lane: usize, deed: Deed, clock: u32) -> Self {
        Self { place: (block + 1) << WARP_BITS | warp, what: deed.what, clock, lanes: 1 << lane }
    }

    /// An entry that refers to the list of this number, which holds entries of a block.
    pub(super) fn list(block: u32, number: u32) -> Self {
        Self { place: (block + 1) << WARP_BITS, what: LIST, clock: 0, lanes: number }
    }

    /// The number of the list that it refers to.
    #[inline]
    pub(super) fn as_list(self) -> Option<usize> {
        (self.what & LIST != 0).then_some(self.lanes as usize)
    }

    #[inline]
    pub(super) fn is_none(self) -> bool {
        self.place == 0
    }

    #[inline]
    pub(super) fn block(self) -> u32 {
        (self.place >> WARP_BITS).wrapping_sub(1)
    }

    #[inline]
    pub(super) fn warp(self) -> u32 {
        self.place % (1 << WARP_BITS)
    }

    pub(super) fn pc(self) -> u32 {
        self.what >> FLAG_BITS
    }

    #[inline]
    pub(super) fn writes(self) -> bool {
        self.what & WRITE != 0
    }

    #[inline]
    pub(super) fn is_strong(self) -> bool {
        self.what & STRONG != 0
    }

    /// The thread of this entry in this lane.
    pub(super) fn who(self, lane: u32) -> Who {
        Who { block: u64::from(self.block()), thread: self.warp() * LANES as u32 + lane, pc: self.pc() }
    }

    /// Returns whether both belong to the same warp and instruction between the same clocks.
    #[inline]
    pub(super) fn is_with(self, other: Entry) -> bool {
        (self.place, self.what, self.clock) == (other.place, other.what, other.clock)
    }

    /// Merges the two.
    #[inline]
    pub(super) fn and(self, other: Entry) -> Self {
        Self { lanes: self.lanes | other.lanes, ..self }
    }

    pub(super) fn is_of_warp_of(self, other: Entry) -> bool {
        self.place == other.place
    }

    /// Returns whether PTX allows the two accesses to coincide: both are strong, each one's scope
    /// contains the other thread, and they have the same width.
    #[inline]
    pub(super) fn may_meet(self, other: Entry) -> bool {
        let both = self.what & other.what;
        let near = self.block() == other.block();
        both & STRONG != 0 && (near || both & DEVICE != 0) && (self.what ^ other.what) & WIDTH == 0
    }

    /// Returns whether the two accesses race if nothing orders them.
    #[inline]
    pub(super) fn conflicts(self, other: Entry) -> bool {
        (self.what | other.what) & WRITE != 0 && !self.may_meet(other)
    }

    /// Returns whether every access that conflicts with `other` also conflicts with this one,
    /// unless it comes from this one's block.
    pub(super) fn covers(self, other: Entry) -> bool {
        let as_weak = !self.is_strong() || other.is_strong() && (self.what ^ other.what) & WIDTH == 0;
        (self.writes() || !other.writes()) && as_weak && self.what & !other.what & DEVICE == 0
    }

    /// Returns whether no later access needs a comparison with `other`, which comes before this
    /// one. `narrow`: whether the kernel may have strong accesses in the scope of a block.
    pub(super) fn replaces(self, other: Entry, narrow: bool) -> bool {
        let wide = !narrow && other.what & DEVICE != 0;
        self.covers(other) && (!self.is_strong() || self.block() == other.block() || wide)
    }
}

#[cfg(test)]
mod tests;
