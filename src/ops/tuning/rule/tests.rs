use super::*;
use crate::ops::tuning::measured::MEASURED;

#[test]
fn the_rule_gives_an_h100_its_measured_policy() {
    let row = &h100::H100;
    assert_eq!(format!("{:?}", of(row.target)), format!("{:?}", row.tuning));
}

#[test]
fn every_row_has_what_the_kernels_require() {
    MEASURED.iter().for_each(|row| row.tuning.check());
    let capabilities = [(7, 5), (8, 0), (8, 6), (8, 7), (8, 9), (9, 0), (10, 0), (10, 3), (11, 0), (12, 0), (12, 1)];
    for (compute_capability, bandwidth, l2_bytes) in capabilities
        .into_iter()
        .flat_map(|capability| [0, 1, 5_000_000_000, 60_000_000_000, u64::MAX].map(|speed| (capability, speed)))
        .flat_map(|(capability, speed)| [0, 1, 2 << 20, 126 << 20, u64::MAX].map(|l2| (capability, speed, l2)))
    {
        let mut target = Target::new(compute_capability);
        target.bandwidth_per_multiprocessor = bandwidth;
        target.l2_bytes = l2_bytes;
        of(target).check();
        Tuning::of(target).check();
    }
}

#[test]
fn bytes_in_flight_are_an_h100s_part_of_shared_memory_where_the_speed_is_not_known() {
    let in_flight = |compute_capability| of(Target::new(compute_capability)).permutes.fields.in_flight;
    let h100 = h100::H100.tuning.permutes.fields.in_flight;
    assert_eq!([(9, 0), (10, 0), (10, 3)].map(in_flight), [h100; 3]);
    // 64, 100 and 164 of 228 KiB.
    assert_eq!([(7, 5), (8, 6), (8, 0)].map(in_flight), [64, 100, 164].map(|kib| h100 * kib / 228));
}

#[test]
fn blocks_of_a_copy_go_by_the_threads_and_the_speed_of_a_multiprocessor() {
    let block = |(compute_capability, gigabytes): (_, u64)| {
        let mut target = Target::new(compute_capability);
        target.bandwidth_per_multiprocessor = gigabytes * 1_000_000_000;
        of(target).copy_block
    };
    // T4, A100, RTX 3090, RTX 4090, H100, H200, B200, RTX 5090.
    let older = [((7, 5), 8), ((8, 0), 14), ((8, 6), 11), ((8, 9), 8)].map(block);
    let newer = [((9, 0), 25), ((9, 0), 37), ((10, 0), 54), ((12, 0), 10)].map(block);
    assert_eq!([older, newer], [[512, 1024, 512, 512], [1024, 256, 256, 512]]);
}
