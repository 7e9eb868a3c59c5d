//! Coalescing: the 32-byte sectors that one request to global memory touches.

/// Bytes of a sector, the unit in which the caches move data.
pub const SECTOR_BYTES: u64 = 32;

/// Sectors of one access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sectors {
    /// How many it touches.
    pub touched: u32,
    /// How many would hold what its lanes access, if that lay side by side; no more than it touches, which is fewer where
    /// lanes share.
    pub ideal: u32,
}

/// Sectors touched by the lanes of `mask`, each of which accesses `bytes` bytes (1, 2, 4, 8, 16 or 32) at its aligned address.
#[inline]
pub fn sectors(addresses: &[u64; 32], mask: u32, bytes: u32) -> Sectors {
    let Some(mut last) = (mask != 0).then(|| addresses[mask.trailing_zeros() as usize]) else {
        return Sectors { touched: 0, ideal: 0 };
    };
    let mut sorted = *addresses;
    if mask != u32::MAX {
        // A lane that is not active repeats another's address.
        for (lane, address) in sorted.iter_mut().enumerate() {
            last = if mask >> lane & 1 == 1 { *address } else { last };
            *address = last;
        }
    }
    if (1..32).fold(false, |unsorted, lane| unsorted | (sorted[lane - 1] > sorted[lane])) {
        sorted.sort_unstable();
    }
    // Sorted, what is new differs from the lane's before: a form without branches, so it is vectorised. Aligned addresses lie
    // within a sector.
    let sector = |lane: usize| sorted[lane] / SECTOR_BYTES;
    let touched = 1 + (1..32).map(|lane| u32::from(sector(lane - 1) != sector(lane))).sum::<u32>();
    Sectors { touched, ideal: touched.min((mask.count_ones() * bytes).div_ceil(SECTOR_BYTES as u32)) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn strided(start: u64, stride: u64) -> [u64; 32] {
        std::array::from_fn(|lane| start + lane as u64 * stride)
    }

    /// The definition, byte by byte.
    fn naive(addresses: &[u64; 32], mask: u32, bytes: u32) -> Sectors {
        let lanes = (0..32).filter(|lane| mask >> lane & 1 == 1);
        let bytes: Vec<u64> =
            lanes.flat_map(|lane| (0..u64::from(bytes)).map(move |byte| addresses[lane] + byte)).collect();
        let touched = bytes.iter().map(|byte| byte / SECTOR_BYTES).collect::<BTreeSet<_>>().len();
        Sectors { touched: touched as u32, ideal: touched.min(bytes.len().div_ceil(32)) as u32 }
    }

    #[test]
    fn closed_forms() {
        let counted = |start, stride, mask, bytes| {
            let Sectors { touched, ideal } = sectors(&strided(start, stride), mask, bytes);
            (touched, ideal)
        };
        assert_eq!(counted(0, 4, u32::MAX, 4), (4, 4));
        assert_eq!(counted(4, 4, u32::MAX, 4), (5, 4), "a shifted row touches one sector more");
        assert_eq!(counted(0, 16, u32::MAX, 16), (16, 16));
        assert_eq!(counted(0, 1, u32::MAX, 1), (1, 1));
        assert_eq!(counted(0, 4096, u32::MAX, 4), (32, 4), "a column: every lane in a sector of its own");
        assert_eq!(counted(64, 0, u32::MAX, 4), (1, 1), "a broadcast");
        assert_eq!(counted(0, 8, u32::MAX, 4), (8, 4), "every second word");
        assert_eq!(counted(0, 32, 0xff, 4), (8, 1), "eight lanes have a sector's worth");
        assert_eq!(counted(0, 4, 0b11111, 4), (1, 1));
        assert_eq!(counted(0, 4, 0, 4), (0, 0));
    }

    proptest! {
        #[test]
        fn equals_the_definition(
            start in 0_u64..4096, addresses in prop::array::uniform32(0_u64..2048), mask: u32, full: bool, sorted: bool,
            log_bytes in 0_u32..6,
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
