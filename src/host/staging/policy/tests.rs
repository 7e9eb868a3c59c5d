use super::*;

#[test]
fn small_copies_are_the_drivers_and_large_ones_take_threads_that_pay() {
    let policy = Policy { fewest_bytes: 100, bytes_a_thread: 100, most_threads: 16, ..Policy::UPLOAD };
    assert_eq!([0, 1, 99].map(|bytes| policy.threads(bytes, 0)), [0; 3]);
    assert_eq!([100, 199].map(|bytes| policy.threads(bytes, 0)), [1; 2]);
    assert_eq!(policy.threads(usize::MAX, 0), cores().min(16));
    assert_eq!(policy.threads(usize::MAX, cores()), 1, "other copies have the cores");
    assert_eq!(Policy { most_threads: 1, ..policy }.threads(usize::MAX, 0), 1);
}

#[test]
fn every_thread_has_slots_in_flight() {
    let policy = Policy { slot_bytes: 4 << 20, ..Policy::UPLOAD };
    let slot = |bytes, threads| policy.slot_bytes(bytes, threads, 4);
    assert_eq!(slot(1 << 30, 16), 4 << 20);
    assert_eq!(slot(64 << 20, 16), 1 << 20);
    assert_eq!(slot(1 << 20, 16), 256 << 10);
}
