use proptest::prelude::*;

use super::*;
use crate::driver::{PAGE, Place};

/// Returns the addresses of the host side, in the order of rows.
fn addresses(copy: &Copy3d) -> Vec<usize> {
    let Place::Host(memory) = copy.src.place else { panic!("the source is the host's") };
    let rows = (0..copy.depth).flat_map(|slice| (0..copy.height).map(move |row| (slice, row)));
    let starts = rows.map(|(slice, row)| memory.addr() + slice * copy.src.slice_pitch + row * copy.src.row_pitch);
    starts.flat_map(|start| start..start + copy.width).collect()
}

/// Memory that nothing uses: the cuts are a matter of addresses.
const BASE: usize = 64 * PAGE;

fn host(offset: usize) -> *mut u8 {
    std::ptr::without_provenance_mut(BASE + offset)
}

proptest! {
    #[test]
    fn parts_are_the_copy_and_cross_no_end(
        (first, len) in (0..PAGE, 1..8 * PAGE),
        // Another range right behind, in the same page, or in pages of its own.
        gap in prop_oneof![Just(0), 1..300_usize, 2 * PAGE..3 * PAGE],
        start in 0..PAGE,
        width in 1..700_usize,
        height in 1..4_usize,
        depth in 1..4_usize,
        gaps in [0..300_usize, 0..2000],
    ) {
        let locked = PageLocked::default();
        let second = first + len + gap;
        let ranges = [first..first + len, second..second + 10];
        for range in &ranges {
            locked.enter(Origin::Registered, BASE + range.start, range.len());
        }
        let row_pitch = width + gaps[0];
        let slice_pitch = height * row_pitch + gaps[1];
        let dst = Pitched { place: Place::Device(0), row_pitch, slice_pitch };
        let copy = Copy3d { dst, src: Pitched { place: Place::Host(host(start)), ..dst }, width, height, depth };
        let mut parts = Vec::new();
        locked.each_box(&copy, &mut |part| { parts.push(*part); Ok(()) }).unwrap();
        let found: Vec<usize> = parts.iter().flat_map(addresses).collect();
        prop_assert_eq!(found, addresses(&copy));
        // The range that holds an address.
        let of = |at: usize| ranges.iter().position(|range| range.contains(&(at - BASE)));
        for part in &parts {
            let Place::Device(device) = part.dst.place else { panic!("the target is the device's") };
            let host = addresses(part);
            prop_assert_eq!(host[0] - BASE, start + device as usize, "both sides move alike");
            let (low, high) = (host[0], host[host.len() - 1]);
            prop_assert_eq!(of(low), of(high));
        }
        let mut rows = Vec::new();
        locked.each_part(host(start), width, |at, bytes| { rows.push(at..at + bytes); Ok(()) }).unwrap();
        prop_assert!(rows.iter().cloned().flatten().eq(0..width));
        for row in rows {
            prop_assert_eq!(of(BASE + start + row.start), of(BASE + start + row.end - 1));
        }
    }
}

#[test]
fn memory_in_ranges_that_follow_each_other_is_page_locked() {
    let locked = PageLocked::default();
    locked.enter(Origin::Registered, BASE + 10, PAGE - 10);
    locked.enter(Origin::Registered, BASE + PAGE, 100);
    locked.enter(Origin::Allocated, BASE + 2 * PAGE, PAGE);
    let covers = |from, to| locked.covers(host(from), to - from);
    assert!(covers(10, PAGE + 100) && covers(2 * PAGE + 1, 3 * PAGE) && covers(PAGE, PAGE + 1));
    assert!(!covers(9, 20) && !covers(50, PAGE + 101) && !covers(3 * PAGE - 1, 3 * PAGE + 1));
    locked.leave(Origin::Registered, BASE + PAGE);
    assert!(!covers(10, PAGE + 100) && covers(10, PAGE));
}

#[test]
fn allocated_memory_is_not_cut() {
    let locked = PageLocked::default();
    locked.enter(Origin::Allocated, BASE + 50, 2 * PAGE);
    locked.enter(Origin::Registered, BASE, 50);
    assert_eq!(locked.end_within(BASE + 50, BASE + 2 * PAGE), None);
    assert_eq!(locked.end_within(BASE, BASE + 2 * PAGE), Some(BASE + 50));
}

#[test]
fn gpus_share_what_is_page_locked() {
    let [one, other] = [DriverKind::Cuda; 2].map(PageLocked::of);
    assert!(Arc::ptr_eq(&one, &other));
    assert!(!Arc::ptr_eq(&PageLocked::of(DriverKind::Soft), &PageLocked::of(DriverKind::Soft)));
}
