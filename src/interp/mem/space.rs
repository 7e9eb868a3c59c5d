//! The generic address space: what an address without a state space means.
//!
//! Global allocations lie at multiples of 1 << 40. Below that, each 4 GiB from here on is a window onto another space.

use crate::interp::vocabulary::Space;

/// Where the window onto shared memory begins.
pub(crate) const SHARED: u64 = 1 << 32;
/// Where the window onto a thread's local memory begins.
pub(crate) const LOCAL: u64 = 2 << 32;
/// Where the window onto the parameters begins.
pub(crate) const PARAM: u64 = 3 << 32;
/// Where the addresses of functions begin; nothing can be loaded from them.
const CODE: u64 = 4 << 32;
/// Bytes from one function's address to the next one's.
const CODE_STEP: u64 = 16;

/// The address of the function of this number.
pub(crate) fn function_address(number: u32) -> u64 {
    CODE + CODE_STEP * u64::from(number)
}

/// The number of the function that may be at this address.
pub(crate) fn function_number(address: u64) -> Option<u32> {
    let distance = address.checked_sub(CODE).filter(|distance| distance.is_multiple_of(CODE_STEP))?;
    u32::try_from(distance / CODE_STEP).ok()
}

/// The base of the window that a generic address lies in, or 0 where it means global memory.
#[inline(always)]
pub(crate) fn window(address: u64) -> u64 {
    let base = address & !0xffff_ffff;
    if matches!(base, SHARED | LOCAL | PARAM) { base } else { 0 }
}

/// The space whose window a generic address lies in.
pub(crate) fn named(address: u64) -> Option<Space> {
    match window(address) {
        SHARED => Some(Space::Shared),
        LOCAL => Some(Space::Local),
        PARAM => Some(Space::Param),
        _ => None,
    }
}

/// Whether an address, and so every higher one, means global memory.
#[inline(always)]
pub(crate) fn is_beyond_windows(address: u64) -> bool {
    address >= 4 << 32
}
