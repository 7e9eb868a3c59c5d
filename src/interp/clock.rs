//! The host's clocks, where it has any: WebAssembly without a system has none, and the standard library panics there.

use std::time::Duration;

/// Time since 1970, by a clock that may be set; `None` without one, and where it is set before 1970.
pub(crate) fn since_1970() -> Option<Duration> {
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    return std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok();
    #[cfg(all(target_family = "wasm", target_os = "unknown"))]
    return None;
}

/// Time since this was first called, by a clock that only goes forward; 0 without one.
pub(crate) fn elapsed() -> Duration {
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    {
        static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        START.get_or_init(std::time::Instant::now).elapsed()
    }
    #[cfg(all(target_family = "wasm", target_os = "unknown"))]
    Duration::ZERO
}
