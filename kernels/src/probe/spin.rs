//! Keeps a stream busy.

use crate::abi::SpinParams;
use crate::thread;

/// Reads the timer until the time is over.
#[inline(always)]
pub fn spin(params: SpinParams) {
    let start = thread::globaltimer();
    while thread::globaltimer().wrapping_sub(start) < params.nanoseconds {}
}
