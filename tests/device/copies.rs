//! Copies in all directions, and fills.

use warpstride::ErrorKind;
use warpstride::driver::{Copy3d, Pitched, Place};

use crate::backend::{Setup, cases};
use crate::failures::refusal;
use crate::program::{Buffer, Pinned, Program, assert_same};

cases! {
    Any every_size_and_offset_comes_back,
    Any fills_touch_their_range_and_no_more,
    Any nothing_to_do_is_done_anywhere,
    Any boxes_of_every_shape_and_pitch_come_back,
    Any a_box_within_the_host_is_refused,
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
            stream.h2d((&first, up), (&source, 2), bytes).unwrap();
            stream.d2d((&second, across), (&first, up), bytes).unwrap();
            stream.d2h((&target, down), (&second, across), bytes).unwrap();
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

/// Copies boxes host to device, device to device and device to host, each side with pitches of its
/// own; the bytes around stay.
fn boxes_of_every_shape_and_pitch_come_back(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let stream = program.stream().unwrap();
    let room = 6000;
    let (source, target) = (program.pinned(room).unwrap(), program.pinned(room).unwrap());
    let (first, second) = (program.buffer(room).unwrap(), program.buffer(room).unwrap());
    source.set(&pattern(room));
    // Width, height and depth; then row and slice pitch, which the driver of a GPU may not take.
    let shapes = [[1, 1, 1], [64, 1, 1], [7, 5, 1], [7, 1, 5], [33, 4, 3], [0, 4, 3], [5, 0, 1], [16, 3, 4]];
    let pitches = |width: usize, height: usize| {
        [[width, width * height], [width + 9, (width + 9) * height], [width + 9, (width + 9) * height + 5], [400, 64]]
    };
    for [width, height, depth] in shapes {
        for [row_pitch, slice_pitch] in pitches(width, height) {
            let packed = [width, width * height];
            let side = |place, [row_pitch, slice_pitch]: [usize; 2]| Pitched { place, row_pitch, slice_pitch };
            let pitched = [row_pitch, slice_pitch];
            let host = |pinned: &Pinned<'_>, at| Place::Host(pinned.memory.as_ptr().wrapping_add(at));
            let device = |buffer: &Buffer<'_>, at| Place::Device(buffer.address + at);
            stream.fill(&first, 0, 0xEE, room).unwrap();
            stream.fill(&second, 0, 0xDD, room).unwrap();
            target.set(&vec![0; room]);
            for (dst, src) in [
                (side(device(&first, 3), packed), side(host(&source, 2), pitched)),
                (side(device(&second, 1), pitched), side(device(&first, 3), packed)),
                (side(host(&target, 5), pitched), side(device(&second, 1), pitched)),
            ] {
                let copy = Copy3d { dst, src, width, height, depth };
                // SAFETY: every row lies within its memory, which has room for the largest, and
                // nothing else uses the memory before the synchronisation below.
                unsafe { setup.driver.copy_3d(&copy, stream.handle) }.unwrap();
            }
            stream.synchronize().unwrap();
            let (mut across, mut down) = (vec![0xDD; room], vec![0; room]);
            for (slice, row) in (0..depth).flat_map(|slice| (0..height).map(move |row| (slice, row))) {
                let at = slice * slice_pitch + row * row_pitch;
                let bytes = &pattern(room)[2 + at..][..width];
                across[1 + at..][..width].copy_from_slice(bytes);
                down[5 + at..][..width].copy_from_slice(bytes);
            }
            let what = format!("{width} x {height} x {depth} by pitches {row_pitch}, {slice_pitch}");
            assert_same(&program.download(&second, &stream).unwrap(), &across, format!("around {what}"));
            assert_same(&target.get(), &down, what);
        }
    }
}

fn a_box_within_the_host_is_refused(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let (stream, host) = (program.stream().unwrap(), program.pinned(8).unwrap());
    let side = |at| Pitched { place: Place::Host(host.memory.as_ptr().wrapping_add(at)), row_pitch: 2, slice_pitch: 4 };
    let copy = Copy3d { dst: side(0), src: side(4), width: 2, height: 2, depth: 1 };
    // SAFETY: both sides have 4 bytes, and share none.
    refusal(unsafe { setup.driver.copy_3d(&copy, stream.handle) }).of(ErrorKind::InvalidArgument);
}
