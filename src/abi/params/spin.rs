//! The gate that measurements queue behind.

use crate::abi::params;

params! {
    /// Parameters of `spin`: keeps a stream busy for `nanoseconds`, so that what is queued behind
    /// it starts without gaps.
    pub struct SpinParams {
        /// How long, by the device's global timer.
        pub nanoseconds: u64,
    }
}
