//! Copies that borrow host memory for a scope or own it in flight, and page-locked memory.

use std::ptr::NonNull;
use std::sync::Arc;

use warpstride::driver::trace::{Call, Method, Trace};
use warpstride::driver::{Copy3d, Pitched, Place, StreamHandle};
use warpstride::memory::{PinnedMemory, Route};
use warpstride::transfer::{HostSlice, HostSliceMut, InFlight};
use warpstride::{DeviceArray, ErrorKind, Layout, Result, ops};

use crate::backend::{Setup, cases};
use crate::failures::refusal;
use crate::matrices::Random;

cases! {
    Any borrowed_copies_come_back,
    Any owned_copies_give_their_memory_back,
    Any parts_go_by_boxes_in_every_direction,
    Any a_frame_goes_round_without_an_allocation,
    Any ordinary_memory_is_staged_in_the_order_of_the_stream,
    Any page_locked_memory_is_never_staged,
    Any copies_begin_and_end_in_a_registered_page,
    Any copies_reach_over_registered_memory,
    Any parts_of_one_page_are_registered,
    Any without_slots_the_driver_copies_ordinary_memory,
    Any shapes_and_devices_are_checked,
    Any a_failed_copy_gives_its_memory_back,
    Any what_is_empty_asks_nothing_of_the_driver,
    Any pinned_memory_has_a_limit_and_is_given_back,
    SoftwareGpu("it loses no device to a call that was made to fail") every_call_of_a_copy_may_fail,
}

fn borrowed_copies_come_back(setup: &Setup) {
    setup.for_each_device(|device| {
        let stream = device.stream().unwrap();
        let elements: Vec<u32> = Random::new(1).elements(1500);
        let pinned = device.pinned_from(&elements[500..1000]).unwrap();
        let mut array = device.alloc_array::<u32>(&[3, 500]).unwrap();
        let (mut pageable, mut locked) = (vec![0; 500], device.pinned_zeros::<u32>(500).unwrap());
        let mut registered = elements[1000..].to_vec();
        let mut combined = device.write_combined::<u32>(500).unwrap();
        combined.write(0, &elements[..500]).unwrap();
        let mut fixed = [0_u32; 500];
        let count = stream
            .scope(|s| {
                let mut view = array.view_mut();
                s.upload(&elements[1000..], view.view_mut().slice(0, ..1, 1)?)?;
                let (first, rest) = view.split_at(0, 1)?;
                let (second, third) = rest.split_at(0, 1)?;
                s.upload(&combined, first)?;
                s.upload(&pinned, second)?;
                s.upload(s.register(&mut registered)?, third)?;
                s.download(array.slice(0, ..1, 1)?, &mut pageable)?;
                s.download(array.slice(0, 1..2, 1)?, &mut locked)?;
                s.download(array.slice(0, 2.., 1)?, &mut fixed)?;
                Ok(array.len())
            })
            .unwrap();
        assert_eq!(count, 1500);
        assert!([&pageable[..], &locked, &fixed].concat() == elements);
        assert!(registered == elements[1000..]);
    });
}

fn owned_copies_give_their_memory_back(setup: &Setup) {
    setup.for_each_device(|device| {
        let stream = device.stream().unwrap();
        let elements: Vec<u16> = Random::new(2).elements(999);
        let mut combined = device.write_combined::<u16>(999).unwrap();
        combined.fill(7);
        combined.write(0, &elements[..500]).unwrap();
        combined.write(500, &elements[500..]).unwrap();
        let mut arrays = [(); 4].map(|()| device.alloc_array::<u16>(&[27, 37]).unwrap());
        let [a, b, c, d] = &mut arrays;
        let first = stream.upload(combined, a).unwrap();
        let second = stream.upload(device.pinned_from(&elements).unwrap(), b).unwrap();
        let third = stream.upload(elements.clone(), c).unwrap();
        let mut fourth = stream.upload(elements.clone().into_boxed_slice(), d).unwrap();
        while !fourth.is_done().unwrap() {}
        assert!(*fourth.wait().unwrap() == elements && third.wait().unwrap() == elements);
        assert!(*second.wait().unwrap() == elements);
        assert_eq!(first.wait().unwrap().len(), 999);
        for array in &arrays {
            let pinned = stream.download(array, device.pinned(999).unwrap()).unwrap();
            let boxed = stream.download(array, vec![0; 999].into_boxed_slice()).unwrap();
            let vector = stream.download(array, vec![0; 999]).unwrap();
            assert!(*pinned.wait().unwrap() == elements && *boxed.wait().unwrap() == elements);
            assert!(vector.wait().unwrap() == elements);
        }
    });
}

