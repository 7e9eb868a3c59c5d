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
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// The definition: the units of all bytes.
    fn naive(addresses: &[u64; 32], mask: u32, bytes: u32, unit: u64) -> u32 {
        let lanes = lanes_of(mask);
        let bytes = lanes.flat_map(|lane| (0..u64::from(bytes)).map(move |byte| addresses[lane] + byte));
        bytes.map(|byte| byte / unit).collect::<BTreeSet<_>>().len() as u32
    }

    proptest! {
        #[test]
        fn equals_the_definition(
            start in 0_u64..4096, addresses in prop::array::uniform32(0_u64..2048), mask: u32, full: bool, sorted: bool,
            log_bytes in 0_u32..5,
        ) {
            let bytes = 1 << log_bytes;
            let mut addresses = addresses.map(|address| (start + address) & !(u64::from(bytes) - 1));
            if sorted {
                addresses.sort_unstable();
            }
            let mask = if full { u32::MAX } else { mask };
            prop_assert_eq!(
                distinct::<SECTOR_BYTES>(&addresses, mask, bytes),
                naive(&addresses, mask, bytes, SECTOR_BYTES)
            );
            prop_assert_eq!(
                distinct::<LINE_BYTES>(&addresses, mask, bytes),
                naive(&addresses, mask, bytes, LINE_BYTES)
            );
        }
    }
}
