//! Coalescing: the 32-byte sectors that one request to global memory touches.

use crate::gpu::vocabulary::each;

/// Bytes of a sector, the unit in which the caches move data.
pub(crate) const SECTOR_BYTES: u64 = 32;

/// The number of distinct sectors touched by the lanes of `mask`, each of which accesses `bytes`
/// bytes (at most 32) at its address.
#[inline]
pub(crate) fn sectors(addresses: &[u64; 32], mask: u32, bytes: u32) -> u32 {
    let first = each(|lane| addresses[lane] / SECTOR_BYTES);
    let last = each(|lane| (addresses[lane] + u64::from(bytes) - 1) / SECTOR_BYTES);
    // Addresses are usually sorted. A sector is then new if it differs from the previous lane's.
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
    let mut note = |sector: u64| {
        if !seen[..count].contains(&sector) {
            seen[count] = sector;
            count += 1;
        }
    };
    for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
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

    fn strided(start: u64, stride: u64) -> [u64; 32] {
        std::array::from_fn(|lane| start + lane as u64 * stride)
    }

    /// The definition: the sectors of all bytes.
    fn naive(addresses: &[u64; 32], mask: u32, bytes: u32) -> u32 {
        let lanes = (0..32).filter(|lane| mask >> lane & 1 == 1);
        let bytes = lanes.flat_map(|lane| (0..u64::from(bytes)).map(move |byte| addresses[lane] + byte));
        bytes.map(|byte| byte / SECTOR_BYTES).collect::<BTreeSet<_>>().len() as u32
    }

    #[test]
    fn closed_forms() {
        assert_eq!(sectors(&strided(0, 4), u32::MAX, 4), 4);
        assert_eq!(sectors(&strided(4, 4), u32::MAX, 4), 5, "a shifted row touches one sector more");
        assert_eq!(sectors(&strided(0, 16), u32::MAX, 16), 16);
        assert_eq!(sectors(&strided(0, 1), u32::MAX, 1), 1);
        assert_eq!(sectors(&strided(0, 4096), u32::MAX, 4), 32, "a column: every lane in a sector of its own");
        assert_eq!(sectors(&strided(64, 0), u32::MAX, 4), 1, "a broadcast");
        assert_eq!(sectors(&strided(0, 4), 0b11111, 4), 1);
        assert_eq!(sectors(&strided(0, 4), 0, 4), 0);
    }

    #[test]
    fn ideal_are_as_few_as_the_bytes_need() {
        assert_eq!([1, 4, 8, 16].map(|bytes| ideal_sectors(32, 32, bytes)), [1, 4, 8, 16]);
        assert_eq!(ideal_sectors(9, 9, 4), 2, "36 bytes need a second sector");
        assert_eq!(ideal_sectors(5, 32, 4), 4, "a shifted row");
        assert_eq!(ideal_sectors(1, 32, 4), 1, "a broadcast");
        assert_eq!(ideal_sectors(8, 8, 4), 1, "eight lanes in a sector each");
        assert_eq!(ideal_sectors(0, 0, 4), 0);
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
            prop_assert_eq!(sectors(&addresses, mask, bytes), naive(&addresses, mask, bytes));
        }
    }
}
