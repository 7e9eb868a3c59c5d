use super::*;

#[test]
fn every_number_has_a_place_of_its_own() {
    let places: Vec<_> = (0..1000).map(Pages::<u8>::place).collect();
    let next = |(page, place): (usize, usize)| if place + 1 == 1 << page { (page + 1, 0) } else { (page, place + 1) };
    assert_eq!(places[0], (0, 0));
    assert!(places.windows(2).all(|pair| pair[1] == next(pair[0])));
    assert_eq!(Pages::<u8>::place(u32::MAX - 1), (31, (1 << 31) - 1));
}

#[test]
fn pages_behind_a_number_go_and_come_back_as_defaults() {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    let pages = Pages::<AtomicU32>::new();
    (0..100).for_each(|index| pages.entry(index).store(index + 1, Relaxed));
    assert_eq!(pages.pages(), 7);
    // SAFETY: no reference to an entry is left.
    unsafe { pages.free_from(7) };
    assert_eq!(pages.pages(), 3);
    let found = [0, 6, 7, 99].map(|index| pages.entry(index).load(Relaxed));
    assert_eq!(found, [1, 7, 0, 0]);
    // SAFETY: as above. Entry 8 keeps the page that it shares with 7.
    unsafe { pages.free_from(8) };
    assert_eq!(pages.pages(), 4);
    // SAFETY: as above.
    unsafe { pages.free_from(0) };
    assert_eq!(pages.pages(), 0);
}
