//! Measures operations, and holds them against the most that the device can do.

pub mod compare;
pub mod measure;
pub mod model;
#[cfg(feature = "plot")]
pub mod page;
pub mod peak;
#[cfg(feature = "plot")]
pub mod plot;
pub mod report;
