//! The generic address space: the meaning of an address without a state space.
//!
//! Global allocations lie at multiples of 1 << 40. Below that, each of the following 4 GiB ranges
//! is a window onto another space.

use crate::gpu::vocabulary::Space;

/// The beginning of the window onto shared memory.
pub(crate) const SHARED: u64 = 1 << 32;
/// The beginning of the window onto a thread's local memory.
pub(crate) const LOCAL: u64 = 2 << 32;
/// The beginning of the window onto the parameters.
pub(crate) const PARAM: u64 = 3 << 32;
/// The beginning of the addresses of functions; nothing can be loaded from them.
const CODE: u64 = 4 << 32;
/// The bit of a global address that says that it is a constant variable's.
pub(crate) const CONSTANT: u64 = 1 << 39;
/// Bytes between the addresses of consecutive functions.
const CODE_STEP: u64 = 16;

/// The address of the function of this number.
pub(crate) fn function_address(number: u32) -> u64 {
    CODE + CODE_STEP * u64::from(number)
}

/// The number of a function that could have this address.
pub(crate) fn function_number(address: u64) -> Option<u32> {
    let distance = address.checked_sub(CODE).filter(|distance| distance.is_multiple_of(CODE_STEP))?;
    u32::try_from(distance / CODE_STEP).ok()
}

/// The base of the window that contains a generic address, or 0 if the address is global.
#[inline(always)]
pub(crate) fn window(address: u64) -> u64 {
    let base = address & !0xffff_ffff;
    if matches!(base, SHARED | LOCAL | PARAM) { base } else { 0 }
}

/// The space whose window contains a generic address.
pub(crate) fn named(address: u64) -> Option<Space> {
    match window(address) {
        SHARED => Some(Space::Shared),
        LOCAL => Some(Space::Local),
        PARAM => Some(Space::Param),
        _ => None,
    }
}

/// Returns whether a generic address is that of a constant variable, which lies beyond the
/// addresses of the host.
pub(crate) fn is_constant(address: u64) -> bool {
    address >= 1 << 47 && address & CONSTANT != 0
}

/// Returns whether an address, and so every higher one, is global.
#[inline(always)]
pub(crate) fn is_beyond_windows(address: u64) -> bool {
    address >= 4 << 32
}
