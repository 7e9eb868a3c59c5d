//! Allocations, what their addresses are, and pools.

use std::ffi::c_void;

use super::*;
use crate::api::{Context, kernel, launch};
use crate::calls::{call, ok};
use crate::child::{in_child, is_child};

#[test]
fn kernels_use_memory_of_the_host_at_its_address() {
    let _context = Context::new();
    let add = kernel(ADD, "add\0");
    let mut managed = 0;
    done(cuMemAllocManaged(&mut managed, 400, 1));
    let mut own = vec![0_u32; 100];
    done(cuMemHostRegister_v2(own.as_mut_ptr().cast(), 400, 2));
    let locked = locked(400);
    let places = [managed, own.as_ptr().expose_provenance() as u64, address(locked)];
    for place in places {
        // SAFETY: each place has 100 numbers, and no queued work uses them.
        let words = unsafe {
            std::slice::from_raw_parts_mut(std::ptr::with_exposed_provenance_mut::<u32>(place as usize), 100)
        };
        for (number, word) in (0..).zip(words.iter_mut()) {
            *word = number;
        }
        done(launch(add, 100, 0, &mut [place]));
        done(cuCtxSynchronize());
        let expected: Vec<u32> = (1..101).collect();
        assert_eq!(std::hint::black_box(words), expected);
        let copied = device(400);
        done(cuMemcpyDtoD_v2(copied, place, 400));
        assert_eq!(read(copied, 8), [1, 0, 0, 0, 2, 0, 0, 0]);
    }
    let mut mapped = 0;
    done(cuMemHostGetDevicePointer_v2(&mut mapped, locked.as_mut_ptr(), 0));
    assert_eq!(mapped, address(locked));
    done(cuMemHostUnregister(own.as_mut_ptr().cast()));
    done(cuMemFree_v2(managed));
    done(cuMemFreeHost(locked.as_mut_ptr()));
}

#[test]
fn an_address_says_what_it_is() {
    let context = Context::new();
    let at = device(1000);
    assert_eq!(attribute::<u64>(1, at + 9), Ok(context.handle));
    assert_eq!([2, 8, 9, 13, 16].map(|number| attribute::<u32>(number, at + 9)), [2, 0, 0, 1, 3].map(Ok));
    assert_eq!(
        [3, 11, 12, 18, 19].map(|number| attribute::<u64>(number, at + 9)),
        [at + 9, at, 1000, 1000, at].map(Ok)
    );
    assert_eq!(attribute::<u64>(4, at), Err(INVALID_VALUE));
    assert_eq!(attribute::<u32>(2, at + 1000), Err(INVALID_VALUE));
    assert_eq!(attribute::<u32>(99, at), Err(INVALID_VALUE));
    let other = device(1);
    assert_ne!(attribute::<u64>(7, at), attribute::<u64>(7, other));
    let memory = locked(10);
    let host = address(memory) + 3;
    assert_eq!([2, 8].map(|number| attribute::<u32>(number, host)), [Ok(1), Ok(0)]);
    assert_eq!([3, 4].map(|number| attribute::<u64>(number, host)), [Ok(host), Ok(host)]);
    let mut managed = 0;
    done(cuMemAllocManaged(&mut managed, 10, 1));
    assert_eq!([2, 8].map(|number| attribute::<u32>(number, managed)), [Ok(2), Ok(1)]);
    assert_eq!([3, 4].map(|number| attribute::<u64>(number, managed)), [Ok(managed), Ok(managed)]);

    let pageable = [0_u8; 4];
    assert_eq!(attribute::<u32>(2, address(&pageable)), Err(INVALID_VALUE));
    assert_eq!(attribute::<u32>(13, address(&pageable)), Ok(0));
    let (mut kind, mut ordinal, mut owner) = (9_u32, 9_i32, 9_u64);
    let places: [*mut c_void; 3] = [(&raw mut kind).cast(), (&raw mut ordinal).cast(), (&raw mut owner).cast()];
    let get = |at| cuPointerGetAttributes(3, [2, 9, 1].as_ptr(), places.as_ptr(), at);
    done(get(address(&pageable)));
    assert_eq!(std::hint::black_box((kind, ordinal, owner)), (0, -2, 0));
    done(get(at));
    assert_eq!(std::hint::black_box((kind, ordinal, owner)), (2, 0, context.handle));
    let (mut base, mut bytes) = (0, 0);
    done(cuMemGetAddressRange_v2(&mut base, &mut bytes, at + 999));
    assert_eq!((base, bytes), (at, 1000));
    assert_eq!(cuMemGetAddressRange_v2(&mut base, &mut bytes, at + 1000), NOT_FOUND);
    done(cuMemFreeHost(memory.as_mut_ptr()));
}

/// Memory that the process cannot write.
static READ_ONLY: [u8; 8192] = [1; 8192];

