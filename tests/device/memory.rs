//! Device and page-locked memory.

use std::ptr::NonNull;

use warpstride::ErrorKind;
use warpstride::driver::HostKind;

use crate::backend::{SOFT_MEMORY_BYTES, Setup, cases};
use crate::failures::refusal;
use crate::program::{Program, assert_same};

cases! {
    Any allocations_are_aligned_and_lie_apart,
    Any more_than_there_is_is_out_of_memory_and_does_no_harm,
    Any freed_memory_is_there_again,
    Any page_locked_memory_is_aligned_and_zeroed,
    Any memory_is_registered_once,
    Any the_pool_frees_in_the_order_of_the_stream,
    Any the_pool_gives_memory_out_again,
    Any more_than_the_pool_can_have_is_out_of_memory,
    SoftwareGpu("it looks at every address that it is to free") the_pool_knows_its_own_memory,
    SoftwareGpu("its memory has no other user") the_books_of_memory_are_exact,
    SoftwareGpu("it looks at every address that it is to free") releasing_what_is_not_there_is_an_invalid_handle,
}

fn allocations_are_aligned_and_lie_apart(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let buffers = [1, 255, 256, 257, 4096, 1 << 20].map(|bytes| program.buffer(bytes).unwrap());
    let mut ranges = buffers.each_ref().map(|buffer| (buffer.address, buffer.bytes as u64));
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:x?} overlap");
    }
    for (address, bytes) in ranges {
        assert_eq!(address % 256, 0, "{bytes} bytes at {address:#x}");
    }
}

fn more_than_there_is_is_out_of_memory_and_does_no_harm(setup: &Setup) {
    let total = setup.driver.info().memory_bytes;
    for bytes in [total + 1, total * 2, u64::MAX / 2] {
        refusal(setup.driver.alloc(bytes)).of(ErrorKind::OutOfMemory).says(&bytes.to_string()).says("free");
    }
    let program = Program::new(&setup.driver);
    program.upload(&[1, 2, 3]).unwrap();
}

fn freed_memory_is_there_again(setup: &Setup) {
    let quarter = setup.driver.info().memory_bytes / 4;
    for round in 0..9 {
        let address = setup.driver.alloc(quarter).unwrap_or_else(|error| panic!("round {round}: {error}"));
        // SAFETY: allocated above, and not used.
        unsafe { setup.driver.free(address) }.unwrap();
    }
}

fn page_locked_memory_is_aligned_and_zeroed(setup: &Setup) {
    let write_combined = setup.driver.alloc_host(5000, HostKind::WriteCombined).unwrap();
    assert_eq!(write_combined.addr().get() % 64, 0);
    // SAFETY: allocated above, and not used.
    unsafe { setup.driver.free_host(write_combined) }.unwrap();
    let program = Program::new(&setup.driver);
    for bytes in [1, 63, 64, 65, 4097, 1 << 20] {
        let memory = program.pinned(bytes).unwrap();
        assert_eq!(memory.memory.addr().get() % 64, 0, "{bytes} bytes");
        assert!(memory.get().iter().all(|&byte| byte == 0), "{bytes} bytes");
        // The next allocation may reuse this memory.
        memory.set(&vec![0xff; bytes]);
    }
}

fn memory_is_registered_once(setup: &Setup) {
    let mut memory = vec![0_u8; 100_000];
    let first = NonNull::new(memory.as_mut_ptr()).unwrap();
    // SAFETY: the vector has these bytes and outlives the registration, here and below.
    unsafe { setup.driver.register_host(first, 100_000) }.unwrap();
    // SAFETY: as above.
    refusal(unsafe { setup.driver.register_host(first, 100_000) }).of(ErrorKind::InvalidArgument);
    // SAFETY: registered above, and not used.
    unsafe { setup.driver.unregister_host(first) }.unwrap();
    // SAFETY: it is refused, since it is not registered any more.
    refusal(unsafe { setup.driver.unregister_host(first) }).of(ErrorKind::InvalidHandle);
}

/// Returns whether there is a pool. Without one, its allocations are an error that says so.
fn has_pool(program: &Program) -> bool {
    let driver = &program.driver;
    if !driver.has_pool() {
        let stream = program.stream().unwrap();
        // SAFETY: the stream is live.
        refusal(unsafe { driver.pool_alloc(1, stream.handle) }).of(ErrorKind::Unavailable);
    }
    driver.has_pool()
}

