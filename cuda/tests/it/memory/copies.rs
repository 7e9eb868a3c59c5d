//! Copies and fills.

use super::*;
use crate::api::Context;
use crate::child::{in_child, is_child};

#[test]
fn bytes_go_in_every_direction() {
    let _context = Context::new();
    let count = 200_001;
    let (first, second, data) = (device(count), device(count), numbers(count));
    done(cuMemcpyHtoD_v2(first, data.as_ptr(), count));
    done(cuMemcpyDtoD_v2(second, first, count));
    assert!(read(second, count) == data);
    let mut back = vec![0; count];
    for by_direction in [false, true] {
        done(cuMemsetD8_v2(second, 0, count));
        back.fill(0);
        if by_direction {
            let on = stream();
            done(cuCtxSynchronize());
            done(cuMemcpyHtoDAsync_v2(first, data.as_ptr(), count, on));
            done(cuMemcpyDtoDAsync_v2(second + 1, first, count - 1, on));
            done(cuMemcpyDtoHAsync_v2(back.as_mut_ptr(), second + 1, count - 1, on));
        } else {
            done(cuMemcpy(first, address(&data), count));
            done(cuMemcpy(second + 1, first, count - 1));
            done(cuMemcpy(address(&back), second + 1, count - 1));
        }
        assert!(back[..count - 1] == data[..count - 1] && back[count - 1] == 0);
    }
    let mut other = vec![0; count];
    done(cuMemcpyAsync(address(&other), address(&data), count, 0));
    assert!(std::hint::black_box(&mut other) == &data, "host to host is at once");
    for at in [first, second] {
        done(cuMemFree_v2(at));
    }
}

#[test]
fn pageable_sources_are_read_at_once_and_page_locked_ones_late() {
    let _context = Context::new();
    let (at, on) = (device(8), stream());
    let mut pageable = vec![1_u8; 8];
    done(cuMemcpyHtoDAsync_v2(at, pageable.as_ptr(), 8, on));
    pageable.fill(2);
    done(cuStreamSynchronize(on));
    assert_eq!(read(at, 8), [1; 8]);

    let source = locked(8);
    source.fill(3);
    done(cuMemcpyAsync(at, address(source), 8, on));
    source.fill(4);
    done(cuStreamSynchronize(on));
    assert_eq!(read(at, 8), [4; 8], "the source is read when the copy runs");

    source.fill(0);
    done(cuMemcpyDtoHAsync_v2(source.as_mut_ptr(), at, 8, on));
    assert_eq!(*std::hint::black_box(&mut *source), [0; 8], "the copy has not run");
    done(cuStreamSynchronize(on));
    assert_eq!(*std::hint::black_box(&mut *source), [4; 8]);

    done(cuMemHostRegister_v2(pageable.as_mut_ptr(), 8, 0));
    done(cuMemcpyHtoDAsync_v2(at, pageable.as_ptr(), 8, on));
    pageable.fill(5);
    done(cuMemHostUnregister(pageable.as_mut_ptr()));
    pageable.fill(6);
    assert_eq!(read(at, 8), [5; 8], "the copy runs before the memory is given back");
    done(cuMemFreeHost(source.as_mut_ptr()));
}

#[test]
fn synchronous_work_on_devices_alone_is_late() {
    let _context = Context::new();
    let (at, on) = (device(8), stream());
    let target = locked(8);
    done(cuMemsetD8_v2(at, 1, 8));
    done(cuCtxSynchronize());
    done(cuMemsetD8_v2(at, 2, 8));
    done(cuMemcpyAsync(address(target), at, 8, on));
    done(cuStreamSynchronize(on));
    assert_eq!(*std::hint::black_box(&mut *target), [1; 8], "the stream does not wait for the default one");
    done(cuPointerSetAttribute(std::ptr::from_ref(&1_u32).cast(), 6, at));
    assert_eq!(attribute::<u32>(6, at), Ok(1));
    done(cuMemsetD8_v2(at, 3, 8));
    done(cuMemcpyAsync(address(target), at, 8, on));
    done(cuStreamSynchronize(on));
    assert_eq!(*std::hint::black_box(&mut *target), [3; 8], "the allocation makes synchronous calls wait");
    done(cuMemsetD8_v2(address(target), 4, 8));
    assert_eq!(*std::hint::black_box(&mut *target), [4; 8], "a fill of page-locked memory waits");
    done(cuMemFreeHost(target.as_mut_ptr()));
}