/// A block of a volume goes from a block of a volume on the host to another place on the device,
/// within the device, and back; what lies around stays.
fn parts_go_by_boxes_in_every_direction(setup: &Setup) {
    setup.for_each_device(|device| {
        let stream = device.stream().unwrap();
        let source: Vec<u32> = Random::new(3).elements(6 * 8 * 10);
        let block = |from: [usize; 3]| {
            let cut =
                |layout: Layout, axis: usize| layout.slice(axis, from[axis]..from[axis] + [2, 3, 4][axis], 1).unwrap();
            (0..3).fold(Layout::row_major(&[6, 8, 10]).unwrap(), cut)
        };
        let [mut first, mut second] = [(); 2].map(|()| device.zeros::<u32>(480).unwrap());
        let mut result = vec![9; 480];
        stream
            .scope(|s| {
                let (from, to) = (block([1, 2, 3]), block([4, 0, 6]));
                s.upload(HostSlice::with_layout(&source, from)?, first.view_mut_with(to)?)?;
                s.stream().copy(first.view_with(to)?, second.view_mut_with(block([0, 5, 1]))?)?;
                let back = HostSliceMut::with_layout(&mut result, block([3, 3, 3]).reverse(0)?)?;
                s.download(second.view_with(block([0, 5, 1]))?.reverse(0)?, back)
            })
            .unwrap();
        let mut expected = vec![9; 480];
        for index in (0..24).map(|number| [number / 12, number / 4 % 3, number % 4]) {
            let at = |layout: Layout| layout.offset_of(&index).unwrap();
            expected[at(block([3, 3, 3]))] = source[at(block([1, 2, 3]))];
        }
        assert_eq!(result, expected);
        let on_device = second.download().unwrap();
        assert_eq!(on_device.iter().filter(|&&element| element != 0).count(), 24, "no row beyond the block");
    });
}

/// The `out=` form: one pinned buffer for all frames, on both ways of lending it.
fn a_frame_goes_round_without_an_allocation(setup: &Setup) {
    let (trace, device) = setup.traced(&setup.driver);
    let stream = device.stream().unwrap();
    let mut frame = device.alloc_array::<f32>(&[3, 21, 38]).unwrap();
    let mut host = device.pinned_zeros::<f32>(frame.len()).unwrap();
    let mut out = device.pinned_zeros::<f32>(frame.len()).unwrap();
    // The first turn makes the event that the others use again.
    for turn in 0..5 {
        let before = trace.calls().len();
        host.fill(turn as f32);
        host = stream.upload(host, &mut frame).unwrap().wait().unwrap();
        stream.scope(|s| s.download(&frame, &mut out)).unwrap();
        assert!(out.iter().all(|&value| value == turn as f32));
        let calls = &trace.calls()[before..];
        let allocates = |call: &&Call| {
            matches!(call, Call::Alloc { .. } | Call::PoolAlloc { .. } | Call::AllocHost { .. } | Call::EventCreate {})
        };
        assert!(turn == 0 || !calls.iter().any(|call| allocates(&call)), "{calls:?}");
    }
}

/// Returns the number of copies between host and device since call `from` on other streams than
/// these: the engine has streams of its own.
fn staged(trace: &Trace, from: usize, streams: &[StreamHandle]) -> usize {
    let elsewhere = |call: &&Call| match call {
        Call::CopyH2d { stream, .. } | Call::CopyD2h { stream, .. } => !streams.contains(stream),
        _ => false,
    };
    trace.calls()[from..].iter().filter(elsewhere).count()
}