#[test]
fn page_locked_memory_is_registered_once() {
    let _context = Context::new();
    let mut own = vec![0_u8; 100];
    let first = own.as_mut_ptr();
    done(cuMemHostRegister_v2(first, 100, 1));
    assert_eq!(cuMemHostRegister_v2(first, 100, 0), ALREADY_REGISTERED);
    assert_eq!(cuMemHostRegister_v2(first.wrapping_add(50), 10, 0), ALREADY_REGISTERED);
    let (mut flags, mut mapped) = (0, 0);
    done(cuMemHostGetFlags(&mut flags, first.wrapping_add(99)));
    assert_eq!(flags, 1);
    assert_eq!(cuMemHostUnregister(first.wrapping_add(1)), NOT_REGISTERED);
    assert_eq!(cuMemFreeHost(first), INVALID_VALUE);
    done(cuMemHostUnregister(first));
    assert_eq!(cuMemHostUnregister(first), NOT_REGISTERED);
    assert_eq!(cuMemHostGetDevicePointer_v2(&mut mapped, first, 0), INVALID_VALUE);
    assert_eq!(cuMemHostGetFlags(&mut flags, first), INVALID_VALUE);
    for (memory, bytes, flags) in [
        (first, 0, 0),
        (first, 100, 64),
        (std::ptr::null_mut(), 8, 0),
        (std::ptr::without_provenance_mut(1 << 45), 8, 0),
        (first, usize::MAX, 0),
        (first, 1 << 50, 0),
        (READ_ONLY.as_ptr().cast_mut(), 4096, 0),
    ] {
        assert_eq!(cuMemHostRegister_v2(memory, bytes, flags), INVALID_VALUE, "{memory:p}, {bytes}, {flags}");
    }
    let mut memory = std::ptr::null_mut();
    done(cuMemHostAlloc(&mut memory, 10, 4 | 2 | 1));
    done(cuMemHostGetFlags(&mut flags, memory));
    assert_eq!(flags, 7);
    assert_eq!(cuMemHostRegister_v2(memory, 10, 0), ALREADY_REGISTERED);
    assert_eq!(cuMemHostUnregister(memory), NOT_REGISTERED);
    done(cuMemFreeHost(memory));
    assert_eq!(cuMemFreeHost(memory), INVALID_VALUE);
    assert_eq!(cuMemHostAlloc(&mut memory, 10, 8), INVALID_VALUE);
    assert_eq!(cuMemAllocHost_v2(&mut memory, 0), INVALID_VALUE);
    assert_eq!(cuMemAllocHost_v2(&mut memory, usize::MAX), OUT_OF_MEMORY);
}

#[test]
fn advice_is_checked_and_remembered() {
    let _context = Context::new();
    let (mut at, mut value) = (0, [0_i32; 2]);
    assert_eq!(cuMemAllocManaged(&mut at, 100, 0), INVALID_VALUE);
    assert_eq!(cuMemAllocManaged(&mut at, 100, 4), INVALID_VALUE);
    done(cuMemAllocManaged(&mut at, 100, 2));
    let mut get = |number, room| {
        let got = cuMemRangeGetAttribute(value.as_mut_ptr().cast(), room, number, at, 100);
        if got == 0 { Ok(std::hint::black_box(value)[0]) } else { Err(got) }
    };
    assert_eq!([1, 2, 3, 4].map(|number| get(number, 4)), [0, -2, -2, -2].map(Ok));
    done(cuMemAdvise(at, 100, 1, 0));
    done(cuMemAdvise(at, 100, 3, -1));
    done(cuMemAdvise(at, 100, 5, 0));
    done(cuMemPrefetchAsync(at, 100, 0, 0));
    assert_eq!([1, 2, 3, 4].map(|number| get(number, 4)), [1, -1, 0, 0].map(Ok));
    assert_eq!([get(3, 8), get(2, 8), get(1, 0), get(99, 4)], [Ok(0), Err(1), Err(1), Err(1)]);
    assert_eq!(cuMemAdvise(at, 101, 1, 0), INVALID_VALUE);
    assert_eq!(cuMemAdvise(at, 100, 9, 0), INVALID_VALUE);
    assert_eq!(cuMemAdvise(device(8), 8, 1, 0), INVALID_VALUE);
    assert_ne!(cuMemPrefetchAsync(at, 100, 77, 0), 0);
    done(cuMemFree_v2(at));
    assert_eq!(cuMemAdvise(at, 100, 1, 0), INVALID_VALUE);
}