#[test]
fn rows_and_slices_go_at_any_pitch() {
    let _context = Context::new();
    let (mut at, mut pitch) = (0, 0);
    done(cuMemAllocPitch_v2(&mut at, &mut pitch, 10, 6, 4));
    assert_eq!(pitch, 512);
    let data = numbers(12 * 6);
    done(cuMemsetD8_v2(at, 9, 512 * 6));
    let host = Side2d { x: 1, y: 2, kind: OF_HOST, host: address(&data), pitch: 12, ..Side2d::default() };
    let there = Side2d { x: 3, y: 1, kind: OF_DEVICE, device: at, pitch, ..Side2d::default() };
    let copy = Copy2d { src: host, dst: there, width: 5, height: 3 };
    done(cuMemcpy2D_v2(&copy));
    let stored = read(at, 512 * 6);
    for (row, column) in (0..6).flat_map(|row| (0..12).map(move |column| (row, column))) {
        let is_inside = (1..4).contains(&row) && (3..8).contains(&column);
        let expected = if is_inside { data[(row + 1) * 12 + column - 2] } else { 9 };
        assert_eq!(stored[row * 512 + column], expected, "row {row}, column {column}");
    }
    let mut back = vec![0_u8; 12 * 6];
    let target = Side2d { host: back.as_mut_ptr().expose_provenance() as u64, ..host };
    done(cuMemcpy2DAsync_v2(&Copy2d { src: there, dst: target, ..copy }, stream()));
    assert_eq!(std::hint::black_box(&mut back)[2 * 12 + 1..][..5], data[2 * 12 + 1..][..5]);
    assert_eq!(back[4 * 12 + 5], data[4 * 12 + 5]);
    assert_eq!(back.iter().filter(|&&byte| byte != 0).count(), 15);

    let side = Side3d { kind: OF_HOST, host: address(&data), pitch: 4, height: 3, ..Side3d::default() };
    let there = Side3d { kind: OF_DEVICE, device: at, host: 0, pitch: 6, height: 4, y: 1, z: 1, ..side };
    done(cuMemsetD8_v2(at, 9, 512 * 6));
    let copy = Copy3d { src: side, dst: there, width: 4, height: 3, depth: 2 };
    done(cuMemcpy3D_v2(&copy));
    let stored = read(at, 80);
    assert_eq!(stored[24 + 6..][..4], data[..4]);
    assert_eq!(stored[48 + 18..][..4], data[20..24]);
    assert_eq!(stored[24 + 10], 9);
    let mut back = vec![0_u8; 24];
    let target = Side3d { host: back.as_mut_ptr().expose_provenance() as u64, ..side };
    done(cuMemcpy3DAsync_v2(&Copy3d { src: there, dst: target, ..copy }, 0));
    assert_eq!(std::hint::black_box(back), data[..24]);
}