/// A staged copy overtakes no work that is queued before it, and none behind it comes too early.
fn ordinary_memory_is_staged_in_the_order_of_the_stream(setup: &Setup) {
    setup.for_each_seed(|driver| {
        let (trace, device) = setup.traced(driver);
        device.set_route(Route::Staged(2.try_into().unwrap()));
        let (one, other) = (device.stream().unwrap(), device.stream().unwrap());
        let streams = [&one, &other, device.default_stream()].map(|stream| stream.handle());
        let elements: Vec<u32> = Random::new(5).elements(3000);
        let mut first = device.array(&[3, 1000], &[7_u32; 3000]).unwrap();
        let [mut old, mut new] = [(); 2].map(|()| device.alloc_array::<u32>(&[3, 1000]).unwrap());
        let (mut part, mut columns, mut whole) = (vec![0; 1000], [0; 6], vec![0; 3000]);
        let before = trace.calls().len();
        ops::copy_into(&first, &mut old, &other).unwrap();
        one.scope(|s| {
            s.upload(&elements, &mut first)?;
            ops::copy_into(&first, &mut new, s.stream())?;
            s.download(&new, &mut whole)?;
            ops::fill_into(1_u32, new.view_mut(), &other)?;
            // Rows apart are the driver's.
            s.download(first.slice(1, 1..3, 1)?, &mut columns)?;
            s.download(first.slice(0, 1..2, 1)?, &mut part)
        })
        .unwrap();
        assert!(whole == elements && part == elements[1000..2000] && columns[..2] == elements[1..3]);
        assert_eq!(staged(&trace, before, &streams), 3);
        assert_eq!(old.to_vec().unwrap(), [7; 3000]);
        let before = trace.calls().len();
        ops::copy_into(&new, &mut old, &other).unwrap();
        let flight = one.upload(whole, &mut new).unwrap();
        ops::copy_into(&new, &mut first, &other).unwrap();
        let back = one.download(&first, vec![0; 3000].into_boxed_slice()).unwrap();
        assert!(flight.wait().unwrap() == elements && *back.wait().unwrap() == elements);
        assert_eq!(staged(&trace, before, &streams), 2);
        assert!(old.to_vec().unwrap() == [1; 3000]);
    });
}

fn page_locked_memory_is_never_staged(setup: &Setup) {
    let (trace, device) = setup.traced(&setup.driver);
    let stream = device.stream().unwrap();
    let mut array = device.array(&[3000], &[7_u32; 3000]).unwrap();
    device.set_route(Route::Staged(2.try_into().unwrap()));
    let (before, stats) = (trace.calls().len(), device.stats());
    let mut pinned = device.pinned::<u32>(3000).unwrap();
    let mut memory = vec![0_u32; 3000];
    stream.scope(|s| s.download(&array, s.register(&mut memory)?)).unwrap();
    stream.scope(|s| s.download(&array, &mut pinned)).unwrap();
    let pinned = stream.upload(pinned, &mut array).unwrap().wait().unwrap();
    let mut combined = device.write_combined(3000).unwrap();
    combined.fill(7);
    stream.upload(combined, &mut array).unwrap().wait().unwrap();
    assert!(pinned[..] == memory && memory == [7; 3000]);
    assert_eq!(staged(&trace, before, &[stream.handle()]), 0);
    let copies = device.stats().since(&stats);
    assert_eq!(copies.calls_of("copy_h2d") + copies.calls_of("copy_d2h"), 4);
}

const ROWS: usize = 50;
const COLUMNS: usize = 1000;