/// Work that was queued before the free still uses the memory, and another allocation on the same
/// stream does not disturb it.
fn the_pool_frees_in_the_order_of_the_stream(setup: &Setup) {
    setup.for_each_seed(|driver| {
        let program = Program::new(driver);
        if !has_pool(&program) {
            return;
        }
        let (stream, target) = (program.stream().unwrap(), program.buffer(1000).unwrap());
        for round in 0..4 {
            // SAFETY: the stream is live, here and below.
            let address = unsafe { driver.pool_alloc(1000, stream.handle) }.unwrap();
            assert_eq!(address % 256, 0);
            // SAFETY: the allocation has 1000 bytes.
            unsafe { driver.fill(address, round, 1000, stream.handle) }.unwrap();
            // SAFETY: both have 1000 bytes.
            unsafe { driver.copy_d2d(target.address, address, 1000, stream.handle) }.unwrap();
            // SAFETY: all its uses are queued on the stream.
            unsafe { driver.pool_free(address, stream.handle) }.unwrap();
            // SAFETY: as above.
            let next = unsafe { driver.pool_alloc(1000, stream.handle) }.unwrap();
            // SAFETY: the allocation has 1000 bytes.
            unsafe { driver.fill(next, 0xEE, 1000, stream.handle) }.unwrap();
            // SAFETY: all its uses are queued on the stream.
            unsafe { driver.pool_free(next, stream.handle) }.unwrap();
            assert_same(&program.download(&target, &stream).unwrap(), &[round; 1000], format!("round {round}"));
        }
    });
}

fn the_pool_gives_memory_out_again(setup: &Setup) {
    let (program, driver) = (Program::new(&setup.driver), &setup.driver);
    if !has_pool(&program) {
        return;
    }
    let stream = program.stream().unwrap();
    let quarter = driver.info().memory_bytes / 4;
    for round in 0..9 {
        // SAFETY: the stream is live.
        let address = unsafe { driver.pool_alloc(quarter, stream.handle) };
        let address = address.unwrap_or_else(|error| panic!("round {round}: {error}"));
        // SAFETY: nothing uses the allocation.
        unsafe { driver.pool_free(address, stream.handle) }.unwrap();
    }
    stream.synchronize().unwrap();
    driver.pool_trim(0).unwrap();
    // Memory that the pool has given back is there for others.
    let address = driver.alloc(quarter * 2).unwrap();
    // SAFETY: allocated above, and not used.
    unsafe { driver.free(address) }.unwrap();
}

fn more_than_the_pool_can_have_is_out_of_memory(setup: &Setup) {
    let program = Program::new(&setup.driver);
    if !has_pool(&program) {
        return;
    }
    let stream = program.stream().unwrap();
    let total = setup.driver.info().memory_bytes;
    for bytes in [total + 1, total * 2, u64::MAX / 2] {
        // SAFETY: the stream is live.
        refusal(unsafe { setup.driver.pool_alloc(bytes, stream.handle) }).of(ErrorKind::OutOfMemory);
    }
    program.upload(&[1, 2, 3]).unwrap();
}

fn the_pool_knows_its_own_memory(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let stream = program.stream().unwrap();
    let buffer = program.buffer(100).unwrap();
    // SAFETY: the stream is live, and the software GPU looks before it frees, here and below.
    let address = unsafe { setup.driver.pool_alloc(100, stream.handle) }.unwrap();
    // SAFETY: as above.
    unsafe { setup.driver.pool_free(address, stream.handle) }.unwrap();
    for wrong in [address, buffer.address, 0] {
        // SAFETY: as above.
        refusal(unsafe { setup.driver.pool_free(wrong, stream.handle) }).of(ErrorKind::InvalidHandle);
    }
}

fn the_books_of_memory_are_exact(setup: &Setup) {
    let free = || setup.driver.memory().unwrap();
    assert_eq!(free(), (SOFT_MEMORY_BYTES, SOFT_MEMORY_BYTES));
    let program = Program::new(&setup.driver);
    let buffer = program.buffer(1000).unwrap();
    assert_eq!(free(), (SOFT_MEMORY_BYTES - 1000, SOFT_MEMORY_BYTES));
    // The error names the bytes that are free.
    refusal(setup.driver.alloc(SOFT_MEMORY_BYTES)).says(&(SOFT_MEMORY_BYTES - 1000).to_string());
    drop(buffer);
    assert_eq!(free(), (SOFT_MEMORY_BYTES, SOFT_MEMORY_BYTES));
}

fn releasing_what_is_not_there_is_an_invalid_handle(setup: &Setup) {
    let mut elsewhere = 0_u8;
    let address = setup.driver.alloc(16).unwrap();
    // SAFETY: the software GPU looks before it frees.
    unsafe { setup.driver.free(address) }.unwrap();
    for wrong in [address, address + 1, 0, u64::MAX] {
        // SAFETY: as above.
        refusal(unsafe { setup.driver.free(wrong) }).of(ErrorKind::InvalidHandle).says(&format!("{wrong:#x}"));
    }
    // SAFETY: as above.
    refusal(unsafe { setup.driver.free_host((&mut elsewhere).into()) }).of(ErrorKind::InvalidHandle);
}