#[test]
fn boxes_outside_of_memory_are_refused() {
    let _context = Context::new();
    let (at, data) = (device(100), numbers(100));
    let host = Side2d { kind: OF_HOST, host: address(&data), pitch: 10, ..Side2d::default() };
    let there = Side2d { kind: OF_DEVICE, device: at, pitch: 10, ..Side2d::default() };
    let good = Copy2d { src: host, dst: there, width: 10, height: 10 };
    done(cuMemcpy2DUnaligned_v2(&good));
    done(cuMemcpy2D_v2(&Copy2d { height: 0, ..good }));
    for bad in [
        Copy2d { dst: Side2d { y: 1, ..there }, ..good },
        Copy2d { dst: Side2d { pitch: 9, ..there }, ..good },
        Copy2d { dst: Side2d { pitch: 0, ..there }, ..good },
        Copy2d { dst: Side2d { y: usize::MAX, ..there }, ..good },
        Copy2d { dst: Side2d { pitch: usize::MAX, ..there }, ..good },
        Copy2d { height: usize::MAX, ..good },
        Copy2d { dst: Side2d { kind: 9, ..there }, ..good },
        Copy2d { src: Side2d { kind: OF_HOST, host: at, ..host }, ..good },
        Copy2d { dst: Side2d { device: address(&data), ..there }, ..good },
        // Null stays null within a row, too.
        Copy2d { src: Side2d { host: 0, x: 8, pitch: 18, ..host }, ..good },
        Copy2d { src: Side2d { kind: UNIFIED, device: 0, x: 8, pitch: 18, ..host }, ..good },
    ] {
        assert_eq!(cuMemcpy2D_v2(&bad), INVALID_VALUE);
    }
    assert_eq!(cuMemcpy2D_v2(&Copy2d { src: Side2d { kind: OF_ARRAY, ..host }, ..good }), NOT_SUPPORTED);
    assert_eq!(cuMemcpy2D_v2(std::ptr::null()), INVALID_VALUE);
    assert_eq!(cuMemcpy3D_v2(std::ptr::null()), INVALID_VALUE);
}