/// A scope locks whole pages. Another scope, a copy that waits and boxes of rows use what lies in
/// the first and the last one besides.
fn copies_begin_and_end_in_a_registered_page(setup: &Setup) {
    setup.for_each_device(|device| {
        let streams = [(); 2].map(|()| device.stream().unwrap());
        let mut pixels: Vec<u8> = Random::new(7).elements(ROWS * COLUMNS);
        let expected = pixels.clone();
        let mut image = device.alloc_array::<u8>(&[ROWS, COLUMNS]).unwrap();
        let mut below = device.alloc::<u8>(20 * COLUMNS).unwrap();
        let mut left = device.alloc_array::<u8>(&[20, COLUMNS / 2]).unwrap();
        streams[0]
            .scope(|s| {
                let (above, rest) = pixels.split_at_mut(20 * COLUMNS);
                let (middle, rest) = rest.split_at_mut(10 * COLUMNS);
                let middle = s.register(middle)?.into_slice();
                let (first, second) = image.view_mut().split_at(0, 20)?;
                let (second, third) = second.split_at(0, 10)?;
                s.upload(&*above, first)?;
                s.upload(&*middle, second)?;
                streams[1].scope(|other| other.upload(&*rest, third))?;
                below.upload_from(rest)?;
                let half = Layout::row_major(&[20, COLUMNS])?.slice(1, ..COLUMNS / 2, 1)?;
                streams[1].scope(|other| other.upload(HostSlice::with_layout(rest, half)?, &mut left))?;
                rest.fill(0);
                streams[1].scope(|other| other.download(image.slice(0, 30.., 1)?, &mut *rest))
            })
            .unwrap();
        assert!(image.to_vec().unwrap() == expected && pixels == expected);
        assert!(below.download().unwrap() == expected[30 * COLUMNS..]);
        let halves = expected[30 * COLUMNS..].chunks(COLUMNS).flat_map(|row| &row[..COLUMNS / 2]);
        assert!(left.to_vec().unwrap().iter().eq(halves));
    });
}

/// Callers of the driver may copy all of it at once, as rows too.
fn copies_reach_over_registered_memory(setup: &Setup) {
    setup.for_each_seed(|driver| {
        let device = setup.open(Arc::clone(driver)).unwrap();
        let (driver, stream) = (device.driver(), device.stream().unwrap());
        let mut pixels: Vec<u8> = Random::new(8).elements(ROWS * COLUMNS);
        let expected = pixels.clone();
        let array = device.zeros::<u8>(ROWS * COLUMNS).unwrap();
        device.synchronize().unwrap();
        let memory = NonNull::from(pixels.as_mut_slice()).cast::<u8>();
        let at = |offset| NonNull::new(memory.as_ptr().wrapping_add(offset)).unwrap();
        let locked = [at(9_000), at(30_000)];
        for part in locked {
            // SAFETY: the vector has these bytes and outlives the registration.
            unsafe { driver.register_host(part, 5_000) }.unwrap();
        }
        let side = |place| Pitched { place, row_pitch: COLUMNS, slice_pitch: 10 * COLUMNS };
        let (on_host, on_device) = (side(Place::Host(memory.as_ptr())), side(Place::Device(array.address())));
        let left = Copy3d { dst: on_device, src: on_host, width: 600, height: 10, depth: 5 };
        // SAFETY: both sides have these bytes, which nothing else uses before the wait.
        unsafe { driver.copy_3d(&left, stream.handle()) }.unwrap();
        stream.synchronize().unwrap();
        let is_left = |at: usize| at % COLUMNS < 600;
        let found = array.download().unwrap();
        assert!((0..found.len()).all(|at| found[at] == if is_left(at) { expected[at] } else { 0 }));
        // SAFETY: as above.
        unsafe { driver.copy_h2d(array.address(), memory.as_ptr(), expected.len(), stream.handle()) }.unwrap();
        stream.synchronize().unwrap();
        // SAFETY: nothing else uses the vector, here and below.
        unsafe { memory.write_bytes(0, expected.len()) };
        // SAFETY: as above.
        unsafe { driver.copy_d2h(memory.as_ptr(), array.address(), expected.len(), stream.handle()) }.unwrap();
        stream.synchronize().unwrap();
        for part in locked {
            // SAFETY: registered above, and no work uses it.
            unsafe { driver.unregister_host(part) }.unwrap();
        }
        assert!(pixels == expected);
    });
}

