//! Copies in all directions, and fills.

use crate::backend::{Setup, cases};
use crate::program::{Program, assert_same};

cases! {
    Any every_size_and_offset_comes_back,
    Any fills_touch_their_range_and_no_more,
    Any nothing_to_do_is_done_anywhere,
    Any pageable_memory_will_do,
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 31 + i / 251 + 7) as u8).collect()
}

/// Copies host to device, device to device, device to host, each with its own offset; the bytes
/// around stay.
fn every_size_and_offset_comes_back(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let stream = program.stream().unwrap();
    for bytes in [1, 2, 3, 5, 31, 32, 33, 255, 4097, 65_537] {
        for [up, across, down] in [[0, 0, 0], [1, 0, 3], [3, 5, 1], [4, 2, 7]] {
            let room = bytes + 16;
            let source = program.pinned(room).unwrap();
            source.set(&pattern(room));
            let (first, second) = (program.buffer(room).unwrap(), program.buffer(room).unwrap());
            let target = program.pinned(room).unwrap();
            stream.fill(&second, 0, 0xEE, room).unwrap();
            stream.h2d(&first, up, &source, 2, bytes).unwrap();
            stream.d2d(&second, across, &first, up, bytes).unwrap();
            stream.d2h(&target, down, &second, across, bytes).unwrap();
            stream.synchronize().unwrap();
            let mut expected = vec![0; room];
            expected[down..][..bytes].copy_from_slice(&pattern(room)[2..][..bytes]);
            let what = format!("{bytes} bytes by offsets {up}, {across}, {down}");
            assert_same(&target.get(), &expected, &what);
            let mut around = vec![0xEE; room];
            around[across..][..bytes].copy_from_slice(&pattern(room)[2..][..bytes]);
            assert_same(&program.download(&second, &stream).unwrap(), &around, format!("around {what}"));
        }
    }
}

fn fills_touch_their_range_and_no_more(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let stream = program.stream().unwrap();
    let buffer = program.buffer(300).unwrap();
    for at in [0, 1, 2, 3, 7] {
        for bytes in [1, 2, 3, 4, 5, 32, 33, 255] {
            stream.fill(&buffer, 0, 0x11, 300).unwrap();
            stream.fill(&buffer, at, 0x97, bytes).unwrap();
            let mut expected = vec![0x11; 300];
            expected[at..][..bytes].fill(0x97);
            assert_same(&program.download(&buffer, &stream).unwrap(), &expected, format!("{bytes} bytes at {at}"));
        }
    }
}

fn nothing_to_do_is_done_anywhere(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let stream = program.stream().unwrap();
    let (driver, handle) = (&program.driver, stream.handle);
    // SAFETY: an empty range lies anywhere.
    unsafe { driver.copy_h2d(0, std::ptr::null(), 0, handle) }.unwrap();
    // SAFETY: as above.
    unsafe { driver.copy_d2h(std::ptr::null_mut(), u64::MAX, 0, handle) }.unwrap();
    // SAFETY: as above.
    unsafe { driver.copy_d2d(0, 1, 0, handle) }.unwrap();
    // SAFETY: as above.
    unsafe { driver.fill(0, 1, 0, handle) }.unwrap();
    stream.synchronize().unwrap();
}

fn pageable_memory_will_do(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let stream = program.stream().unwrap();
    let buffer = program.buffer(10_001).unwrap();
    let source = pattern(10_001);
    let mut target = vec![0; 10_001];
    // SAFETY: the vector outlives the synchronisation below, and no code writes to it.
    unsafe { program.driver.copy_h2d(buffer.address, source.as_ptr(), source.len(), stream.handle) }.unwrap();
    // SAFETY: the vector outlives the synchronisation below, and no code uses it before.
    unsafe { program.driver.copy_d2h(target.as_mut_ptr(), buffer.address, target.len(), stream.handle) }.unwrap();
    stream.synchronize().unwrap();
    assert_same(&target, &source, "there and back");
}
