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
