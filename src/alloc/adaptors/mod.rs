//! Allocators that wrap another one. Each does one thing, and they can be stacked.

mod hold_back;
mod limit;
mod logged;
mod statistics;

pub use hold_back::HoldBack;
pub use limit::Limit;
pub use logged::{COLUMNS, LOST, Logged};
pub use statistics::Statistics;

/// The methods of `Allocate` that an adaptor passes on.
macro_rules! pass_on {
    ($($method:ident)*) => {
        $($crate::alloc::adaptors::pass_on!(@ $method);)*
    };
    (@ lanes) => {
        fn is_over(&self, driver: &std::sync::Arc<dyn $crate::driver::Driver>) -> bool {
            self.inner.is_over(driver)
        }

        unsafe fn open(&self, stream: $crate::driver::StreamHandle) -> $crate::error::Result<$crate::alloc::Lane> {
            // SAFETY: as the caller promises.
            unsafe { self.inner.open(stream) }
        }

        unsafe fn close(&self, lane: &$crate::alloc::Lane) -> $crate::error::Result<()> {
            // SAFETY: as the caller promises.
            unsafe { self.inner.close(lane) }
        }
    };
    (@ rest) => {
        fn trim(&self, keep: u64) -> $crate::error::Result<u64> {
            self.inner.trim(keep)
        }

        fn snapshot(&self) -> $crate::alloc::Snapshot {
            self.inner.snapshot()
        }
    };
    (@ figures) => {
        fn figures(&self) -> $crate::alloc::Figures {
            self.inner.figures()
        }
    };
}
use pass_on;
