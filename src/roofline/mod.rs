//! How far an operation is from what the device can do.

pub mod clocks;
pub mod compare;
pub mod measure;
pub mod model;
#[cfg(feature = "plot")]
pub mod page;
mod patience;
pub mod peak;
#[cfg(feature = "plot")]
pub mod plot;
pub mod report;