#[test]
fn pools_allocate_in_the_order_of_a_stream() {
    let _context = Context::new();
    let (mut default, mut pool, mut at, on) = (0, 0, 0, stream());
    done(cuDeviceGetDefaultMemPool(&mut default, 0));
    let used = |pool| {
        let mut used = 0_u64;
        done(cuMemPoolGetAttribute(pool, 7, (&raw mut used).cast()));
        used
    };
    let before = used(default);
    done(cuMemAllocAsync(&mut at, 100, on));
    assert_eq!(used(default), before + 100);
    assert_eq!(attribute::<u64>(17, at), Ok(default));
    done(cuMemsetD32Async(at, 7, 25, on));
    let target = locked(100);
    done(cuMemcpyDtoHAsync_v2(target.as_mut_ptr(), at, 100, on));
    done(cuMemFreeAsync(at, on));
    assert_eq!(cuMemFreeAsync(at, on), INVALID_VALUE);
    assert_eq!(used(default), before);
    done(cuStreamSynchronize(on));
    assert_eq!(std::hint::black_box(&mut *target)[96..], [7, 0, 0, 0]);
    assert_eq!(cuMemFreeAsync(device(8), on), INVALID_VALUE);

    let mut properties = [0_u8; 88];
    properties[0] = 1;
    properties[8] = 1;
    done(cuMemPoolCreate(&mut pool, properties.as_ptr().cast()));
    done(cuDeviceSetMemPool(0, pool));
    done(cuMemAllocAsync(&mut at, 100, on));
    assert_eq!((used(pool), used(default)), (100, before));
    done(cuMemFree_v2(at));
    assert_eq!(used(pool), 0);
    let mut threshold = 77_u64;
    done(cuMemPoolSetAttribute(pool, 4, (&raw mut threshold).cast()));
    done(cuMemPoolGetAttribute(pool, 4, (&raw mut threshold).cast()));
    assert_eq!(threshold, 77);
    assert_eq!(cuMemPoolSetAttribute(pool, 7, (&raw mut threshold).cast()), INVALID_VALUE);
    done(cuMemPoolDestroy(pool));
    assert_eq!(cuMemPoolDestroy(pool), INVALID_VALUE);
    assert_eq!(cuMemPoolDestroy(default), INVALID_VALUE);
    let mut current = 0;
    done(cuDeviceGetMemPool(&mut current, 0));
    assert_eq!(current, default);
    properties[4] = 1;
    assert_eq!(cuMemPoolCreate(&mut pool, properties.as_ptr().cast()), NOT_SUPPORTED);
    done(cuMemFreeHost(target.as_mut_ptr()));
}

#[test]
fn what_a_context_had_is_free_when_it_ends() {
    let (mut free, mut total) = (0, 0);
    let context = Context::new();
    done(cuMemGetInfo_v2(&mut free, &mut total));
    let before = free;
    let at = device(1 << 20);
    done(cuMemGetInfo_v2(&mut free, &mut total));
    assert_eq!((before - free, free <= total), (1 << 20, true));
    drop(context);
    let _context = Context::new();
    done(cuMemGetInfo_v2(&mut free, &mut total));
    assert_eq!(free, before);
    assert_eq!(cuMemFree_v2(at), INVALID_VALUE);
}

#[test]
fn a_graphs_copy_to_freed_memory_is_an_error() {
    if !is_child() {
        // The device fails.
        in_child("memory::allocations::a_graphs_copy_to_freed_memory_is_an_error", &[]);
        return;
    }
    assert_eq!(call!(cuInit(0_u32)), 0);
    let (mut context, mut graph, mut exec, mut managed) = (0_u64, 0_u64, 0_u64, 0_u64);
    ok!(cuCtxCreate_v2(&raw mut context, 0_u32, 0_i32));
    // The system takes back so much at once, and its addresses with it.
    let bytes = 64_usize << 20;
    ok!(cuMemAllocManaged(&raw mut managed, bytes, 1_u32));
    let (on, data) = (stream(), numbers(64));
    ok!(cuStreamBeginCapture_v2(on, 0_u32));
    ok!(cuMemcpyHtoDAsync_v2(managed, data.as_ptr(), data.len(), on));
    ok!(cuStreamEndCapture(on, &raw mut graph));
    ok!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0_u64));
    ok!(cuGraphLaunch(exec, on));
    ok!(cuStreamSynchronize(on));
    ok!(cuMemFree_v2(managed));
    let launched = call!(cuGraphLaunch(exec, on));
    assert!(launched != 0 || call!(cuStreamSynchronize(on)) != 0);
}

#[test]
fn a_graphs_copy_from_memory_that_was_registered_is_right() {
    let _context = Context::new();
    let (mut graph, mut exec, at, on) = (0_u64, 0_u64, device(64), stream());
    let mut data = numbers(64);
    ok!(cuMemHostRegister_v2(data.as_mut_ptr().cast::<c_void>(), data.len(), 0_u32));
    ok!(cuStreamBeginCapture_v2(on, 0_u32));
    ok!(cuMemcpyHtoDAsync_v2(at, data.as_ptr(), data.len(), on));
    ok!(cuStreamEndCapture(on, &raw mut graph));
    ok!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0_u64));
    ok!(cuMemHostUnregister(data.as_mut_ptr().cast::<c_void>()));
    ok!(cuGraphLaunch(exec, on));
    ok!(cuStreamSynchronize(on));
    assert_eq!(read(at, 64), data);
}
