//! initcheck finds loads of bytes that were never written.
//!
//! Global memory records the bytes that the host wrote, that copies and fills wrote (a copy counts
//! as a write, whatever it copied), and that launches under initcheck wrote. A launch without
//! initcheck may have written anything, so all allocations of that time are exempt from later
//! checks. Shared and local memory begin each block unwritten. A load is reported even if its bytes
//! are only copied on, as padding may be.
//!
//! It also notes which bytes of global memory are read, so that those which nothing reads can be
//! counted.

use super::{Access, Check, Log, Problem, What, Who};
use crate::gpu::code::Code;
use crate::gpu::mem::marked::Marked;
use crate::gpu::mem::{Allocation, filled};
use crate::gpu::vocabulary::{FULL, LANES, Space, lanes_of};

/// The bytes that a block has written to its shared and local memory.
#[derive(Debug)]
pub(super) struct Initcheck {
    shared: Marked,
    /// One for each warp.
    local: Vec<Marked>,
}

impl Initcheck {
    pub(super) fn new(code: &Code, warps: u32, shared_bytes: u64) -> Option<Self> {
        let local_bytes = LANES as u64 * code.local_stride();
        let local = filled(warps as usize, || Marked::none(local_bytes))?;
        Some(Self { shared: Marked::none(shared_bytes), local })
    }

    /// Makes the state for a block that will run beside the others.
    pub(super) fn another(&self) -> Self {
        Self { shared: self.shared.another(), local: self.local.iter().map(Marked::another).collect() }
    }

    pub(super) fn begin(&mut self) {
        self.shared.clear();
        self.local.iter_mut().for_each(Marked::clear);
    }

    /// The bytes of shared memory that have been written.
    pub(super) fn of_shared(&self) -> &Marked {
        &self.shared
    }

    pub(super) fn shared(&self, log: &mut Log, block: u64, access: &Access) {
        look(&self.shared, log, block, access, access.offsets, (Space::Shared, None));
    }

    pub(super) fn local(&self, log: &mut Log, block: u64, access: &Access, stride: u64) {
        let places = std::array::from_fn(|lane| lane as u64 * stride + access.offsets[lane]);
        look(&self.local[access.warp as usize], log, block, access, &places, (Space::Local, None));
    }
}

/// Checks an access to an allocation.
pub(super) fn global(log: &mut Log, block: u64, access: &Access, allocation: &Allocation) {
    if access.kind.reads() && !allocation.read.is_all() {
        add(&allocation.read, access, access.offsets);
    }
    if !allocation.written.is_all() {
        look(&allocation.written, log, block, access, access.offsets, (Space::Global, Some(allocation)));
    }
}

/// Checks an access to these places of some memory, for global memory to those of an allocation.
fn look(
    written: &Marked,
    log: &mut Log,
    block: u64,
    access: &Access,
    places: &[u64; LANES],
    (space, allocation): (Space, Option<&Allocation>),
) {
    let bytes = u64::from(access.bytes);
    let whole = whole(access, places);
    if access.kind.reads() && !whole.is_some_and(|(place, bytes)| written.holds(place, bytes)) {
        for lane in lanes_of(access.mask).filter(|&lane| !written.holds(places[lane], bytes)) {
            let address = allocation.map_or(0, |allocation| allocation.base) + access.offsets[lane];
            let allocation = allocation.map(|allocation| allocation.described(address));
            let problem = Problem::Uninitialised { space, address, bytes: access.bytes, allocation };
            let who = Who { block, thread: access.thread(lane), pc: access.pc };
            log.add(who, What::Named(Check::Initcheck, problem));
        }
    }
    if access.kind.writes() {
        add(written, access, places);
    }
}

/// Marks the bytes of an access at these places.
fn add(marked: &Marked, access: &Access, places: &[u64; LANES]) {
    match whole(access, places) {
        Some((place, bytes)) => marked.add(place, bytes),
        None => lanes_of(access.mask).for_each(|lane| marked.add(places[lane], u64::from(access.bytes))),
    }
}

/// The range of an access by all lanes side by side.
fn whole(access: &Access, places: &[u64; LANES]) -> Option<(u64, u64)> {
    let bytes = u64::from(access.bytes);
    let side_by_side = access.mask == FULL && (1..LANES).all(|lane| places[lane] == places[lane - 1] + bytes);
    side_by_side.then_some((places[0], LANES as u64 * bytes))
}
