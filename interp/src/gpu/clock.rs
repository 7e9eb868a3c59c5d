//! The host's clocks, where it has any: WebAssembly without a system has none, and the standard
//! library panics there.

use std::time::Duration;

/// Time since 1970, by a clock that may be set; `None` without one, and where it is set before
/// 1970.
pub(crate) fn since_1970() -> Option<Duration> {
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    return std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok();
    #[cfg(all(target_family = "wasm", target_os = "unknown"))]
    return None;
}
