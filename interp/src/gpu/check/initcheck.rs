//! initcheck finds loads of bytes that were never written.
//!
//! Global memory records the bytes that the host wrote, that copies and fills wrote (a copy counts
//! as a write, whatever it copied), and that launches under initcheck wrote. A launch without
//! initcheck may have written anything, so all allocations of that time are exempt from later
//! checks. Shared and local memory begin each block unwritten. A load is reported even if its bytes
//! are only copied on, as padding may be.

use super::{Access, Log, What, Who};
use crate::gpu::code::Code;
use crate::gpu::mem::written::Written;
use crate::gpu::mem::{Allocation, Nearest};
use crate::gpu::vocabulary::{FULL, LANES, Space, lanes_of};

/// The bytes that a block has written to its shared and local memory.
#[derive(Debug)]
pub(super) struct Initcheck {
    shared: Written,
    /// One for each warp.
    local: Vec<Written>,
}

impl Initcheck {
    pub(super) fn new(code: &Code, warps: u32, shared_bytes: u64) -> Option<Self> {
        let local_bytes = LANES as u64 * code.local_stride();
        let mut local = Vec::new();
        local.try_reserve_exact(warps as usize).ok()?;
        local.extend((0..warps).map(|_| Written::none(local_bytes)));
        Some(Self { shared: Written::none(shared_bytes), local })
    }

    /// Makes the state for a block that will run beside the others.
    pub(super) fn another(&self) -> Self {
        Self { shared: self.shared.another(), local: self.local.iter().map(Written::another).collect() }
    }

    pub(super) fn begin(&mut self) {
        self.shared.clear();
        self.local.iter_mut().for_each(Written::clear);
    }

    pub(super) fn shared(&self, log: &mut Log, block: u64, access: &Access) {
        look(&self.shared, log, block, access, access.offsets, |lane| What::Uninitialised {
            space: Space::Shared,
            address: access.offsets[lane],
            bytes: access.bytes,
            allocation: None,
        });
    }

    pub(super) fn local(&self, log: &mut Log, block: u64, access: &Access, stride: u64) {
        let places = std::array::from_fn(|lane| lane as u64 * stride + access.offsets[lane]);
        look(&self.local[access.warp as usize], log, block, access, &places, |lane| What::Uninitialised {
            space: Space::Local,
            address: access.offsets[lane],
            bytes: access.bytes,
            allocation: None,
        });
    }
}

/// Checks an access to an allocation.
pub(super) fn global(log: &mut Log, block: u64, access: &Access, allocation: &Allocation) {
    if allocation.written().is_all() {
        return;
    }
    let (base, bytes) = (allocation.base(), allocation.bytes());
    look(allocation.written(), log, block, access, access.offsets, |lane| What::Uninitialised {
        space: Space::Global,
        address: base + access.offsets[lane],
        bytes: access.bytes,
        allocation: Some(Nearest { base, bytes, freed: false }),
    });
}

fn look(
    written: &Written,
    log: &mut Log,
    block: u64,
    access: &Access,
    offsets: &[u64; LANES],
    what: impl Fn(usize) -> What,
) {
    let bytes = u64::from(access.bytes);
    let side_by_side = access.mask == FULL && (1..LANES).all(|lane| offsets[lane] == offsets[lane - 1] + bytes);
    let whole = (offsets[0], LANES as u64 * bytes);
    if access.kind.reads() && !(side_by_side && written.holds(whole.0, whole.1)) {
        for lane in lanes_of(access.mask).filter(|&lane| !written.holds(offsets[lane], bytes)) {
            log.add(Who { block, thread: access.thread(lane), pc: access.pc }, what(lane));
        }
    }
    if access.kind.writes() && side_by_side {
        written.add(whole.0, whole.1);
    } else if access.kind.writes() {
        lanes_of(access.mask).for_each(|lane| written.add(offsets[lane], bytes));
    }
}