/// Bytes of a page of the host.
const PAGE: usize = 4096;

/// Two parts of one page are registered apart, and copies go on from one to the other.
fn parts_of_one_page_are_registered(setup: &Setup) {
    setup.for_each_seed(|driver| {
        let device = setup.open(Arc::clone(driver)).unwrap();
        let stream = device.stream().unwrap();
        let mut array = device.alloc::<u8>(20_000).unwrap();
        let mut memory: Vec<u8> = Random::new(9).elements(20_000);
        let expected = memory.clone();
        let page = memory.as_ptr().align_offset(PAGE) + PAGE;
        device
            .default_stream()
            .scope(|s| {
                let (first, second) = memory.split_at_mut(page + 100);
                s.register(&mut first[page - 50..])?;
                let (second, third) = second.split_at_mut(200);
                s.register(&mut second[100..])?;
                s.register(&mut third[..PAGE]).map(drop)
            })
            .unwrap();
        assert_eq!(device.stats().memory.registered.bytes, 0);
        // The driver's interface borrows nothing, so one copy can take all of it.
        let driver = device.driver();
        let parts = [(page - 50, 150), (page + 200, 100), (page + 300, PAGE - 200)];
        let base = NonNull::from(memory.as_mut_slice()).cast::<u8>();
        // SAFETY: the parts lie within the vector, which outlives the registration.
        let at = |place: usize| unsafe { base.byte_add(place) };
        for (place, bytes) in parts {
            // SAFETY: as above.
            unsafe { driver.register_host(at(place), bytes) }.unwrap();
        }
        // SAFETY: both have these bytes, and nothing else uses them before the wait.
        unsafe { driver.copy_h2d(array.address(), base.as_ptr(), 20_000, stream.handle()) }.unwrap();
        stream.synchronize().unwrap();
        // SAFETY: nothing else uses the vector.
        unsafe { base.write_bytes(0, 20_000) };
        // SAFETY: as for the other copy.
        unsafe { driver.copy_d2h(base.as_ptr(), array.address(), 20_000, stream.handle()) }.unwrap();
        for (place, _) in parts {
            // SAFETY: registered above. The first call waits for the copy, after which no work uses
            // the vector.
            unsafe { driver.unregister_host(at(place)) }.unwrap();
        }
        assert!(memory == expected);
        array.upload_from(&memory).unwrap();
    });
}

/// Without memory for slots ordinary memory is still copied, and the statistics show the wait.
fn without_slots_the_driver_copies_ordinary_memory(setup: &Setup) {
    let (trace, device) = setup.traced(&setup.driver);
    device.set_route(Route::Staged(2.try_into().unwrap()));
    device.set_pinned_limit(0);
    let stream = device.stream().unwrap();
    let elements: Vec<u32> = Random::new(6).elements(3000);
    let mut array = device.alloc_array::<u32>(&[3000]).unwrap();
    let (before, stats) = (trace.calls().len(), device.stats());
    let host = stream.upload(elements.clone(), &mut array).unwrap().wait().unwrap();
    assert!(host == elements && staged(&trace, before, &[stream.handle()]) == 0);
    let copies = device.stats().since(&stats);
    assert!(copies.calls_of("copy_h2d") == 1 && copies.can_synchronize > 0, "{copies}");
    device.set_pinned_limit(64 << 20);
    assert!(stream.download(&array, host).unwrap().wait().unwrap() == elements);
    assert_eq!(staged(&trace, before, &[stream.handle()]), 1);
}

