//! Coalescing: the 32-byte sectors and the 128-byte lines that one request to global memory
//! touches.

use crate::counters::SECTOR_BYTES;
use crate::gpu::vocabulary::{each, lanes_of};

/// Bytes of a line of the L1 cache, which looks lines up one after the other.
pub(crate) const LINE_BYTES: u64 = 128;

/// The number of distinct units of `UNIT` bytes, such as sectors, that the lanes of `mask` touch,
/// each of which accesses `bytes` bytes (at most 32) at its address.
#[inline]
pub(crate) fn distinct<const UNIT: u64>(addresses: &[u64; 32], mask: u32, bytes: u32) -> u32 {
    let first = each(|lane| addresses[lane] / UNIT);
    let last = each(|lane| (addresses[lane] + u64::from(bytes) - 1) / UNIT);
    // Addresses are usually sorted. A unit is then new if it differs from the previous lane's.
    // This form has no branch, so it vectorises.
    let ascending = mask == u32::MAX
        && first == last
        && (1..32).fold(true, |sorted, lane| sorted & (first[lane - 1] <= first[lane]));
    if ascending {
        return 1 + (1..32).map(|lane| u32::from(first[lane - 1] != first[lane])).sum::<u32>();
    }
    scattered(&first, &last, mask)
}

/// The ideal that Nsight Compute's source page shows for an access by `lanes` lanes that touched
/// `sectors`: the fewest sectors that hold the lanes' bytes side by side, or the sectors touched if
/// lanes share data. Equal to the profiler's value on an H100.
#[inline]
pub(crate) fn ideal_sectors(sectors: u32, lanes: u32, bytes: u32) -> u32 {
    sectors.min((lanes * bytes).div_ceil(SECTOR_BYTES as u32))
}

fn scattered(first: &[u64; 32], last: &[u64; 32], mask: u32) -> u32 {
    let mut seen = [0; 64];
    let mut count = 0;
    let mut note = |unit: u64| {
        if !seen[..count].contains(&unit) {
            seen[count] = unit;
            count += 1;
        }
    };
    for lane in lanes_of(mask) {
        note(first[lane]);
        note(last[lane]);
    }
    count as u32
}

#[cfg(test)]
mod tests;
