//! The allocation that a wrong address was probably meant for.

use std::fmt;

use super::allocation::Allocation;
use super::global::{ADDRESS_BITS, Slot, Snapshot, number_of};
use crate::error::counted;

/// The allocation that an address was probably meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nearest {
    /// First address of the allocation.
    pub base: u64,
    /// Its bytes.
    pub bytes: u64,
    /// True if it has been freed.
    pub freed: bool,
    /// The number of the GPU that has it, if that does not share its memory with this one.
    pub foreign: Option<usize>,
}

impl Nearest {
    fn live(allocation: &Allocation) -> Self {
        Self { base: allocation.base, bytes: allocation.bytes, freed: false, foreign: None }
    }
}

impl Slot {
    /// Returns the content of the slot of this number that is nearest to an address; in one of the
    /// host, what `pick` takes.
    fn nearest(
        &self,
        address: u64,
        number: usize,
        pick: impl Fn(&super::host::Ranges) -> Option<&Allocation>,
    ) -> Option<Nearest> {
        let base = (number as u64) << ADDRESS_BITS;
        Some(match self {
            Slot::Live(live) => live.described(address),
            &Slot::Freed { bytes } => Nearest { base, bytes, freed: true, foreign: None },
            &Slot::Foreign { bytes, gpu } => Nearest { base, bytes, freed: false, foreign: Some(gpu) },
            Slot::Host(ranges) => Nearest::live(pick(ranges)?),
        })
    }
}

impl Snapshot {
    /// The allocation, live or freed, that `address` was probably meant for: the one that contains
    /// it, or else the closer of the previous one's end and the next one's beginning.
    pub(crate) fn nearest(&self, address: u64) -> Option<Nearest> {
        let last = self.slots.len().checked_sub(1)?;
        let number = number_of(address).min(last);
        let (below, above) = self.slots.split_at(number + 1);
        let mut below = below.iter().enumerate().rev();
        let before = below.find_map(|(number, slot)| slot.nearest(address, number, |ranges| ranges.find(address)));
        let next_here = match &self.slots[number] {
            Slot::Host(ranges) => ranges.after(address).map(Nearest::live),
            _ => None,
        };
        let after = next_here.or_else(|| {
            (number + 1..)
                .zip(above)
                .find_map(|(number, slot)| slot.nearest(address, number, |ranges| ranges.after(address)))
        });
        let (Some(before), Some(after)) = (before, after) else { return before.or(after) };
        let beyond = address.saturating_sub(before.base.saturating_add(before.bytes));
        Some(if after.base.saturating_sub(address) < beyond { after } else { before })
    }
}

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.foreign {
            Some(gpu) => format!("of GPU {gpu}, which does not share it"),
            None => if self.freed { "freed" } else { "live" }.into(),
        };
        write!(f, "the nearest allocation ({state}) has {} at {:#x}", counted(self.bytes, "byte"), self.base)
    }
}
