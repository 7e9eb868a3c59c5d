//! Device and page-locked memory.

use warpstride::ErrorKind;

use crate::backend::{SOFT_MEMORY_BYTES, Setup, cases};
use crate::program::Program;

cases! {
    Any allocations_are_aligned_and_lie_apart,
    Any more_than_there_is_is_out_of_memory_and_does_no_harm,
    Any freed_memory_is_there_again,
    Any page_locked_memory_is_aligned_and_zeroed,
    SoftwareGpu("its memory is used by nobody else") the_books_of_memory_are_exact,
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
        let error = setup.driver.alloc(bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
        assert!(error.to_string().contains(&bytes.to_string()), "{error}");
        assert!(error.to_string().contains("free"), "{error}");
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
    let program = Program::new(&setup.driver);
    for bytes in [1, 63, 64, 65, 4097, 1 << 20] {
        let memory = program.pinned(bytes).unwrap();
        assert_eq!(memory.memory.addr().get() % 64, 0, "{bytes} bytes");
        assert!(memory.get().iter().all(|&byte| byte == 0), "{bytes} bytes");
        // The next allocation may reuse this memory.
        memory.set(&vec![0xff; bytes]);
    }
}

fn the_books_of_memory_are_exact(setup: &Setup) {
    let free = || setup.driver.memory().unwrap();
    assert_eq!(free(), (SOFT_MEMORY_BYTES, SOFT_MEMORY_BYTES));
    let program = Program::new(&setup.driver);
    let buffer = program.buffer(1000).unwrap();
    assert_eq!(free(), (SOFT_MEMORY_BYTES - 1000, SOFT_MEMORY_BYTES));
    let error = setup.driver.alloc(SOFT_MEMORY_BYTES).unwrap_err().to_string();
    assert!(error.contains(&(SOFT_MEMORY_BYTES - 1000).to_string()), "it names what is free: {error}");
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
        let error = unsafe { setup.driver.free(wrong) }.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidHandle, "{error}");
        assert!(error.to_string().contains(&format!("{wrong:#x}")), "{error}");
    }
    // SAFETY: as above.
    let error = unsafe { setup.driver.free_host((&mut elsewhere).into()) }.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidHandle, "{error}");
}
