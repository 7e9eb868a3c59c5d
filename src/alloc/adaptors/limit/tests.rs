use super::*;
use crate::alloc::Caching;
use crate::driver::StreamHandle;
use crate::error::ErrorKind;

#[test]
fn a_limit_holds_to_the_byte_and_failures_count_nothing() {
    let limit = Limit::new(Caching::simulated(1 << 30), 1000);
    // SAFETY: a simulation has no streams.
    let lane = unsafe { limit.open(StreamHandle(1)) }.unwrap();
    // SAFETY: the lane is open, here and below.
    let alloc = |bytes| unsafe { limit.alloc(&Request::new(bytes, &lane)) };
    let first = alloc(600).unwrap();
    let error = alloc(401).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(error.to_string().contains("401 bytes does not fit beside the 600 bytes in use"), "{error}");
    let second = alloc(400).unwrap();
    for block in [first, second] {
        // SAFETY: `limit` gave it out, and nothing uses it.
        unsafe { limit.free(block, &lane) }.unwrap();
    }
    assert!(alloc(0).is_err());
    assert!(alloc(1000).is_ok());
}