fn shapes_and_devices_are_checked(setup: &Setup) {
    let (device, other) = (setup.device(), setup.device());
    let stream = device.stream().unwrap();
    let mut array = device.alloc_array::<u8>(&[2, 3]).unwrap();
    let mut elsewhere = other.alloc_array::<u8>(&[2, 3]).unwrap();
    let refused = |outcome: Result<()>, kind: ErrorKind, part: &str| _ = refusal(outcome).of(kind).says(part);
    refused(stream.scope(|s| s.upload(&[0; 5], &mut array)), ErrorKind::InvalidArgument, "5 elements and the view");
    refused(stream.scope(|s| s.upload(&[0; 6], &mut elsewhere)), ErrorKind::InvalidArgument, "different devices");
    refused(stream.copy(&array, &mut elsewhere), ErrorKind::InvalidArgument, "different devices");
    let six = [0; 6];
    let turned = Layout::row_major(&[2, 3]).unwrap().t();
    let turned = HostSlice::with_layout(&six, turned).unwrap();
    refused(stream.scope(|s| s.upload(turned, &mut array)), ErrorKind::Layout, "equal shapes");
    stream.scope(|s| s.upload(turned, array.view_mut().t())).unwrap();
    refused(HostSlice::with_layout(&[0_u8; 5], *array.layout()).map(drop), ErrorKind::Layout, "storage of 6 elements");
    let twice = Layout::new(&[2], &[0], 0, 1).unwrap();
    refused(HostSliceMut::with_layout(&mut [0_u8; 1], twice).map(drop), ErrorKind::Layout, "an element twice");
    // The copy engine cannot do the transpose of a matrix; the error says what can.
    let mut large = device.alloc_array::<u8>(&[90, 70]).unwrap();
    let host = vec![0_u8; 6300];
    let turned = HostSlice::with_layout(&host, Layout::row_major(&[70, 90]).unwrap().t()).unwrap();
    refused(stream.scope(|s| s.upload(turned, &mut large)), ErrorKind::Layout, "ops::copy_into");
    let error = stream.upload(vec![0; 7], &mut array).unwrap_err();
    assert!(error.error().kind() == ErrorKind::InvalidArgument && error.into_host() == [0; 7]);
    let mut combined = device.write_combined::<u8>(3).unwrap();
    refused(combined.write(2, &[1, 2]), ErrorKind::InvalidArgument, "2 elements from index 2");
}

/// Memory that a failed copy gives back is the program's alone, even if the copy was queued.
fn a_failed_copy_gives_its_memory_back(setup: &Setup) {
    setup.for_each_seed(|driver| {
        let (trace, device) = setup.traced(driver);
        // That of the zeros, so that no event orders the two.
        let stream = device.default_stream().clone();
        let mut array = device.alloc_array::<u64>(&[4]).unwrap();
        let mut host = device.pinned::<u64>(4).unwrap();
        let methods = [Method::EventCreate, Method::CopyH2d, Method::EventRecord, Method::EventSynchronize];
        for (method, is_queued) in methods.into_iter().zip([false, false, true, true]) {
            array = DeviceArray::new(device.zeros(4).unwrap(), &[4]).unwrap();
            device.synchronize().unwrap();
            host.copy_from_slice(&[1, 2, 3, 4]);
            trace.fail_method(method);
            let failed = stream.upload(host, &mut array).and_then(InFlight::wait).unwrap_err();
            assert!(failed.to_string().contains("injected"), "{failed}");
            host = failed.into_host();
            host.fill(9);
            trace.fail_nothing();
            let found = array.to_vec().unwrap();
            assert_eq!(found, if is_queued { [1, 2, 3, 4] } else { [0; 4] }, "failing {method:?}");
        }
        trace.fail_method(Method::EventSynchronize);
        let failed = stream.download(&array, host).unwrap().wait().unwrap_err();
        trace.fail_nothing();
        let mut host = failed.into_host();
        host.fill(9);
        device.synchronize().unwrap();
        assert_eq!(host[..], [9; 4], "no copy writes it any more");
    });
}

