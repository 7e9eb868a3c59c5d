//! Keeps a stream busy, so that measured work queues behind it.

use crate::abi::params;

params! {
    /// Parameters of `spin`: keeps a stream busy for `nanoseconds`, so that work queued behind it
    /// starts without gaps.
    pub struct SpinParams {
        /// The time, by the device's global timer.
        pub nanoseconds: u64,
    }
}
