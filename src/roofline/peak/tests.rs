use super::*;

fn peaks() -> Peaks {
    let best = |gbps| Best { gbps, shape: ProbeShape { steps: 1, threads: 512, hinted: false } };
    let sizes = [(16, 3825.0), (32, 3691.0), (64, 2600.0), (1024, 3900.0)];
    let sizes = sizes.map(|(mib, copy)| Warm { bytes: mib << 20, read: copy, write: copy, copy }).into();
    let (read, write, copy) = (best(4100.0), best(3278.0), best(3047.0));
    Peaks { nominal: Some(3352.0), bytes: 1 << 30, read, write, copy, memcpy: 3007.0, sizes, low_clocks: false }
}

#[test]
fn no_part_of_nominal_is_above_the_whole() {
    let peaks = peaks();
    assert_eq!(peaks.fraction_of_nominal(1676.0), Some(0.5));
    assert_eq!(peaks.fraction_of_nominal(3352.0), Some(1.0));
    assert_eq!(peaks.fraction_of_nominal(peaks.read.gbps), None);
    assert_eq!(Peaks { nominal: None, ..peaks }.fraction_of_nominal(1.0), None);
}

#[test]
fn what_the_l2_cache_does_is_that_of_sizes_within_it() {
    assert_eq!(peaks().l2_copy(50 << 20), Some(3825.0));
    assert_eq!(peaks().l2_copy(8 << 20), None);
}

#[test]
fn arrays_are_four_caches_at_least() {
    let fit = |free: u64, l2: u64| {
        let (bytes, least) = array_bytes(free, l2);
        assert!(bytes.is_power_of_two());
        (bytes >= least).then_some(bytes >> 20)
    };
    assert_eq!(fit(80 << 30, 50 << 20), Some(1024));
    assert_eq!(fit(1 << 30, 50 << 20), Some(256));
    // They would come from the cache in part.
    assert_eq!(fit(1023 << 20, 50 << 20), None);
    assert_eq!(fit(1 << 30, 126 << 20), None);
    assert_eq!(fit(1 << 30, 4 << 20), Some(256));
    assert_eq!([fit(256 << 20, 0), fit(255 << 20, 0)], [Some(64), None]);
}