#[test]
fn fills_repeat_their_value() {
    let _context = Context::new();
    let at = device(64);
    done(cuMemsetD32_v2(at, 0x0403_0201, 16));
    done(cuMemsetD16_v2(at + 6, 0x0605, 2));
    assert_eq!(read(at, 12), [1, 2, 3, 4, 1, 2, 5, 6, 5, 6, 3, 4]);
    done(cuMemsetD2D16_v2(at, 16, 0x0807, 2, 3));
    assert_eq!(read(at + 32, 6), [7, 8, 7, 8, 1, 2]);
    assert_eq!(read(at + 48, 4), [1, 2, 3, 4]);
    let on = stream();
    done(cuMemsetD2D8Async(at, 16, 0, 16, 4, on));
    done(cuMemsetD32Async(at + 4, 1, 1, on));
    done(cuStreamSynchronize(on));
    assert_eq!(read(at, 12), [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    for refused in [
        cuMemsetD32_v2(at + 2, 0, 1),
        cuMemsetD32_v2(at, 0, 17),
        cuMemsetD32_v2(at, 0, usize::MAX),
        cuMemsetD16_v2(0, 0, 1),
        cuMemsetD2D16_v2(at, 3, 0, 1, 2),
        cuMemsetD2D16_v2(at, 2, 0, 2, 2),
        cuMemsetD2D16_v2(at, usize::MAX - 1, 0, 2, 2),
        cuMemsetD8_v2(address(&[0; 4]), 0, 4),
    ] {
        assert_eq!(refused, INVALID_VALUE);
    }
    done(cuMemsetD8_v2(at, 0, 0));
}

#[test]
fn wrong_ranges_are_refused_by_the_call() {
    let context = Context::new();
    let (at, mut data) = (device(8), vec![0_u8; 16]);
    let host = address(&data);
    for refused in [
        cuMemcpyHtoD_v2(at, data.as_ptr(), 9),
        cuMemcpyHtoD_v2(at + 8, data.as_ptr(), 1),
        cuMemcpyHtoD_v2(0, data.as_ptr(), 1),
        cuMemcpyHtoD_v2(at, std::ptr::null(), 1),
        cuMemcpyHtoD_v2(at, std::ptr::with_exposed_provenance(at as usize), 1),
        cuMemcpyHtoD_v2(host, data.as_ptr(), 1),
        cuMemcpyDtoH_v2(data.as_mut_ptr(), host, 1),
        cuMemcpyDtoD_v2(at, at + 4, 5),
        cuMemcpyDtoD_v2(at, 1 << 60, 5),
        cuMemcpyDtoD_v2(at, u64::MAX, 5),
        cuMemcpyDtoD_v2(at, at, usize::MAX),
        cuMemcpy(at, host, 9),
        cuMemcpyPeer(at, context.handle, at + 4, 0, 5),
    ] {
        assert_eq!(refused, INVALID_VALUE);
    }
    done(cuMemcpyHtoD_v2(0, std::ptr::null(), 0));
    done(cuMemcpyPeer(at, context.handle, at + 4, context.handle, 4));
    done(cuMemcpyPeerAsync(at, context.handle, at + 4, context.handle, 4, 0));
    assert_eq!(cuMemcpyPeer(at, 7, at + 4, context.handle, 4), INVALID_CONTEXT);
    done(cuMemFree_v2(at));
    for refused in [cuMemFree_v2(at), cuMemFree_v2(at + 4), cuMemFree_v2(host), cuMemcpyHtoD_v2(at, data.as_ptr(), 1)] {
        assert_eq!(refused, INVALID_VALUE);
    }
    done(cuMemFree_v2(0));
    let mut address = 0;
    assert_eq!(cuMemAlloc_v2(&mut address, 0), INVALID_VALUE);
    assert_eq!(cuMemAlloc_v2(std::ptr::null_mut(), 1), INVALID_VALUE);
    assert_eq!(cuMemAlloc_v2(&mut address, usize::MAX), OUT_OF_MEMORY);
    let mut pitch = 0;
    assert_eq!(cuMemAllocPitch_v2(&mut address, &mut pitch, usize::MAX, 2, 4), OUT_OF_MEMORY);
    assert_eq!(cuMemAllocPitch_v2(&mut address, &mut pitch, 4, 2, 3), INVALID_VALUE);
}

#[test]
fn bytes_go_between_gpus() {
    if !is_child() {
        in_child("memory::copies::bytes_go_between_gpus", &[("WARPSTRIDE_RUN_GPUS", "2")]);
        return;
    }
    let context = Context::new();
    let (mut second, ours) = (0, device(100));
    done(cuCtxCreate_v2(&mut second, 0, 1));
    let theirs = device(100);
    assert_eq!([ours, theirs].map(|at| attribute::<i32>(9, at)), [Ok(0), Ok(1)]);
    done(cuMemsetD8_v2(theirs, 7, 100));
    done(cuCtxSynchronize());
    done(cuMemcpyPeer(ours, context.handle, theirs, second, 50));
    done(cuMemcpyDtoD_v2(ours + 50, theirs, 50));
    done(cuCtxSynchronize());
    done(cuCtxSetCurrent(context.handle));
    assert_eq!(read(ours, 100), [7; 100]);
    assert_eq!(read(theirs, 100), [7; 100]);
    done(cuMemFree_v2(theirs));
}

#[test]
fn a_batch_reads_its_sources_as_it_says() {
    let _context = Context::new();
    let (at, on, source) = (device(16), stream(), locked(16));
    source.fill(1);
    let first = address(source);
    let mut failed = 0;
    let mut batch = |attributes: &[[u32; 6]], first_of: &[usize], on| {
        cuMemcpyBatchAsync(
            [at, at + 8].as_ptr(),
            [first, first + 8].as_ptr(),
            [8, 8].as_ptr(),
            2,
            attributes.as_ptr(),
            first_of.as_ptr(),
            attributes.len(),
            &mut failed,
            on,
        )
    };
    let order = |order| [order, 0, 0, 0, 0, 0];
    done(batch(&[order(2), order(1)], &[0, 1], on));
    source.fill(2);
    done(cuStreamSynchronize(on));
    assert_eq!(read(at, 16), [[1; 8], [2; 8]].concat());
    for refused in [
        batch(&[order(2)], &[0], 0),
        batch(&[order(2)], &[1], on),
        batch(&[order(9)], &[0], on),
        batch(&[], &[], on),
        batch(&[order(1), order(1)], &[0, 2], on),
    ] {
        assert_eq!(refused, INVALID_VALUE);
    }
    assert_eq!(failed, usize::MAX);
    done(cuMemFreeHost(source.as_mut_ptr()));
}