fn what_is_empty_asks_nothing_of_the_driver(setup: &Setup) {
    let (trace, device) = setup.traced(&setup.driver);
    let mut array = device.alloc_array::<f64>(&[0, 3]).unwrap();
    let before = trace.calls().len();
    let (pinned, combined) = (device.pinned_zeros::<f64>(0).unwrap(), device.write_combined::<f64>(0).unwrap());
    let stream = device.default_stream();
    let pinned = stream.upload(pinned, &mut array).unwrap().wait().unwrap();
    drop(stream.upload(combined, &mut array).unwrap());
    assert_eq!(stream.download(&array, pinned).unwrap().wait().unwrap().len(), 0);
    stream.copy(&array, &mut device.alloc_array(&[0, 3]).unwrap()).unwrap();
    assert_eq!(trace.calls()[before..], []);
}

fn pinned_memory_has_a_limit_and_is_given_back(setup: &Setup) {
    let (trace, device) = setup.traced(&setup.driver);
    device.set_pinned_limit(10 << 12);
    let buffers = [3, 4].map(|pages| device.pinned::<u8>(pages << 12).unwrap());
    refusal(device.pinned::<u32>(4 << 10))
        .of(ErrorKind::OutOfMemory)
        .says("hold 28672 of the device's limit of 40960 bytes");
    let before = trace.calls().len();
    drop(buffers);
    assert_eq!(trace.calls()[before..], [], "a drop asks nothing of the driver");
    let held = PinnedMemory { held: 7 << 12, in_use: 0, cached: 7 << 12, peak: 7 << 12, limit: 10 << 12 };
    assert_eq!(device.pinned_memory(), held);
    drop(device.pinned::<u64>(4 << 9).unwrap());
    assert_eq!(trace.calls()[before..], [], "what is cached is used again");
    assert_eq!(device.trim_pinned(4 << 12), Ok(4 << 12));
    let whole = device.pinned::<u8>(10 << 12).unwrap();
    assert_eq!(device.pinned_memory().held, 10 << 12, "what was cached made room");
    drop((device, whole));
    assert!(trace.live().is_empty(), "{:?}", trace.live());
}

/// Uses all copies and all kinds of memory once.
fn everything(setup: &Setup, driver: Arc<Trace>) -> Result<()> {
    let device = setup.open(driver)?;
    let stream = device.stream()?;
    let elements: Vec<u32> = (0..48).collect();
    let mut array = device.alloc_array::<u32>(&[6, 8])?;
    let mut registered = elements.clone();
    let mut result = device.pinned_zeros::<u32>(24)?;
    stream.scope(|s| {
        s.upload(s.register(&mut registered)?, &mut array)?;
        s.download(array.slice(1, ..4, 1)?, &mut result)
    })?;
    assert!(result.chunks(4).zip(elements.chunks(8)).all(|(half, row)| *half == row[..4]));
    drop(stream.upload(elements.clone(), &mut array)?);
    drop(stream.download(&array, device.pinned::<u32>(48)?)?);
    let other = device.stream()?;
    let copied = ops::contiguous(&array)?;
    let flight = other.download(&copied, device.pinned::<u32>(48)?)?;
    let mut combined = device.write_combined(48)?;
    combined.write(0, &elements)?;
    stream.upload(combined, &mut array)?.wait()?;
    let mut copy = device.alloc_array(&[6, 8])?;
    other.copy(&array, &mut copy)?;
    let mut back = other.download(&copy, vec![0; 48])?;
    while !back.is_done()? {}
    assert_eq!(back.wait()?, elements);
    assert_eq!(flight.wait()?[..], elements);
    device.synchronize()?;
    device.trim_pinned(0)?;
    Ok(())
}

fn every_call_of_a_copy_may_fail(setup: &Setup) {
    let clean = Arc::new(Trace::new(Arc::clone(&setup.driver)));
    everything(setup, clean.clone()).unwrap();
    assert!(clean.live().is_empty(), "{:?}", clean.live());
    for (index, call) in clean.calls().iter().enumerate() {
        let trace = Arc::new(Trace::new(Arc::clone(&setup.driver)));
        trace.fail_nth(index);
        // If a drop or a look at parked memory fails, the rest gives the right values.
        if let Err(error) = everything(setup, trace.clone()) {
            assert!(error.to_string().contains("injected"), "failing {call}: {error}");
        }
    }
}
